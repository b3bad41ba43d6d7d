package kernel

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store"
)

// Decide decides the unit's undecided items in a row, each on the state that the one before left. A command that
// fails ends the unit before it: Decide returns it and what follows, out of the unit, to be tried in a later one,
// until its tries are used up and it is recorded as failed. Decisions are application code: Decide may take long.
func (k *Kernel) Decide(ctx context.Context, u *Unit) (rest []*Item) {
	if len(u.rows) != len(u.Items) {
		if len(u.Items) == 1 {
			u.rows, u.states = u.alone.rows[:], u.alone.states[:]
		} else {
			u.rows, u.states = make([]store.Row, len(u.Items)), make([]*State, len(u.Items))
		}
	}
	u.keys.stream = u.Stream
	for ; u.decided < len(u.Items); u.decided++ {
		item := u.Items[u.decided]
		state := u.base
		if u.decided > 0 {
			state = u.states[u.decided-1]
		}
		if !item.undecided() {
			u.states[u.decided] = state
			continue
		}
		next, err := k.decideSafely(ctx, u, item, state)
		if err != nil {
			item.Row = nil
			if ctx.Err() == nil { // else whatever it returned is the cancellation's fault
				item.Attempts++
				item.Fault = err
			}
			rest = u.cut(u.decided)
			u.rows, u.states = u.rows[:u.decided], u.states[:u.decided]
			break
		}
		u.states[u.decided] = next
	}
	return rest
}

// decideSafely makes an error of a panic of the application: in the decision, but also in how its types validate,
// marshal and unmarshal.
func (k *Kernel) decideSafely(ctx context.Context, u *Unit, item *Item, state *State) (next *State, err error) {
	defer func() {
		if p := recover(); p != nil {
			next, err = nil, &panicError{value: p, stack: debug.Stack()}
		}
	}()
	return k.decide(ctx, u, item, state)
}

// decide takes one command through guards, decision and evolve. An error is a fault of the command.
func (k *Kernel) decide(ctx context.Context, u *Unit, item *Item, state *State) (*State, error) {
	c := item.Command
	if item.now.IsZero() {
		item.now = k.now().Truncate(time.Microsecond).UTC()
		item.expired = !c.Expires().IsZero() && item.now.After(c.Expires())
	}
	row := &u.rows[u.decided]
	item.begin(row)
	item.ops = item.ops[:0]

	if k.exhausted(item) {
		item.stateless = true
		row.Outcome, row.Error = command.Failed, failure(item.Fault)
		return state, nil
	}
	h, refused := k.admit(ctx, item)
	item.stateless = refused != nil
	if refused == nil {
		if u.unreadable != nil {
			return nil, u.unreadable
		}
		refused = guard(h, c, state)
	}
	if refused != nil {
		row.Outcome, row.Error = command.Rejected, refused
		return state, nil
	}

	s := scope{cmd: c, now: item.now, version: state.Version, keys: &u.keys, ops: item.ops}
	d, err := h.decide(ctx, &s, state.value, item.body)
	item.ops = s.ops
	if err == nil {
		err = s.fault
	}
	if err != nil {
		return nil, err
	}
	return k.evolve(h.aggregate, item, row, state, d)
}

// admit is the processor's side of admission: what does not depend on the state.
func (k *Kernel) admit(ctx context.Context, item *Item) (*handler, *command.Error) {
	c := item.Command
	if item.Refused != nil {
		return nil, item.Refused.Bounded()
	}
	h := k.Context.commands[c.Type()]
	if h == nil {
		return nil, command.Errorf(command.CodeUnknownType, "command type %q is not registered", c.Type())
	}
	if c.Derived() && h.existence != Creates {
		return nil, command.Errorf(command.CodeInvalidID, "subject: %s needs the aggregate's ID, there is none", c.Type())
	}
	if k.Authorise != nil {
		if err := k.Authorise(ctx, c); err != nil {
			return nil, unauthorized(err)
		}
	}
	if item.body == nil {
		body, err := h.decode(c.Body())
		if err != nil {
			return nil, err
		}
		item.body = body
	}
	if item.expired {
		return nil, command.Errorf(command.CodeExpired, "the command's time ran out at %s", c.Expires().Format(time.RFC3339Nano))
	}
	return h, nil
}

