package kernel_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel/kerneltest"
	"github.com/seed54173720/writ/pkg/store"
	"github.com/seed54173720/writ/pkg/store/memory"
	"github.com/seed54173720/writ/pkg/store/storetest"
)

// processor is one of two that share a store. It runs in a goroutine of its own and stops before each call of the
// store until it is told to go on, so that the test decides who is next: the interleaving is random and repeatable.
type processor struct {
	name    string
	entries []entry
	batches [][]entry
	steps   chan storetest.Fault // one for each call of the store
	stopped chan bool            // before each call: true; at the end: false
	faulty  *storetest.Faulty
	doubts  []chan struct{} // commits that have not landed yet
	answers map[command.Position][]command.Reply
	lost    map[store.Conflict]int
	err     error
}

func newProcessor(t *rapid.T, name string, h *history, entries []entry) *processor {
	p := &processor{
		name: name, entries: entries, batches: split(t, entries),
		steps: make(chan storetest.Fault), stopped: make(chan bool),
		answers: map[command.Position][]command.Reply{}, lost: map[store.Conflict]int{},
	}
	p.faulty = storetest.NewFaulty(h, func(context.Context, storetest.Call) storetest.Fault {
		p.stopped <- true
		return <-p.steps
	})
	r := newRunner(t, p.faulty)
	r.Trace = func(_ store.Unit, fate store.Fate) {
		if fate.Verdict == store.Lost {
			p.lost[fate.Conflict]++
		}
	}
	go func() { // ends when all is processed; the test waits for it
		defer func() { p.stopped <- false }()
		p.err = p.run(r, h)
	}()
	return p
}

// run processes the batches. After a fault it begins again from the start, as after a crash, knowing nothing.
func (p *processor) run(r *kerneltest.Runner, h *history) error {
	const crashes = 20
	for range crashes {
		err := p.once(r, h)
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s crashed %d times", p.name, crashes)
}

func (p *processor) once(r *kerneltest.Runner, h *history) error {
	for _, batch := range p.batches {
		delivered := records("", batch)
		h.received(delivered)
		replies, err := r.Process(context.Background(), delivered...)
		for i, reply := range replies {
			if reply.Outcome != 0 {
				p.answers[batch[i].at] = append(p.answers[batch[i].at], reply)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fault draws what becomes of the next call.
func (p *processor) fault(t *rapid.T, crashes *int) storetest.Fault {
	switch n := rapid.IntRange(0, 49).Draw(t, "fault"); {
	case n == 44 || n == 45:
		doubt := make(chan struct{})
		p.doubts = append(p.doubts, doubt)
		return storetest.Fault{Kind: storetest.InDoubt, Wait: doubt}
	case n == 46 || n == 47:
		return storetest.Fault{Kind: storetest.FailAfter}
	case n == 49 && *crashes > 0:
		*crashes--
		return storetest.Fault{Kind: storetest.FailBefore}
	}
	return storetest.Fault{}
}

// land lets the commits in doubt happen now, or fail.
func (p *processor) land() {
	for _, doubt := range p.doubts {
		close(doubt)
	}
	p.doubts = nil
	p.faulty.Settle()
}

func TestTwoKernelsWithCachesOverOneStoreEqualOne(t *testing.T) {
	t.Parallel()
	lost := map[store.Conflict]int{}
	injected := map[storetest.Kind]int{}
	interleaved := func(t *rapid.T) {
		b := batches{subjects: []string{"1", "2"}, names: anyName}
		entries := b.entries(t, 30, 2)
		var halves [2][]entry
		for _, e := range entries {
			halves[e.at.Partition] = append(halves[e.at.Partition], e)
		}
		if rapid.Bool().Draw(t, "same partitions") { // one of them was stopped, and does not know that it is no owner
			halves = [2][]entry{entries, entries}
		}
		s := memory.New()
		h := newHistory(s)
		processors := []*processor{newProcessor(t, "first", h, halves[0]), newProcessor(t, "second", h, halves[1])}
		crashes := 3
		running := slices.Clone(processors)
		await := func(p *processor) {
			if !<-p.stopped {
				running = slices.DeleteFunc(running, func(q *processor) bool { return q == p })
			}
		}
		for _, p := range processors {
			await(p)
		}
		for len(running) > 0 {
			p := running[rapid.IntRange(0, len(running)-1).Draw(t, "next")]
			if len(p.doubts) > 0 && rapid.IntRange(0, 4).Draw(t, "land") == 0 {
				p.land()
			}
			p.steps <- p.fault(t, &crashes)
			await(p)
		}
		for _, p := range processors {
			p.land()
			if p.err != nil {
				t.Fatal(p.err)
			}
			for conflict, n := range p.lost {
				lost[conflict] += n
			}
			for _, kind := range []storetest.Kind{storetest.FailBefore, storetest.FailAfter, storetest.InDoubt} {
				injected[kind] += p.faulty.Injected(kind)
			}
		}

		if err := h.audit(entries); err != nil {
			t.Fatal(err)
		}
		end := read(t, s, "")
		sound(t, end)
		final := mustProcess(t, newRunner(t, s), "", entries)
		for i, e := range entries {
			for _, p := range processors {
				for _, reply := range p.answers[e.at] {
					if !reflect.DeepEqual(reply, final[i]) {
						t.Fatalf("the %s answered %+v with %+v; asked again it is %+v", p.name, e, reply, final[i])
					}
				}
			}
		}
		same(t, read(t, s, ""), end, true)
		answersAgree(t, entries, final, end)
	}
	// Lost keys are rare: go on until there was something of every kind.
	for range 50 {
		if rapid.Check(t, interleaved); t.Failed() || len(lost) >= 3 && len(injected) >= 3 {
			break
		}
	}
	t.Logf("lost: %v, faults: %v", lost, injected)
	if len(lost) < 3 || len(injected) < 3 {
		t.Errorf("lost %v, faults %v: want some of every kind, else this proves little", lost, injected)
	}
}

// answersAgree checks each answer against the journal: a record's own row, or the final row of its request.
func answersAgree(t *rapid.T, entries []entry, answers []command.Reply, c contents) {
	own := map[command.Position]*store.Row{}
	latest := map[command.Digest]*store.Row{}
	for i := range c.Rows {
		r := &c.Rows[i]
		own[r.Position], latest[r.Request] = r, r
	}
	for i, e := range entries {
		want := answer{outcome: command.Rejected, code: command.CodeRequestIDReused}
		row, k := own[e.at], latest[e.command("").Request()]
		switch {
		case row != nil:
		case k == nil || !k.Outcome.Final():
			t.Fatalf("%+v has no outcome", e)
		case k.Fingerprint == e.command("").Fingerprint():
			row = k
		}
		if row != nil {
			want = answer{outcome: row.Outcome, version: row.Version, duplicate: row == k && own[e.at] == nil}
			if row.Error != nil {
				want.code = row.Error.Code
			}
		}
		if got := answered(answers[i]); got != want {
			t.Fatalf("%+v: got %v, the journal says %v", e, got, want)
		}
	}
}
