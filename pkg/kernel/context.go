// Package kernel decides commands: it holds what an application registers (aggregates, their commands and events),
// and takes the commands of one aggregate through the way that every command goes: seen before, decode and validate,
// state, guards, decide, evolve. It knows neither Kafka nor Postgres; what it decided is committed by a store.
package kernel

import (
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
	without  []string // built-in commands that are left out
	zero     any
	byType   map[reflect.Type]*eventType
	byName   map[string]*eventType
	hooks    []hook
	marshal  func(state any) ([]byte, error)
	decode   func(state []byte) (any, error)
}

// AggregateOption configures an aggregate type at Add.
type AggregateOption func(*aggregate)

// maxStateRevision leaves room above it for the form in which the kernel keeps snapshots.
const maxStateRevision = 999_999

// StateRevision says which revision of the state type this build has, 1 by default, at most 999,999. Raise it whenever
// the meaning of the state or of an evolve function changes: snapshots of another revision are passed over and the
// state is folded from the events.
func StateRevision(n int) AggregateOption {
	if n < 1 || n > maxStateRevision {
		panic(fmt.Sprintf("kernel: state revision %d must be 1 to %d", n, maxStateRevision))
	}
	return func(a *aggregate) { a.revision = n }
}

// Without leaves built-in commands out, by their names: delete, recover, transfer-owner, transfer-space. The names are
// then free for commands of the aggregate's own, which may decide the built-in events.
func Without(commands ...string) AggregateOption {
	return func(a *aggregate) { a.without = append(a.without, commands...) }
}

// Add registers an aggregate type with state S under a stable name, and with it the commands that every aggregate has:
// delete, recover, transfer-owner and transfer-space.
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
	a.addBuiltIn()
	return Aggregate[S]{a}
}

var namePattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

func mustName(what, name string) {
	if !namePattern.MatchString(name) {
		panic(fmt.Sprintf("kernel: %s name %q must match %s", what, name, namePattern))
	}
}
