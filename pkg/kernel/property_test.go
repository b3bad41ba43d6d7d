package kernel_test

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel/kerneltest"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
	"github.com/seed54173720/writ/pkg/store/memory"
	"github.com/seed54173720/writ/pkg/store/storetest"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// newRunner returns a runner with bounds of its own and a clock that stands, so that rows can be compared in full.
func newRunner(t *rapid.T, s store.Store) *kerneltest.Runner {
	r := kerneltest.NewRunner(troubled(), s)
	r.Kernel.Clock = func() time.Time { return noon }
	r.Kernel.SnapshotEvery = 3
	r.MaxUnit = rapid.SampledFrom([]int{1, 2, 5, 256}).Draw(t, "commands a unit")
	r.MaxGroup = rapid.SampledFrom([]int{1, 2, 1000}).Draw(t, "units a group")
	r.NoCache = rapid.IntRange(0, 3).Draw(t, "no cache") == 0
	return r
}

// split cuts the entries into batches.
func split(t *rapid.T, entries []entry) (all [][]entry) {
	for len(entries) > 0 {
		n := rapid.IntRange(1, len(entries)).Draw(t, "batch")
		all = append(all, entries[:n])
		entries = entries[n:]
	}
	return all
}

func mustProcess(t *rapid.T, r *kerneltest.Runner, tenant string, entries []entry) []command.Reply {
	replies, err := r.Process(context.Background(), records(tenant, entries)...)
	if err != nil {
		t.Fatalf("process: %v", err)
	}
	return replies
}

// contents is all that a store holds of a tenant.
type contents struct {
	Rows      []store.Row
	Keys      map[keys.Key]store.Holder
	Snapshots []store.Snapshot
}

func read(t *rapid.T, s store.Reader, tenant string) contents {
	ctx := context.Background()
	c := contents{Keys: map[keys.Key]store.Holder{}}
	err := s.Journal(ctx, func(r *store.Row) error {
		if r.Aggregate.Tenant == tenant {
			row := r.Clone()
			row.Time = row.Time.UTC()
			if row.Meta.ReplyTo == "" {
				row.Meta.ReplyPartition = 0 // has no meaning then
			}
			c.Rows = append(c.Rows, row)
		}
		return nil
	})
	if err == nil {
		err = s.Reservations(ctx, func(k keys.Key, h store.Holder) error {
			if k.Tenant == tenant {
				c.Keys[k] = h
			}
			return nil
		})
	}
	if err == nil {
		err = s.Snapshots(ctx, func(s *store.Snapshot) error {
			if s.Aggregate.Tenant == tenant {
				c.Snapshots = append(c.Snapshots, s.Clone())
			}
			return nil
		})
	}
	if err != nil {
		t.Fatalf("read the store: %v", err)
	}
	slices.SortFunc(c.Rows, func(a, b store.Row) int { return cmp.Compare(a.Request.String(), b.Request.String()) })
	return c
}

// same compares two contents, snapshots only where both had the same batches.
func same(t *rapid.T, got, want contents, snapshots bool) {
	for i := range max(len(got.Rows), len(want.Rows)) {
		var a, b store.Row
		if i < len(got.Rows) {
			a = got.Rows[i]
		}
		if i < len(want.Rows) {
			b = want.Rows[i]
		}
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("journal, row %d: got\n%+v, want\n%+v", i, a, b)
		}
	}
	if !reflect.DeepEqual(got.Keys, want.Keys) {
		t.Fatalf("reservations: got\n%+v, want\n%+v", got.Keys, want.Keys)
	}
	if snapshots && !reflect.DeepEqual(got.Snapshots, want.Snapshots) {
		t.Fatalf("snapshots: got\n%+v, want\n%+v", got.Snapshots, want.Snapshots)
	}
}

