package kernel

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store"
)

// evolve puts the decision, and what the hooks make of it, into the row and returns the state that it leads to.
func (a *aggregate) evolve(s *scope, row *store.Row, d Decision) (*State, error) {
	next := s.base
	if d.rejection == nil && len(d.events) > 0 {
		next = &State{Version: next.Version + 1, snapshot: next.snapshot, size: next.size, life: next.life, value: next.value}
		if next.Version == 1 {
			next.begin(row.Owner, row.Space)
		}
		var err error
		if d, err = a.record(s, row, next, d); err != nil {
			return nil, err
		}
	}
	if d.rejection != nil {
		row.Outcome, row.Error, row.Events = command.Rejected, d.rejection.Bounded(), nil
		return s.base, nil
	}
	if d.result != nil {
		var err error
		if row.Result, err = marshalResult(d.result); err != nil {
			return nil, err
		}
	}
	if next == s.base {
		row.Outcome = command.Nothing
		return next, nil
	}
	row.Outcome, row.Version = command.Committed, next.Version
	return next, nil
}

// record evolves next by the decision's events and by those that the hooks add, and returns the decision that comes of
// it, which may be a rejection.
func (a *aggregate) record(s *scope, row *store.Row, next *State, d Decision) (Decision, error) {
	size := 0
	row.Events = make([]command.Event, 0, len(d.events))
	for hooks := a.hooks; ; hooks = hooks[1:] {
		if len(d.events) > MaxEvents {
			return d, fmt.Errorf("%d events decided, %d are allowed", len(d.events), MaxEvents)
		}
		for _, e := range d.events[len(row.Events):] {
			recorded, err := a.step(next, e)
			if err != nil {
				return d, err
			}
			if size += len(recorded.Data); size > MaxEventBytes {
				return d, fmt.Errorf("the events have more than the %d bytes that are allowed", MaxEventBytes)
			}
			row.Events = append(row.Events, recorded)
		}
		if len(hooks) == 0 {
			next.size += int64(size)
			return d, nil
		}
		more := hooks[0](s, next.value, d.events)
		if more.rejection != nil {
			return more, nil
		}
		d.events = append(d.events[:len(d.events):len(d.events)], more.events...)
		if more.result != nil {
			d.result = more.result
		}
	}
}

// step evolves next by one event and returns it as it is recorded.
func (a *aggregate) step(next *State, e any) (recorded command.Event, err error) {
	t := a.eventType(e)
	if t == nil {
		return recorded, fmt.Errorf("event %T is not registered with aggregate %s", e, a.name)
	}
	data, err := marshalEvent(e)
	if err != nil {
		return recorded, fmt.Errorf("marshal event %q: %w", t.name, err)
	}
	return command.Event{Type: t.name, Revision: t.revision(), Data: data}, t.apply(next, e)
}

func marshalResult(result any) ([]byte, error) {
	data, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("marshal the result: %w", err)
	}
	if len(data) > command.MaxResult {
		return nil, fmt.Errorf("the result has %d bytes, %d are allowed", len(data), command.MaxResult)
	}
	return data, nil
}
