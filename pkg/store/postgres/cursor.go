package postgres

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// cursor reads text of the exact form that this package writes. The first fault sticks, and every read after it is of
// nothing.
type cursor struct {
	rest []byte
	err  error
}

func (c *cursor) fail(want string) {
	if c.err == nil {
		c.err = fmt.Errorf("%.40q where %s must be", c.rest, want)
	}
	c.rest = nil
}

// has reads literal if it is next.
func (c *cursor) has(literal string) bool {
	if !bytes.HasPrefix(c.rest, []byte(literal)) {
		return false
	}
	c.rest = c.rest[len(literal):]
	return true
}

func (c *cursor) must(literal string) {
	if !c.has(literal) {
		c.fail(literal)
	}
}

func (c *cursor) end() error {
	if len(c.rest) > 0 {
		c.fail("the end")
	}
	return c.err
}

// value reads one JSON value with the white space around it: all up to the comma or bracket that follows it.
func (c *cursor) value() []byte {
	depth := 0
	for i := 0; i < len(c.rest); i++ {
		switch c.rest[i] {
		case '"':
			i += stringEnd(c.rest[i:])
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 {
				value := c.rest[:i]
				c.rest = c.rest[i:]
				return value
			}
			if c.rest[i] != ',' {
				depth--
			}
		}
	}
	c.fail("a value")
	return nil
}

// quoted reads a JSON string.
func (c *cursor) quoted() string {
	if len(c.rest) == 0 || c.rest[0] != '"' {
		c.fail("a string")
		return ""
	}
	end := stringEnd(c.rest) + 1
	if end > len(c.rest) {
		c.fail("a string")
		return ""
	}
	text := c.rest[:end]
	c.rest = c.rest[end:]
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text[1 : end-1])
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		c.fail("a string")
	}
	return s
}

func (c *cursor) number() int {
	end := 0
	for end < len(c.rest) && (c.rest[end] == '-' || c.rest[end] >= '0' && c.rest[end] <= '9') {
		end++
	}
	n, err := strconv.Atoi(string(c.rest[:end]))
	if err != nil {
		c.fail("a number")
		return 0
	}
	c.rest = c.rest[end:]
	return n
}

// stringEnd returns where the quote stands that closes the string which text begins with, or len(text).
func stringEnd(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(text)
}
