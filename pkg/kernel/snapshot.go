package kernel

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store"
)

// snapshotForm is how the kernel writes a snapshot; the form before it was the application's state alone. A stored
// revision is that of the form times a million, and that of the state type.
const snapshotForm = 2

func (a *aggregate) snapshotRevision() int { return snapshotForm*(maxStateRevision+1) + a.revision }

// envelope is a snapshot's JSON: the application's state, and what the kernel keeps beside it.
type envelope struct {
	State   jsontext.Value `json:"state"`
	Deleted bool           `json:"deleted,omitzero"`
	Owner   string         `json:"owner,omitzero"`
	Space   string         `json:"space,omitzero"`
}

// take makes a snapshot of the state.
func (a *aggregate) take(of command.Aggregate, stream command.Digest, s *State) (snapshot *store.Snapshot, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("kernel: snapshot of %s: marshalling panicked: %v", of, p)
		}
	}()
	value, err := a.marshal(s.value)
	if err == nil {
		l := s.lifeOf()
		value, err = json.Marshal(envelope{State: value, Deleted: l.deleted, Owner: l.owner, Space: l.space})
	}
	if err != nil {
		return nil, fmt.Errorf("kernel: snapshot of %s: %w", of, err)
	}
	return &store.Snapshot{Stream: stream, Aggregate: of, Version: s.Version, Revision: a.snapshotRevision(), State: value}, nil
}

// restore is the inverse of take. An error is an *UnreadableError.
func (a *aggregate) restore(of command.Aggregate, snapshot *store.Snapshot) (s *State, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading it panicked: %v", p)
		}
		if err != nil {
			err = &UnreadableError{Aggregate: of, Version: snapshot.Version, Err: fmt.Errorf("snapshot: %w", err)}
		}
	}()
	var e envelope
	if err := json.Unmarshal(snapshot.State, &e, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	if e.State == nil {
		return nil, errors.New("it holds no state")
	}
	value, err := a.decode(e.State)
	if err != nil {
		return nil, err
	}
	s = &State{Version: snapshot.Version, snapshot: snapshot.Version, value: value}
	s.setLife(life{deleted: e.Deleted, owner: e.Owner, space: e.Space})
	s.size = int64(len(snapshot.State))
	return s, nil
}
