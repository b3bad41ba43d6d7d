package command

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Canonical appends the canonical form of a JSON text to dst and reports whether
// the text is JSON by the frozen grammar; if it is not, it returns dst as it
// was. It is safe for concurrent use and keeps nothing of its arguments.
//
// The canonical form has no white space, the members of each object sorted by
// the bytes of their decoded names, strings with as few escapes as possible
// (\" \\ \b \t \n \f \r, and \u00xx in lower-case hex for other control
// characters), and number literals byte for byte as they were sent: 1.0 and 1
// are different texts.
//
// The grammar is RFC 8259 with valid UTF-8, no duplicate member names, no lone
// surrogates, at most [MaxDepth] arrays and objects open at once, one value and
// nothing after it but white space.
func Canonical(dst, json []byte) ([]byte, bool) {
	c := canonicalisers.Get().(*canonicaliser)
	own := c.out
	c.out = dst
	ok := c.text(json)
	out := c.out
	c.out = own
	c.release()
	if !ok {
		return dst, false
	}
	return out, true
}

// canonicaliser is one run over a text, and the scratch space that runs leave to
// each other.
type canonicaliser struct {
	src     []byte
	at      int // next byte of src
	out     []byte
	members []member // of the objects that are open, innermost last
	sorted  []byte   // where an object is put together anew
	fault   string   // why src is not JSON; at is where
	nul     int      // where the first \u0000 ended, or 0
}

// member is a member of an object, by its place in out.
type member struct {
	name, nameEnd int  // within the quotes
	end           int  // after the value
	escaped       bool // the name holds escapes
}

var canonicalisers = sync.Pool{New: func() any { return new(canonicaliser) }}

func (c *canonicaliser) release() {
	c.src = nil
	canonicalisers.Put(c)
}

// text appends the canonical form of src to c.out.
func (c *canonicaliser) text(src []byte) bool {
	c.src, c.at, c.members, c.fault, c.nul = src, 0, c.members[:0], "", 0
	c.space()
	if !c.value(0) {
		return false
	}
	c.space()
	return c.at == len(src) || c.fail("has something after the value")
}

func (c *canonicaliser) fail(fault string) bool {
	c.fault = fault
	return false
}