// sound checks what must be true of any store at any time: versions are contiguous, a request has one row, and the
// reservations are the fold of the keys in the journal, with one holder each.
func sound(t *rapid.T, c contents) {
	rows := slices.Clone(c.Rows)
	slices.SortStableFunc(rows, func(a, b store.Row) int { return cmp.Compare(a.Version, b.Version) })
	heads := map[command.Digest]int64{}
	final := map[command.Digest]bool{}
	type holding struct {
		stream command.Digest
		key    keys.Key
	}
	held := map[holding]store.Holder{}
	for i := range rows {
		r := &rows[i]
		if request := command.RequestDigest(r.Aggregate.Type, r.Aggregate.Tenant, r.RequestID); r.Outcome.Final() {
			if final[request] || r.Request != request {
				t.Fatalf("request %s has a final outcome twice, or moved aside", r.RequestID)
			}
			final[request] = true
		}
		if r.Outcome != command.Committed {
			continue
		}
		heads[r.Stream]++
		if r.Version != heads[r.Stream] {
			t.Fatalf("%s: version %d follows %d", r.Aggregate, r.Version, heads[r.Stream]-1)
		}
		for _, k := range r.Released {
			delete(held, holding{r.Stream, k})
		}
		for _, k := range r.Taken {
			held[holding{r.Stream, k}] = store.Holder{Held: true, Stream: r.Stream, Aggregate: r.Aggregate}
		}
	}
	folded := map[keys.Key]store.Holder{}
	for h, holder := range held {
		if other, ok := folded[h.key]; ok {
			t.Fatalf("key %v is held by %s and by %s", h.key, other.Aggregate, holder.Aggregate)
		}
		folded[h.key] = holder
	}
	if !reflect.DeepEqual(folded, c.Keys) {
		t.Fatalf("reservations: got\n%+v, want the fold of the journal's keys\n%+v", c.Keys, folded)
	}
}

// ownNames lets each aggregate ask for names that no other asks for, except for those in use before.
func ownNames(o op) []string {
	return []string{o.subject + "x", o.subject + "X ", o.subject + "y", "x", "Y", ""}
}

func TestABatchEqualsItsCommandsOneByOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		// Aggregates that compete for a key have no order between them, so that there would be many right answers.
		// Here they ask for keys of their own and for keys that an outsider holds all the time.
		b := batches{subjects: []string{"1", "2", "3"}, names: ownNames, scoped: true}
		past := []entry{
			{op: op{request: "past1", typ: "brand.create", subject: "o1", name: "X"}, at: command.Position{Offset: 1}},
			{op: op{request: "past2", typ: "brand.create", subject: "o2", name: "y"}, at: command.Position{Offset: 2}},
			{op: op{request: "past3", typ: "category.create", subject: "o1", name: "x"}, at: command.Position{Offset: 3}},
			{op: op{request: "past4", typ: "category.create", subject: "o2", name: "y"}, at: command.Position{Offset: 4}},
		}
		entries := append(past, b.entries(t, 40, 1)...)
		for i := range entries {
			entries[i].at.Offset = int64(i)
		}
		someWait(t, entries)
		m, single, batched := newModel(), memory.New(), memory.New()
		var want []answer
		var one []command.Reply
		slow := newRunner(t, single)
		for _, e := range entries {
			want = append(want, m.process(e.op, e.at))
			one = append(one, mustProcess(t, slow, "", []entry{e})...)
		}
		fast := newRunner(t, batched)
		many := mustProcess(t, fast, "", entries[:len(past)])
		for _, batch := range split(t, entries[len(past):]) {
			many = append(many, mustProcess(t, fast, "", batch)...)
		}
		for i, e := range entries {
			if got := answered(one[i]); got != want[i] {
				t.Fatalf("one by one, answer %d, to %+v: got %v, the model says %v", i, e.op, got, want[i])
			}
			if !reflect.DeepEqual(many[i], one[i]) {
				t.Fatalf("in a batch, answer %d, to %+v: got %+v, one by one %+v", i, e.op, many[i], one[i])
			}
		}
		same(t, read(t, batched, ""), read(t, single, ""), false)
		sound(t, read(t, batched, ""))
	})
}

