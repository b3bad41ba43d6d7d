package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Error is a refusal or a failure in the words of the wire: a stable code for
// programs, a message for people, and the members or attributes it concerns.
type Error struct {
	Code    Code
	Message string
	Fields  map[string]string // member or attribute name -> what is wrong with it
}

// Errorf returns an error without fields.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// fieldError returns an error about one member or attribute.
func fieldError(code Code, field, fault string) *Error {
	return &Error{Code: code, Message: field + " " + fault, Fields: map[string]string{field: fault}}
}

// Error returns code and message.
func (e *Error) Error() string {
	if e.Message == "" {
		return string(e.Code)
	}
	return string(e.Code) + ": " + e.Message
}

// Is reports whether target is an [Error] of the same code, for [errors.Is].
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Bounded returns e cut to what may be recorded and sent: a message of
// [MaxMessage] bytes, the first [MaxFields] fields by name, names and texts of
// [MaxID] bytes, all valid UTF-8 without NUL. It returns e itself where nothing
// has to be cut, and is a function of e alone.
func (e *Error) Bounded() *Error {
	b := &Error{Code: Code(bounded(string(e.Code), MaxID)), Message: bounded(e.Message, MaxMessage)}
	same := b.Code == e.Code && b.Message == e.Message && len(e.Fields) <= MaxFields
	if len(e.Fields) > 0 {
		b.Fields = make(map[string]string, min(len(e.Fields), MaxFields))
		names := slices.Sorted(maps.Keys(e.Fields))
		for _, name := range names[:min(len(names), MaxFields)] {
			short, text := bounded(name, MaxID), bounded(e.Fields[name], MaxID)
			same = same && short == name && text == e.Fields[name]
			b.Fields[short] = text
		}
	}
	if same {
		return e
	}
	return b
}

// bounded is shorten without NUL, which Postgres cannot keep in text.
func bounded(s string, n int) string {
	return shorten(strings.ReplaceAll(s, "\x00", "\uFFFD"), n)
}
