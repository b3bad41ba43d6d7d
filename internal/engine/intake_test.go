package engine

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/seed54173720/writ/pkg/store/memory"
)

// A paused partition once stayed paused: it was the poll that resumed it, and the poll waited for its records.
func TestPausedPartitionGoesOnWhenItHasRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t, probeContext(), 1, memory.New(), func(c *Config) { c.PartitionCommands = 4 })
	first := r.send(do(t, "a", probe{Sleep: 400}), do(t, "a", probe{}), do(t, "a", probe{}), do(t, "a", probe{}))
	deadline := time.Now().Add(20 * time.Second)
	for testutil.ToFloat64(r.metrics.Pauses) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("the full partition was not paused: the test shows nothing")
		}
		time.Sleep(5 * time.Millisecond)
	}
	second := r.send(do(t, "a", probe{}), do(t, "b", probe{}))
	r.await(append(first, second...)...)
}
