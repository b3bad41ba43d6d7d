package command

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestReplyIsReadBackEqual(t *testing.T) {
	t.Parallel()
	for name, want := range someReplies() {
		value := want.Append(nil)
		if !json.Valid(value) {
			t.Errorf("%s: no JSON: %s", name, value)
		}
		got, err := ParseReply(value)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want.CorrelationID, want.Position.TopicID = "", [16]byte{}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

// The first escapes what JSON must, the last is what no parser may see raw.
func TestReplyEscapesWhatItQuotes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"\"\\/\b\f\n\r\t", "\x00\x1f\x7f", "é😀\u2028", "bad \xff\xc3 end", ""} {
		r := Reply{Outcome: Rejected, Error: &Error{Code: "c", Message: text, Fields: map[string]string{text: text}}}
		got, err := ParseReply(r.Append(nil))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		want := strings.ToValidUTF8(text, "\uFFFD")
		if want = strings.ReplaceAll(want, "bad \uFFFD end", "bad \uFFFD\uFFFD end"); got.Error.Message != want {
			t.Errorf("message: got %q, want %q", got.Error.Message, want)
		}
	}
}

func TestReplyOfANewerProcessorIsRead(t *testing.T) {
	t.Parallel()
	got, err := ParseReply([]byte(`{"outcome":"nothing","new":{"a":[1]},"position":{"topic":"t","partition":1,"offset":2,"epoch":3}}`))
	if err != nil || got.Outcome != Nothing || got.Topic != "t" || got.Position.Offset != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, value := range []string{``, `null`, `{}`, `[]`, `{"outcome":"maybe"}`, `{"outcome":"committed","stage":"x"}`, `{"outcome":"nothing"}{}`} {
		if got, err := ParseReply([]byte(value)); err == nil {
			t.Errorf("%s: accepted as %+v", value, got)
		}
	}
}

func TestReplyCorrelatesByRequestWhereTheCommandDoesNot(t *testing.T) {
	t.Parallel()
	replies := someReplies()
	for name, want := range map[string]string{"committed": someRequest, "committed-full": "order-9", "unreadable": ""} {
		r, got := replies[name], ""
		headers, _ := r.Headers(nil, nil)
		for _, h := range headers {
			if h.Key == "ce_correlationid" {
				got = string(h.Value)
			}
		}
		if got != want {
			t.Errorf("%s: got correlation %q, want %q", name, got, want)
		}
	}
}

func TestShortenedReplyKeepsWhatItIs(t *testing.T) {
	t.Parallel()
	r := someReplies()["rejected-fields"]
	r.Result = bytes.Repeat([]byte("1"), 100)
	r.Error.Message = strings.Repeat("é", 500)
	s := r.Shortened()
	if len(s.Append(nil)) > 700 || s.Error.Code != r.Error.Code || s.RequestID != r.RequestID || s.Position != r.Position {
		t.Errorf("got %s", s.Append(nil))
	}
	if len(r.Error.Fields) != 2 || r.Result == nil {
		t.Error("the reply itself was changed")
	}
}

func TestDeadLetterIsReadBackEqual(t *testing.T) {
	t.Parallel()
	letter := someLetter()
	null := letter
	null.Original, null.RequestID = Record{Headers: []Header{}}, ""
	var first Record
	letter.Record(&first)
	again := letter // a dead letter that was sent again as it is, and failed again
	again.Original, again.Code = first, CodeWrongKey
	for name, want := range map[string]DeadLetter{"plain": letter, "null value": null, "twice dead": again} {
		var r Record
		want.Record(&r)
		got, err := ReadDeadLetter(&r)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, want)
		}
	}
}

func TestDeadLetterStaysWithinItsBound(t *testing.T) {
	t.Parallel()
	d := DeadLetter{
		Topic: strings.Repeat("t", 300), Position: Position{Partition: -1 << 31, Offset: -1 << 63},
		Code: Code(strings.Repeat("c", 300)), Message: strings.Repeat("€", 5000), RequestID: strings.Repeat("r", 300),
	}
	var r Record
	d.Record(&r)
	size := 0
	for _, h := range r.Headers {
		size += len(h.Key) + len(h.Value) + 4 // two varints
	}
	if size > MaxDeadLetterHeaders {
		t.Errorf("headers have %d bytes, more than %d", size, MaxDeadLetterHeaders)
	}
	if _, err := ReadDeadLetter(&Record{Headers: r.Headers[:3]}); err == nil {
		t.Error("a letter without offset was read")
	}
	if _, err := ReadDeadLetter(&Record{}); err == nil {
		t.Error("a record without headers was read as a letter")
	}
}

func TestErrorIsBoundedOnceAndForAll(t *testing.T) {
	t.Parallel()
	small := &Error{Code: "c", Message: "m", Fields: map[string]string{"a": "b"}}
	if small.Bounded() != small {
		t.Error("a small error was copied")
	}
	large := &Error{Code: "c", Message: strings.Repeat("é", 600) + "\xff", Fields: map[string]string{"\x00": "\x00"}}
	for i := range 100 {
		large.Fields[strings.Repeat("f", i+200)] = strings.Repeat("€", 200)
	}
	b := large.Bounded()
	if len(b.Message) > MaxMessage || len(b.Fields) > MaxFields || !strings.HasSuffix(b.Message, "…") {
		t.Errorf("got %d bytes and %d fields", len(b.Message), len(b.Fields))
	}
	for name, text := range b.Fields {
		if len(name) > MaxID || len(text) > MaxID || strings.ContainsRune(name+text, 0) {
			t.Errorf("field %q: %q", name, text)
		}
	}
	if !reflect.DeepEqual(b, b.Bounded()) {
		t.Error("bounding twice gives another error")
	}
}
