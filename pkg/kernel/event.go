package kernel

import (
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"

	"github.com/seed54173720/writ/pkg/command"
)

// eventType is a registered event without its Go type.
type eventType struct {
	name    string
	upcasts []func(data []byte) ([]byte, error) // of revision 1 and so on
	decode  func([]byte) (any, error)
	evolve  func(value, event any) any    // nil: built in
	live    func(life, any) (life, error) // of a built-in event
}

// revision is what is recorded with each event of the type: that of its form in this build.
func (t *eventType) revision() int { return len(t.upcasts) + 1 }

// EventOption configures an event at On.
type EventOption func(*eventType)

// Upcast makes data of an event that was recorded at a revision into data of the next: the event's own revision is one
// more than that of its last upcaster. Each revision that was ever recorded needs one, in order:
//
//	kernel.On(brand, "renamed", evolve, kernel.Upcast(1, addLanguage), kernel.Upcast(2, splitName))
//
// registers an event at revision 3. Data is JSON; f MUST be a pure function and MUST NOT change what it is given. An
// error or a panic makes the aggregate unreadable.
func Upcast(from int, f func(data []byte) ([]byte, error)) EventOption {
	return func(t *eventType) {
		if from != t.revision() {
			panic(fmt.Sprintf("kernel: event %s: upcaster from revision %d, must be from %d", t.name, from, t.revision()))
		}
		t.upcasts = append(t.upcasts, f)
	}
}

// On registers an event of the aggregate with the function that evolves the state by it. The function MUST be a pure
// function of its arguments and MUST NOT change anything that the given state refers to: states are shared with the
// cache, and an attempt may be thrown away. E MUST marshal to JSON and back without loss. The names deleted, recovered,
// owner-transferred and space-transferred are those of built-in events.
func On[S, E any](a Aggregate[S], name string, evolve func(S, E) S, options ...EventOption) {
	t := newEvent[E](name)
	t.evolve = func(value, event any) any { return evolve(value.(S), event.(E)) }
	for _, option := range options {
		option(t)
	}
	addEvent[E](a.aggregate, t)
}

func newEvent[E any](name string) *eventType {
	mustName("event", name)
	return &eventType{
		name:   name,
		decode: func(data []byte) (any, error) { var e E; err := json.Unmarshal(data, &e); return e, err },
	}
}

func addEvent[E any](a *aggregate, t *eventType) {
	typ := reflect.TypeFor[E]()
	if a.byName[t.name] != nil || a.byType[typ] != nil {
		panic(fmt.Sprintf("kernel: event %s of %s, or its type %v, is registered twice", t.name, a.name, typ))
	}
	a.byName[t.name], a.byType[typ] = t, t
}

func (a *aggregate) eventType(e any) *eventType { return a.byType[reflect.TypeOf(e)] }

func marshalEvent(e any) ([]byte, error) { return json.Marshal(e) }

// apply evolves s by the event, in place. After an error s is of no use.
func (t *eventType) apply(s *State, event any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("evolve by event %q panicked: %v", t.name, p)
		}
	}()
	if t.evolve == nil {
		return s.live(t, event)
	}
	s.value = t.evolve(s.value, event)
	return nil
}

// decodeEvent makes a recorded event of whatever revision one of this build.
func (a *aggregate) decodeEvent(e *command.Event) (t *eventType, event any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading event %q panicked: %v", e.Type, p)
		}
	}()
	if t = a.byName[e.Type]; t == nil {
		return nil, nil, fmt.Errorf("event %q is not known to this build", e.Type)
	}
	if e.Revision < 1 || e.Revision > t.revision() {
		return nil, nil, fmt.Errorf("event %q has revision %d, this build knows 1 to %d", e.Type, e.Revision, t.revision())
	}
	data := e.Data
	for i, upcast := range t.upcasts[e.Revision-1:] {
		if data, err = upcast(data); err != nil {
			return nil, nil, fmt.Errorf("event %q: upcast from revision %d: %w", e.Type, e.Revision+i, err)
		}
	}
	if event, err = t.decode(data); err != nil {
		return nil, nil, fmt.Errorf("event %q: %w", e.Type, err)
	}
	return t, event, nil
}

// DecodeEvent returns a recorded event of an aggregate type, of whatever revision, as the Go value that it was
// registered with, or one of Deleted, Recovered, OwnerTransferred and SpaceTransferred.
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
