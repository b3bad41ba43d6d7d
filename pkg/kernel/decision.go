package kernel

import (
	"fmt"

	"github.com/seed54173720/writ/pkg/command"
)

// Decision is what a command's function decided: events, a rejection, or nothing to do (the zero value). Events and
// nothing may carry a result for the sender.
type Decision struct {
	events    []any
	rejection *command.Error
	result    any
}

// Events decides that these happened, in this order. Each MUST be of a type registered by On for this aggregate.
func Events(events ...any) Decision { return Decision{events: events} }

// Nothing decides that there is nothing to do: the wish is already fulfilled.
func Nothing() Decision { return Decision{} }

// Reject decides against the command: a stable code that programs act on, and a message for people. No event, key
// release or reservation of this command takes effect.
func Reject(code command.Code, format string, args ...any) Decision {
	return Decision{rejection: &command.Error{Code: code, Message: fmt.Sprintf(format, args...)}}
}

// With adds a result to the reply: marshalled to JSON, at most command.MaxResult bytes. A rejection has none.
func (d Decision) With(result any) Decision {
	d.result = result
	return d
}

// WithField adds a detail to a rejection: what is wrong with the named member of the body.
func (d Decision) WithField(member, wrong string) Decision {
	if d.rejection == nil {
		return d
	}
	fields := map[string]string{member: wrong}
	for k, v := range d.rejection.Fields {
		fields[k] = v
	}
	e := *d.rejection
	e.Fields = fields
	d.rejection = &e
	return d
}
