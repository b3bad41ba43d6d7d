// Package kernel decides commands: it holds what an application registers (aggregates, their commands and events),
// and takes the commands of one aggregate through the way that every command goes: seen before, decode and validate,
// state, guards, decide, evolve. It knows neither Kafka nor Postgres; what it decided is committed by a store.
package kernel

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"

	"github.com/go-json-experiment/json"

	"github.com/seed54173720/writ/pkg/command"
)

// Context is a bounded context: its aggregates, their commands and events, under the stable names that stand on the
// wire and in the journal. Register everything before the context is used; a used context is read-only and may be
// shared. Registration panics on a programmer's mistake: a bad name, or one that is taken.
type Context struct {
	name       string
	aggregates map[string]*aggregate
	commands   map[string]*handler // by full name
}

// New returns an empty context. The name MUST match [a-z][a-z0-9-]*, at most 64 bytes, as all registered names.
func New(name string) *Context {
	mustName("context", name)
	return &Context{name: name, aggregates: map[string]*aggregate{}, commands: map[string]*handler{}}
}

// Name returns the context's name, the first part of its topics and command types.
func (c *Context) Name() string { return c.name }

// CommandType describes a registered command; it makes a Context the type source of command.Admission.
func (c *Context) CommandType(name string) (command.TypeInfo, bool) {
	h, ok := c.commands[name]
	if !ok {
		return command.TypeInfo{}, false
	}
	return command.TypeInfo{
		Creates: h.existence == Creates,
		Validate: func(body []byte) *command.Error {
			_, err := h.decode(body)
			return err
		},
	}, true
}

// CommandTypes returns the full names of all registered commands, in no order.
func (c *Context) CommandTypes() []string {
	names := make([]string, 0, len(c.commands))
	for name := range c.commands {
		names = append(names, name)
	}
	return names
}

// HasAggregate reports whether the context has an aggregate type of this name.
func (c *Context) HasAggregate(name string) bool { return c.aggregates[name] != nil }

// Aggregate is a registered aggregate type with state S. S MUST marshal to JSON and back without loss: snapshots are
// taken of it. The zero S is the state of an aggregate that does not exist yet.
type Aggregate[S any] struct{ *aggregate }

// aggregate is an aggregate type without its Go types.
type aggregate struct {
	context  *Context
	name     string
	revision int
	zero     any
	byType   map[reflect.Type]*eventType
	byName   map[string]*eventType
	marshal  func(state any) ([]byte, error)
	decode   func(state []byte) (any, error)
}

type eventType struct {
	name   string
	decode func([]byte) (any, error)
	evolve func(state, event any) any
}

type handler struct {
	aggregate *aggregate
	existence Existence
	decode    func(body []byte) (any, *command.Error)
	decide    func(ctx context.Context, s *scope, state, cmd any) (Decision, error)
}

// Existence is a command's create semantics.
type Existence uint8

const (
	// Existing: the aggregate must exist, else the command is rejected as not-found.
	Existing Existence = iota
	// Creates: the aggregate must not exist, else the command is rejected as already-exists.
	Creates
	// Either: the command's own function decides what that means.
	Either
)

// AggregateOption configures an aggregate type at Add.
type AggregateOption func(*aggregate)

// StateRevision says which revision of the state type this build has, 1 by default. Raise it whenever the meaning of
// the state or of an evolve function changes: snapshots of another revision are passed over and the state is folded
// from the events.
func StateRevision(n int) AggregateOption { return func(a *aggregate) { a.revision = n } }

// Add registers an aggregate type with state S under a stable name.
func Add[S any](c *Context, name string, options ...AggregateOption) Aggregate[S] {
	mustName("aggregate", name)
	if c.aggregates[name] != nil {
		panic(fmt.Sprintf("kernel: aggregate %s.%s is registered twice", c.name, name))
	}
	var zero S
	a := &aggregate{
		context: c, name: name, revision: 1, zero: zero,
		byType: map[reflect.Type]*eventType{}, byName: map[string]*eventType{},
		marshal: func(state any) ([]byte, error) { return json.Marshal(state, json.Deterministic(true)) },
		decode:  func(data []byte) (any, error) { var s S; err := json.Unmarshal(data, &s); return s, err },
	}
	for _, option := range options {
		option(a)
	}
	c.aggregates[name] = a
	return Aggregate[S]{a}
}

// On registers an event of the aggregate with the function that evolves the state by it. The function MUST be a pure
// function of its arguments and MUST NOT change anything that the given state refers to: states are shared with the
// cache, and an attempt may be thrown away. E MUST marshal to JSON and back without loss.
func On[S, E any](a Aggregate[S], name string, evolve func(S, E) S) {
	mustName("event", name)
	typ := reflect.TypeFor[E]()
	if a.byName[name] != nil || a.byType[typ] != nil {
		panic(fmt.Sprintf("kernel: event %s of %s, or its type %v, is registered twice", name, a.name, typ))
	}
	e := &eventType{
		name:   name,
		decode: func(data []byte) (any, error) { var e E; err := json.Unmarshal(data, &e); return e, err },
		evolve: func(state, event any) any { return evolve(state.(S), event.(E)) },
	}
	a.byName[name], a.byType[typ] = e, e
}

// Validator is what a command's body may implement on its value to be checked wherever it comes in, before any state
// is read. An error that is a *command.Error keeps its code; any other is invalid-body.
type Validator interface{ Validate() error }

// Handle registers a command of the aggregate: its full type is context.aggregate.name. The body is decoded into C
// strictly (exact member names, none unknown or twice).
//
// decide is given the state and says what follows. It MUST be prepared to run more than once for one command: after a
// lost race, and after it asked for a unique key that turned out to be taken. Its context is cancelled when the
// processor stops or loses the partition, never at the caller's deadline. An error or a panic is a fault: the command
// is tried again a few times and then recorded as failed. To refuse a command is no error: return Reject.
func Handle[S, C any](a Aggregate[S], name string, existence Existence, decide func(context.Context, *Scope[S], C) (Decision, error)) {
	mustName("command", name)
	full := a.context.name + "." + a.name + "." + name
	if a.context.commands[full] != nil {
		panic(fmt.Sprintf("kernel: command %s is registered twice", full))
	}
	a.context.commands[full] = &handler{
		aggregate: a.aggregate,
		existence: existence,
		decode:    decodeBody[C],
		decide: func(ctx context.Context, s *scope, state, cmd any) (Decision, error) {
			return decide(ctx, &Scope[S]{scope: s, state: state.(S)}, *cmd.(*C))
		},
	}
}

func decodeBody[C any](body []byte) (any, *command.Error) {
	c := new(C)
	if err := command.Decode(body, c); err != nil {
		return nil, err
	}
	v, ok := any(c).(Validator)
	if !ok {
		return c, nil
	}
	err := v.Validate()
	if err == nil {
		return c, nil
	}
	var coded *command.Error
	if errors.As(err, &coded) {
		return nil, coded
	}
	return nil, &command.Error{Code: command.CodeInvalidBody, Message: err.Error()}
}

var namePattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

func mustName(what, name string) {
	if !namePattern.MatchString(name) {
		panic(fmt.Sprintf("kernel: %s name %q must match %s", what, name, namePattern))
	}
}
