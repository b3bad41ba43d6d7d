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
	size     int64
	value    any
}

// Size estimates the bytes that the state holds, for bounded caches: those of its last snapshot and of the events
// since, as stored.
func (s *State) Size() int64 { return s.size }

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
		value, err := a.decodeState(snap.State)
		if err != nil {
			return nil, &UnreadableError{Aggregate: of, Version: snap.Version, Err: fmt.Errorf("snapshot: %w", err)}
		}
		s = State{Version: snap.Version, snapshot: snap.Version, size: int64(len(snap.State)), value: value}
	}
	for i := range stored.Tail {
		row := &stored.Tail[i]
		for j := range row.Events {
			value, err := a.replay(s.value, &row.Events[j])
			if err != nil {
				return nil, &UnreadableError{Aggregate: of, Version: row.Version, Err: err}
			}
			s.value = value
			s.size += int64(len(row.Events[j].Data))
		}
		s.Version = row.Version
	}
	return &s, nil
}

func (a *aggregate) decodeState(data []byte) (state any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading it panicked: %v", p)
		}
	}()
	return a.decode(data)
}

func (a *aggregate) replay(state any, e *command.Event) (next any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading event %q panicked: %v", e.Type, p)
		}
	}()
	typ, event, err := a.decodeEvent(e)
	if err != nil {
		return nil, err
	}
	return typ.apply(state, event)
}

func (a *aggregate) decodeEvent(e *command.Event) (*eventType, any, error) {
	typ := a.byName[e.Type]
	if typ == nil {
		return nil, nil, fmt.Errorf("event %q is not known to this build", e.Type)
	}
	if e.Revision != eventRevision {
		return nil, nil, fmt.Errorf("event %q has revision %d, this build knows %d", e.Type, e.Revision, eventRevision)
	}
	event, err := typ.decode(e.Data)
	if err != nil {
		return nil, nil, fmt.Errorf("event %q: %w", e.Type, err)
	}
	return typ, event, nil
}

// DecodeEvent returns a recorded event of an aggregate type as the Go value that it was registered with.
func (c *Context) DecodeEvent(aggregateType string, e command.Event) (any, error) {
	a := c.aggregates[aggregateType]
	if a == nil {
		return nil, fmt.Errorf("kernel: context %s has no aggregate type %q", c.name, aggregateType)
	}
	_, event, err := a.decodeEvent(&e)
	if err != nil {
		return nil, fmt.Errorf("kernel: aggregate %s: %w", aggregateType, err)
	}
	return event, nil
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

func (a *aggregate) take(of command.Aggregate, stream command.Digest, s *State) (snapshot *store.Snapshot, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("kernel: snapshot of %s: marshalling panicked: %v", of, p)
		}
	}()
	data, err := a.marshal(s.value)
	if err != nil {
		return nil, fmt.Errorf("kernel: snapshot of %s: %w", of, err)
	}
	return &store.Snapshot{Stream: stream, Aggregate: of, Version: s.Version, Revision: a.revision, State: data}, nil
}

func marshalEvent(e any) ([]byte, error) { return json.Marshal(e) }
