package client

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/pkg/command"
)

// Every error about a command matches one of these by [errors.Is].
var (
	// ErrNotSent means that the command is surely not in the topic. It may be sent
	// again, and changed before.
	ErrNotSent = errors.New("not sent")

	// ErrUnknownOutcome means that the command is in the topic, or may be, and that
	// nothing is known about its outcome. The same command under the same request ID
	// can be sent again at any time: it is not done twice, and the answer tells.
	ErrUnknownOutcome = errors.New("outcome unknown")
)

// ErrClosed is why commands fail on a closed client.
var ErrClosed = errors.New("client closed")

// Error is what happened to one command. It matches its Kind and its Cause by
// [errors.Is] and [errors.As]; a command that admission refused has a
// [*command.Error] as its cause.
type Error struct {
	Kind      error // ErrNotSent or ErrUnknownOutcome
	RequestID string
	Type      string
	Cause     error
}

// Error names the command, its request ID, and what can be done.
func (e *Error) Error() string {
	text := fmt.Sprintf("client: %s, request %s: %v: %v", e.Type, e.RequestID, e.Kind, e.Cause)
	if errors.Is(e.Kind, ErrUnknownOutcome) {
		text += "; send it again under the same request ID to learn the outcome"
	}
	return text
}

// Unwrap returns kind and cause.
func (e *Error) Unwrap() []error { return []error{e.Kind, e.Cause} }

func fault(kind error, c *command.Command, cause error) *Error {
	return &Error{Kind: kind, RequestID: c.RequestID(), Type: c.Type(), Cause: cause}
}

// refusals are the brokers' answers after which a record is not in the log,
// unless an earlier attempt at it put it there.
var refusals = [...]error{
	kerr.ClusterAuthorizationFailed,
	kerr.InvalidRecord,
	kerr.InvalidTimestamp,
	kerr.InvalidTopicException,
	kerr.MessageTooLarge,
	kerr.PolicyViolation,
	kerr.RecordListTooLarge,
	kerr.TopicAuthorizationFailed,
	kerr.UnknownTopicID,
	kerr.UnknownTopicOrPartition,
	kerr.UnsupportedForMessageFormat,
}

func refused(err error) bool {
	for _, refusal := range refusals {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// lossHook counts the ends of connections. As long as none ends, every attempt at
// a record has been answered, and a refusal holds for all of them; afterwards an
// attempt whose answer was lost may have succeeded.
type lossHook Client

var (
	_ kgo.HookBrokerDisconnect = (*lossHook)(nil)
	_ kgo.HookBrokerE2E        = (*lossHook)(nil)
)
