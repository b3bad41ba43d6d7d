package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store/memory"
)

func header(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// awaitEvents waits until n events have arrived and returns all that have.
func (r *rig) awaitEvents(n int) []*kgo.Record {
	r.Helper()
	deadline := time.After(30 * time.Second)
	for {
		r.mu.Lock()
		events := r.events
		r.mu.Unlock()
		if len(events) >= n {
			return events
		}
		select {
		case <-r.arrived:
		case <-deadline:
			r.Fatalf("%d of %d events after 30 s", len(events), n)
		}
	}
}

func TestEventsGoOutInTheOrderOfTheirAggregatesVersions(t *testing.T) {
	t.Parallel()
	publish := func(cfg *Config) { cfg.Events = true; cfg.UnitCommands = 2 }
	r := newRig(t, catalog.Context(), 3, memory.New(), publish)
	const brands, renames = 10, 20
	var cmds []*command.Command
	for i := range brands {
		cmds = append(cmds, create(t, fmt.Sprint(i), fmt.Sprint("name ", i)))
	}
	for n := range renames {
		for i := range brands {
			cmds = append(cmds, build(t, command.New("catalog.brand.rename", "test").Subject(fmt.Sprint(i)).JSON(catalog.RenameBrand{Name: fmt.Sprint("name ", i, " ", n)})))
		}
	}
	r.await(r.send(cmds...)...)
	last := map[string]int{}
	for _, e := range r.awaitEvents(len(cmds)) {
		if got, want := header(e, "ce_version"), fmt.Sprint(last[string(e.Key)]+1); got != want {
			t.Errorf("event %s of %s: got version %s after %d", header(e, "ce_type"), e.Key, got, last[string(e.Key)])
		}
		last[string(e.Key)]++
	}
	if len(last) != brands || last["brand/0"] != renames+1 {
		t.Errorf("got events %v, want %d of each of %d brands", last, renames+1, brands)
	}
}

func TestDuplicatePublishesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, catalog.Context(), 1, memory.New(), func(cfg *Config) { cfg.Events = true })
	first := create(t, "1", "Acme")
	r.await(r.send(first, first, create(t, "2", "Acme"))...) // committed, duplicate, rejected
	r.await(r.send(create(t, "3", "Bolt"))...)
	for i, e := range r.awaitEvents(2) {
		if want := []string{"brand/1", "brand/3"}[min(i, 1)]; string(e.Key) != want {
			t.Errorf("event %d is of %s, want %s: a duplicate and a refusal publish nothing", i, e.Key, want)
		}
	}
}
