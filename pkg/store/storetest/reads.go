package storetest

import (
	"fmt"
	"testing"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

var requestCases = []claim{
	{"a new request is not found", func(t *testing.T, w *world) {
		found := w.find(store.Lookup{Request: w.request("r"), FromRecord: true, Position: w.position()})[0]
		if found.Latest != nil || found.Own != nil {
			t.Errorf("found %+v, want nothing", found)
		}
	}},
	{"a record finds its own row", func(t *testing.T, w *world) {
		row := w.committed(w.aggregate("a"), "r", 1)
		w.do(unit(row))
		found := w.find(of(row))[0]
		same(t, "latest", found.Latest, row)
		if found.Own != found.Latest {
			t.Errorf("own %+v is not the latest row", found.Own)
		}
	}},
	{"another record of the request finds the row, not as its own", func(t *testing.T, w *world) {
		row := w.refused(w.aggregate("a"), "r", command.Nothing)
		w.do(unit(row))
		for name, change := range map[string]func(*command.Position){
			"offset":    func(p *command.Position) { p.Offset++ },
			"partition": func(p *command.Position) { p.Partition++ },
			"topic":     func(p *command.Position) { p.TopicID[0]++ },
		} {
			asked := of(row)
			change(&asked.Position)
			found := w.find(asked)[0]
			same(t, "latest, another "+name, found.Latest, row)
			if found.Own != nil {
				t.Errorf("another %s: own %+v, want none", name, found.Own)
			}
		}
	}},
	{"a call that is no record has no own row", func(t *testing.T, w *world) {
		row := w.committed(w.aggregate("a"), "r", 1)
		w.do(unit(row))
		found := w.find(store.Lookup{Request: row.Request, Position: row.Position})[0]
		same(t, "latest", found.Latest, row)
		if found.Own != nil {
			t.Errorf("own %+v, want none", found.Own)
		}
	}},
	{"the first record of a topic is a record", func(t *testing.T, w *world) {
		executed := inProcess(w.committed(w.aggregate("a"), "executed", 1))
		first := w.committed(w.aggregate("b"), "first", 1)
		first.Position = command.Position{} // all zero, and yet a record
		w.do(unit(executed), unit(first))
		found := w.find(store.Lookup{Request: executed.Request, FromRecord: true}, of(first))
		same(t, "executed", found[0].Latest, executed)
		if found[0].Own != nil {
			t.Errorf("executed: own %+v, want none", found[0].Own)
		}
		same(t, "first", found[1].Own, first)
	}},
	{"a request belongs to a tenant and an aggregate type", func(t *testing.T, w *world) {
		row := w.committed(w.aggregate("a"), "r", 1)
		elsewhere := w.aggregate("a")
		elsewhere.Type = "category"
		second := w.committed(elsewhere, "r", 1)
		second.Request = command.RequestDigest("category", w.tenant, "r")
		w.do(unit(row), unit(second))
		found := w.find(of(row), of(second))
		same(t, "brand", found[0].Own, row)
		same(t, "category", found[1].Own, second)
	}},
	{"answers are aligned with what was asked, repeats included", func(t *testing.T, w *world) {
		a := w.committed(w.aggregate("a"), "ra", 1)
		b := w.committed(w.aggregate("b"), "rb", 1)
		w.do(unit(a), unit(b))
		new := store.Lookup{Request: w.request("new")}
		for i, found := range w.find(of(b), new, of(a), of(b), new) {
			want := []*store.Row{&b, nil, &a, &b, nil}[i]
			if want != nil {
				same(t, fmt.Sprintf("answer %d", i), found.Own, *want)
			} else if found.Latest != nil {
				t.Errorf("answer %d: found %s, want nothing", i, found.Latest.RequestID)
			}
		}
	}},
	{"asking for nothing answers nothing", func(t *testing.T, w *world) {
		w.find()
		w.loadAll()
		w.heads()
		w.holders()
		w.commit()
		if err := w.s.SaveProgress(w.ctx, nil); err != nil {
			t.Errorf("SaveProgress of nothing: %v", err)
		}
	}},
	{"thousands are asked for at once", func(t *testing.T, w *world) {
		const n = 3000
		row := w.committed(w.aggregate("a"), "r", 1)
		w.do(unit(row))
		asked, streams := make([]store.Lookup, n), make([]command.Digest, n)
		for i := range asked {
			asked[i], streams[i] = store.Lookup{Request: w.request(fmt.Sprint(i)), FromRecord: true, Position: w.position()}, w.aggregate(fmt.Sprint(i)).Stream()
		}
		asked[n-1], streams[n-1] = of(row), row.Stream
		same(t, "the last of many", w.find(asked...)[n-1].Own, row)
		if head := w.heads(streams...)[n-1]; head != 1 {
			t.Errorf("head of the last of many: got %d, want 1", head)
		}
	}},
}

var loadCases = []claim{
	{"an unknown aggregate is empty", func(t *testing.T, w *world) {
		w.untouched(w.aggregate("a"))
		if head := w.head(w.aggregate("a")); head != 0 {
			t.Errorf("head: got %d, want 0", head)
		}
	}},
	{"without a snapshot the tail begins at version 1", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		rows := w.commits(a, 3)
		stream := w.load(a, 1)
		sameSnapshot(t, "snapshot", stream.Snapshot, nil)
		sameRows(t, "tail", stream.Tail, rows)
	}},
	{"with a snapshot the tail begins behind it", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		rows := w.commits(a, 4)
		w.do(snapshotOnly(a, 3, 1))
		stream := w.load(a, 1)
		sameSnapshot(t, "snapshot", stream.Snapshot, snapshot(a, 3, 1))
		sameRows(t, "tail", stream.Tail, rows[3:])
	}},
	{"a snapshot at the head leaves no tail", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		w.commits(a, 2)
		w.do(snapshotOnly(a, 2, 1))
		stream := w.load(a, 1)
		sameSnapshot(t, "snapshot", stream.Snapshot, snapshot(a, 2, 1))
		sameRows(t, "tail", stream.Tail, nil)
	}},
	{"a snapshot of another revision is left out and the whole tail is read", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		rows := w.commits(a, 3)
		w.do(snapshotOnly(a, 2, 7))
		for _, revision := range []int{6, 8} {
			stream := w.load(a, revision)
			sameSnapshot(t, "snapshot", stream.Snapshot, nil)
			sameRows(t, "tail", stream.Tail, rows)
		}
		sameSnapshot(t, "snapshot", w.load(a, 7).Snapshot, snapshot(a, 2, 7))
	}},
	{"a refusal is no part of the tail and moves no head", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		one, two := w.committed(a, "r1", 1), w.committed(a, "r4", 2)
		w.do(unit(w.refused(a, "r0", command.Rejected)))
		w.do(unit(one, w.refused(a, "r2", command.Failed), w.refused(a, "r3", command.Nothing), two))
		w.do(unit(w.refused(a, "r5", command.Nothing)))
		sameRows(t, "tail", w.load(a, 1).Tail, []store.Row{one, two})
		if head := w.head(a); head != 2 {
			t.Errorf("head: got %d, want 2", head)
		}
	}},
	{"answers are aligned with what was asked, repeats included", func(t *testing.T, w *world) {
		a, b := w.aggregate("a"), w.aggregate("b")
		rowsA, rowsB := w.commits(a, 1), w.commits(b, 12)
		w.do(snapshotOnly(b, 10, 1))
		askedA, askedB := store.Asked{Stream: a.Stream(), Revision: 1}, store.Asked{Stream: b.Stream(), Revision: 1}
		unknown, otherB := store.Asked{Stream: w.aggregate("c").Stream()}, store.Asked{Stream: b.Stream(), Revision: 2}
		want := [][]store.Row{rowsB[10:], nil, rowsA, rowsB, rowsB[10:]}
		for i, stream := range w.loadAll(askedB, unknown, askedA, otherB, askedB) {
			sameRows(t, fmt.Sprintf("answer %d", i), stream.Tail, want[i])
		}
		got := w.heads(b.Stream(), w.aggregate("c").Stream(), a.Stream(), b.Stream())
		if want := [4]int64{12, 0, 1, 12}; [4]int64(got) != want {
			t.Errorf("heads: got %v, want %v", got, want)
		}
	}},
	{"aggregates whose parts join to one text are apart", func(t *testing.T, w *world) {
		a, b := w.aggregate("x"), w.aggregate("brandx")
		a.Type, b.Type = "brandbrand", "brand"
		w.do(unit(w.committed(a, "r", 1)))
		if got := w.heads(a.Stream(), b.Stream()); got[0] != 1 || got[1] != 0 {
			t.Errorf("heads: got %v, want [1 0]", got)
		}
	}},
}

