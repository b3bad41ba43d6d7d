package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// suspects are digests that something is wrong with. What that is, and what the digests stand for, takes another pass.
type suspects struct{ requests, positions, keys bounded }

func newSuspects() *suspects {
	return &suspects{bounded{}, bounded{}, bounded{}}
}

func (s *suspects) none() bool { return len(s.requests)+len(s.positions)+len(s.keys) == 0 }

// bounded is a set of at most mostSuspects digests. Where there are more, the first ones are what people begin with.
type bounded map[command.Digest]struct{}

const mostSuspects = 1_000

func (b bounded) add(id command.Digest) {
	if len(b) < mostSuspects {
		b[id] = struct{}{}
	}
}

func (b bounded) has(id command.Digest) bool { _, ok := b[id]; return ok }

// looks is how often a key must be found wrong in one and the same way: journal and reservations are read one after the
// other, and a key that changes hands meanwhile looks wrong once.
const looks = 3

// explain reads the journal again and makes findings of the suspects.
func (a *audit) explain(ctx context.Context) error {
	if a.suspects.none() {
		return nil
	}
	var before map[command.Digest]*keyCase
	for n := range looks {
		c := &cases{suspects: a.suspects, requests: map[command.Digest]*rowCase{}, positions: map[command.Digest]*rowCase{}, keys: map[command.Digest]*keyCase{}}
		if err := a.pass(ctx, c.row, c.held, c.reserved); err != nil {
			return err
		}
		if n > 0 {
			maps.DeleteFunc(c.keys, func(id command.Digest, k *keyCase) bool { return before[id] == nil || !before[id].same(k) })
		}
		before = c.keys
		if len(a.suspects.keys) == 0 || n == looks-1 {
			c.report(a)
			return nil
		}
	}
	return nil
}

// cases gathers what is known of the suspects in one pass.
type cases struct {
	suspects  *suspects
	requests  map[command.Digest]*rowCase
	positions map[command.Digest]*rowCase
	keys      map[command.Digest]*keyCase
}

// rowCase is the rows that a request or a record has.
type rowCase struct {
	first  *store.Row
	latest int // rows under the request's own key
	rows   int
	where  []string // the first few
}

func (c *rowCase) add(row *store.Row) {
	if c.rows++; len(c.where) < 5 {
		where := fmt.Sprintf("%s %s", row.Aggregate, row.Outcome)
		if row.Version > 0 {
			where += fmt.Sprintf(" at version %d", row.Version)
		}
		if row.FromRecord {
			where += " from record " + row.Position.String()
		}
		c.where = append(c.where, where)
	}
	if row.Request == requestOf(row) {
		c.latest++
	}
}

// keyCase is who holds a key.
type keyCase struct {
	key      keys.Key
	held     []command.Aggregate // by the journal
	reserved *command.Aggregate  // by the reservations
}

func (k *keyCase) same(other *keyCase) bool {
	return slices.Equal(k.held, other.held) && (k.reserved == nil) == (other.reserved == nil) &&
		(k.reserved == nil || *k.reserved == *other.reserved)
}

func (c *cases) row(row *store.Row) {
	add := func(to map[command.Digest]*rowCase, id command.Digest) {
		if to[id] == nil {
			to[id] = &rowCase{first: row}
		}
		to[id].add(row)
	}
	if id := requestOf(row); c.suspects.requests.has(id) {
		add(c.requests, id)
	}
	if row.FromRecord {
		if id := positionID(row.Position); c.suspects.positions.has(id) {
			add(c.positions, id)
		}
	}
}

func (c *cases) held(h *holding) {
	for id, k := range h.keys {
		if c.suspects.keys.has(id) {
			held := c.key(id, k)
			held.held = append(held.held, h.of)
		}
	}
}

func (c *cases) reserved(k keys.Key, h store.Holder) {
	if id := k.Digest(); c.suspects.keys.has(id) {
		c.key(id, k).reserved = &h.Aggregate
	}
}

func (c *cases) key(id command.Digest, k keys.Key) *keyCase {
	if c.keys[id] == nil {
		c.keys[id] = &keyCase{key: k}
	}
	return c.keys[id]
}

func (c *cases) report(a *audit) {
	for _, r := range sorted(c.requests) {
		where := fmt.Sprintf("request %q of tenant %q, aggregate type %s", r.first.RequestID, r.first.Aggregate.Tenant, r.first.Aggregate.Type)
		look := fmt.Sprintf("select * from journal_plain where request_id = '%s'", strings.ReplaceAll(r.first.RequestID, "'", "''"))
		switch {
		case r.latest > 1:
			a.find(Finding{RequestTwice, where, fmt.Sprintf("it has %d rows as its latest: %s", r.latest, strings.Join(r.where, "; ")), look, mend[RequestTwice]})
		case r.latest == 0:
			a.find(Finding{RequestLost, where, fmt.Sprintf("its rows were moved aside, and there is no later one: %s", strings.Join(r.where, "; ")), look, mend[RequestLost]})
		}
	}
	for _, r := range sorted(c.positions) {
		if r.rows > 1 {
			p := r.first.Position
			a.find(Finding{
				RecordTwice, "record " + p.String(), fmt.Sprintf("it has %d rows: %s", r.rows, strings.Join(r.where, "; ")),
				fmt.Sprintf(`select * from journal_plain where partition = %d and "offset" = %d`, p.Partition, p.Offset), mend[RecordTwice],
			})
		}
	}
	for _, k := range sorted(c.keys) {
		k.report(a)
	}
}

func (k *keyCase) report(a *audit) {
	look := fmt.Sprintf("select * from reservation where namespace = '%s' and name = '%s'",
		strings.ReplaceAll(k.key.Namespace, "'", "''"), strings.ReplaceAll(k.key.Name, "'", "''"))
	find := func(code Code, format string, args ...any) {
		a.find(Finding{code, "key " + k.key.String(), fmt.Sprintf(format, args...), look, mend[code]})
	}
	if len(k.held) > 1 {
		find(KeyTwice, "by the journal it is held by %s", addresses(k.held))
	}
	for _, of := range k.held {
		switch {
		case k.reserved == nil:
			find(KeyNotReserved, "by the journal it is held by %s, and it is not reserved", of)
		case *k.reserved != of:
			find(KeyNotReserved, "by the journal it is held by %s, and it is reserved for %s", of, k.reserved)
		}
	}
	if k.reserved != nil && !slices.Contains(k.held, *k.reserved) {
		find(KeyNotInJournal, "it is reserved for %s, which by the journal does not hold it", k.reserved)
	}
}

func addresses(all []command.Aggregate) string {
	texts := make([]string, len(all))
	for i, a := range all {
		texts[i] = a.String()
	}
	return strings.Join(texts, ", ")
}

// sorted returns the values by their keys, so that two audits of one store report alike.
func sorted[V any](m map[command.Digest]V) []V {
	ids := slices.SortedFunc(maps.Keys(m), func(a, b command.Digest) int { return slices.Compare(a[:], b[:]) })
	values := make([]V, len(ids))
	for i, id := range ids {
		values[i] = m[id]
	}
	return values
}
