package command

import "slices"

// Code is the stable name of a reason. Applications add codes of their own for
// their rejections; those of Writ itself are listed by [Codes].
type Code string

// The codes of Writ, as they stand in replies, journal and dead letters.
const (
	CodeAlreadyExists    Code = "already-exists"
	CodeBusy             Code = "busy"
	CodeContradiction    Code = "contradiction"
	CodeDecisionFailed   Code = "decision-failed"
	CodeDecisionPanicked Code = "decision-panicked"
	CodeDeleted          Code = "deleted"
	CodeExpired          Code = "expired"
	CodeInvalidBody      Code = "invalid-body"
	CodeInvalidID        Code = "invalid-id"
	CodeNewerBuildNeeded Code = "newer-build-needed"
	CodeNotFound         Code = "not-found"
	CodeReplyNotAllowed  Code = "reply-not-allowed"
	CodeRequestIDReused  Code = "request-id-reused"
	CodeStoreRefused     Code = "store-refused"
	CodeTooLarge         Code = "too-large"
	CodeUnauthorized     Code = "unauthorized"
	CodeUnknownType      Code = "unknown-type"
	CodeUnreadable       Code = "unreadable"
	CodeVersionMismatch  Code = "version-mismatch"
	CodeWrongKey         Code = "wrong-key"
	CodeWrongOwner       Code = "wrong-owner"
	CodeWrongSpace       Code = "wrong-space"
)

// Retry says what a sender can do about a code.
type Retry uint8

const (
	// RetryNone means that something outside the request has to change first.
	RetryNone Retry = iota
	// RetrySame means that the same request, sent again later, can succeed.
	RetrySame
	// RetryChanged means that a corrected request can succeed.
	RetryChanged
)

// String returns none, same or changed.
func (r Retry) String() string {
	return [...]string{RetryNone: "none", RetrySame: "same", RetryChanged: "changed"}[r]
}

// CodeInfo describes a code.
type CodeInfo struct {
	Code       Code
	Retry      Retry
	Meaning    string
	DeadLetter bool // whether its record is kept on the dead-letter topic
}

var codes = []CodeInfo{
	{CodeAlreadyExists, RetryChanged, "the command creates an aggregate that exists", false},
	{CodeBusy, RetrySame, "too much is under way; nothing was accepted", false},
	{CodeContradiction, RetryChanged, "two places of the record state the same fact differently", true},
	{CodeDecisionFailed, RetrySame, "the decision failed at every try", true},
	{CodeDecisionPanicked, RetrySame, "the decision panicked at every try", true},
	{CodeDeleted, RetryNone, "the aggregate is deleted", false},
	{CodeExpired, RetryChanged, "the command's deadline had passed when its turn came", false},
	{CodeInvalidBody, RetryChanged, "the body is not what the command's type asks for", true},
	{CodeInvalidID, RetryChanged, "an identifier or another attribute breaks its rule", true},
	{CodeNewerBuildNeeded, RetrySame, "the aggregate holds events that this build cannot read", true},
	{CodeNotFound, RetryNone, "the aggregate does not exist", false},
	{CodeReplyNotAllowed, RetryChanged, "replies may not go to the topic that the command names", false},
	{CodeRequestIDReused, RetryChanged, "the request ID already stands for another command; take a new one", false},
	{CodeStoreRefused, RetryChanged, "the store cannot hold what the decision wants to record", true},
	{CodeTooLarge, RetryChanged, "the body is larger than 900,000 bytes", true},
	{CodeUnauthorized, RetryNone, "the caller may not do this", false},
	{CodeUnknownType, RetryChanged, "no command of that type is registered in this context", true},
	{CodeUnreadable, RetryChanged, "the record is no command: no envelope, or a required attribute is missing", true},
	{CodeVersionMismatch, RetryChanged, "the aggregate is not at the expected version", false},
	{CodeWrongKey, RetryChanged, "the record key is not the aggregate's address", true},
	{CodeWrongOwner, RetryNone, "the aggregate belongs to another owner", false},
	{CodeWrongSpace, RetryNone, "the aggregate belongs to another space", false},
}

// Codes returns the codes of Writ, sorted by code.
func Codes() []CodeInfo { return slices.Clone(codes) }

// Info returns what is known about c; ok is false for an application's code.
func (c Code) Info() (info CodeInfo, ok bool) {
	i, ok := slices.BinarySearchFunc(codes, c, func(info CodeInfo, c Code) int {
		switch {
		case info.Code < c:
			return -1
		case info.Code > c:
			return 1
		}
		return 0
	})
	if !ok {
		return CodeInfo{Code: c}, false
	}
	return codes[i], true
}
