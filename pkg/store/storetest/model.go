package storetest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// testModel commits random units, most of them in each other's way, to the store and to a model, and compares after
// every Commit whatever can be read.
func testModel(t *testing.T, s Store) {
	rapid.Check(t, func(t *rapid.T) {
		g := &game{world: newWorld(t, s), model: model{holders: map[keys.Key]command.Aggregate{}, snapshots: map[command.Digest]*store.Snapshot{}}}
		t.Repeat(map[string]func(*rapid.T){
			"commit": g.play,
			"":       func(*rapid.T) { g.compare() },
		})
		g.compareInFull()
	})
}

// model is a store so plain that it is right at a glance: a list of rows, searched from end to end.
type model struct {
	rows      []modelRow // in the order of the commits
	holders   map[keys.Key]command.Aggregate
	snapshots map[command.Digest]*store.Snapshot
}

type modelRow struct {
	store.Row
	of command.Digest // the request, also once the row has moved aside
}

func (m *model) head(stream command.Digest) int64 {
	head := int64(0)
	for i := range m.rows {
		if m.rows[i].Stream == stream {
			head = max(head, m.rows[i].Version)
		}
	}
	return head
}

// under returns the row whose request key is the digest.
func (m *model) under(request command.Digest) *store.Row {
	for i := range m.rows {
		if m.rows[i].Request == request {
			return &m.rows[i].Row
		}
	}
	return nil
}

// own returns the row of the request that came from the record.
func (m *model) own(request command.Digest, p command.Position) *store.Row {
	for i := range m.rows {
		if m.rows[i].of == request && m.rows[i].Of(p) {
			return &m.rows[i].Row
		}
	}
	return nil
}

func (m *model) stream(stream command.Digest, behind int64) []store.Row {
	var rows []store.Row
	for i := range m.rows {
		if m.rows[i].Stream == stream && m.rows[i].Version > behind {
			rows = append(rows, m.rows[i].Row)
		}
	}
	return rows
}

// fates returns what may become of the unit: that it is done where nothing speaks against it, else any of the reasons.
func (m *model) fates(u *store.Unit) []store.Fate {
	var against []store.Fate
	lost := func(c store.Conflict) { against = append(against, store.Fate{Verdict: store.Lost, Conflict: c}) }
	for i := range u.Rows {
		row := &u.Rows[i]
		if row.Owner == unstorable {
			against = append(against, store.Fate{Verdict: store.Bad, Row: i})
		}
		if row.Version > 0 && row.Version <= m.head(u.Stream) {
			lost(store.VersionConflict)
		}
		replaced := slices.ContainsFunc(u.Replaced, func(r store.Replaced) bool { return r.Request == row.Request })
		if m.under(row.Request) != nil && !replaced {
			lost(store.RequestConflict)
		}
	}
	for _, r := range u.Replaced {
		old := m.under(r.Request)
		if old == nil || old.Outcome.Final() || old.FromRecord != r.FromRecord || old.Position != r.Position {
			lost(store.RequestConflict)
		}
	}
	for _, key := range u.Take {
		if holder, held := m.holders[key]; held && holder != u.Aggregate {
			lost(store.KeyConflict)
		}
	}
	if len(against) == 0 {
		return []store.Fate{{Verdict: store.Done}}
	}
	return against
}

// commit writes a unit that is done.
func (m *model) commit(u *store.Unit) {
	for _, r := range u.Replaced {
		m.under(r.Request).Request = r.Aside
	}
	for i := range u.Rows {
		m.rows = append(m.rows, modelRow{u.Rows[i], u.Rows[i].Request})
	}
	for _, key := range u.Take {
		m.holders[key] = u.Aggregate
	}
	for _, key := range u.Release {
		if m.holders[key] == u.Aggregate {
			delete(m.holders, key)
		}
	}
	if s := u.Snapshot; s != nil && (m.snapshots[u.Stream] == nil || m.snapshots[u.Stream].Version < s.Version) {
		m.snapshots[u.Stream] = s
	}
}

// game is a model, the store's part that has to equal it, and the few names that make commits meet.
type game struct {
	*world
	model
}

const unstorable = "nul \x00"

var (
	gameAggregates = []string{"a", "b", "c", "d"}
	gameRequests   = []string{"1", "2", "3", "4", "5", "6"}
	gameKeys       = []string{"k", "K", "l", "m"}
)

