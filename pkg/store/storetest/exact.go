package storetest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/dedupe"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// exactCases commit values at the edge of what is allowed and read them back by every way.
var exactCases = []claim{
	{"every member of a row comes back", func(t *testing.T, w *world) {
		committed := store.Row{
			Recorded: dedupe.Recorded{
				Outcome: command.Committed, FromRecord: true, Fingerprint: command.Digest{0xff, 15: 0x01},
				Position: command.Position{TopicID: w.topic, Partition: 2147483647, Offset: 9223372036854775807},
			},
			Version: 1,
			Time:    time.Date(2026, 11, 30, 23, 59, 59, 999999000, time.UTC),
			Type:    "catalog.brand.create", Owner: "owner-1", Space: "space/1", Caller: "shop%2F1",
			Events: []command.Event{
				{Type: "created", Revision: 1, Data: []byte(`{"name":"Acme"}`)},
				{Type: "renamed", Revision: 2147483647, Data: []byte(`{}`)},
				{Type: "noted", Revision: 2, Data: []byte(`null`)},
			},
			Taken:    []keys.Key{w.key("b"), w.key("a"), {System: true, Namespace: "domain", Name: w.tenant}},
			Released: []keys.Key{w.key("z"), w.key("y")},
			Result:   []byte(`{"id":"7"}`),
			Meta: store.Meta{
				CorrelationID: "corr", CausationID: "cause", TraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
				ReplyTo: "catalog.replies.shop", ReplyPartition: 11, Stage: command.StageSnapshot,
			},
		}
		rejected := store.Row{
			Recorded: dedupe.Recorded{Outcome: command.Rejected, FromRecord: true, Position: w.position()},
			Time:     began, Type: "catalog.brand.rename", Caller: "shop",
			Error: &command.Error{Code: "name-taken", Message: `another brand is named "Ac<&>me"`, Fields: map[string]string{"name": "is taken", "": "", "a.b/ü": "\n\t\\"}},
			Meta:  store.Meta{ReplyTo: "catalog.replies", ReplyPartition: -1},
		}
		failed := store.Row{
			Recorded: dedupe.Recorded{Outcome: command.Failed},
			Time:     began.Add(time.Microsecond), Type: "t",
			Error: &command.Error{Code: "decision-failed"},
			Meta:  store.Meta{CorrelationID: "corr only"},
		}
		nothing := store.Row{
			Recorded: dedupe.Recorded{Outcome: command.Nothing, FromRecord: true},
			Time:     began.Add(2 * time.Microsecond), Type: "t", Result: []byte(`[]`),
			Meta: store.Meta{ReplyTo: "r", ReplyPartition: 0},
		}
		w.roundTrip("members", committed, rejected, failed, nothing)
	}},
	{"payloads keep every byte", func(_ *testing.T, w *world) {
		for i, data := range []string{
			`{"a":1e100,"b":1.10,"c":9007199254740993,"d":-0,"e":1E+2,"f":0.10000000000000000001}`,
			`{"z":1,"a":2,"z":3}`,
			` { "spaced" : [ 1 ,	2 ] } `,
			`"\u0000 \u00e9 \ud83d\ude00 \u2028 \/"`,
			`"é 😀 ` + "\u2028 \u007f \ufeff \ufffd" + ` <script>&amp;"`,
			`"\\N \\. \\x00 \t \" ' $1 $$ {} \\"`,
			`{"` + strings.Repeat("deep", 3) + `":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}`,
			`null`, `0`, `""`, `[]`,
		} {
			name := fmt.Sprintf("payload %d", i)
			a := w.aggregate(name)
			committed := w.committed(a, name, 1)
			committed.Events[0].Data, committed.Result = []byte(data), []byte(data)
			u := unit(committed)
			u.Snapshot = snapshot(a, 1, 1)
			u.Snapshot.State = []byte(data)
			w.do(u)
			w.reads(name, committed)
			sameSnapshot(w.t, name, w.load(a, 1).Snapshot, u.Snapshot)
		}
	}},
	{"texts keep every byte", func(t *testing.T, w *world) {
		for i, text := range []string{
			`\`, `\N`, `\.`, `"`, `'`, "\t", "\r\n", "{}", `{"a"}`, "null", "NULL", "$1", "%s", " lead and trail ", "é e\u0301", "😀", "\u2028",
			"\ufeff", "\ufffd", "\U0010ffff", "\x01", "\x7f", "a,b", "(a)",
		} {
			name := fmt.Sprintf("text %d", i)
			a := w.aggregate(name + text)
			row := w.committed(a, name, 1)
			row.Request = w.request(name + text)
			row.RequestID, row.Type, row.Owner, row.Space, row.Caller = name+text, text, text, text, text
			row.Events[0].Type = text
			row.Taken = []keys.Key{{Tenant: w.tenant, Namespace: text, Name: text}}
			row.Meta = store.Meta{CorrelationID: text, CausationID: text, TraceParent: text, ReplyTo: text, ReplyPartition: -1}
			refused := w.refused(a, name+" refused", command.Rejected)
			refused.Error = &command.Error{Code: command.Code(text), Message: text, Fields: map[string]string{text: text}}
			w.do(unit(row, refused))
			w.reads(fmt.Sprintf("%s, %q", name, text), row, refused)
			w.holds(a, row.Taken[0])
		}
	}},
	{"an error's text that cannot be kept to the byte is refused", func(t *testing.T, w *world) {
		for i, text := range []string{"a\x00b", "a\xffb"} {
			name := fmt.Sprintf("text %d", i)
			row := w.refused(w.aggregate(name), name, command.Rejected)
			row.Error.Message = text
			switch fate := w.commit(unit(row))[0]; fate.Verdict {
			case store.Done:
				w.reads(fmt.Sprintf("%q", text), row)
			case store.Bad, store.Lost:
				if fate.Verdict != store.Bad || fate.Row != 0 {
					t.Errorf("%q: %s, want it bad at row 0, or done", text, describe(fate))
				}
			}
		}
	}},
	{"names of the greatest length", func(t *testing.T, w *world) {
		long := strings.Repeat("é", 127) + "x" // 255 bytes
		a := command.Aggregate{Tenant: w.tenant, Type: "brand", ID: long}
		row := w.committed(a, long, 1)
		row.Type = "catalog.brand." + strings.Repeat("t", 64)
		row.Owner, row.Space, row.Caller = long, long, long
		row.Meta = store.Meta{CorrelationID: long, CausationID: long, ReplyTo: long, ReplyPartition: 3}
		key := keys.Key{Tenant: w.tenant, Namespace: long, Name: strings.Repeat("😀", 256)} // 1,024 bytes
		other := key
		other.Name = other.Name[:len(other.Name)-4] + "😁" // differs in the last byte
		w.do(unit(taking(row, key)))
		w.reads("long", taking(row, key))
		w.holds(a, key)
		w.holds(command.Aggregate{}, other)
	}},
	{"an event of 900 kB", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		small, big := w.committed(a, "small", 1), w.committed(a, "big", 2)
		big.Events[0].Data = bigJSON(900_000)
		big.Result = bigJSON(64 << 10)
		u := unit(small, big)
		u.Snapshot = snapshot(a, 1, 1)
		u.Snapshot.State = bigJSON(900_000)
		w.do(u)
		w.reads("big", small, big)
		stream := w.load(a, 1)
		sameSnapshot(t, "snapshot", stream.Snapshot, u.Snapshot)
		sameRows(t, "tail", stream.Tail, []store.Row{big})
	}},
	{"a Commit of 1,000 units", func(t *testing.T, w *world) {
		units := make([]store.Unit, 1000)
		asked := make([]store.Lookup, len(units))
		for i := range units {
			name := fmt.Sprint(i)
			row := taking(w.committed(w.aggregate(name), name, 1), w.key(name))
			units[i], asked[i] = unit(row), of(row)
		}
		w.do(units...)
		for i, found := range w.find(asked...) {
			same(t, fmt.Sprint(i), found.Own, units[i].Rows[0])
		}
	}},
	{"a unit of 256 rows", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		rows := make([]store.Row, 256)
		for i := range rows {
			rows[i] = w.committed(a, fmt.Sprint(i), int64(i+1))
		}
		w.do(unit(rows...))
		sameRows(t, "tail", w.load(a, 1).Tail, rows)
	}},
	{"times keep their microseconds, in any zone", func(_ *testing.T, w *world) {
		for i, at := range []time.Time{
			time.Date(1970, 1, 1, 0, 0, 0, 1000, time.UTC),
			time.Date(1999, 12, 31, 23, 59, 59, 999999000, time.FixedZone("east", 5*3600+1800)),
			time.Date(2026, 3, 29, 2, 30, 0, 123456000, time.FixedZone("west", -8*3600)),
			time.Date(9999, 12, 31, 23, 59, 59, 1000, time.UTC),
		} {
			name := fmt.Sprint(i)
			row := w.refused(w.aggregate(name), name, command.Nothing)
			row.Time = at
			w.do(unit(row))
			w.reads(at.String(), row)
		}
	}},
	{"the default tenant has the empty name", func(_ *testing.T, w *world) {
		a := command.Aggregate{Type: "brand", ID: w.tenant}
		row := w.committed(a, w.tenant, 1)
		row.Request = command.RequestDigest("brand", "", w.tenant)
		key := keys.Key{Namespace: "brand-name", Name: w.tenant}
		w.do(unit(taking(row, key)))
		w.reads("default tenant", taking(row, key))
		w.holds(a, key)
	}},
}

