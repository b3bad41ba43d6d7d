package command

import (
	"fmt"
	"strings"
)

// Aggregate names one aggregate of a context.
type Aggregate struct {
	Tenant string // "" is the default tenant
	Type   string // the registered name, the second part of a command type
	ID     string
}

// String returns the address of a, which is also the key of its records:
// type/id, or tenant/type/id outside the default tenant. Each part is
// percent-encoded, in upper-case hex, where it holds '/', '%' or a byte outside
// '!' to '~'.
func (a Aggregate) String() string {
	var stack [256]byte
	return string(a.appendAddress(stack[:0]))
}

func (a Aggregate) appendAddress(dst []byte) []byte {
	if a.Tenant != "" {
		dst = append(appendEscaped(dst, a.Tenant), '/')
	}
	dst = append(appendEscaped(dst, a.Type), '/')
	return appendEscaped(dst, a.ID)
}

// Stream returns the key of a's stream of commits within its context.
func (a Aggregate) Stream() Digest {
	var stack [frameSize]byte
	frame := appendPart(stack[:0], labelStream)
	frame = appendPart(frame, a.Tenant)
	frame = appendPart(frame, a.Type)
	frame = appendPart(frame, a.ID)
	return digest(frame)
}

// ParseAddress is the inverse of [Aggregate.String]. It accepts that one
// spelling only, so that one aggregate never has two addresses.
func ParseAddress(s string) (Aggregate, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 2 && len(parts) != 3 {
		return Aggregate{}, fmt.Errorf("command: address %q: must be type/id or tenant/type/id", cut(s))
	}
	for i, part := range parts {
		decoded, ok := unescapePart(part)
		if !ok {
			return Aggregate{}, fmt.Errorf("command: address %q: %q is not percent-encoded as an address must be", cut(s), cut(part))
		}
		parts[i] = decoded
	}
	var a Aggregate
	if len(parts) == 3 {
		if fault := checkID(parts[0]); fault != "" {
			return Aggregate{}, fmt.Errorf("command: address %q: tenant %s", cut(s), fault)
		}
		a.Tenant, parts = parts[0], parts[1:]
	}
	a.Type, a.ID = parts[0], parts[1]
	if fault := checkTypePart(a.Type); fault != "" {
		return Aggregate{}, fmt.Errorf("command: address %q: type %s", cut(s), fault)
	}
	if fault := checkID(a.ID); fault != "" {
		return Aggregate{}, fmt.Errorf("command: address %q: ID %s", cut(s), fault)
	}
	return a, nil
}

func escaped(b byte) bool { return b == '/' || b == '%' || b < '!' || b > '~' }

func appendEscaped(dst []byte, s string) []byte {
	const digits = "0123456789ABCDEF"
	plain := 0
	for i := 0; i < len(s); i++ {
		if !escaped(s[i]) {
			continue
		}
		dst = append(dst, s[plain:i]...)
		dst = append(dst, '%', digits[s[i]>>4], digits[s[i]&0xf])
		plain = i + 1
	}
	return append(dst, s[plain:]...)
}

func unescapePart(s string) (string, bool) {
	decoded := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		b := s[i]
		if b == '%' {
			if i+2 >= len(s) {
				return "", false
			}
			high, low := fromHex(s[i+1]), fromHex(s[i+2])
			if high < 0 || low < 0 || s[i+1] >= 'a' || s[i+2] >= 'a' {
				return "", false
			}
			b = byte(high<<4 | low)
			if !escaped(b) {
				return "", false
			}
			i += 2
		} else if escaped(b) {
			return "", false
		}
		decoded = append(decoded, b)
	}
	return string(decoded), true
}
