package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

var outcomes = [...]command.Outcome{command.Committed, command.Nothing, command.Rejected, command.Failed}

var commitCases = []claim{
	{"a version is committed once", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		first := w.committed(a, "r1", 1)
		w.do(unit(first))
		w.loses(store.VersionConflict, unit(w.committed(a, "r2", 1)))
		sameRows(t, "tail", w.load(a, 1).Tail, []store.Row{first})
	}},
	{"a request is recorded once, whatever its outcomes", func(t *testing.T, w *world) {
		for _, first := range outcomes {
			for _, second := range outcomes {
				name := fmt.Sprintf("%s, then %s", first, second)
				row := w.row(w.aggregate("1 of "+name), name, first, 1)
				w.do(unit(row))
				rival := w.aggregate("2 of " + name)
				w.loses(store.RequestConflict, unit(w.row(rival, name, second, 1)))
				same(t, name, w.latest(name), row)
				if rows := w.history(rival); len(rows) != 0 {
					t.Errorf("%s: the loser left %s", name, outline(rows))
				}
			}
		}
	}},
	{"a record cannot be recorded twice", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		row := w.refused(a, "r", command.Rejected)
		w.do(unit(row))
		w.loses(store.RequestConflict, unit(row))
		sameRows(t, "history", w.history(a), []store.Row{row})
	}},
	{"a unit that loses stores nothing at all", func(t *testing.T, w *world) {
		a, b := w.aggregate("a"), w.aggregate("b")
		refused := w.refused(b, "refused", command.Rejected)
		w.do(unit(w.committed(a, "taken", 1)), unit(refused))

		second := taking(w.committed(b, "refused", 1), w.key("k"))
		u := replacing(unit(second, w.refused(b, "other", command.Rejected), w.committed(b, "taken", 2)), refused)
		u.Snapshot = snapshot(b, 2, 1)
		w.loses(store.RequestConflict, u)

		same(t, "the row to be replaced", w.latest("refused"), refused)
		sameRows(t, "history", w.history(b), []store.Row{refused})
		sameSnapshot(t, "snapshot", w.load(b, 1).Snapshot, nil)
		w.holds(command.Aggregate{}, w.key("k"))
		if row := w.latest("other"); row != nil {
			t.Errorf("other: %s is recorded, want nothing", row.Outcome)
		}
	}},
	{"losers and bad units do not keep the others from committing", func(t *testing.T, w *world) {
		old := w.aggregate("old")
		w.do(unit(taking(w.committed(old, "old", 1), w.key("old's"))))

		bad := w.refused(w.aggregate("bad"), "bad", command.Nothing)
		bad.Owner = "nul\x00"
		units := []store.Unit{
			unit(w.committed(w.aggregate("1"), "1", 1)),
			unit(w.committed(old, "version", 1)),
			unit(taking(w.committed(w.aggregate("2"), "2", 1), w.key("2's"))),
			unit(w.refused(w.aggregate("3"), "old", command.Rejected)),
			unit(bad),
			unit(w.refused(w.aggregate("4"), "4", command.Rejected)),
			unit(taking(w.committed(w.aggregate("5"), "5", 1), w.key("old's"))),
			unit(w.committed(w.aggregate("6"), "6", 1)),
		}
		lost := func(c store.Conflict) store.Fate { return store.Fate{Verdict: store.Lost, Conflict: c} }
		want := []store.Fate{{}, lost(store.VersionConflict), {}, lost(store.RequestConflict), {Verdict: store.Bad}, {}, lost(store.KeyConflict), {}}
		for i, fate := range w.commit(units...) {
			if fate.Verdict != want[i].Verdict || fate.Conflict != want[i].Conflict {
				t.Errorf("unit %d: %s, want %s", i, describe(fate), describe(want[i]))
			}
			row := units[i].Rows[0]
			if i == 3 {
				continue // its request is the old one's
			}
			if stored := w.latest(row.RequestID) != nil; stored != (want[i].Verdict == store.Done) {
				t.Errorf("unit %d: stored %v, want the opposite", i, stored)
			}
		}
		w.holds(w.aggregate("2"), w.key("2's"))
	}},
	{"a unit's commits and refusals are all stored", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		w.do(unit(w.committed(a, "r0", 1)))
		rows := []store.Row{
			w.refused(a, "r1", command.Nothing),
			w.committed(a, "r2", 2), w.committed(a, "r3", 3),
			w.refused(a, "r4", command.Rejected),
			w.committed(a, "r5", 4),
			w.refused(a, "r6", command.Failed),
		}
		w.do(unit(rows...))
		for _, row := range rows {
			same(t, row.RequestID, w.latest(row.RequestID), row)
		}
		if head := w.head(a); head != 4 {
			t.Errorf("head: got %d, want 4", head)
		}
	}},
	{"one late version loses the whole unit", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		w.do(unit(w.committed(a, "r1", 1), w.committed(a, "r2", 2)))
		w.loses(store.VersionConflict, unit(w.committed(a, "r3", 2), w.committed(a, "r4", 3), w.refused(a, "r5", command.Nothing)))
		if head := w.head(a); head != 2 {
			t.Errorf("head: got %d, want 2", head)
		}
		for _, id := range []string{"r3", "r4", "r5"} {
			if w.latest(id) != nil {
				t.Errorf("%s is recorded", id)
			}
		}
	}},
	{"a late version behind a refusal loses the unit", func(_ *testing.T, w *world) {
		a := w.aggregate("a")
		w.do(unit(w.committed(a, "r1", 1)))
		w.loses(store.VersionConflict, unit(w.refused(a, "r2", command.Rejected), w.committed(a, "r3", 1)))
	}},
	{"a refusal takes no version and so loses none", func(_ *testing.T, w *world) {
		a := w.aggregate("a")
		w.do(unit(w.committed(a, "r1", 1)))
		w.do(unit(w.refused(a, "r2", command.Rejected)))
		w.do(unit(w.committed(a, "r3", 2)))
	}},
	{"a snapshot stands unless a newer one comes", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		w.commits(a, 3)
		for _, step := range []struct{ written, stands int64 }{{2, 2}, {1, 2}, {3, 3}, {2, 3}} {
			w.do(snapshotOnly(a, step.written, 1))
			sameSnapshot(t, fmt.Sprintf("after %d", step.written), w.load(a, 1).Snapshot, snapshot(a, step.stands, 1))
		}
	}},
	{"a snapshot is written with the commit that it is of", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		u := unit(w.committed(a, "r1", 1), w.committed(a, "r2", 2))
		u.Snapshot = snapshot(a, 2, 1)
		w.do(u)
		stream := w.load(a, 1)
		sameSnapshot(t, "snapshot", stream.Snapshot, u.Snapshot)
		sameRows(t, "tail", stream.Tail, nil)
	}},
	{"text that cannot be stored is bad, and the row is named", func(t *testing.T, w *world) {
		for field, spoil := range map[string]func(*store.Row, string){
			"type":         func(r *store.Row, s string) { r.Type = s },
			"owner":        func(r *store.Row, s string) { r.Owner = s },
			"space":        func(r *store.Row, s string) { r.Space = s },
			"request id":   func(r *store.Row, s string) { r.RequestID = s },
			"caller":       func(r *store.Row, s string) { r.Caller = s },
			"event data":   func(r *store.Row, s string) { r.Events[0].Data = []byte(`"` + s + `"`) },
			"key taken":    func(r *store.Row, s string) { r.Taken = []keys.Key{w.key(s)} },
			"key released": func(r *store.Row, s string) { r.Released = []keys.Key{w.key(s)} },
		} {
			for kind, text := range map[string]string{"a NUL": "a\x00b", "broken UTF-8": "a\xffb", "half a rune": "a\xe2\x82"} {
				name := fmt.Sprintf("%s with %s", field, kind)
				a := w.aggregate(name)
				rows := []store.Row{w.committed(a, "1 "+name, 1), w.committed(a, "2 "+name, 2), w.refused(a, "3 "+name, command.Nothing)}
				spoil(&rows[1], text)
				neighbour := w.committed(w.aggregate("beside "+name), "4 "+name, 1)
				fates := w.commit(unit(rows...), unit(neighbour))
				if f := fates[0]; f.Verdict != store.Bad || f.Row != 1 || f.Err == nil {
					t.Errorf("%s: %s, want it bad at row 1 with an error", name, describe(f))
				}
				if f := fates[1]; f.Verdict != store.Done {
					t.Errorf("%s: the neighbour is %s, want it done", name, describe(f))
				}
				w.untouched(a, "1 "+name, "3 "+name)
			}
		}
	}},
	{"a Commit under an ended context stores nothing", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		if _, err := w.s.Commit(ctx, []store.Unit{unit(w.committed(a, "r", 1))}); err == nil || errors.Is(err, store.ErrUnknown) {
			t.Errorf("Commit: error %v, want one that is not %q", err, store.ErrUnknown)
		}
		w.untouched(a, "r")
	}},
	{"the caller keeps its memory", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		plainRefused, plainRow := w.refused(a, "r1", command.Rejected), w.committed(a, "r2", 1)
		refused, row := w.full(plainRefused), w.full(plainRow)
		u := unit(w.full(plainRefused), w.full(plainRow))
		u.Snapshot = snapshot(a, 1, 1)
		w.do(u)
		for i := range u.Rows {
			scribble(&u.Rows[i])
		}
		clear(u.Take)
		clear(u.Release)
		clear(u.Snapshot.State)
		for range 2 { // what a read gave away is the reader's, too
			got := w.latest("r1")
			same(t, "refusal", got, refused)
			scribble(got)
			got = w.latest("r2")
			same(t, "commit", got, row)
			scribble(got)
			stream := w.load(a, 1)
			sameSnapshot(t, "snapshot", stream.Snapshot, snapshot(a, 1, 1))
			clear(stream.Snapshot.State)
			tail := w.load(a, 2).Tail
			sameRows(t, "tail", tail, []store.Row{row})
			scribble(&tail[0])
			for _, read := range w.history(a) {
				scribble(&read)
			}
		}
		w.holds(a, w.key("k"))
	}},
}

