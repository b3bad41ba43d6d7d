package storetest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

var progressCases = []claim{
	{"a topic that nobody read has none", func(t *testing.T, w *world) {
		if got := w.progress(w.tenant); len(got) != 0 {
			t.Errorf("got %+v, want none", got)
		}
	}},
	{"progress is kept by topic ID and partition", func(t *testing.T, w *world) {
		again := w.topic
		again[0]++
		want := []store.Progress{
			{Topic: w.tenant, TopicID: w.topic, Partition: 0, Offset: 0},
			{Topic: w.tenant, TopicID: w.topic, Partition: 11, Offset: 9223372036854775807},
			{Topic: w.tenant, TopicID: again, Partition: 0, Offset: 7},
		}
		elsewhere := w.topic
		elsewhere[1]++
		w.saves(append([]store.Progress{{Topic: w.tenant + ".other", TopicID: elsewhere, Partition: 5, Offset: 5}}, want...)...)
		w.progressIs(want...)
	}},
	{"what the owner says replaces what was kept, a lower offset too", func(_ *testing.T, w *world) {
		p := store.Progress{Topic: w.tenant, TopicID: w.topic, Partition: 1}
		for _, offset := range []int64{5, 9, 3, 3, 0} {
			p.Offset = offset
			w.saves(p)
			w.progressIs(p)
		}
	}},
}

func (w *world) saves(p ...store.Progress) {
	w.t.Helper()
	if err := w.s.SaveProgress(w.ctx, p); err != nil {
		w.t.Fatalf("SaveProgress: %v", err)
	}
}

func (w *world) progress(topic string) []store.Progress {
	w.t.Helper()
	p, err := w.s.Progress(w.ctx, topic)
	if err != nil {
		w.t.Fatalf("Progress of %s: %v", topic, err)
	}
	return p
}

func (w *world) progressIs(want ...store.Progress) {
	w.t.Helper()
	order := func(a, b store.Progress) int {
		return cmp.Or(bytes.Compare(a.TopicID[:], b.TopicID[:]), cmp.Compare(a.Partition, b.Partition))
	}
	got := w.progress(w.tenant)
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if !slices.Equal(got, want) {
		w.t.Errorf("progress: got %+v, want %+v", got, want)
	}
}

