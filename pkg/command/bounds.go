package command

import (
	"fmt"
	"unicode/utf8"
)

// Bounds on what a command may hold, in bytes unless they say otherwise.
const (
	// MaxID bounds a request ID, an aggregate ID, a tenant, an owner, a space,
	// a source, a correlation or a causation ID.
	MaxID = 255
	// MaxTypePart bounds each of the three parts of a command type.
	MaxTypePart = 64
	// MaxTopic bounds a topic name, as Kafka does.
	MaxTopic = 249
	// MaxBody bounds a command's body. It leaves room for the headers within
	// Kafka's default of 1 MiB a batch.
	MaxBody = 900_000
	// MaxDepth bounds how many arrays and objects of a body may be open at once.
	MaxDepth = 64
	// MaxResult bounds the result that a decision hands back, as JSON.
	MaxResult = 64_000
	// MaxMessage bounds the message of an error that is recorded or sent.
	MaxMessage = 1_000
	// MaxFields bounds the number of fields of an error that is recorded or sent.
	MaxFields = 32
)

// CheckOptionalID checks an identifier that may be empty, an owner or a space
// in a body say, by the rule of those in attributes. The error's code is
// invalid-id and its field is name.
func CheckOptionalID(name, id string) *Error {
	if fault := checkOptionalID(id); fault != "" {
		return fieldError(CodeInvalidID, name, fault)
	}
	return nil
}

// checkID says what is wrong with an identifier, or "".
func checkID[T string | []byte](s T) string {
	if len(s) == 0 {
		return "is empty; it must have 1 to 255 bytes"
	}
	return checkOptionalID(s)
}

// checkOptionalID is checkID for identifiers that may be empty.
func checkOptionalID[T string | []byte](s T) string {
	if len(s) > MaxID {
		return fmt.Sprintf("has %d bytes; at most %d are allowed", len(s), MaxID)
	}
	for i := 0; i < len(s); i++ {
		if b := s[i]; b < 0x20 || b >= 0x7f {
			return checkUnusual(string(s))
		}
	}
	return ""
}

// checkUnusual is the slow half of checkOptionalID: s holds something that is
// not printable ASCII.
func checkUnusual(s string) string {
	if !utf8.ValidString(s) {
		return "is not valid UTF-8"
	}
	for i, r := range s {
		if r < 0x20 || r >= 0x7f && r <= 0x9f {
			return fmt.Sprintf("holds the control character %U at byte %d", r, i)
		}
	}
	return ""
}

// checkTypePart says what is wrong with one part of a type name, or "".
func checkTypePart[T string | []byte](s T) string {
	if len(s) == 0 || len(s) > MaxTypePart {
		return fmt.Sprintf("has %d bytes; 1 to %d are allowed", len(s), MaxTypePart)
	}
	if s[0] < 'a' || s[0] > 'z' {
		return "must begin with a letter a-z"
	}
	for i := 1; i < len(s); i++ {
		if b := s[i]; (b < 'a' || b > 'z') && (b < '0' || b > '9') && b != '-' {
			return "may hold a-z, 0-9 and '-' only"
		}
	}
	return ""
}

// splitType finds the two dots of "context.aggregate.command" and says what is
// wrong with it otherwise.
func splitType[T string | []byte](s T) (dot1, dot2 int, fault string) {
	dots := [2]int{}
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] != '.' {
			continue
		}
		if n == len(dots) {
			return 0, 0, "must have three parts, context.aggregate.command"
		}
		dots[n] = i
		n++
	}
	if n != len(dots) {
		return 0, 0, "must have three parts, context.aggregate.command"
	}
	for _, part := range [...]T{s[:dots[0]], s[dots[0]+1 : dots[1]], s[dots[1]+1:]} {
		if fault := checkTypePart(part); fault != "" {
			return 0, 0, fmt.Sprintf("part %q %s", cut(part), fault)
		}
	}
	return dots[0], dots[1], ""
}

// checkTopic says what is wrong with a topic name, or "".
func checkTopic[T string | []byte](s T) string {
	if len(s) == 0 || len(s) > MaxTopic {
		return fmt.Sprintf("has %d bytes; a topic name has 1 to %d", len(s), MaxTopic)
	}
	for i := 0; i < len(s); i++ {
		b := s[i]
		if (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') && (b < '0' || b > '9') && b != '.' && b != '_' && b != '-' {
			return "is no topic name; a-z, A-Z, 0-9, '.', '_' and '-' are allowed"
		}
	}
	if string(s) == "." || string(s) == ".." {
		return "is no topic name"
	}
	return ""
}

// cut shortens what a message quotes.
func cut[T string | []byte](s T) string {
	const most = 64
	if len(s) <= most {
		return string(s)
	}
	return string(s[:most]) + "…"
}

// shorten cuts s to at most n bytes, between two characters, and makes it valid
// UTF-8.
func shorten(s string, n int) string {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	if len(s) <= n {
		return s
	}
	const mark = "…"
	end := n - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}
