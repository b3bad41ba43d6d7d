package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// ErrInjected is in the error of every call that a Faulty fails where the Fault names no other.
var ErrInjected = errors.New("injected fault")

// Faulty is a store that fails as its hook says, for tests of what stands on a store. It fails only in ways that the
// contract of store.Store allows.
//
//	f := storetest.NewFaulty(memory.New(), func(ctx context.Context, c storetest.Call) storetest.Fault {
//		if c.Method == "Commit" && c.N == 3 {
//			return storetest.Fault{Kind: storetest.FailAfter}
//		}
//		return storetest.Fault{}
//	})
type Faulty struct {
	inner store.Store
	hook  func(ctx context.Context, c Call) Fault

	mu       sync.Mutex
	calls    map[string]int
	injected map[Kind]int
	late     sync.WaitGroup
}

// Call is a call of the store that is about to be made.
type Call struct {
	Method string       // as in store.Store: "Requests", "Load", "Heads", "Holders", "Commit", "SaveProgress", "Progress"
	N      int          // the how manieth of the method it is, from 1
	Units  []store.Unit // of a Commit; not to be changed
}

// Fault is what becomes of a call. The zero value lets it pass.
type Fault struct {
	Kind Kind
	Err  error           // nil: ErrInjected
	Wait <-chan struct{} // InDoubt: the commit is made once it is closed; nil: at once
}

// Kind is a way to fail.
type Kind uint8

const (
	// Pass makes the call and answers what it answered.
	Pass Kind = iota
	// FailBefore errs and makes no call.
	FailBefore
	// FailAfter makes the call and errs all the same; the error of a Commit wraps store.ErrUnknown: it happened and
	// nobody heard of it.
	FailAfter
	// InDoubt, of a Commit, errs at once with store.ErrUnknown, and makes the call later, when the caller may have
	// looked already and gone on: the attempt that lands late. For other methods it is FailBefore.
	InDoubt
)

// NewFaulty returns inner with faults. The hook is called before each call, by the goroutine of the caller, and MUST
// be safe for concurrent use. To delay a call it waits before it returns; it should heed ctx.
func NewFaulty(inner store.Store, hook func(ctx context.Context, c Call) Fault) *Faulty {
	return &Faulty{inner: inner, hook: hook, calls: map[string]int{}, injected: map[Kind]int{}}
}

// Settle waits for the commits that were left in doubt. The channels that they wait for MUST be closed, by the time of
// the call or meanwhile; calls that may leave others in doubt MUST have returned.
func (f *Faulty) Settle() { f.late.Wait() }

// Injected says how many calls met a fault of the kind.
func (f *Faulty) Injected(k Kind) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.injected[k]
}

// fault asks the hook and counts.
func (f *Faulty) fault(ctx context.Context, method string, units []store.Unit) Fault {
	f.mu.Lock()
	f.calls[method]++
	n := f.calls[method]
	f.mu.Unlock()

	fault := f.hook(ctx, Call{Method: method, N: n, Units: units})
	if fault.Err == nil {
		fault.Err = ErrInjected
	}
	if fault.Kind == InDoubt && method != "Commit" {
		fault.Kind = FailBefore
	}
	f.mu.Lock()
	f.injected[fault.Kind]++
	f.mu.Unlock()
	return fault
}

// Commit implements store.Store.
func (f *Faulty) Commit(ctx context.Context, units []store.Unit) ([]store.Fate, error) {
	fault := f.fault(ctx, "Commit", units)
	switch fault.Kind {
	case FailBefore:
		return nil, fmt.Errorf("commit of %d units: %w", len(units), fault.Err)
	case InDoubt:
		f.commitLater(context.WithoutCancel(ctx), units, fault.Wait)
	case FailAfter:
		if _, err := f.inner.Commit(ctx, units); err != nil {
			return nil, err
		}
	case Pass:
		return f.inner.Commit(ctx, units)
	}
	return nil, fmt.Errorf("commit of %d units: %w: %w", len(units), store.ErrUnknown, fault.Err)
}

// commitLater commits a copy of the units, which are the caller's again when Commit has returned. Settle waits for it.
// What becomes of it nobody hears, as on a lost connection.
func (f *Faulty) commitLater(ctx context.Context, units []store.Unit, wait <-chan struct{}) {
	copied := make([]store.Unit, len(units))
	for i := range units {
		copied[i] = units[i].Clone()
	}
	f.late.Go(func() {
		if wait != nil {
			<-wait
		}
		_, _ = f.inner.Commit(ctx, copied)
	})
}

// Requests implements store.Store.
func (f *Faulty) Requests(ctx context.Context, asked []store.Lookup) ([]store.Found, error) {
	return call(f, ctx, "Requests", func() ([]store.Found, error) { return f.inner.Requests(ctx, asked) })
}

// Load implements store.Store.
func (f *Faulty) Load(ctx context.Context, asked []store.Asked) ([]store.Stream, error) {
	return call(f, ctx, "Load", func() ([]store.Stream, error) { return f.inner.Load(ctx, asked) })
}

// Heads implements store.Store.
func (f *Faulty) Heads(ctx context.Context, streams []command.Digest) ([]int64, error) {
	return call(f, ctx, "Heads", func() ([]int64, error) { return f.inner.Heads(ctx, streams) })
}

// Holders implements store.Store.
func (f *Faulty) Holders(ctx context.Context, asked []keys.Key) ([]store.Holder, error) {
	return call(f, ctx, "Holders", func() ([]store.Holder, error) { return f.inner.Holders(ctx, asked) })
}

// SaveProgress implements store.Store.
func (f *Faulty) SaveProgress(ctx context.Context, p []store.Progress) error {
	_, err := call(f, ctx, "SaveProgress", func() (struct{}, error) { return struct{}{}, f.inner.SaveProgress(ctx, p) })
	return err
}

// Progress implements store.Store.
func (f *Faulty) Progress(ctx context.Context, topic string) ([]store.Progress, error) {
	return call(f, ctx, "Progress", func() ([]store.Progress, error) { return f.inner.Progress(ctx, topic) })
}

// call makes a call other than Commit with the fault that the hook asks for.
func call[T any](f *Faulty, ctx context.Context, method string, inner func() (T, error)) (T, error) {
	var none T
	fault := f.fault(ctx, method, nil)
	if fault.Kind == FailBefore {
		return none, fmt.Errorf("%s: %w", method, fault.Err)
	}
	answer, err := inner()
	if err == nil && fault.Kind == FailAfter {
		return none, fmt.Errorf("%s: %w", method, fault.Err)
	}
	return answer, err
}