// play commits up to three units to the store and then, as the store says, to the model.
func (g *game) play(t *rapid.T) {
	requests := rapid.Permutation(gameRequests).Draw(t, "requests")
	claims := map[keys.Key]bool{}
	var units []store.Unit
	for _, id := range rapid.Permutation(gameAggregates).Draw(t, "aggregates")[:rapid.IntRange(1, 3).Draw(t, "units")] {
		n := rapid.IntRange(1, 2).Draw(t, "rows")
		units = append(units, g.unit(t, g.aggregate(id), requests[:n], claims))
		requests = requests[n:]
	}
	var want [][]store.Fate // all judged on the state before
	for i := range units {
		want = append(want, g.fates(&units[i]))
	}
	for i, got := range g.world.commit(units...) {
		if !slices.ContainsFunc(want[i], func(f store.Fate) bool {
			return f.Verdict == got.Verdict && f.Conflict == got.Conflict && f.Row == got.Row
		}) {
			t.Fatalf("unit %d of %d, %s: %s, want any of %+v", i, len(units), outline(units[i].Rows), describe(got), want[i])
		}
		if got.Verdict == store.Done {
			g.model.commit(&units[i])
		}
	}
}

// unit draws a unit with a row for each request.
func (g *game) unit(t *rapid.T, a command.Aggregate, requestIDs []string, claims map[keys.Key]bool) store.Unit {
	seldom := rapid.Map(rapid.IntRange(0, 9), func(n int) bool { return n == 9 })
	u := store.Unit{Stream: a.Stream(), Aggregate: a}
	next := g.model.head(u.Stream) + 1
	if next > 1 && rapid.IntRange(0, 4).Draw(t, "late") == 4 {
		next = rapid.Int64Range(1, next-1).Draw(t, "version")
	}
	held := map[keys.Key]bool{} // as the unit sees it
	for key, holder := range g.model.holders {
		held[key] = holder == a
	}
	before := map[keys.Key]bool{} // of the keys that the unit changes: held before
	for _, id := range requestIDs {
		row := g.row(a, id, rapid.SampledFrom(outcomes[:]).Draw(t, "outcome"), next)
		if seldom.Draw(t, "in process") {
			row = inProcess(row)
		}
		if seldom.Draw(t, "unstorable") {
			row.Owner = unstorable
		}
		if row.Outcome == command.Committed {
			next++
			for _, name := range gameKeys {
				key := g.key(name)
				_, changed := before[key]
				switch change := rapid.IntRange(0, 3).Draw(t, "change of "+name); {
				case change == 0 && !held[key] && (changed || !claims[key]):
					row = taking(row, key)
				case change == 1 && (held[key] || !changed): // perhaps another's
					row = releasing(row, key)
				default:
					continue
				}
				if !changed {
					before[key] = held[key]
				}
				held[key] = len(row.Taken) > 0 && row.Taken[len(row.Taken)-1] == key
				claims[key] = claims[key] || held[key]
			}
		}
		u.Rows = append(u.Rows, row)
		g.drawReplaced(t, &u, row.Request)
	}
	g.net(&u)
	if next > 1 && rapid.Bool().Draw(t, "snapshot") {
		version := rapid.Int64Range(1, next-1).Draw(t, "snapshot version")
		u.Snapshot = snapshot(a, version, 1+int(version%2))
	}
	return u
}

// drawReplaced mostly moves the row of the request aside where it can be; sometimes it takes another for it.
func (g *game) drawReplaced(t *rapid.T, u *store.Unit, request command.Digest) {
	old := g.under(request)
	kind := rapid.IntRange(0, 9).Draw(t, "replaced")
	switch {
	case old != nil && (kind < 8 && !old.Outcome.Final() || kind == 8):
		*u = replacing(*u, *old)
	case kind == 9:
		never := store.Row{Request: request}
		never.FromRecord, never.Position = true, g.position()
		*u = replacing(*u, never)
	}
}

