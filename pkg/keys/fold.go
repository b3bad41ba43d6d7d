package keys

import (
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/secure/precis"
	"golang.org/x/text/unicode/norm"
)

// Fold returns the form in which two spellings of one name compare equal: the comparison form of the PRECIS
// Nickname profile (RFC 8266): outer spaces removed, inner runs of spaces made one, NFKC, full case folding. Text
// that the profile does not allow (control characters, unassigned code points, an empty result) is folded by the
// same steps without the profile's checks, so that Fold never fails. The result depends on no locale and on no
// setting of the database. Fold(Fold(s)) == Fold(s).
//
// Safe for concurrent use.
func Fold(s string) string {
	if folded, ok := foldASCII(s); ok {
		return folded
	}
	// The profile's steps are not idempotent for every input (a folded rune may decompose again): repeat until
	// nothing changes. Two rounds do in practice.
	for range 4 {
		next := foldOnce(s)
		if next == s {
			break
		}
		s = next
	}
	return s
}

func foldOnce(s string) string {
	if key, err := precis.Nickname.CompareKey(s); err == nil {
		return key
	}
	return strings.Join(strings.Fields(norm.NFKC.String(cases.Fold().String(norm.NFKC.String(s)))), " ")
}

// foldASCII is Fold for printable ASCII, which most names are; the profile's machinery costs microseconds.
func foldASCII(s string) (string, bool) {
	plain := true // already folded: no copy
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < ' ' || c > '~' {
			return "", false
		}
		if 'A' <= c && c <= 'Z' || c == ' ' && (i == 0 || i == len(s)-1 || s[i-1] == ' ') {
			plain = false
		}
	}
	if plain {
		return s, true
	}
	return strings.ToLower(strings.Join(strings.Fields(s), " ")), true
}
