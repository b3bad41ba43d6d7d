package command

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"
	"unicode/utf8"
)

// update rewrites the golden files: go test ./pkg/command -run 'Golden|Vectors|Documented' -update
//
// What the files hold is frozen: producers in other languages write these bytes,
// and journals hold these digests. Rewriting is right for an added case, and for
// a changed one only as long as no release has been made. After that a changed
// line means that requests are no longer recognised and old records no longer
// read.
var update = flag.Bool("update", false, "rewrite golden files; see the comment in golden_test.go")

// golden compares got, as indented JSON, with testdata/name.
func golden(t *testing.T, name string, got any) {
	t.Helper()
	text, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatalf("marshal %s: %v", name, err)
	}
	text = pair.ReplaceAll(text, []byte("[$1, $2]"))
	goldenText(t, filepath.Join("testdata", name), string(text)+"\n")
}

// pair matches a header, which is easier to read on one line.
var pair = regexp.MustCompile(`\[\n\s*("(?:[^"\\]|\\.)*"),\n\s*("(?:[^"\\]|\\.)*")\n\s*\]`)

func goldenText(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is frozen and would change.\ngot\n%s\nwant\n%s", path, got, want)
	}
}

// goldenRecord is a record as golden files show it. What is not UTF-8 stands in
// base64 instead.
type goldenRecord struct {
	Key         *string        `json:"key"`
	Headers     []goldenHeader `json:"headers"`
	Value       *string        `json:"value"`
	ValueBase64 string         `json:"valueBase64,omitempty"`
}

type goldenHeader [2]string

func show(r *Record) goldenRecord {
	g := goldenRecord{Headers: []goldenHeader{}}
	if r.Key != nil {
		key := string(r.Key)
		g.Key = &key
	}
	for _, h := range r.Headers {
		g.Headers = append(g.Headers, goldenHeader{h.Key, string(h.Value)})
	}
	if value := string(r.Value); r.Value != nil && utf8.ValidString(value) {
		g.Value = &value
	} else if r.Value != nil {
		g.ValueBase64 = base64.StdEncoding.EncodeToString(r.Value)
	}
	return g
}

var (
	someTime     = time.Date(2026, 11, 30, 15, 4, 5, 678_901_000, time.UTC)
	somePosition = Position{TopicID: [16]byte{0x01, 0x93, 0x7a, 15: 0xfe}, Partition: 3, Offset: 1042}
)

const (
	someRequest = "0193797e-3d4a-7c3b-8f2e-0123456789ab"
	someTrace   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
)

// full sets everything that a command can say.
func full() *Builder {
	return New("catalog.brand.rename", "shop/import").
		ID(someRequest).Subject("süd/7").Tenant("acme").Owner("owner-1").Space("space 2").
		Body([]byte(`{"name":"Ünïted"}`)).
		ExpectVersion(41).Expires(someTime.Add(time.Minute)).Time(someTime).
		Correlation("order-9").Causation("event-8").TraceParent(someTrace).
		ReplyTo("catalog.replies.shop").ReplyPartition(2).WaitFor(StageSnapshot)
}

func mustBuild(t testing.TB, b *Builder) *Command {
	t.Helper()
	c, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestGoldenCommands(t *testing.T) {
	t.Parallel()
	small := New("catalog.brand.create", "shop").ID("r-1").Subject("7").Body([]byte(`{"name":"Acme"}`)).Time(someTime)
	derived := New("catalog.brand.create", "shop").ID("r-1").Body([]byte(`{"name":"Acme"}`)).Time(someTime)
	for name, b := range map[string]*Builder{"small": small, "derived": derived, "full": full()} {
		c := mustBuild(t, b)
		var r Record
		c.Record(&r)
		golden(t, "golden/command-"+name+"-binary.json", show(&r))
		c.StructuredRecord(&r)
		golden(t, "golden/command-"+name+"-structured.json", show(&r))
	}
}

// someReplies has a reply of every outcome and shape.
func someReplies() map[string]Reply {
	base := Reply{
		RequestID: someRequest, Type: "catalog.brand.create", Aggregate: Aggregate{Type: "brand", ID: "7"},
		Topic: "catalog.commands", Position: somePosition,
	}
	with := func(change func(r *Reply)) Reply {
		r := base
		change(&r)
		return r
	}
	return map[string]Reply{
		"committed": with(func(r *Reply) { r.Outcome, r.Version = Committed, 1 }),
		"committed-full": with(func(r *Reply) {
			r.Outcome, r.Version, r.Duplicate, r.Stage = Committed, 12, true, StageSnapshot
			r.Aggregate.Tenant, r.Result, r.CorrelationID = "acme", []byte(`{"stock":3}`), "order-9"
		}),
		"nothing": with(func(r *Reply) { r.Outcome, r.Version = Nothing, 4 }),
		"rejected": with(func(r *Reply) {
			r.Outcome, r.Version = Rejected, 4
			r.Error = Errorf("name-taken", "another brand is named %q", "Acme\n")
		}),
		"rejected-fields": with(func(r *Reply) {
			r.Outcome = Rejected
			r.Error = &Error{Code: CodeInvalidBody, Message: "2 members are at fault", Fields: map[string]string{"stock": "is negative", "name": "is blank"}}
		}),
		"failed": with(func(r *Reply) {
			r.Outcome = Failed
			r.Error = Errorf(CodeDecisionPanicked, "the decision panicked at every try")
		}),
		"unreadable": {
			Outcome: Rejected, Error: fieldError(CodeUnreadable, "id", "is missing"),
			Topic: "catalog.commands", Position: somePosition,
		},
		"without-record": with(func(r *Reply) { r.Outcome, r.Version, r.Topic, r.Position = Committed, 2, "", Position{} }),
	}
}

func TestGoldenReplies(t *testing.T) {
	t.Parallel()
	for name, r := range someReplies() {
		record := Record{Value: r.Append(nil)}
		if r.RequestID != "" {
			record.Key = []byte(r.RequestID)
		}
		if r.Topic != "" {
			record.Headers, _ = r.Headers(nil, nil)
		}
		golden(t, "golden/reply-"+name+".json", show(&record))
	}
}

func someEvent() EventRecord {
	return EventRecord{
		Context: "catalog", Aggregate: Aggregate{Tenant: "acme", Type: "brand", ID: "süd/7"},
		Version: 12, Index: 1, Count: 2,
		Event: Event{Type: "renamed", Revision: 3, Data: []byte(`{"name":"Acme"}`)},
		Time:  someTime, CausationID: someRequest, CorrelationID: "order-9",
	}
}

func TestGoldenEvent(t *testing.T) {
	t.Parallel()
	e := someEvent()
	var r Record
	e.Record(&r)
	golden(t, "golden/event.json", show(&r))
}

func someLetter() DeadLetter {
	return DeadLetter{
		Original: Record{
			Key:     []byte("brand/7"),
			Value:   []byte("\xffno JSON"),
			Headers: []Header{{"content-type", []byte("application/json")}, {"ce_id", []byte(someRequest)}, {"other", []byte("kept")}},
		},
		Topic: "catalog.commands", Position: somePosition, Timestamp: someTime.Truncate(time.Millisecond),
		Code: CodeUnreadable, Message: "type is missing", RequestID: someRequest,
	}
}

func TestGoldenDeadLetter(t *testing.T) {
	t.Parallel()
	d := someLetter()
	var r Record
	d.Record(&r)
	golden(t, "golden/dead-letter.json", show(&r))
}
