package kernel

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed54173720/writ/pkg/command"
)

// Existence is a command's create semantics.
type Existence uint8

const (
	// Existing: the aggregate must exist, else the command is rejected as not-found.
	Existing Existence = iota
	// Creates: the aggregate must not exist, else the command is rejected as already-exists; as deleted, where it
	// exists and is deleted.
	Creates
	// Either: the command's own function decides what that means.
	Either
)

// handler is a registered command without its Go types.
type handler struct {
	aggregate  *aggregate
	existence  Existence
	anyway     bool // even if the aggregate is deleted
	decode     func(body []byte) (any, *command.Error)
	transforms []func(ctx context.Context, c *command.Command, body any) (any, error)
	decide     func(ctx context.Context, s *scope, cmd any) (Decision, error)
}

// Validator is what a command's body may implement on its value to be checked wherever it comes in, before any state
// is read. An error that is a *command.Error keeps its code; any other is invalid-body.
type Validator interface{ Validate() error }

// CommandOption configures a command with body C at Handle.
type CommandOption[C any] func(*handler)

// Transform makes f rewrite the command's body before it is decided: to complete it from elsewhere, say. f is given
// the body after it has been validated, and what it returns is decided on, unchecked; nothing that names the request,
// its sender or its aggregate can be changed. It runs once for a command as long as a processor has it in hand, however
// often it is decided; only a command that is delivered again without an outcome is transformed again.
//
// An error that is a *command.Error refuses the command; any other, and a panic, is a fault, as of a decision. Of
// several, each is given what the one before returned. f MUST NOT change what the given body refers to.
func Transform[C any](f func(ctx context.Context, c *command.Command, body C) (C, error)) CommandOption[C] {
	return func(h *handler) {
		h.transforms = append(h.transforms, func(ctx context.Context, c *command.Command, body any) (any, error) {
			next, err := f(ctx, c, *body.(*C))
			return &next, err
		})
	}
}

// Handle registers a command of the aggregate: its full type is context.aggregate.name. The body is decoded into C
// strictly (exact member names, none unknown or twice).
//
// decide is given the state and says what follows. It MUST be prepared to run more than once for one command: after a
// lost race, and after it asked for a unique key that turned out to be taken. Its context is cancelled when the
// processor stops or loses the partition, never at the caller's deadline. An error or a panic is a fault: the command
// is tried again a few times and then recorded as failed. To refuse a command is no error: return Reject.
func Handle[S, C any](
	a Aggregate[S], name string, existence Existence,
	decide func(context.Context, *Scope[S], C) (Decision, error), options ...CommandOption[C],
) {
	h := &handler{
		existence: existence,
		decode:    decodeBody[C],
		decide: func(ctx context.Context, s *scope, cmd any) (Decision, error) {
			return decide(ctx, &Scope[S]{scope: s, state: s.base.value.(S)}, *cmd.(*C))
		},
	}
	for _, option := range options {
		option(h)
	}
	a.handle(name, h)
}

func (a *aggregate) handle(name string, h *handler) {
	mustName("command", name)
	full := a.context.name + "." + a.name + "." + name
	if a.context.commands[full] != nil {
		panic(fmt.Sprintf("kernel: command %s is registered twice", full))
	}
	h.aggregate = a
	a.context.commands[full] = h
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
	if refused, ok := refusal(err); ok {
		return nil, refused
	}
	return nil, &command.Error{Code: command.CodeInvalidBody, Message: err.Error()}
}

// refusal tells an error that refuses a command from one that is a fault.
func refusal(err error) (refused *command.Error, ok bool) {
	ok = errors.As(err, &refused)
	return refused, ok
}
