package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// referenceCanonical is the canonical form by another's parser, slow and plain.
func referenceCanonical(text []byte) ([]byte, bool) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	out, err := referenceValue(d, 0)
	if err != nil {
		return nil, false
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, false
	}
	return out, true
}

func referenceValue(d *jsontext.Decoder, depth int) ([]byte, error) {
	switch d.PeekKind() {
	case '{', '[':
		if depth++; depth > MaxDepth {
			return nil, errors.New("too deep")
		}
	case '0':
		v, err := d.ReadValue()
		return bytes.Clone(v), err
	}
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '"':
		return referenceString(token.String()), nil
	case '[':
		var elements [][]byte
		for d.PeekKind() != ']' {
			element, err := referenceValue(d, depth)
			if err != nil {
				return nil, err
			}
			elements = append(elements, element)
		}
		_, err := d.ReadToken()
		return fmt.Appendf(nil, "[%s]", bytes.Join(elements, []byte(","))), err
	case '{':
		type member struct {
			name string
			text []byte
		}
		var members []member
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			m := member{name: name.String()}
			value, err := referenceValue(d, depth)
			if err != nil {
				return nil, err
			}
			m.text = fmt.Appendf(nil, "%s:%s", referenceString(m.name), value)
			members = append(members, m)
		}
		if _, err := d.ReadToken(); err != nil {
			return nil, err
		}
		slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
		var texts [][]byte
		for _, m := range members {
			texts = append(texts, m.text)
		}
		return fmt.Appendf(nil, "{%s}", bytes.Join(texts, []byte(","))), nil
	}
	return []byte(token.String()), nil
}

func referenceString(s string) []byte {
	var b strings.Builder
	for _, r := range s {
		switch r {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '\b':
			b.WriteString(`\b`)
		case '\t':
			b.WriteString(`\t`)
		case '\n':
			b.WriteString(`\n`)
		case '\f':
			b.WriteString(`\f`)
		case '\r':
			b.WriteString(`\r`)
		default:
			if r < 0x20 {
				fmt.Fprintf(&b, `\u%04x`, r)
			} else {
				b.WriteRune(r)
			}
		}
	}
	return []byte(`"` + b.String() + `"`)
}

func compareWithReference(t *testing.T, text []byte) {
	t.Helper()
	const before = "before"
	got, ok := Canonical([]byte(before), text)
	want, wantOK := referenceCanonical(text)
	if ok != wantOK {
		t.Fatalf("canonical form of %q: got %v, want %v", text, ok, wantOK)
	}
	if string(got) != before+string(want) {
		t.Fatalf("canonical form of %q:\ngot  %q\nwant %q", text, got, before+string(want))
	}
	if !ok {
		return
	}
	again, ok := Canonical(nil, want)
	if !ok || string(again) != string(want) {
		t.Fatalf("the canonical form %q has another canonical form, %q", want, again)
	}
}

func FuzzCanonical(f *testing.F) {
	for _, in := range canonicalInputs {
		f.Add([]byte(in.json))
	}
	f.Fuzz(compareWithReference)
}

// The fuzzer seldom writes whole objects, so random ones stand beside it.
func TestCanonicalFormIsThatOfTheReference(t *testing.T) {
	t.Parallel()
	for _, in := range canonicalInputs {
		compareWithReference(t, []byte(in.json))
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for range 3000 {
		compareWithReference(t, randomJSON(random, nil, 4))
	}
}

// randomJSON writes a value, now and then a broken one.
func randomJSON(r *rand.Rand, dst []byte, depth int) []byte {
	gap := func() { dst = append(dst, []string{"", "", "", " ", "\n\t", "\r"}[r.IntN(6)]...) }
	str := func() {
		parts := []string{"a", "b", "name", `\n`, `\"`, `\\`, `\/`, `\u0061`, `\u001f`, `\u00E9`, "é", "😀", `\ud83d\ude00`, "\x7f", "ﬁ", "~", "!", "#", "[", "]"}
		dst = append(dst, '"')
		for range r.IntN(4) {
			dst = append(dst, parts[r.IntN(len(parts))]...)
		}
		if r.IntN(400) == 0 {
			dst = append(dst, []string{"\xff", `\ud800`, "\x01", `\x`}[r.IntN(4)]...)
		}
		dst = append(dst, '"')
	}
	gap()
	switch kind := r.IntN(8); {
	case kind < 3 && depth > 0:
		dst = append(dst, '{')
		for i := range r.IntN(6) {
			if i > 0 {
				dst = append(dst, ',')
			}
			gap()
			str()
			gap()
			dst = append(dst, ':')
			dst = randomJSON(r, dst, depth-1)
		}
		gap()
		dst = append(dst, '}')
	case kind < 4 && depth > 0:
		dst = append(dst, '[')
		for i := range r.IntN(4) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = randomJSON(r, dst, depth-1)
		}
		gap()
		dst = append(dst, ']')
	case kind < 6:
		str()
	default:
		dst = append(dst, []string{"0", "-0", "1.50", "1e9", "12E-3", "true", "false", "null", "123456789012345678901"}[r.IntN(9)]...)
	}
	gap()
	return dst
}

func TestCanonicalWritesBehindWhatIsThere(t *testing.T) {
	t.Parallel()
	dst := make([]byte, 3, 100)
	copy(dst, "abc")
	if got, ok := Canonical(dst, []byte(`{"b":1,"a":2}`)); !ok || string(got) != `abc{"a":2,"b":1}` {
		t.Errorf("got %q, %v", got, ok)
	}
	if got, ok := Canonical(dst, []byte(`{"b":1,"a":2`)); ok || string(got) != "abc" {
		t.Errorf("after a failure: got %q, %v", got, ok)
	}
}

func TestFingerprintCoversWhatTellsCommandsApart(t *testing.T) {
	t.Parallel()
	base := func() *Builder { return full() }
	want := mustBuild(t, base()).Fingerprint()
	for name, b := range map[string]*Builder{
		"expected version": base().ExpectVersion(1),
		"deadline":         base().Expires(someTime.Add(aWhile)),
		"time":             base().Time(someTime.Add(aWhile)),
		"reply topic":      base().ReplyTo("other"),
		"reply partition":  base().ReplyPartition(9),
		"stage":            base().WaitFor(StageCommitted),
		"correlation":      base().Correlation("x"),
		"causation":        base().Causation("x"),
		"request ID":       base().ID("x"),
		"spelling of body": base().Body([]byte(` { "name" : "\u00dcn\u00efted" } `)),
	} {
		if mustBuild(t, b).Fingerprint() != want {
			t.Errorf("%s changes the fingerprint", name)
		}
	}
	other := func(typ, source string) *Builder {
		b := base()
		return b.put(attrType, typ).put(attrSource, source)
	}
	for name, b := range map[string]*Builder{
		"type":      other("catalog.brand.create", "shop/import"),
		"caller":    other("catalog.brand.rename", "shop"),
		"aggregate": base().Subject("8"),
		"tenant":    base().Tenant("x"),
		"owner":     base().Owner("x"),
		"space":     base().Space("x"),
		"body":      base().Body([]byte(`{"name":"x"}`)),
		"number":    base().Body([]byte(`{"name":"Ünïted","n":1.0}`)),
	} {
		if mustBuild(t, b).Fingerprint() == want {
			t.Errorf("%s does not change the fingerprint", name)
		}
	}
	swapped := Fingerprint("t", Aggregate{}, "ab", "c", "", nil)
	if swapped == Fingerprint("t", Aggregate{}, "a", "bc", "", nil) {
		t.Error("owner and space run into each other")
	}
}

const aWhile = 7 * time.Second
