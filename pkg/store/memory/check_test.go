package memory_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/dedupe"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
	"github.com/seed54173720/writ/pkg/store/memory"
)

func commit(id, requestID string, version int64) store.Row {
	a := command.Aggregate{Type: "brand", ID: id}
	return store.Row{
		Recorded:  dedupe.Recorded{Outcome: command.Committed, FromRecord: true, Position: command.Position{Offset: version}},
		Request:   command.RequestDigest("brand", "", requestID),
		Stream:    a.Stream(),
		Version:   version,
		Time:      time.Unix(version, 0),
		Aggregate: a,
		RequestID: requestID,
		Events:    []command.Event{{Type: "renamed", Revision: 1, Data: []byte(`{}`)}},
	}
}

func unit(rows ...store.Row) store.Unit {
	return store.Unit{Stream: rows[0].Stream, Aggregate: rows[0].Aggregate, Rows: rows}
}

func TestBrokenContractPanicsAndNamesTheRule(t *testing.T) {
	t.Parallel()
	key := keys.Key{Namespace: "n", Name: "k"}
	change := func(row store.Row, f func(*store.Row)) store.Row { f(&row); return row }
	with := func(u store.Unit, f func(*store.Unit)) store.Unit { f(&u); return u }
	taken := func(id, requestID string) store.Unit {
		row := change(commit(id, requestID, 1), func(r *store.Row) { r.Taken = []keys.Key{key} })
		return with(unit(row), func(u *store.Unit) { u.Take = row.Taken })
	}
	replaced := store.Replaced{Request: command.RequestDigest("brand", "", "1")}

	for _, row := range []struct {
		name  string
		units []store.Unit
		rule  string
	}{
		{"a stream twice", []store.Unit{unit(commit("a", "1", 1)), unit(commit("a", "2", 2))}, "stream"},
		{"a request twice", []store.Unit{unit(commit("a", "1", 1)), unit(commit("b", "1", 1))}, "request"},
		{"a request twice in a unit", []store.Unit{unit(commit("a", "1", 1), commit("a", "1", 2))}, "request"},
		{"a key claimed twice", []store.Unit{taken("a", "1"), taken("b", "2")}, "claimed key"},
		{"a gap within the unit", []store.Unit{unit(commit("a", "1", 1), commit("a", "2", 3))}, "version 3 must follow 1"},
		{"versions in another order", []store.Unit{unit(commit("a", "1", 2), commit("a", "2", 1))}, "version 1 must follow 2"},
		{"a gap behind what is stored", []store.Unit{unit(commit("a", "1", 2))}, "version 2 must follow 0"},
		{"a row of another aggregate", []store.Unit{unit(commit("a", "1", 1), commit("b", "2", 2))}, "same aggregate"},
		{"a commit without a version", []store.Unit{unit(commit("a", "1", 0))}, "version exactly if committed"},
		{"a refusal with a version", []store.Unit{unit(change(commit("a", "1", 1), func(r *store.Row) { r.Outcome = command.Rejected }))}, "version exactly if committed"},
		{"a commit without events", []store.Unit{unit(change(commit("a", "1", 1), func(r *store.Row) { r.Events = nil }))}, "events exactly if committed"},
		{"a refusal that takes a key", []store.Unit{unit(change(commit("a", "1", 0), func(r *store.Row) {
			r.Outcome, r.Events, r.Taken = command.Rejected, nil, []keys.Key{key}
		}))}, "leave the keys"},
		{"a key taken that no row takes", []store.Unit{with(unit(commit("a", "1", 1)), func(u *store.Unit) { u.Take = []keys.Key{key} })}, "follow from the rows"},
		{"a key of a row that the unit does not take", []store.Unit{with(taken("a", "1"), func(u *store.Unit) { u.Take = nil })}, "follow from the rows"},
		{"a key released that a row takes", []store.Unit{with(taken("a", "1"), func(u *store.Unit) { u.Take, u.Release = nil, u.Take })}, "follow from the rows"},
		{"a key taken and released", []store.Unit{with(taken("a", "1"), func(u *store.Unit) { u.Release = u.Take })}, "follow from the rows"},
		{"a request replaced by nothing", []store.Unit{with(unit(commit("a", "2", 1)), func(u *store.Unit) { u.Replaced = []store.Replaced{replaced} })}, "new row"},
		{"a request replaced twice", []store.Unit{with(unit(commit("a", "1", 1)), func(u *store.Unit) { u.Replaced = []store.Replaced{replaced, replaced} })}, "replaced request"},
		{"a snapshot of another aggregate", []store.Unit{with(unit(commit("a", "1", 1)), func(u *store.Unit) { u.Snapshot = &store.Snapshot{Version: 1} })}, "snapshot"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if got, ok := recover().(string); !ok || !strings.Contains(got, row.rule) {
					t.Errorf("panic: got %q, want one that says %q", got, row.rule)
				}
			}()
			fates, err := memory.New().Commit(t.Context(), row.units)
			t.Errorf("Commit: %+v, %v", fates, err)
		})
	}
}