// roundTrip names the rows, commits each for an aggregate of its own and reads it back.
func (w *world) roundTrip(name string, rows ...store.Row) {
	w.t.Helper()
	for i, row := range rows {
		row.RequestID = fmt.Sprintf("%s %d", name, i)
		row.Request = w.request(row.RequestID)
		row.Aggregate = w.aggregate(row.RequestID)
		row.Stream = row.Aggregate.Stream()
		w.do(unit(row))
		w.reads(row.RequestID, row)
	}
}

// reads reads the rows, all that their aggregate has, by request, by stream and as history.
func (w *world) reads(name string, rows ...store.Row) {
	w.t.Helper()
	var commits []store.Row
	for _, row := range rows {
		same(w.t, name+", by request", w.find(of(row))[0].Latest, row)
		if row.Version > 0 {
			commits = append(commits, row)
		}
	}
	sameRows(w.t, name+", loaded", w.load(rows[0].Aggregate, -1).Tail, commits)
	sameRows(w.t, name+", history", w.history(rows[0].Aggregate), rows)
}

// bigJSON is a JSON string of n bytes that does not compress to nothing.
func bigJSON(n int) []byte {
	b := make([]byte, 0, n+16)
	b = append(b, '"')
	for i := uint64(1); len(b) < n-1; i++ {
		b = fmt.Appendf(b, "%x ", i*0x9e3779b97f4a7c15)
	}
	return append(bytes.Clone(b[:n-1]), '"')
}
