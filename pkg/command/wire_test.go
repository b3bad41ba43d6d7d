package command

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

const wireDoc = "../../docs/wire.md"

// The tables of docs/wire.md that follow from code stand between markers and are
// written by -update.
func TestDocumentedTablesAreTrue(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(wireDoc)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	for name, table := range map[string]string{
		"codes": codesTable(), "canonical": canonicalTable(), "fingerprints": fingerprintTable(),
		"derived": derivedTable(), "addresses": addressTable(),
	} {
		begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->"
		before, rest, ok := strings.Cut(doc, begin)
		if !ok {
			t.Fatalf("%s has no %q", wireDoc, begin)
		}
		_, after, ok := strings.Cut(rest, end)
		if !ok {
			t.Fatalf("%s has no %q", wireDoc, end)
		}
		doc = before + begin + table + end + after
	}
	goldenText(t, wireDoc, doc)
}

func row(cells ...string) string {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// literal quotes a cell as code.
func literal(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func codesTable() string {
	table := row("code", "meaning", "retry", "dead letter") + "|---|---|---|---|\n"
	for _, c := range Codes() {
		letter := ""
		if c.DeadLetter {
			letter = "yes"
		}
		table += row(literal(string(c.Code)), c.Meaning, c.Retry.String(), letter)
	}
	return table
}

func canonicalTable() string {
	table := row("text", "canonical form") + "|---|---|\n"
	for _, text := range []string{
		`{ "b": 1, "a": [ 1.0, 1e0, -0 ] }`,
		`{"\u0061\u0062":1,"aa":2}`,
		`{"\\":1,"[":2,"\"":3}`,
		`["\u00fc\/\u000b\u000A\u0000"]`,
		`{"a":1,"\u0061":1}`,
		`["\ud800"]`,
		`[1,]`,
	} {
		cell := "none"
		if out, ok := Canonical(nil, []byte(text)); ok {
			cell = literal(string(out))
		}
		table += row(literal(text), cell)
	}
	return table
}

func fingerprintTable() string {
	table := row("type", "tenant", "aggregate ID", "owner", "space", "caller", "body", "fingerprint") + "|---|---|---|---|---|---|---|---|\n"
	for _, v := range fingerprintVectors() {
		table += row(literal(v.Type), literal(v.Tenant), literal(v.ID), literal(v.Owner), literal(v.Space), literal(v.Caller), literal(v.Body), literal(v.Fingerprint))
	}
	return table
}

func derivedTable() string {
	table := row("context", "aggregate type", "tenant", "caller", "request ID", "address") + "|---|---|---|---|---|---|\n"
	for _, v := range derivedVectors() {
		table += row(literal(v.Context), literal(v.AggregateType), literal(v.Tenant), literal(v.Caller), literal(v.RequestID), literal(v.Key))
	}
	return table
}

func addressTable() string {
	table := row("tenant", "type", "ID", "address") + "|---|---|---|---|\n"
	for _, v := range addressVectors() {
		table += row(literal(v.Tenant), literal(v.Type), literal(v.ID), literal(v.Address))
	}
	return table
}

var (
	producing  = regexp.MustCompile("(?s)```sh\necho '([^']*)' \\|\\s*kcat -P (.*?)```")
	withKey    = regexp.MustCompile(` -k (\S+)`)
	withHeader = regexp.MustCompile(` -H ([^\s=]+)=(\S+)`)
	answering  = regexp.MustCompile("(?s)```json\n(.*?)\n```")
)

// The first thing that people copy must work.
func TestDocumentedRecordsAreCommands(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(wireDoc)
	if err != nil {
		t.Fatal(err)
	}
	examples := producing.FindAllSubmatch(text, -1)
	if len(examples) != 3 {
		t.Fatalf("found %d commands by hand, want 3", len(examples))
	}
	for i, example := range examples {
		r := Record{Value: example[1]}
		if key := withKey.FindSubmatch(example[2]); key != nil {
			r.Key = key[1]
		}
		for _, h := range withHeader.FindAllSubmatch(example[2], -1) {
			r.Headers = append(r.Headers, Header{string(h[1]), h[2]})
		}
		var c Command
		if refusal := Read(&c, "catalog", &r); refusal != nil {
			t.Errorf("example %d: %v", i+1, refusal)
			continue
		}
		got := fmt.Sprintf("%s %s %s %s", c.Type(), c.RequestID(), c.Caller(), c.Body())
		if want := `catalog.brand.create r-1 shop {"name":"Acme"}`; got != want {
			t.Errorf("example %d: got %s, want %s", i+1, got, want)
		}
		if c.Derived() != (i == 2) {
			t.Errorf("example %d: derived %v", i+1, c.Derived())
		}
	}
	answer := answering.FindSubmatch(text)[1]
	r, err := ParseReply(answer)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Append(nil); !bytes.Equal(got, answer) {
		t.Errorf("the answer is written %s, not %s", got, answer)
	}
}

// Every attribute that is read is documented.
func TestEveryAttributeIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(wireDoc)
	if err != nil {
		t.Fatal(err)
	}
	for a := range attributes {
		if found, ok := attributeOf(a.String()); !ok || found != a {
			t.Errorf("%s is read as %v, %v", a, found, ok)
		}
		if !bytes.Contains(text, []byte("`"+a.String()+"`")) {
			t.Errorf("%s is not documented", a)
		}
	}
}