// full is row with all that it can point to, in memory that nobody else has.
func (w *world) full(row store.Row) store.Row {
	row.Result = []byte(`{"id":7}`)
	if row.Outcome == command.Committed {
		row.Events = []command.Event{{Type: "renamed", Revision: 1, Data: []byte(`{"name":"n"}`)}}
		row.Taken, row.Released = []keys.Key{w.key("k")}, []keys.Key{w.key("nobody's")}
	} else {
		row.Error = &command.Error{Code: "name-taken", Message: "is taken", Fields: map[string]string{"name": "is taken"}}
	}
	return row
}

// scribble writes over all memory that a row points to.
func scribble(r *store.Row) {
	for i := range r.Events {
		clear(r.Events[i].Data)
	}
	clear(r.Events)
	clear(r.Taken)
	clear(r.Released)
	clear(r.Result)
	if r.Error != nil {
		clear(r.Error.Fields)
		*r.Error = command.Error{}
	}
}

var replacedCases = []claim{
	{"a replaced row is found by its own record only", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		old, row := w.refused(a, "r", command.Rejected), w.committed(a, "r", 1)
		w.do(unit(old))
		w.do(replacing(unit(row), old))

		moved := movedAside(old)
		third := store.Lookup{Request: old.Request, FromRecord: true, Position: w.position()}
		found := w.find(of(old), of(row), third, store.Lookup{Request: old.Request})
		for i, f := range found {
			same(t, fmt.Sprintf("latest of answer %d", i), f.Latest, row)
		}
		same(t, "own of the old record", found[0].Own, moved)
		if found[1].Own != found[1].Latest || found[2].Own != nil || found[3].Own != nil {
			t.Errorf("own rows of the new record, a third and a call: %v, %v, %v; want the latest, none, none", found[1].Own, found[2].Own, found[3].Own)
		}
		sameRows(t, "history", w.history(a), []store.Row{moved, row})
	}},
	{"every refusal of a request keeps its row", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		rows := []store.Row{w.refused(a, "r", command.Rejected), w.refused(a, "r", command.Failed), w.refused(a, "r", command.Rejected), w.refused(a, "r", command.Nothing)}
		w.do(unit(rows[0]))
		for i := 1; i < len(rows); i++ {
			w.do(replacing(unit(rows[i]), rows[i-1]))
		}
		last := len(rows) - 1
		for i, row := range rows {
			found := w.find(of(row))[0]
			same(t, fmt.Sprintf("latest of record %d", i), found.Latest, rows[last])
			if i < last {
				row = movedAside(row)
			}
			same(t, fmt.Sprintf("own of record %d", i), found.Own, row)
		}
	}},
	{"a refusal of another aggregate makes way", func(t *testing.T, w *world) {
		a, b := w.aggregate("a"), w.aggregate("b")
		old, row := w.refused(a, "r", command.Rejected), w.committed(b, "r", 1)
		w.do(unit(old))
		w.do(replacing(unit(row), old))
		same(t, "latest", w.latest("r"), row)
		sameRows(t, "history of the first", w.history(a), []store.Row{movedAside(old)})
		sameRows(t, "history of the second", w.history(b), []store.Row{row})
	}},
	{"refusals of calls make way, each to a key of its own", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		one, two := inProcess(w.refused(a, "r", command.Rejected)), inProcess(w.refused(a, "r", command.Rejected))
		three := inProcess(w.committed(a, "r", 1))
		w.do(unit(one))
		w.do(replacing(unit(two), one))
		w.do(replacing(unit(three), two))
		same(t, "latest", w.latest("r"), three)
		if rows := w.history(a); len(rows) != 3 {
			t.Errorf("history: %s, want 3 rows", outline(rows))
		}
	}},
	{"a final row makes no way", func(t *testing.T, w *world) {
		for _, outcome := range []command.Outcome{command.Committed, command.Nothing} {
			a := w.aggregate(outcome.String())
			old := w.row(a, outcome.String(), outcome, 1)
			w.do(unit(old))
			w.loses(store.RequestConflict, replacing(unit(w.refused(a, outcome.String(), command.Rejected)), old))
			same(t, outcome.String(), w.latest(outcome.String()), old)
		}
	}},
	{"a row that was replaced meanwhile loses", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		first, second := w.refused(a, "r", command.Rejected), w.refused(a, "r", command.Rejected)
		w.do(unit(first))
		w.do(replacing(unit(second), first))
		w.loses(store.RequestConflict, replacing(unit(w.committed(a, "r", 1)), first))
		same(t, "latest", w.latest("r"), second)
		sameRows(t, "tail", w.load(a, 1).Tail, nil)
	}},
	{"a row of another position does not make way", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		record, call := w.refused(a, "record", command.Failed), inProcess(w.refused(a, "call", command.Failed))
		w.do(unit(record, call))
		for name, change := range map[string]func(*store.Row){
			"offset":    func(r *store.Row) { r.Position.Offset++ },
			"partition": func(r *store.Row) { r.Position.Partition++ },
			"topic":     func(r *store.Row) { r.Position.TopicID[15]++ },
			"none":      func(r *store.Row) { *r = inProcess(*r) },
		} {
			other := record
			change(&other)
			w.loses(store.RequestConflict, replacing(unit(w.committed(a, "record", 1)), other))
			same(t, name, w.latest("record"), record)
		}
		other := call
		other.FromRecord = true
		w.loses(store.RequestConflict, replacing(unit(w.committed(a, "call", 1)), other))
		same(t, "call", w.latest("call"), call)
	}},
	{"a row that is not there does not make way", func(_ *testing.T, w *world) {
		a := w.aggregate("a")
		never := w.refused(a, "r", command.Rejected)
		w.loses(store.RequestConflict, replacing(unit(w.committed(a, "r", 1)), never))
		w.untouched(a, "r")
	}},
	{"a replaced row that loses stays where it was", func(t *testing.T, w *world) {
		a, b := w.aggregate("a"), w.aggregate("b")
		old := w.refused(a, "r", command.Rejected)
		w.do(unit(old), unit(taking(w.committed(b, "rb", 1), w.key("k"))))
		w.loses(store.KeyConflict, replacing(unit(taking(w.committed(a, "r", 1), w.key("k"))), old))
		found := w.find(of(old))[0]
		same(t, "latest", found.Latest, old)
		if found.Own != found.Latest {
			t.Errorf("own %+v is not the latest row", found.Own)
		}
	}},
	{"many make way in one Commit, one of them too late", func(t *testing.T, w *world) {
		var first, second []store.Unit
		var old []store.Row
		for i := range 5 {
			name := fmt.Sprint(i)
			old = append(old, w.refused(w.aggregate(name), name, command.Rejected))
			first = append(first, unit(old[i]))
			second = append(second, replacing(unit(w.committed(w.aggregate(name), name, 1)), old[i]))
		}
		w.do(first...)
		w.do(replacing(unit(w.refused(w.aggregate("2"), "2", command.Failed)), old[2]))
		for i, fate := range w.commit(second...) {
			if lost := fate.Verdict == store.Lost && fate.Conflict == store.RequestConflict; lost != (i == 2) || !lost && fate.Verdict != store.Done {
				t.Errorf("unit %d: %s", i, describe(fate))
			}
		}
	}},
}

// movedAside is a row from a record as it is stored once it was replaced.
func movedAside(row store.Row) store.Row {
	row.Request = command.AsideDigest(row.Request, row.Position)
	return row
}
