package keys

import (
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/secure/precis"
	"golang.org/x/text/unicode/norm"
)

// Fold returns the form in which two spellings of one name compare equal: the comparison form of the PRECIS Nickname
// profile (RFC 8266: outer spaces removed, inner runs of spaces made one, NFKC, lower case), and full case folding on
// top, which the profile leaves out, so that "STRASSE" and "straße" are one name. Text that the profile does not
// allow (control characters, unassigned code points, an empty result) goes through the same steps without the
// profile's checks: Fold never fails. The result depends on no locale and on no setting of the database.
// Fold(Fold(s)) == Fold(s).
//
// Safe for concurrent use.
func Fold(s string) string {
	if folded, ok := foldASCII(s); ok {
		return folded
	}
	// A folded rune may decompose again: repeat until nothing changes. Two rounds do in practice.
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
	key, err := precis.Nickname.CompareKey(s)
	if err != nil {
		key = strings.Join(strings.Fields(norm.NFKC.String(s)), " ")
	}
	return norm.NFKC.String(cases.Fold().String(key))
}

// foldASCII is Fold for printable ASCII, which most names are; the profile's machinery costs microseconds.
func foldASCII(s string) (string, bool) {
	var differs byte // from what it folds to
	before := byte(' ')
	for i := 0; i < len(s); i++ {
		c := s[i]
		folded := asciiFold[c]
		if folded == 0 {
			return "", false
		}
		differs |= c ^ folded
		if c == ' ' && before == ' ' {
			differs = 1
		}
		before = c
	}
	if differs == 0 && before != ' ' || s == "" {
		return s, true
	}
	var out strings.Builder
	out.Grow(len(s))
	before = ' '
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != ' ' || before != ' ' {
			out.WriteByte(asciiFold[c])
		}
		before = c
	}
	return strings.TrimSuffix(out.String(), " "), true
}

// asciiFold is the folded form of each printable ASCII character, 0 for all other bytes.
var asciiFold = func() (table [256]byte) {
	for c := byte(' '); c <= '~'; c++ {
		table[c] = c
		if 'A' <= c && c <= 'Z' {
			table[c] = c + 'a' - 'A'
		}
	}
	return table
}()