// net sets what the unit takes and releases to the first and last changes by its rows.
func (g *game) net(u *store.Unit) {
	first, last := map[keys.Key]bool{}, map[keys.Key]bool{} // true: taken
	var order []keys.Key
	note := func(key keys.Key, taken bool) {
		if _, seen := first[key]; !seen {
			first[key] = taken
			order = append(order, key)
		}
		last[key] = taken
	}
	for _, row := range u.Rows {
		for _, key := range row.Released {
			note(key, false)
		}
		for _, key := range row.Taken {
			note(key, true)
		}
	}
	for _, key := range order {
		if first[key] {
			u.Take = append(u.Take, key)
		}
		if !last[key] {
			u.Release = append(u.Release, key)
		}
	}
}

// compare reads what a processor reads.
func (g *game) compare() {
	var lookups []store.Lookup
	for _, id := range gameRequests {
		request := g.request(id)
		lookups = append(lookups, store.Lookup{Request: request}, store.Lookup{Request: request, FromRecord: true, Position: g.position()})
		for i := range g.rows {
			if g.rows[i].of == request && g.rows[i].FromRecord {
				lookups = append(lookups, store.Lookup{Request: request, FromRecord: true, Position: g.rows[i].Position})
			}
		}
	}
	for i, found := range g.find(lookups...) {
		asked := lookups[i]
		g.sameOrNone(fmt.Sprintf("lookup %d, latest", i), found.Latest, g.under(asked.Request))
		var own *store.Row
		if asked.FromRecord {
			own = g.own(asked.Request, asked.Position)
		}
		g.sameOrNone(fmt.Sprintf("lookup %d, own", i), found.Own, own)
	}

	var streams []command.Digest
	var asked []store.Asked
	for _, id := range gameAggregates {
		stream := g.aggregate(id).Stream()
		streams = append(streams, stream)
		asked = append(asked, store.Asked{Stream: stream, Revision: 1}, store.Asked{Stream: stream, Revision: 2})
	}
	for i, head := range g.heads(streams...) {
		if want := g.model.head(streams[i]); head != want {
			g.t.Errorf("head of %s: got %d, want %d", gameAggregates[i], head, want)
		}
	}
	for i, got := range g.loadAll(asked...) {
		what := fmt.Sprintf("%s with snapshots of revision %d", gameAggregates[i/2], asked[i].Revision)
		snapshot, behind := g.model.snapshots[asked[i].Stream], int64(0)
		if snapshot != nil && snapshot.Revision == asked[i].Revision {
			behind = snapshot.Version
		} else {
			snapshot = nil
		}
		sameSnapshot(g.t, what, got.Snapshot, snapshot)
		sameRows(g.t, what, got.Tail, g.stream(asked[i].Stream, behind))
	}
	for _, name := range gameKeys {
		g.holds(g.model.holders[g.key(name)], g.key(name))
	}
}

// compareInFull reads what an audit reads.
func (g *game) compareInFull() {
	var all []store.Row
	for _, id := range gameAggregates {
		var rows []store.Row
		for i := range g.rows {
			if g.rows[i].Aggregate == g.aggregate(id) {
				rows = append(rows, g.rows[i].Row)
			}
		}
		all = append(all, rows...)
		got := g.history(g.aggregate(id))
		sameRows(g.t, "history of "+id, got, rows)
	}
	slices.SortStableFunc(all, func(a, b store.Row) int {
		return cmp.Or(bytes.Compare(a.Stream[:], b.Stream[:]), cmp.Compare(a.Version, b.Version), a.Time.Compare(b.Time))
	})
	sameRows(g.t, "journal", g.journal(), all)

	held := g.reservations()
	if len(held) != len(g.model.holders) {
		g.t.Errorf("reservations: got %+v, want %+v", held, g.model.holders)
	}
	for key, holder := range held {
		if holder.Aggregate != g.model.holders[key] {
			g.t.Errorf("reservation %s: got %s, want %s", key, holder.Aggregate, g.model.holders[key])
		}
	}
	snapshots := g.world.snapshots()
	if len(snapshots) != len(g.model.snapshots) {
		g.t.Errorf("snapshots: got %d, want %d", len(snapshots), len(g.model.snapshots))
	}
	for i := range snapshots {
		sameSnapshot(g.t, "snapshot", &snapshots[i], g.model.snapshots[snapshots[i].Stream])
	}
}

func (g *game) sameOrNone(what string, got, want *store.Row) {
	switch {
	case want != nil:
		same(g.t, what, got, *want)
	case got != nil:
		g.t.Errorf("%s: got %s of %s, want none", what, got.Outcome, got.RequestID)
	}
}
