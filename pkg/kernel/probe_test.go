package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/kernel/kerneltest"
	"github.com/seed54173720/writ/pkg/store"
)

// probe is a context whose one aggregate, a thing, counts, holds keys, and fails as it is told. It notes which
// requests were decided, in order, repeats included.
type probe struct {
	*kernel.Context
	mu   sync.Mutex
	runs []string

	evolving func(n int64) // called by evolve of "added", to panic
}

type thing struct {
	N int64 `json:"n"`
}

type (
	added    struct{ N int64 }
	took     struct{ Key string }
	dropped  struct{ Key string }
	unfit    struct{ N int64 } // panics when it is marshalled
	stranger struct{}          // is not registered
)

func (unfit) MarshalJSON() ([]byte, error) { panic("unfit") }

type (
	add   struct{ N int64 }
	want  struct{ N int64 } // nothing to do if the thing counts N, else rejected
	take  struct{ Key string }
	drop  struct{ Key string }
	fault struct{ How string }
)

func newProbe(options ...kernel.AggregateOption) *probe {
	p := &probe{Context: kernel.New("probe"), evolving: func(int64) {}}
	t := kernel.Add[thing](p.Context, "thing", options...)
	kernel.On(t, "added", func(s thing, e added) thing { p.evolving(e.N); s.N += e.N; return s })
	kernel.On(t, "took", func(s thing, _ took) thing { return s })
	kernel.On(t, "dropped", func(s thing, _ dropped) thing { return s })
	kernel.On(t, "unfit", func(s thing, _ unfit) thing { return s })
	kernel.Handle(t, "create", kernel.Creates, p.add)
	kernel.Handle(t, "add", kernel.Either, p.add)
	kernel.Handle(t, "increase", kernel.Existing, p.add)
	kernel.Handle(t, "want", kernel.Either, p.want)
	kernel.Handle(t, "take", kernel.Either, p.take)
	kernel.Handle(t, "drop", kernel.Either, p.drop)
	kernel.Handle(t, "fault", kernel.Either, p.fault)
	return p
}

func (p *probe) ran(requestID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs = append(p.runs, requestID)
}

// count says how often the request was decided.
func (p *probe) count(requestID string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, id := range p.runs {
		if id == requestID {
			n++
		}
	}
	return n
}

func (p *probe) add(_ context.Context, s *kernel.Scope[thing], c add) (kernel.Decision, error) {
	p.ran(s.RequestID())
	return kernel.Events(added(c)).With(map[string]int64{"was": s.State().N}), nil
}

func (p *probe) want(_ context.Context, s *kernel.Scope[thing], c want) (kernel.Decision, error) {
	p.ran(s.RequestID())
	if s.State().N != c.N {
		return kernel.Reject("differs", "%d, not %d", s.State().N, c.N), nil
	}
	return kernel.Nothing(), nil
}

func (p *probe) take(_ context.Context, s *kernel.Scope[thing], c take) (kernel.Decision, error) {
	p.ran(s.RequestID())
	if !s.Reserve("key", c.Key) {
		return kernel.Reject("taken", "%q is taken", c.Key), nil
	}
	return kernel.Events(took(c)), nil
}

func (p *probe) drop(_ context.Context, s *kernel.Scope[thing], c drop) (kernel.Decision, error) {
	p.ran(s.RequestID())
	s.Release("key", c.Key)
	return kernel.Events(dropped(c)), nil
}

func (p *probe) fault(ctx context.Context, s *kernel.Scope[thing], c fault) (kernel.Decision, error) {
	p.ran(s.RequestID())
	s.Reserve("key", "never")
	switch c.How {
	case "err":
		return kernel.Decision{}, errors.New("out of luck")
	case "panic":
		panic("out of luck")
	case "unfit":
		return kernel.Events(unfit{}), nil
	case "stranger":
		return kernel.Events(stranger{}), nil
	case "key":
		s.Reserve("key", "")
		return kernel.Nothing(), nil
	case "result":
		return kernel.Nothing().With(make([]int, command.MaxResult)), nil
	case "cancelled":
		<-ctx.Done()
		return kernel.Decision{}, ctx.Err()
	}
	return kernel.Decision{}, fmt.Errorf("no fault %q", c.How)
}

// log hands out records as a topic of one partition would.
type log struct {
	t         *testing.T
	context   string
	partition int32
	offset    int64
}

// add appends a command of the request to the log.
func (l *log) add(requestID, typ, subject string, body any, more ...func(*command.Builder)) kerneltest.Record {
	l.t.Helper()
	b := command.New(l.context+"."+typ, "test").ID(requestID).JSON(body)
	if subject != "" {
		b.Subject(subject)
	}
	for _, f := range more {
		f(b)
	}
	c, err := b.Build()
	if err != nil {
		l.t.Fatal(err)
	}
	r := kerneltest.Record{
		Command:  c,
		Position: command.Position{TopicID: [16]byte{1}, Partition: l.partition, Offset: l.offset},
	}
	l.offset++
	return r
}

func process(t *testing.T, r *kerneltest.Runner, records ...kerneltest.Record) []command.Reply {
	t.Helper()
	replies, err := r.Process(t.Context(), records...)
	if err != nil {
		t.Fatalf("process: %v", err)
	}
	return replies
}

// expect compares answers with words like "committed 2", "nothing", "rejected taken", "failed decision-failed",
// preceded by "duplicate" where that is so.
func expect(t *testing.T, replies []command.Reply, want ...string) {
	t.Helper()
	for i, r := range replies {
		got := r.Outcome.String()
		if r.Outcome == command.Committed {
			got += fmt.Sprintf(" %d", r.Version)
		}
		if r.Error != nil {
			got += " " + string(r.Error.Code)
		}
		if r.Duplicate {
			got = "duplicate " + got
		}
		if i >= len(want) || got != want[i] {
			t.Errorf("answer %d, to %s: got %q (%v), want %q", i, r.RequestID, got, r.Error, append(want, "no such answer")[min(i, len(want))])
		}
	}
	if len(replies) != len(want) {
		t.Errorf("got %d answers, want %d", len(replies), len(want))
	}
}

func (p *probe) expectRuns(t *testing.T, want map[string]int) {
	t.Helper()
	for id, n := range want {
		if got := p.count(id); got != n {
			t.Errorf("request %s was decided %d times, want %d; in all: %v", id, got, n, p.runs)
		}
	}
}

// rows returns the journal of an aggregate.
func rows(t *testing.T, s store.Reader, subject string) []store.Row {
	t.Helper()
	var all []store.Row
	a := command.Aggregate{Type: "thing", ID: subject}
	if err := s.History(t.Context(), a.Stream(), func(r *store.Row) error { all = append(all, *r); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}