func (c *canonicaliser) space() {
	for c.at < len(c.src) {
		switch c.src[c.at] {
		case ' ', '\t', '\n', '\r':
			c.at++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end of the text.
func (c *canonicaliser) peek() byte {
	if c.at == len(c.src) {
		return 0
	}
	return c.src[c.at]
}

// value reads one value inside depth arrays and objects.
func (c *canonicaliser) value(depth int) bool {
	switch b := c.peek(); b {
	case '"':
		return c.string()
	case '{':
		return c.object(depth + 1)
	case '[':
		return c.array(depth + 1)
	case 't':
		return c.literal("true")
	case 'f':
		return c.literal("false")
	case 'n':
		return c.literal("null")
	default:
		if b == '-' || isDigit(b) {
			return c.number()
		}
		if c.at == len(c.src) {
			return c.fail("ends too early")
		}
		return c.fail("has no value where one must begin")
	}
}

func (c *canonicaliser) object(depth int) bool {
	if depth > MaxDepth {
		return c.fail("is nested too deep")
	}
	c.at++
	c.out = append(c.out, '{')
	first, start, ascending := len(c.members), len(c.out), true
	c.space()
	if c.peek() == '}' {
		c.at++
		c.out = append(c.out, '}')
		return true
	}
	for {
		if c.peek() != '"' {
			return c.fail("has no member name where one must begin")
		}
		m := member{name: len(c.out) + 1}
		if !c.string() {
			return false
		}
		m.nameEnd = len(c.out) - 1
		m.escaped = bytes.IndexByte(c.out[m.name:m.nameEnd], '\\') >= 0
		c.space()
		if c.peek() != ':' {
			return c.fail("has no ':' after a member name")
		}
		c.at++
		c.out = append(c.out, ':')
		if ascending && len(c.members) > first {
			ascending = c.compare(c.members[len(c.members)-1], m) < 0
		}
		c.space()
		if !c.value(depth) {
			return false
		}
		m.end = len(c.out)
		c.members = append(c.members, m)
		c.space()
		switch c.peek() {
		case ',':
			c.at++
			c.out = append(c.out, ',')
			c.space()
			continue
		case '}':
			if !ascending && !c.sort(start, c.members[first:]) {
				return c.fail("has a member name twice in the object that ends here")
			}
			c.at++
			c.out = append(c.out, '}')
			c.members = c.members[:first]
			return true
		}
		return c.fail("has neither ',' nor '}' after a member")
	}
}

// sort puts the members of the object whose first member begins at start into
// order. It reports whether their names differ.
func (c *canonicaliser) sort(start int, members []member) bool {
	slices.SortFunc(members, c.compare)
	for i := 1; i < len(members); i++ {
		if c.compare(members[i-1], members[i]) == 0 {
			return false
		}
	}
	c.sorted = c.sorted[:0]
	for i, m := range members {
		if i > 0 {
			c.sorted = append(c.sorted, ',')
		}
		c.sorted = append(c.sorted, c.out[m.name-1:m.end]...)
	}
	copy(c.out[start:], c.sorted)
	return true
}

// compare orders members by the bytes of their decoded names.
func (c *canonicaliser) compare(a, b member) int {
	x, y := c.out[a.name:a.nameEnd], c.out[b.name:b.nameEnd]
	if !a.escaped && !b.escaped {
		return bytes.Compare(x, y)
	}
	for len(x) > 0 && len(y) > 0 {
		p, n := decodeByte(x)
		q, m := decodeByte(y)
		if p != q {
			return int(p) - int(q)
		}
		x, y = x[n:], y[m:]
	}
	return len(x) - len(y)
}

func (c *canonicaliser) array(depth int) bool {
	if depth > MaxDepth {
		return c.fail("is nested too deep")
	}
	c.at++
	c.out = append(c.out, '[')
	c.space()
	if c.peek() == ']' {
		c.at++
		c.out = append(c.out, ']')
		return true
	}
	for {
		if !c.value(depth) {
			return false
		}
		c.space()
		switch c.peek() {
		case ',':
			c.at++
			c.out = append(c.out, ',')
			c.space()
			continue
		case ']':
			c.at++
			c.out = append(c.out, ']')
			return true
		}
		return c.fail("has neither ',' nor ']' after an element")
	}
}

func (c *canonicaliser) literal(word string) bool {
	if !bytes.HasPrefix(c.src[c.at:], []byte(word)) {
		return c.fail("has no value where one must begin")
	}
	c.at += len(word)
	c.out = append(c.out, word...)
	return true
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func (c *canonicaliser) number() bool {
	begin := c.at
	if c.peek() == '-' {
		c.at++
	}
	switch {
	case c.peek() == '0':
		c.at++
	case !c.digits():
		return c.fail("has a '-' without digits")
	}
	if c.peek() == '.' {
		c.at++
		if !c.digits() {
			return c.fail("has a decimal point without digits")
		}
	}
	if b := c.peek(); b == 'e' || b == 'E' {
		c.at++
		if b := c.peek(); b == '+' || b == '-' {
			c.at++
		}
		if !c.digits() {
			return c.fail("has an exponent without digits")
		}
	}
	c.out = append(c.out, c.src[begin:c.at]...)
	return true
}

// digits reads one digit or more.
func (c *canonicaliser) digits() bool {
	begin := c.at
	for isDigit(c.peek()) {
		c.at++
	}
	return c.at > begin
}

// plain marks the bytes of a string that stand for themselves in any case.
var plain = func() (table [256]bool) {
	for b := 0x20; b < utf8.RuneSelf; b++ {
		table[b] = b != '"' && b != '\\'
	}
	return table
}()

// string reads a string, with its quotes.
func (c *canonicaliser) string() bool {
	src, i := c.src, c.at+1
	out := append(c.out, '"')
	run := i
	for {
		for i < len(src) && plain[src[i]] {
			i++
		}
		if i == len(src) {
			c.at = i
			return c.fail("ends within a string")
		}
		switch b := src[i]; {
		case b == '"':
			c.out = append(append(out, src[run:i]...), '"')
			c.at = i + 1
			return true
		case b == '\\':
			out = append(out, src[run:i]...)
			r, n := decodeEscape(src[i:])
			if n == 0 {
				c.at = i
				return c.fail("has an escape that does not exist, or half a surrogate pair")
			}
			i += n
			if r == 0 && c.nul == 0 {
				c.nul = i
			}
			out = appendMinimal(out, r)
			run = i
		case b < 0x20:
			c.at = i
			return c.fail("has a control character within a string")
		default:
			r, n := utf8.DecodeRune(src[i:])
			if r == utf8.RuneError && n == 1 {
				c.at = i
				return c.fail("is not valid UTF-8")
			}
			i += n
		}
	}
}

// decodeEscape reads the escape that s begins with, and the second half of a
// surrogate pair. It returns its length, or 0 if it is none.
func decodeEscape(s []byte) (rune, int) {
	if len(s) < 2 {
		return 0, 0
	}
	switch s[1] {
	case '"', '\\', '/':
		return rune(s[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
	default:
		return 0, 0
	}
	r, ok := hex4(s[2:])
	switch {
	case !ok || r >= 0xdc00 && r <= 0xdfff:
		return 0, 0
	case r < 0xd800 || r > 0xdfff:
		return r, 6
	}
	if len(s) < 12 || s[6] != '\\' || s[7] != 'u' {
		return 0, 0
	}
	low, ok := hex4(s[8:])
	if !ok || low < 0xdc00 || low > 0xdfff {
		return 0, 0
	}
	return (r-0xd800)<<10 + (low - 0xdc00) + 0x10000, 12
}

func hex4(s []byte) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	var r rune
	for _, b := range s[:4] {
		v := fromHex(b)
		if v < 0 {
			return 0, false
		}
		r = r<<4 | rune(v)
	}
	return r, true
}

const (
	lowerHex = "0123456789abcdef"
	short    = "btn\x00fr" // the letters that escape 0x08 to 0x0d
)

// appendMinimal appends r as it stands in a canonical string.
func appendMinimal(dst []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r >= 0x20:
		return utf8.AppendRune(dst, r)
	case r >= '\b' && r <= '\r' && r != '\v':
		return append(dst, '\\', short[r-'\b'])
	}
	return append(dst, '\\', 'u', '0', '0', lowerHex[r>>4], lowerHex[r&0xf])
}

// decodeByte returns the first byte that a canonical string's inside stands for,
// and the length of its spelling.
func decodeByte(s []byte) (byte, int) {
	if s[0] != '\\' {
		return s[0], 1
	}
	switch s[1] {
	case '"', '\\':
		return s[1], 2
	case 'u':
		return byte(fromHex(s[4])<<4 | fromHex(s[5])), 6
	}
	return '\b' + byte(strings.IndexByte(short, s[1])), 2
}

// appendString appends s as a canonical JSON string. What is not UTF-8 becomes
// U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	run := 0
	for i := 0; i < len(s); {
		if plain[s[i]] {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r < utf8.RuneSelf || r == utf8.RuneError && n == 1 {
			dst = appendMinimal(append(dst, s[run:i]...), r)
			run = i + n
		}
		i += n
	}
	return append(append(dst, s[run:]...), '"')
}