func unauthorized(err error) *command.Error {
	var coded *command.Error
	if errors.As(err, &coded) {
		return coded.Bounded()
	}
	return command.Errorf(command.CodeUnauthorized, "%v", err).Bounded()
}

// guard checks what every command asks of the state, in the order that the codes promise.
func guard(h *handler, c *command.Command, state *State) *command.Error {
	switch exists := state.Version > 0; {
	case h.existence == Existing && !exists:
		return command.Errorf(command.CodeNotFound, "%s does not exist", c.Aggregate())
	case h.existence == Creates && exists:
		return command.Errorf(command.CodeAlreadyExists, "%s exists already", c.Aggregate())
	}
	if want, ok := c.ExpectedVersion(); ok && want != state.Version {
		return command.Errorf(command.CodeVersionMismatch, "expected version %d, %s is at %d", want, c.Aggregate(), state.Version)
	}
	return nil
}

type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("decision panicked: %v", e.value) }

// evolve puts the decision into the row and returns the state that it makes.
func (k *Kernel) evolve(a *aggregate, item *Item, row *store.Row, state *State, d Decision) (*State, error) {
	if d.rejection != nil {
		row.Outcome, row.Error = command.Rejected, d.rejection.Bounded()
		return state, nil
	}
	if d.result != nil {
		result, err := json.Marshal(d.result)
		if err != nil {
			return nil, fmt.Errorf("marshal the result: %w", err)
		}
		if len(result) > command.MaxResult {
			return nil, fmt.Errorf("the result has %d bytes, %d are allowed", len(result), command.MaxResult)
		}
		row.Result = result
	}
	if len(d.events) == 0 {
		row.Outcome = command.Nothing
		return state, nil
	}
	if len(d.events) > MaxEvents {
		return nil, fmt.Errorf("%d events decided, %d are allowed", len(d.events), MaxEvents)
	}
	next := &State{Version: state.Version + 1, snapshot: state.snapshot, size: state.size, value: state.value}
	row.Events = make([]command.Event, len(d.events))
	size := 0
	for i, e := range d.events {
		typ := a.eventType(e)
		if typ == nil {
			return nil, fmt.Errorf("event %T is not registered with aggregate %s", e, a.name)
		}
		data, err := marshalEvent(e)
		if err != nil {
			return nil, fmt.Errorf("marshal event %q: %w", typ.name, err)
		}
		if size += len(data); size > MaxEventBytes {
			return nil, fmt.Errorf("the events have more than the %d bytes that are allowed", MaxEventBytes)
		}
		row.Events[i] = command.Event{Type: typ.name, Revision: eventRevision, Data: data}
		if next.value, err = typ.apply(next.value, e); err != nil {
			return nil, err
		}
	}
	next.size += int64(size)
	row.Outcome, row.Version = command.Committed, next.Version
	return next, nil
}

func (k *Kernel) exhausted(item *Item) bool {
	attempts := k.Attempts
	if attempts == 0 {
		attempts = DefaultAttempts
	}
	return item.Attempts >= attempts
}

func failure(fault error) *command.Error {
	code := command.CodeDecisionFailed
	var panicked *panicError
	var unreadable *UnreadableError
	var refused *StoreRefusedError
	switch {
	case errors.As(fault, &panicked):
		code = command.CodeDecisionPanicked
	case errors.As(fault, &unreadable):
		code = command.CodeNewerBuildNeeded
	case errors.As(fault, &refused):
		code = command.CodeStoreRefused
	}
	return command.Errorf(code, "%v", fault).Bounded()
}

// StoreRefusedError is the fault of a command whose row the store did not take.
type StoreRefusedError struct{ Err error }

func (e *StoreRefusedError) Error() string {
	return "the store refused the command's row: " + e.Err.Error()
}

func (e *StoreRefusedError) Unwrap() error { return e.Err }
