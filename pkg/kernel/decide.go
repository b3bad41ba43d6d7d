package kernel

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

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
	k.stamp(u)
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

// stamp gives the commands that the lane takes for the first time their time, by which their deadlines are judged once
// and for all.
func (k *Kernel) stamp(u *Unit) {
	var now time.Time
	for _, item := range u.Items {
		if !item.now.IsZero() || !item.undecided() {
			continue
		}
		if now.IsZero() {
			now = k.now().Truncate(time.Microsecond).UTC()
		}
		item.now = now
		item.expired = !item.Command.Expires().IsZero() && now.After(item.Command.Expires())
	}
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
	row := &u.rows[u.decided]
	item.begin(row)
	item.ops = item.ops[:0]

	if k.exhausted(item) {
		item.stateless = true
		row.Outcome, row.Error = command.Failed, failure(item.Fault)
		return state, nil
	}
	h, refused, err := k.admit(ctx, item)
	if err != nil {
		return nil, err
	}
	item.stateless = refused != nil
	if refused == nil {
		if u.unreadable != nil {
			return nil, u.unreadable
		}
		refused = guard(h, item.Command, state)
	}
	if refused != nil {
		row.Outcome, row.Error = command.Rejected, refused
		return state, nil
	}

	s := scope{cmd: item.Command, now: item.now, base: state, keys: &u.keys, ops: item.ops}
	next := state
	d, err := h.decide(ctx, &s, item.body)
	if err == nil {
		next, err = h.aggregate.evolve(&s, row, d)
	}
	item.ops = s.ops
	if err == nil {
		err = s.fault
	}
	return next, err
}

// admit is the processor's side of admission: what does not depend on the state. An error is a fault.
func (k *Kernel) admit(ctx context.Context, item *Item) (*handler, *command.Error, error) {
	c := item.Command
	if item.Refused != nil {
		return nil, item.Refused.Bounded(), nil
	}
	h := k.Context.commands[c.Type()]
	if h == nil {
		if k.Context.HasAggregate(c.AggregateType()) && k.mayAwaitBuild(item) {
			return nil, nil, &UnknownTypeError{Type: c.Type()}
		}
		return nil, command.Errorf(command.CodeUnknownType, "command type %q is not registered", c.Type()), nil
	}
	if c.Derived() && h.existence != Creates {
		return nil, command.Errorf(command.CodeInvalidID, "subject: %s needs the aggregate's ID, there is none", c.Type()), nil
	}
	if k.Authorise != nil {
		if err := k.Authorise(ctx, c); err != nil {
			if refused, ok := refusal(err); ok {
				return nil, refused.Bounded(), nil
			}
			return nil, nil, fmt.Errorf("authorise: %w", err)
		}
	}
	if item.body == nil {
		body, refused, err := h.body(ctx, c)
		if refused != nil || err != nil {
			return nil, refused, err
		}
		item.body = body
	}
	if item.expired {
		return nil, command.Errorf(command.CodeExpired, "the command's time ran out at %s", c.Expires().Format(time.RFC3339Nano)), nil
	}
	return h, nil, nil
}

// body is what the command's function is given: decoded, validated and transformed.
func (h *handler) body(ctx context.Context, c *command.Command) (any, *command.Error, error) {
	body, refused := h.decode(c.Body())
	if refused != nil {
		return nil, refused, nil
	}
	for _, transform := range h.transforms {
		next, err := transform(ctx, c, body)
		if err != nil {
			if refused, ok := refusal(err); ok {
				return nil, refused.Bounded(), nil
			}
			return nil, nil, fmt.Errorf("transform: %w", err)
		}
		body = next
	}
	return body, nil, nil
}