var readerCases = []claim{
	{"a history has every row in the order of the decisions", func(t *testing.T, w *world) {
		a, b := w.aggregate("a"), w.aggregate("b")
		rows := []store.Row{
			w.refused(a, "r1", command.Rejected),
			w.committed(a, "r2", 1),
			w.refused(a, "r3", command.Failed),
			w.refused(a, "r4", command.Nothing),
			w.committed(a, "r5", 2),
		}
		w.do(unit(rows[0]), unit(w.committed(b, "rb", 1)))
		w.do(unit(rows[1:4]...))
		w.do(unit(rows[4]))
		sameRows(t, "history", w.history(a), rows)
		sameRows(t, "history of nobody", w.history(w.aggregate("c")), nil)
	}},
	{"the journal has every row, by stream, version and time", func(t *testing.T, w *world) {
		var want []store.Row
		for i := range 5 {
			a := w.aggregate(fmt.Sprint(i))
			for _, outcome := range []command.Outcome{command.Rejected, command.Committed, command.Failed, command.Committed, command.Nothing} {
				version := w.head(a) + 1
				row := w.row(a, fmt.Sprintf("%d %d", i, len(want)), outcome, version)
				w.do(unit(row))
				want = append(want, row)
			}
		}
		slices.SortFunc(want, func(a, b store.Row) int {
			return cmp.Or(bytes.Compare(a.Stream[:], b.Stream[:]), cmp.Compare(a.Version, b.Version), a.Time.Compare(b.Time))
		})
		sameRows(t, "journal", w.journal(), want)
	}},
	{"the reservations are every key held", func(t *testing.T, w *world) {
		a, b := w.aggregate("a"), w.aggregate("b")
		system := keys.Key{System: true, Namespace: "domain", Name: w.tenant}
		w.do(unit(taking(w.committed(a, "r1", 1), w.key("1"), w.key("2"))), unit(taking(w.committed(b, "r2", 1), system)))
		w.do(unit(releasing(w.committed(a, "r3", 2), w.key("1"))))
		want := map[keys.Key]store.Holder{
			w.key("2"): {Held: true, Stream: a.Stream(), Aggregate: a},
			system:     {Held: true, Stream: b.Stream(), Aggregate: b},
		}
		got := w.reservations()
		for key, holder := range want {
			if got[key] != holder {
				t.Errorf("%s: got %+v, want %+v", key, got[key], holder)
			}
			delete(got, key)
		}
		if len(got) > 0 {
			t.Errorf("held as well: %+v", got)
		}
	}},
	{"the snapshots are the newest of each aggregate, by stream", func(t *testing.T, w *world) {
		var want []*store.Snapshot
		for i := range 5 {
			a := w.aggregate(fmt.Sprint(i))
			w.commits(a, 2)
			w.do(snapshotOnly(a, 1, 1))
			w.do(snapshotOnly(a, 2, 1))
			want = append(want, snapshot(a, 2, 1))
		}
		slices.SortFunc(want, func(a, b *store.Snapshot) int { return bytes.Compare(a.Stream[:], b.Stream[:]) })
		got := w.snapshots()
		if len(got) != len(want) {
			t.Fatalf("got %d snapshots, want %d", len(got), len(want))
		}
		for i := range got {
			sameSnapshot(t, fmt.Sprint(i), &got[i], want[i])
		}
	}},
	{"an error of the reader ends the reading and is returned", func(t *testing.T, w *world) {
		a, b := w.aggregate("a"), w.aggregate("b")
		for _, a := range []command.Aggregate{a, b} {
			u := unit(taking(w.committed(a, a.ID+"1", 1), w.key(a.ID)), w.committed(a, a.ID+"2", 2))
			u.Snapshot = snapshot(a, 2, 1)
			w.do(u)
		}
		enough := errors.New("enough")
		for name, read := range map[string]func(f func() error) error{
			"History": func(f func() error) error {
				return w.s.History(w.ctx, a.Stream(), func(*store.Row) error { return f() })
			},
			"Journal": func(f func() error) error { return w.s.Journal(w.ctx, func(*store.Row) error { return f() }) },
			"Reservations": func(f func() error) error {
				return w.s.Reservations(w.ctx, func(keys.Key, store.Holder) error { return f() })
			},
			"Snapshots": func(f func() error) error { return w.s.Snapshots(w.ctx, func(*store.Snapshot) error { return f() }) },
		} {
			calls := 0
			err := read(func() error { calls++; return enough })
			if !errors.Is(err, enough) || calls != 1 {
				t.Errorf("%s: error %v after %d calls, want %q after 1", name, err, calls, enough)
			}
		}
	}},
	{"a reader may use the store meanwhile", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		rows := w.commits(a, 3)
		err := w.s.History(w.ctx, a.Stream(), func(r *store.Row) error {
			w.do(unit(w.refused(w.aggregate("b"), "while at "+r.RequestID, command.Nothing)))
			return nil
		})
		if err != nil {
			t.Errorf("History: %v", err)
		}
		if got := len(w.history(w.aggregate("b"))); got != len(rows) {
			t.Errorf("rows committed meanwhile: got %d, want %d", got, len(rows))
		}
	}},
}

// journal, reservations and snapshots read what the store has of the world.
func (w *world) journal() []store.Row {
	w.t.Helper()
	var rows []store.Row
	err := w.s.Journal(w.ctx, func(r *store.Row) error {
		if r.Aggregate.Tenant == w.tenant {
			rows = append(rows, r.Clone())
		}
		return nil
	})
	if err != nil {
		w.t.Fatalf("Journal: %v", err)
	}
	return rows
}

func (w *world) reservations() map[keys.Key]store.Holder {
	w.t.Helper()
	held := map[keys.Key]store.Holder{}
	err := w.s.Reservations(w.ctx, func(k keys.Key, h store.Holder) error {
		if h.Aggregate.Tenant == w.tenant {
			if _, twice := held[k]; twice {
				w.t.Errorf("Reservations: %s occurs twice", k)
			}
			held[k] = h
		}
		return nil
	})
	if err != nil {
		w.t.Fatalf("Reservations: %v", err)
	}
	return held
}

func (w *world) snapshots() []store.Snapshot {
	w.t.Helper()
	var all []store.Snapshot
	err := w.s.Snapshots(w.ctx, func(s *store.Snapshot) error {
		if s.Aggregate.Tenant == w.tenant {
			all = append(all, s.Clone())
		}
		return nil
	})
	if err != nil {
		w.t.Fatalf("Snapshots: %v", err)
	}
	return all
}
