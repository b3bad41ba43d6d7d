package engine

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/pkg/command"
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

func TestRecordWhereItsKeyDoesNotLeadIsCountedAndExecuted(t *testing.T) {
	t.Parallel()
	r := newRig(t, probeContext(), 3, memory.New(), nil)
	var rec command.Record
	manual := r.newClient(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	var places []int64
	for partition := range int32(3) { // one of them is where it leads
		do(t, "a", probe{}).Record(&rec)
		sent := &kgo.Record{Topic: "probe.commands", Partition: partition, Key: rec.Key, Value: rec.Value, Headers: kafkaHeaders(nil, rec.Headers)}
		if err := manual.ProduceSync(t.Context(), sent).FirstErr(); err != nil {
			t.Fatal(err)
		}
		places = append(places, place(command.Position{Partition: partition, Offset: sent.Offset}))
	}
	for _, reply := range r.await(places...) {
		if reply.Outcome != command.Committed {
			t.Errorf("got %v %v, want committed", reply.Outcome, reply.Error)
		}
	}
	if n := testutil.ToFloat64(r.metrics.Strays); n != 2 {
		t.Errorf("%v strays counted, want 2", n)
	}
}
