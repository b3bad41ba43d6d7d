package keys

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSpellingsOfOneNameFoldAlike(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, a, b string }{
		{"case", "Acme", "ACME"},
		{"outer space", "  Acme ", "Acme"},
		{"inner space", "Acme  Tools", "acme tools"},
		{"NFC and NFD", "Caf\u00e9", "Cafe\u0301"},
		{"compatibility", "Ⅳ", "IV"},
		{"full width", "ＡＣＭＥ", "acme"},
		{"umlaut", "MÜLLER", "müller"},
		{"sharp s", "STRASSE", "straße"},
		{"final sigma", "ΟΔΟΣ", "οδος"},
		{"final sigma typed", "ΟΔΟΣ", "οδοσ"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if a, b := Fold(row.a), Fold(row.b); a != b {
				t.Errorf("Fold(%q) = %q, Fold(%q) = %q; want them equal", row.a, a, row.b, b)
			}
		})
	}
}

func TestDifferentNamesStayDifferent(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, a, b string }{
		{"dotless i", "ılgaz", "ilgaz"},
		{"accent", "Café", "Cafe"},
		{"space", "AcmeTools", "Acme Tools"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if a, b := Fold(row.a), Fold(row.b); a == b {
				t.Errorf("Fold(%q) = Fold(%q) = %q; want them different", row.a, row.b, a)
			}
		})
	}
}

func TestFoldIsIdempotent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		once := Fold(s)
		if twice := Fold(once); twice != once {
			t.Fatalf("Fold(%q) = %q, folded again %q", s, once, twice)
		}
	})
}

func TestASCIIFoldsAsTheProfileDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[ -~]{1,40}`).Draw(t, "s")
		if strings.TrimSpace(s) == "" {
			return // the profile refuses an empty result
		}
		fast, ok := foldASCII(s)
		if slow := foldOnce(s); !ok || fast != slow {
			t.Fatalf("foldASCII(%q) = %q, %v; the profile says %q", s, fast, ok, slow)
		}
	})
}

func BenchmarkFold(b *testing.B) {
	for _, row := range []struct{ name, s string }{
		{"ASCII", "Acme Tools " + strings.Repeat("x", 240)},
		{"folded ASCII", "acme tools " + strings.Repeat("x", 240)},
		{"other", "Müller " + strings.Repeat("x", 240)},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Fold(row.s)
			}
		})
	}
}
