package kernel

import (
	"fmt"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store"
)

// State is an aggregate's state at a version. It is never changed, only replaced, and may be shared.
type State struct {
	Version  int64 // 0: the aggregate does not exist
	snapshot int64 // version of the last snapshot known to be stored
	size     int64
	life     *life // nil: as it is born
	value    any
}

// Size estimates the bytes that the state holds, for bounded caches: those of its last snapshot and of the events
// since, as stored.
func (s *State) Size() int64 { return s.size }

// Value returns the application's state, of the type that was given to Add.
func (s *State) Value() any { return s.value }

// UnreadableError says that this build cannot read what is stored of an aggregate: a newer build wrote it, a version is
// missing, or an evolve function panicked over it.
type UnreadableError struct {
	Aggregate command.Aggregate
	Version   int64
	Err       error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("kernel: read %s at version %d: %v", e.Aggregate, e.Version, e.Err)
}

func (e *UnreadableError) Unwrap() error { return e.Err }

// fold makes a state of what is stored.
func (a *aggregate) fold(of command.Aggregate, stored *store.Stream) (*State, error) {
	s := &State{value: a.zero}
	if stored.Snapshot != nil {
		var err error
		if s, err = a.restore(of, stored.Snapshot); err != nil {
			return nil, err
		}
	}
	for i := range stored.Tail {
		if err := a.replay(of, s, &stored.Tail[i]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// replay takes s by a commit further, in place. An error is an *UnreadableError, after which s is of no use.
func (a *aggregate) replay(of command.Aggregate, s *State, row *store.Row) error {
	if row.Version != s.Version+1 {
		return &UnreadableError{Aggregate: of, Version: s.Version + 1, Err: fmt.Errorf("the journal is damaged: version %d is missing, version %d follows", s.Version+1, row.Version)}
	}
	if row.Version == 1 {
		s.begin(row.Owner, row.Space)
	}
	for i := range row.Events {
		e := &row.Events[i]
		t, event, err := a.decodeEvent(e)
		if err == nil {
			err = t.apply(s, event)
		}
		if err != nil {
			return &UnreadableError{Aggregate: of, Version: row.Version, Err: err}
		}
		s.size += int64(len(e.Data))
	}
	s.Version = row.Version
	return nil
}
