package kernel

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store"
)

// State is an aggregate's state at a version. It is never changed, only replaced, and may be shared.
type State struct {
	Version  int64 // 0: the aggregate does not exist
	snapshot int64 // version of the last snapshot known to be stored
	value    any
}

// Value returns the application's state, of the type that was given to Add.
func (s *State) Value() any { return s.value }

// UnreadableError says that this build cannot read what is stored of an aggregate: a newer build wrote it, or an
// evolve function panicked over it.
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
	s := State{value: a.zero}
	if snap := stored.Snapshot; snap != nil {
		value, err := a.decode(snap.State)
		if err != nil {
			return nil, &UnreadableError{Aggregate: of, Version: snap.Version, Err: fmt.Errorf("snapshot: %w", err)}
		}
		s = State{Version: snap.Version, snapshot: snap.Version, value: value}
	}
	for i := range stored.Tail {
		row := &stored.Tail[i]
		for j := range row.Events {
			value, err := a.replay(s.value, &row.Events[j])
			if err != nil {
				return nil, &UnreadableError{Aggregate: of, Version: row.Version, Err: err}
			}
			s.value = value
		}
		s.Version = row.Version
	}
	return &s, nil
}

func (a *aggregate) replay(state any, e *command.Event) (next any, err error) {
	typ := a.byName[e.Type]
	if typ == nil {
		return nil, fmt.Errorf("event %q is not known to this build", e.Type)
	}
	if e.Revision != eventRevision {
		return nil, fmt.Errorf("event %q has revision %d, this build knows %d", e.Type, e.Revision, eventRevision)
	}
	event, err := typ.decode(e.Data)
	if err != nil {
		return nil, fmt.Errorf("event %q: %w", e.Type, err)
	}
	return typ.apply(state, event)
}

func (t *eventType) apply(state, event any) (next any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("evolve by event %q panicked: %v", t.name, p)
		}
	}()
	return t.evolve(state, event), nil
}

// eventRevision is the revision of every event type of this build.
const eventRevision = 1

func (a *aggregate) take(of command.Aggregate, stream command.Digest, s *State) (*store.Snapshot, error) {
	data, err := a.marshal(s.value)
	if err != nil {
		return nil, fmt.Errorf("kernel: snapshot of %s: %w", of, err)
	}
	return &store.Snapshot{Stream: stream, Aggregate: of, Version: s.Version, Revision: a.revision, State: data}, nil
}

func marshalEvent(e any) ([]byte, error) { return json.Marshal(e) }
