// Package keys holds unique keys: what a key is, its bounds, its folded form, and the net effect that
// reserving and releasing keys has.
package keys

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/seed54173720/writ/pkg/command"
)

// Bounds of a key, in bytes.
const (
	MaxNamespace = 255
	MaxName      = 1024
)

// Key is a unique key: at every instant it has at most one holder in its scope. The scope is the tenant, or the
// whole context across its tenants where System is set; the two are separate spaces. Keys are compared byte for
// byte: fold them first (Fold) where people type them.
type Key struct {
	System    bool   // across all tenants of the context; Tenant is then empty
	Tenant    string // "" is the default tenant
	Namespace string // what kind of key it is: "brand-name"; 1 to MaxNamespace bytes
	Name      string // the key itself; 1 to MaxName bytes of UTF-8 without NUL
}

// Digest is the key's compact name in the store: 16 bytes of a hash over its framed parts. Stores compare the
// parts themselves on a hit.
func (k Key) Digest() command.Digest {
	var buf [MaxNamespace + MaxName + 64]byte // a key of the default tenant needs no heap
	b := append(buf[:0], "writ key"...)
	if k.System {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	for _, part := range [...]string{k.Tenant, k.Namespace, k.Name} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	sum := sha256.Sum256(b)
	return command.Digest(sum[:16])
}

// Check returns an error that names the part, its value and the rule where a bound of Key is not met.
func (k Key) Check() error {
	switch {
	case k.System && k.Tenant != "":
		return fmt.Errorf("key %q: a system-wide key has no tenant, got %q", k.Name, k.Tenant)
	case len(k.Namespace) == 0 || len(k.Namespace) > MaxNamespace:
		return fmt.Errorf("key namespace %.40q: must be 1 to %d bytes, is %d", k.Namespace, MaxNamespace, len(k.Namespace))
	case len(k.Name) == 0 || len(k.Name) > MaxName:
		return fmt.Errorf("key %s/%.40q: must be 1 to %d bytes, is %d", k.Namespace, k.Name, MaxName, len(k.Name))
	case !text(k.Namespace) || !text(k.Name):
		return fmt.Errorf("key %.40q/%.40q: must be valid UTF-8 without NUL", k.Namespace, k.Name)
	}
	return nil
}

// String is for logs and messages; it is no identity.
func (k Key) String() string {
	scope := k.Tenant
	if k.System {
		scope = "*"
	}
	return fmt.Sprintf("%s:%s/%s", scope, k.Namespace, k.Name)
}

func text(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] == 0 {
			return false
		}
	}
	return utf8.ValidString(s)
}
