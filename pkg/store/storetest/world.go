package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/dedupe"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// tb is what the helpers need of a *testing.T, *testing.B or *rapid.T.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// world is a test's own part of a store: names that nobody else uses, rows built with one line, and calls that fail
// the test on an error. The methods that only name and build may be called concurrently.
type world struct {
	t      tb
	s      Store
	ctx    context.Context
	tenant string
	topic  [16]byte
	offset atomic.Int64
}

func newWorld(t tb, s Store) *world {
	id := uuid.New()
	return &world{t: t, s: s, ctx: context.Background(), tenant: "t-" + id.String(), topic: id}
}

// aggregate names an aggregate of the world.
func (w *world) aggregate(id string) command.Aggregate {
	return command.Aggregate{Tenant: w.tenant, Type: "brand", ID: id}
}

// key names a key of the world.
func (w *world) key(name string) keys.Key {
	return keys.Key{Tenant: w.tenant, Namespace: "brand-name", Name: name}
}

// request is the key of a request of the world.
func (w *world) request(id string) command.Digest {
	return command.RequestDigest("brand", w.tenant, id)
}

// position names a record that no other call names.
func (w *world) position() command.Position {
	return command.Position{TopicID: w.topic, Partition: 3, Offset: w.offset.Add(1)}
}

// began is when the first row of every world was decided.
var began = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)

// refused builds the row of a command that came from a record of its own and had the outcome, which commits nothing.
// Later rows have later times.
func (w *world) refused(a command.Aggregate, requestID string, outcome command.Outcome) store.Row {
	at := w.position()
	row := store.Row{
		Recorded:  dedupe.Recorded{Outcome: outcome, FromRecord: true, Position: at, Fingerprint: command.Digest{1}},
		Request:   w.request(requestID),
		Stream:    a.Stream(),
		Time:      began.Add(time.Duration(at.Offset) * time.Microsecond),
		Type:      "catalog.brand.rename",
		Aggregate: a,
		RequestID: requestID,
		Caller:    "shop",
	}
	if outcome == command.Rejected || outcome == command.Failed {
		row.Error = &command.Error{Code: "name-taken", Message: "another brand has the name"}
	}
	return row
}

// committed builds the row of a commit with one event.
func (w *world) committed(a command.Aggregate, requestID string, version int64) store.Row {
	row := w.refused(a, requestID, command.Committed)
	row.Version = version
	row.Events = []command.Event{{Type: "renamed", Revision: 1, Data: fmt.Appendf(nil, `{"name":%s}`, quoted(fmt.Sprintf("%s at %d", a.ID, version)))}}
	return row
}

// row builds a row of either kind; version counts for a commit only.
func (w *world) row(a command.Aggregate, requestID string, outcome command.Outcome, version int64) store.Row {
	if outcome == command.Committed {
		return w.committed(a, requestID, version)
	}
	return w.refused(a, requestID, outcome)
}

// taking and releasing are row with keys changed.
func taking(row store.Row, k ...keys.Key) store.Row {
	row.Taken = append(row.Taken, k...)
	return row
}

func releasing(row store.Row, k ...keys.Key) store.Row {
	row.Released = append(row.Released, k...)
	return row
}

// unit builds the unit of the rows, which are of one aggregate. No key may occur in two of them.
func unit(rows ...store.Row) store.Unit {
	u := store.Unit{Stream: rows[0].Stream, Aggregate: rows[0].Aggregate, Rows: rows}
	for i := range rows {
		u.Take = append(u.Take, rows[i].Taken...)
		u.Release = append(u.Release, rows[i].Released...)
	}
	return u
}

// replacing is u with old moved aside. A row that came from no record is moved to a key of its own.
func replacing(u store.Unit, old ...store.Row) store.Unit {
	for i := range old {
		r := &old[i]
		aside := command.AsideDigest(r.Request, r.Position)
		if !r.FromRecord {
			aside = command.Digest(uuid.New())
		}
		u.Replaced = append(slices.Clip(u.Replaced), store.Replaced{Request: r.Request, FromRecord: r.FromRecord, Position: r.Position, Aside: aside})
	}
	return u
}

// inProcess is row as of a command that came from no record.
func inProcess(row store.Row) store.Row {
	row.FromRecord, row.Position = false, command.Position{}
	return row
}

func snapshot(a command.Aggregate, version int64, revision int) *store.Snapshot {
	return &store.Snapshot{Stream: a.Stream(), Aggregate: a, Version: version, Revision: revision, State: fmt.Appendf(nil, `{"at":%d}`, version)}
}

// commit commits the units and returns their fates.
func (w *world) commit(units ...store.Unit) []store.Fate {
	w.t.Helper()
	fates, err := w.s.Commit(w.ctx, units)
	if err != nil {
		w.t.Fatalf("Commit of %d units: %v", len(units), err)
	}
	if len(fates) != len(units) {
		w.t.Fatalf("Commit of %d units: %d fates", len(units), len(fates))
	}
	return fates
}