func TestCompetingAggregatesAreDecidedOnWhatWasTrue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := batches{subjects: []string{"1", "2", "3"}, names: anyName}
		entries := b.entries(t, 40, 1)
		h := newHistory(memory.New())
		r := newRunner(t, h)
		for _, batch := range split(t, entries) {
			h.received(records("", batch))
			mustProcess(t, r, "", batch)
		}
		if err := h.audit(entries); err != nil {
			t.Fatal(err)
		}
		sound(t, read(t, h.Store.(store.Reader), ""))
	})
}

func TestTheSameRecordsDeliveredTwiceEqualOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := batches{subjects: []string{"1", "2", "3"}, names: anyName}
		entries := b.entries(t, 40, 1)
		s := memory.New()
		// The first processor crashes at any call of the store, before or after it took effect.
		crash := rapid.IntRange(1, 60).Draw(t, "crash at call")
		kind := rapid.SampledFrom([]storetest.Kind{storetest.FailBefore, storetest.FailAfter}).Draw(t, "crash")
		calls := 0
		dying := newRunner(t, storetest.NewFaulty(s, func(context.Context, storetest.Call) storetest.Fault {
			if calls++; calls == crash {
				return storetest.Fault{Kind: kind}
			} else if calls > crash {
				return storetest.Fault{Kind: storetest.FailBefore}
			}
			return storetest.Fault{}
		}))
		var before []command.Reply
		for _, batch := range split(t, entries) {
			replies, err := dying.Process(context.Background(), records("", batch)...)
			before = append(before, replies...)
			if err != nil {
				break
			}
		}
		fresh := newRunner(t, s)
		after := mustProcess(t, fresh, "", entries)
		for i := range before {
			if before[i].Outcome != 0 && !reflect.DeepEqual(before[i], after[i]) {
				t.Fatalf("answer %d, to %+v: after the crash %+v, before it %+v", i, entries[i].op, after[i], before[i])
			}
		}
		once := read(t, s, "")
		sound(t, once)
		again := mustProcess(t, newRunner(t, s), "", entries)
		for i := range again {
			if !reflect.DeepEqual(again[i], after[i]) {
				t.Fatalf("answer %d, to %+v: delivered again %+v, at first %+v", i, entries[i].op, again[i], after[i])
			}
		}
		same(t, read(t, s, ""), once, true)
	})
}

// testStoresAgree gives two stores the same batches.
func testStoresAgree(t *testing.T, other storetest.Store) {
	rapid.Check(t, func(t *rapid.T) {
		tenant := "t" + uuid.NewString()
		b := batches{subjects: []string{"1", "2", "3"}, names: anyName}
		entries := b.entries(t, 40, 2)
		topic := uuid.New()
		for i := range entries {
			entries[i].at.TopicID = topic
		}
		someWait(t, entries)
		s := memory.New()
		r := newRunner(t, s)
		twin := kerneltest.NewRunner(r.Kernel.Context, other)
		twin.Kernel.Clock, twin.Kernel.SnapshotEvery = r.Kernel.Clock, r.Kernel.SnapshotEvery
		twin.MaxUnit, twin.MaxGroup, twin.NoCache = r.MaxUnit, r.MaxGroup, r.NoCache
		for _, batch := range append(split(t, entries), entries) {
			want, got := mustProcess(t, r, tenant, batch), mustProcess(t, twin, tenant, batch)
			for i := range want {
				if !reflect.DeepEqual(got[i], want[i]) {
					t.Fatalf("answer to %+v: got %+v, of memory %+v", batch[i].op, got[i], want[i])
				}
			}
		}
		c := read(t, other, tenant)
		same(t, c, read(t, s, tenant), true)
		sound(t, c)
	})
}
