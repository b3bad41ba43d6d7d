package kernel

import (
	"errors"
	"fmt"

	"github.com/seed54173720/writ/pkg/command"
)

// UnknownTypeError is the fault of a command of a type that this build does not know, as long as it waits for a build
// that does.
type UnknownTypeError struct{ Type string }

func (e *UnknownTypeError) Error() string {
	return fmt.Sprintf("kernel: command type %q is not known to this build", e.Type)
}

// AwaitsBuild reports whether the item's last fault is one that another build may not have: what is stored of its
// aggregate cannot be read (UnreadableError), or its type is not known (UnknownTypeError).
func (i *Item) AwaitsBuild() bool {
	var unreadable *UnreadableError
	var unknown *UnknownTypeError
	return errors.As(i.Fault, &unreadable) || errors.As(i.Fault, &unknown)
}

// mayAwaitBuild reports whether the item still has time to wait for another build.
func (k *Kernel) mayAwaitBuild(item *Item) bool {
	return k.BuildPatience > 0 && k.now().Sub(item.now) < k.BuildPatience
}

// exhausted reports whether the item has had its tries. Where its type is not known it has a verdict of its own.
func (k *Kernel) exhausted(item *Item) bool {
	attempts := k.Attempts
	if attempts == 0 {
		attempts = DefaultAttempts
	}
	if item.Attempts < attempts {
		return false
	}
	var unknown *UnknownTypeError
	return !errors.As(item.Fault, &unknown) && !(item.AwaitsBuild() && k.mayAwaitBuild(item))
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

type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("decision panicked: %v", e.value) }