// do commits the units, all of which have to be done.
func (w *world) do(units ...store.Unit) {
	w.t.Helper()
	for i, fate := range w.commit(units...) {
		if fate.Verdict != store.Done {
			w.t.Fatalf("unit %d of %d: %s, want it done", i, len(units), describe(fate))
		}
	}
}

// loses commits the unit, which has to lose by the conflict.
func (w *world) loses(conflict store.Conflict, u store.Unit) {
	w.t.Helper()
	if fate := w.commit(u)[0]; fate.Verdict != store.Lost || fate.Conflict != conflict {
		w.t.Fatalf("unit: %s, want it lost by %s", describe(fate), conflict)
	}
}

func describe(f store.Fate) string {
	switch f.Verdict {
	case store.Done:
		return "done"
	case store.Lost:
		return fmt.Sprintf("lost by %q", f.Conflict)
	case store.Bad:
		return fmt.Sprintf("bad, row %d: %v", f.Row, f.Err)
	}
	return fmt.Sprintf("verdict %d", f.Verdict)
}

// find looks requests up.
func (w *world) find(asked ...store.Lookup) []store.Found {
	w.t.Helper()
	found, err := w.s.Requests(w.ctx, asked)
	if err != nil {
		w.t.Fatalf("Requests of %d: %v", len(asked), err)
	}
	if len(found) != len(asked) {
		w.t.Fatalf("Requests of %d: %d answers", len(asked), len(found))
	}
	return found
}

// latest returns the row under the request's key.
func (w *world) latest(requestID string) *store.Row {
	w.t.Helper()
	return w.find(store.Lookup{Request: w.request(requestID)})[0].Latest
}

// of asks for the request of a row as a redelivery of the row's record does.
func of(row store.Row) store.Lookup {
	return store.Lookup{Request: row.Request, FromRecord: row.FromRecord, Position: row.Position}
}

// load loads an aggregate, asking for snapshots of the revision.
func (w *world) load(a command.Aggregate, revision int) store.Stream {
	w.t.Helper()
	return w.loadAll(store.Asked{Stream: a.Stream(), Revision: revision})[0]
}

func (w *world) loadAll(asked ...store.Asked) []store.Stream {
	w.t.Helper()
	streams, err := w.s.Load(w.ctx, asked)
	if err != nil {
		w.t.Fatalf("Load of %d: %v", len(asked), err)
	}
	if len(streams) != len(asked) {
		w.t.Fatalf("Load of %d: %d answers", len(asked), len(streams))
	}
	return streams
}

func (w *world) heads(streams ...command.Digest) []int64 {
	w.t.Helper()
	heads, err := w.s.Heads(w.ctx, streams)
	if err != nil {
		w.t.Fatalf("Heads of %d: %v", len(streams), err)
	}
	if len(heads) != len(streams) {
		w.t.Fatalf("Heads of %d: %d answers", len(streams), len(heads))
	}
	return heads
}

func (w *world) head(a command.Aggregate) int64 {
	w.t.Helper()
	return w.heads(a.Stream())[0]
}

func (w *world) holders(asked ...keys.Key) []store.Holder {
	w.t.Helper()
	holders, err := w.s.Holders(w.ctx, asked)
	if err != nil {
		w.t.Fatalf("Holders of %d: %v", len(asked), err)
	}
	if len(holders) != len(asked) {
		w.t.Fatalf("Holders of %d: %d answers", len(asked), len(holders))
	}
	return holders
}

// holds fails the test unless the aggregate, or nobody where it is the zero value, holds the key.
func (w *world) holds(a command.Aggregate, key keys.Key) {
	w.t.Helper()
	want := store.Holder{}
	if a != (command.Aggregate{}) {
		want = store.Holder{Held: true, Stream: a.Stream(), Aggregate: a}
	}
	if got := w.holders(key)[0]; got != want {
		w.t.Errorf("holder of %s: got %+v, want %+v", key, got, want)
	}
}

// history returns every row of the aggregate.
func (w *world) history(a command.Aggregate) []store.Row {
	w.t.Helper()
	var rows []store.Row
	err := w.s.History(w.ctx, a.Stream(), func(r *store.Row) error {
		rows = append(rows, r.Clone())
		return nil
	})
	if err != nil {
		w.t.Fatalf("History of %s: %v", a, err)
	}
	return rows
}

// untouched fails the test if anything is stored of the aggregate or under the requests.
func (w *world) untouched(a command.Aggregate, requestIDs ...string) {
	w.t.Helper()
	if rows := w.history(a); len(rows) != 0 {
		w.t.Errorf("%s: %d rows are stored, want none", a, len(rows))
	}
	if stream := w.load(a, 1); stream.Snapshot != nil || len(stream.Tail) != 0 {
		w.t.Errorf("%s: loaded %+v, want nothing", a, stream)
	}
	for _, id := range requestIDs {
		if row := w.latest(id); row != nil {
			w.t.Errorf("request %s: %s is recorded, want nothing", id, row.Outcome)
		}
	}
}

// quoted returns s as JSON.
func quoted(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}
