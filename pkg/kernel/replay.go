package kernel

import (
	"bytes"
	"fmt"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store"
)

// Replay folds one aggregate's commits, one after the other, for audits and other readers of the whole journal. It
// belongs to one goroutine.
type Replay struct {
	of    command.Aggregate
	typ   *aggregate
	state State
}

// Replay begins at the state of an aggregate that does not exist yet.
func (c *Context) Replay(of command.Aggregate) (*Replay, error) {
	typ := c.aggregates[of.Type]
	if typ == nil {
		return nil, fmt.Errorf("kernel: replay %s: context %s has no aggregate type %q", of, c.name, of.Type)
	}
	return &Replay{of: of, typ: typ, state: State{value: typ.zero}}, nil
}

// Apply folds a commit's events. The error is an *UnreadableError, and the replay has ended with it.
func (r *Replay) Apply(row *store.Row) error { return r.typ.replay(r.of, &r.state, row) }

// Current reports whether this build reads the snapshot: one of another revision is passed over.
func (r *Replay) Current(s *store.Snapshot) bool { return s.Revision == r.typ.snapshotRevision() }

// Check compares a current snapshot, taken at the version that the replay has reached, with the replay's state.
func (r *Replay) Check(s *store.Snapshot) error {
	stored, err := r.typ.restore(r.of, s)
	if err != nil {
		return err
	}
	// Marshalled again: what an earlier build wrote may leave members out that this one writes.
	taken, err := r.typ.take(r.of, s.Stream, stored)
	if err != nil {
		return err
	}
	replayed, err := r.typ.take(r.of, s.Stream, &r.state)
	if err != nil {
		return err
	}
	if !bytes.Equal(taken.State, replayed.State) {
		return fmt.Errorf("kernel: the snapshot of %s says %.200s, its events %.200s", r.of, taken.State, replayed.State)
	}
	return nil
}
