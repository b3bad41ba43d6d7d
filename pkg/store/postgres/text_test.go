package postgres

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// FuzzTextsComeBack writes every text column and reads it back; and what was written is JSON, for people and views.
func FuzzTextsComeBack(f *testing.F) {
	f.Add("renamed", `{"name":"x"}`, 1)
	f.Add(`"\`, ` [1, {"a":"]}\""}] `, -7)
	f.Add("\n\x1f\u2028é", `"\\"`, 0)
	f.Add("0", "\"\xb3\"", 33) // passed over: no UTF-8
	f.Fuzz(func(t *testing.T, text, data string, number int) {
		// What reaches the store is text that Postgres takes; encoding/json's JSON need not be.
		if !utf8.ValidString(text) || bytes.IndexByte([]byte(text), 0) >= 0 || !utf8.ValidString(data) || !json.Valid([]byte(data)) {
			t.Skip()
		}
		events := []command.Event{{Type: text, Revision: number, Data: []byte(data)}, {Type: text, Data: []byte(data)}}
		column := appendEvents(nil, events)
		read, err := parseEvents(column)
		same(t, column, read, events, err)

		ks := []keys.Key{{Tenant: text, Namespace: text, Name: text}, {System: true, Name: text}}
		column = appendKeys(nil, ks)
		readKeys, err := parseKeys(column)
		same(t, column, readKeys, ks, err)

		e := &command.Error{Code: command.Code(text), Message: text, Fields: map[string]string{text: text, text + "2": data}}
		column = appendAnswer(nil, e, []byte(data))
		readError, result, err := parseAnswer(column)
		same(t, column, readError, e, err)
		if string(result) != data {
			t.Errorf("%s: got result %q, want %q", column, result, data)
		}

		meta := store.Meta{CorrelationID: text, TraceParent: data, Stage: command.StageSnapshot}
		if text != "" {
			meta.ReplyTo, meta.ReplyPartition = text, int32(number)
		}
		column = appendMeta(nil, &meta)
		readMeta, err := parseMeta(column)
		same(t, column, readMeta, meta, err)
	})
}

func same(t *testing.T, column []byte, got, want any, err error) {
	t.Helper()
	if err != nil || !json.Valid(column) || !reflect.DeepEqual(got, want) {
		t.Errorf("%q (JSON: %t): got %+v and error %v, want %+v", column, json.Valid(column), got, err, want)
	}
}

// FuzzForeignTextIsAnError reads what this package did not write: an error at worst.
func FuzzForeignTextIsAnError(f *testing.F) {
	for _, seed := range []string{``, `[`, `[{"type":"a","revision":1`, `{"error":{"code":"a","message":"`, `{"replyTo":"\ud`, `[{"namespace":"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		parseEvents(text)
		parseKeys(text)
		parseAnswer(text)
		parseMeta(text)
	})
}

func TestCutTextIsAnError(t *testing.T) {
	t.Parallel()
	column := appendEvents(nil, []command.Event{{Type: "renamed", Revision: 1, Data: []byte(`{"a":[1]}`)}})
	for end := range column {
		if events, err := parseEvents(column[:end]); err == nil {
			t.Errorf("%q: got %v, want an error", column[:end], events)
		}
	}
	if _, err := parseEvents(append(column, ' ')); err == nil {
		t.Error("text after the end: got no error")
	}
}

func TestRowsAreEncodedWithoutAllocating(t *testing.T) {
	row := (&maker{name: "m", versions: make([]int64, benchAggregate)}).group()[3].Rows[0]
	row.Meta = store.Meta{CorrelationID: "c", ReplyTo: "catalog.replies", ReplyPartition: -1}
	buf := make([]byte, 0, 4096)
	if allocs := testing.AllocsPerRun(100, func() { buf = appendRow(buf[:0], &row) }); allocs != 0 {
		t.Errorf("got %v allocations a row, want none", allocs)
	}
}