var keyCases = []claim{
	{"a key that nobody took has no holder", func(_ *testing.T, w *world) {
		w.holds(command.Aggregate{}, w.key("k"))
	}},
	{"a taken key is held by its aggregate", func(_ *testing.T, w *world) {
		a := w.aggregate("a")
		w.do(unit(taking(w.committed(a, "r", 1), w.key("k"))))
		w.holds(a, w.key("k"))
	}},
	{"keys that differ in one part are apart", func(_ *testing.T, w *world) {
		a := w.aggregate("a")
		key := w.key("k")
		w.do(unit(taking(w.committed(a, "r", 1), key)))
		for _, change := range []func(*keys.Key){
			func(k *keys.Key) { k.Name = "K" },
			func(k *keys.Key) { k.Name = "k " },
			func(k *keys.Key) { k.Namespace = "category-name" },
			func(k *keys.Key) { k.Namespace, k.Name = k.Namespace+k.Name, "k" },
			func(k *keys.Key) { k.Tenant += "x" },
			func(k *keys.Key) { k.Tenant, k.System = "", true },
		} {
			other := key
			change(&other)
			w.holds(command.Aggregate{}, other)
		}
	}},
	{"keys are compared byte for byte", func(_ *testing.T, w *world) {
		composed, decomposed := w.aggregate("composed"), w.aggregate("decomposed")
		w.do(unit(taking(w.committed(composed, "r1", 1), w.key("caf\u00e9"))),
			unit(taking(w.committed(decomposed, "r2", 1), w.key("cafe\u0301"))))
		w.holds(composed, w.key("caf\u00e9"))
		w.holds(decomposed, w.key("cafe\u0301"))
	}},
	{"a system-wide key is apart from the default tenant's", func(_ *testing.T, w *world) {
		a, b := w.aggregate("a"), w.aggregate("b")
		system := keys.Key{System: true, Namespace: "brand-name", Name: w.tenant}
		plain := keys.Key{Namespace: "brand-name", Name: w.tenant}
		w.do(unit(taking(w.committed(a, "r1", 1), system)), unit(taking(w.committed(b, "r2", 1), plain)))
		w.holds(a, system)
		w.holds(b, plain)
	}},
	{"a held key is lost to others, and its holder stays", func(t *testing.T, w *world) {
		a, b := w.aggregate("a"), w.aggregate("b")
		w.do(unit(taking(w.committed(a, "r1", 1), w.key("k"))))
		w.loses(store.KeyConflict, unit(taking(w.committed(b, "r2", 1), w.key("free"), w.key("k"))))
		w.holds(a, w.key("k"))
		w.holds(command.Aggregate{}, w.key("free"))
		w.untouched(b, "r2")
	}},
	{"a released key is free from the next Commit on", func(_ *testing.T, w *world) {
		a, b := w.aggregate("a"), w.aggregate("b")
		w.do(unit(taking(w.committed(a, "r1", 1), w.key("k"))))
		w.do(unit(releasing(w.committed(a, "r2", 2), w.key("k"))))
		w.holds(command.Aggregate{}, w.key("k"))
		w.do(unit(taking(w.committed(b, "r3", 1), w.key("k"))))
		w.holds(b, w.key("k"))
	}},
	{"a key released in a Commit cannot be claimed by another unit of it", func(t *testing.T, w *world) {
		a, b := w.aggregate("a"), w.aggregate("b")
		w.do(unit(taking(w.committed(a, "r1", 1), w.key("k"))))
		fates := w.commit(unit(releasing(w.committed(a, "r2", 2), w.key("k"))), unit(taking(w.committed(b, "r3", 1), w.key("k"))))
		if fates[0].Verdict != store.Done || fates[1].Verdict != store.Lost || fates[1].Conflict != store.KeyConflict {
			t.Errorf("fates: %s and %s, want done and lost by key", describe(fates[0]), describe(fates[1]))
		}
		w.holds(command.Aggregate{}, w.key("k"))
	}},
	{"aggregates that swap keys lose once and then see the truth", func(t *testing.T, w *world) {
		a, b := w.aggregate("a"), w.aggregate("b")
		w.do(unit(taking(w.committed(a, "r1", 1), w.key("1"))), unit(taking(w.committed(b, "r2", 1), w.key("2"))))
		swapA := unit(taking(releasing(w.committed(a, "r3", 2), w.key("1")), w.key("2")))
		swapB := unit(taking(releasing(w.committed(b, "r4", 2), w.key("2")), w.key("1")))
		for i, fate := range w.commit(swapA, swapB) {
			if fate.Verdict != store.Lost || fate.Conflict != store.KeyConflict {
				t.Errorf("unit %d: %s, want it lost by key", i, describe(fate))
			}
		}
		w.holds(a, w.key("1"))
		w.holds(b, w.key("2"))
	}},
	{"releasing a key that another holds has no effect", func(_ *testing.T, w *world) {
		a, b := w.aggregate("a"), w.aggregate("b")
		w.do(unit(taking(w.committed(a, "r1", 1), w.key("k"))))
		w.do(unit(releasing(w.committed(b, "r2", 1), w.key("k"), w.key("nobody's"))))
		w.holds(a, w.key("k"))
	}},
	{"an aggregate keeps what a later commit does not name", func(_ *testing.T, w *world) {
		a := w.aggregate("a")
		w.do(unit(taking(w.committed(a, "r1", 1), w.key("1"), w.key("2"))))
		w.do(unit(releasing(w.committed(a, "r2", 2), w.key("1")), w.refused(a, "r3", command.Rejected)))
		w.do(unit(w.committed(a, "r4", 3)))
		w.holds(command.Aggregate{}, w.key("1"))
		w.holds(a, w.key("2"))
	}},
	{"a unit loses by a key that it would hold for a moment", func(t *testing.T, w *world) {
		a, b := w.aggregate("a"), w.aggregate("b")
		w.do(unit(taking(w.committed(b, "r1", 1), w.key("k"))))
		// Nothing would be left of it, but it would have been held twice.
		w.loses(store.KeyConflict, unit(taking(w.committed(a, "r2", 1), w.key("k")), releasing(w.committed(a, "r3", 2), w.key("k"))))
		w.holds(b, w.key("k"))
	}},
	{"a key held for a moment is nobody's afterwards", func(t *testing.T, w *world) {
		a, b := w.aggregate("a"), w.aggregate("b")
		w.do(unit(taking(w.committed(b, "r1", 1), w.key("b's"))))
		u := unit(taking(w.committed(a, "r2", 1), w.key("k")), releasing(w.committed(a, "r3", 2), w.key("k")))
		w.do(u)
		w.holds(command.Aggregate{}, w.key("k"))
		sameRows(t, "tail", w.load(a, 1).Tail, u.Rows)
	}},
	{"holders are aligned with what was asked, repeats included", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		w.do(unit(taking(w.committed(a, "r1", 1), w.key("k"))))
		for i, holder := range w.holders(w.key("free"), w.key("k"), w.key("free"), w.key("k")) {
			if want := i%2 == 1; holder.By(a.Stream()) != want || holder.Held != want {
				t.Errorf("answer %d: got %+v, want held %v", i, holder, want)
			}
		}
	}},
}

// commits commits versions 1 to n of the aggregate one by one.
func (w *world) commits(a command.Aggregate, n int) []store.Row {
	w.t.Helper()
	rows := make([]store.Row, n)
	for i := range rows {
		rows[i] = w.committed(a, fmt.Sprintf("%s at %d", a.ID, i+1), int64(i+1))
		w.do(unit(rows[i]))
	}
	return rows
}

// snapshotOnly is the unit that writes a snapshot and no row.
func snapshotOnly(a command.Aggregate, version int64, revision int) store.Unit {
	return store.Unit{Stream: a.Stream(), Aggregate: a, Snapshot: snapshot(a, version, revision)}
}
