package command

import (
	"context"
	"errors"
	"fmt"
)

// Types finds command types by their registered name. It MUST be safe for
// concurrent use.
type Types interface {
	CommandType(name string) (info TypeInfo, ok bool)
}

// TypeInfo is what admission has to know of a command type.
type TypeInfo struct {
	// Creates says that the command may make its aggregate, so that it may leave
	// the aggregate's ID to derivation.
	Creates bool
	// Validate decodes and checks a body, and keeps nothing of it. Nil checks
	// nothing.
	Validate func(body []byte) *Error
}

// Authoriser says whether the caller of c may ask for it. It returns nil, or an
// [*Error], usually of code unauthorized, as refusal. Any other error is a fault
// of what it asks, no refusal: nothing is known and the question is put again.
type Authoriser func(ctx context.Context, c *Command) error

// Admission is the one check of a command for every way in: the client before
// it sends, HTTP, and the processor before it decides.
type Admission struct {
	Context   string
	Types     Types
	Authorise Authoriser // nil lets everybody
}

// Admit checks, in this order, the command's type, its identity, its caller and
// its body. It changes nothing. It returns an [*Error] as refusal, or another
// error as a fault of the authoriser, which is no verdict on the command.
func (a Admission) Admit(ctx context.Context, c *Command) error {
	info, refusal := a.identify(c)
	if refusal != nil {
		return refusal
	}
	if a.Authorise != nil {
		if err := a.Authorise(ctx, c); err != nil {
			var refusal *Error
			if errors.As(err, &refusal) {
				return refusal
			}
			return fmt.Errorf("command: authorise %s of %s: %w", c.Type(), c.Aggregate(), err)
		}
	}
	if info.Validate != nil {
		if refusal := info.Validate(c.Body()); refusal != nil {
			return refusal
		}
	}
	return nil
}

// identify checks type and identity. Length and form of the identity were
// checked when c was made.
func (a Admission) identify(c *Command) (TypeInfo, *Error) {
	if c.Context() != a.Context {
		return TypeInfo{}, fieldError(CodeUnknownType, "type", fmt.Sprintf("%q is not of context %q", c.Type(), a.Context))
	}
	info, ok := a.Types.CommandType(c.Type())
	if !ok {
		return TypeInfo{}, fieldError(CodeUnknownType, "type", fmt.Sprintf("%q is not registered", c.Type()))
	}
	if c.Derived() && !info.Creates {
		return TypeInfo{}, fieldError(CodeInvalidID, "subject", "is missing; only a command that creates may leave it out")
	}
	return info, nil
}
