package storetest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/dedupe"
	"github.com/seed54173720/writ/pkg/store"
	"github.com/seed54173720/writ/pkg/store/memory"
	"github.com/seed54173720/writ/pkg/store/storetest"
)

var brand = command.Aggregate{Type: "brand", ID: "a"}

func units() []store.Unit {
	return []store.Unit{{Stream: brand.Stream(), Aggregate: brand, Rows: []store.Row{{
		Recorded: dedupe.Recorded{Outcome: command.Committed},
		Request:  command.RequestDigest("brand", "", "r"), Stream: brand.Stream(), Version: 1, Time: time.Unix(1, 0),
		Aggregate: brand, RequestID: "r", Events: []command.Event{{Type: "created", Revision: 1, Data: []byte(`{}`)}},
	}}}}
}

// always is the hook that makes every call meet the fault.
func always(f storetest.Fault) func(context.Context, storetest.Call) storetest.Fault {
	return func(context.Context, storetest.Call) storetest.Fault { return f }
}

func head(t *testing.T, s store.Store) int64 {
	t.Helper()
	heads, err := s.Heads(t.Context(), []command.Digest{brand.Stream()})
	if err != nil {
		t.Fatalf("Heads: %v", err)
	}
	return heads[0]
}

func TestCommitFailsAsTheHookSays(t *testing.T) {
	t.Parallel()
	own := errors.New("own")
	for _, row := range []struct {
		name    string
		fault   storetest.Fault
		err     error
		unknown bool
		head    int64
	}{
		{"passes", storetest.Fault{}, nil, false, 1},
		{"fails before", storetest.Fault{Kind: storetest.FailBefore}, storetest.ErrInjected, false, 0},
		{"fails before, with an error of the test", storetest.Fault{Kind: storetest.FailBefore, Err: own}, own, false, 0},
		{"fails after", storetest.Fault{Kind: storetest.FailAfter}, storetest.ErrInjected, true, 1},
		{"stays in doubt", storetest.Fault{Kind: storetest.InDoubt}, storetest.ErrInjected, true, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			inner := memory.New()
			f := storetest.NewFaulty(inner, always(row.fault))
			_, err := f.Commit(t.Context(), units())
			f.Settle()
			if !errors.Is(err, row.err) || errors.Is(err, store.ErrUnknown) != row.unknown {
				t.Errorf("error: got %v, want %v, unknown %v", err, row.err, row.unknown)
			}
			if got := head(t, inner); got != row.head {
				t.Errorf("head: got %d, want %d", got, row.head)
			}
			if got := f.Injected(row.fault.Kind); got != 1 {
				t.Errorf("counted: got %d, want 1", got)
			}
		})
	}
}

func TestCommitInDoubtLandsWhenItIsLetAndKeepsItsUnits(t *testing.T) {
	t.Parallel()
	inner := memory.New()
	land := make(chan struct{})
	f := storetest.NewFaulty(inner, always(storetest.Fault{Kind: storetest.InDoubt, Wait: land}))
	ctx, cancel := context.WithCancel(t.Context())
	mine := units()
	if _, err := f.Commit(ctx, mine); !errors.Is(err, store.ErrUnknown) {
		t.Fatalf("Commit: error %v, want %v", err, store.ErrUnknown)
	}
	cancel() // the caller goes on, and its memory is its own
	mine[0].Rows[0].Events[0].Data[0] = '!'
	if got := head(t, inner); got != 0 {
		t.Errorf("head before it lands: got %d, want 0", got)
	}
	close(land)
	f.Settle()
	streams, err := inner.Load(t.Context(), []store.Asked{{Stream: brand.Stream()}})
	if err != nil || len(streams[0].Tail) != 1 || string(streams[0].Tail[0].Events[0].Data) != "{}" {
		t.Errorf("loaded %+v, %v; want the unit as it was", streams, err)
	}
}

func TestCommitInDoubtThatLandsLateLoses(t *testing.T) {
	t.Parallel()
	inner := memory.New()
	land := make(chan struct{})
	f := storetest.NewFaulty(inner, func(_ context.Context, c storetest.Call) storetest.Fault {
		if c.N == 1 {
			return storetest.Fault{Kind: storetest.InDoubt, Wait: land}
		}
		return storetest.Fault{}
	})
	_, _ = f.Commit(t.Context(), units())
	if fates, err := f.Commit(t.Context(), units()); err != nil || fates[0].Verdict != store.Done {
		t.Fatalf("second Commit: %+v, %v; want done", fates, err)
	}
	close(land)
	f.Settle()
	if got := head(t, inner); got != 1 {
		t.Errorf("head: got %d, want 1", got)
	}
}

func TestEveryReadCanFailBeforeAndAfter(t *testing.T) {
	t.Parallel()
	for method, call := range map[string]func(ctx context.Context, s store.Store) error{
		"Requests":     func(ctx context.Context, s store.Store) error { _, err := s.Requests(ctx, nil); return err },
		"Load":         func(ctx context.Context, s store.Store) error { _, err := s.Load(ctx, nil); return err },
		"Heads":        func(ctx context.Context, s store.Store) error { _, err := s.Heads(ctx, nil); return err },
		"Holders":      func(ctx context.Context, s store.Store) error { _, err := s.Holders(ctx, nil); return err },
		"SaveProgress": func(ctx context.Context, s store.Store) error { return s.SaveProgress(ctx, nil) },
		"Progress":     func(ctx context.Context, s store.Store) error { _, err := s.Progress(ctx, "t"); return err },
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			for kind, fails := range map[storetest.Kind]bool{storetest.Pass: false, storetest.FailBefore: true, storetest.FailAfter: true, storetest.InDoubt: true} {
				var seen storetest.Call
				f := storetest.NewFaulty(memory.New(), func(_ context.Context, c storetest.Call) storetest.Fault {
					seen = c
					return storetest.Fault{Kind: kind}
				})
				if err := call(t.Context(), f); errors.Is(err, storetest.ErrInjected) != fails || errors.Is(err, store.ErrUnknown) {
					t.Errorf("kind %d: error %v, want an injected one: %v", kind, err, fails)
				}
				if seen.Method != method || seen.N != 1 {
					t.Errorf("kind %d: the hook saw %+v", kind, seen)
				}
			}
		})
	}
}

func TestHookDelaysACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := storetest.NewFaulty(memory.New(), func(ctx context.Context, _ storetest.Call) storetest.Fault {
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
			}
			return storetest.Fault{}
		})
		began := time.Now()
		if _, err := f.Commit(t.Context(), units()); err != nil || time.Since(began) != time.Minute {
			t.Errorf("Commit: %v after %v, want a minute", err, time.Since(began))
		}
	})
}

// With faults that pass all calls, and with delays, a store keeps the contract.
func TestFaultyWithoutFaultsKeepsTheContract(t *testing.T) {
	t.Parallel()
	type both struct {
		*storetest.Faulty
		store.Reader
	}
	storetest.Run(t, func(*testing.T) storetest.Store {
		inner := memory.New()
		return both{storetest.NewFaulty(inner, always(storetest.Fault{})), inner}
	})
}
