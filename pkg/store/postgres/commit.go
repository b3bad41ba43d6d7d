package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store"
)

// The statements of a commit, in the order in which they run. The order is that of the locks, and each takes its own
// in the order of keys, so that two groups seldom wait for each other in a circle.
var (
	begin = statement{"begin_group", `begin`}

	// Only after a claim has failed on a hold that is over: such holds are rare, and looking for them is not free.
	deleteExpired = statement{"delete_expired", `delete from reservation where id = any ($1::uuid[]) and expires_at <= clock_timestamp()`}

	// A plain insert: a key that somebody holds violates the primary key, after waiting for a rival under way.
	copyClaims = statement{"copy_claims", `copy reservation (` + claimColumns + `) from stdin (format binary)`}

	// Divides by zero where a row is not as asked: it has made way for another attempt, or is final.
	moveAside = statement{"move_aside", `
		with moved as (
			update journal as j set request = a.aside
			from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::int4[], $5::int8[]) as a (request, aside, topic_id, partition, "offset")
			where j.request = a.request and j.outcome in ('r', 'f')
				and (j.topic_id, j.partition, j."offset") is not distinct from (a.topic_id, a.partition, a."offset")
			returning 1)
		select 1 / (count(*) = cardinality($1))::int from moved`}

	// Of somebody else's key nothing is deleted.
	releaseKeys = statement{"release_keys", `
		delete from reservation as r using unnest($1::uuid[], $2::uuid[]) as a (id, holder)
		where r.id = a.id and r.holder = a.holder`}

	copyRows = statement{"copy_rows", `copy journal (` + rowColumns + `) from stdin (format binary)`}

	saveSnapshots = statement{"save_snapshots", `
		insert into snapshot (stream, version, revision, tenant, aggregate_type, aggregate_id, state)
		select * from unnest($1::uuid[], $2::int8[], $3::int4[], $4::text[], $5::text[], $6::text[], $7::text[])
		on conflict (stream) do update set version = excluded.version, revision = excluded.revision, saved_at = now(),
			tenant = excluded.tenant, aggregate_type = excluded.aggregate_type, aggregate_id = excluded.aggregate_id,
			state = excluded.state
		where snapshot.version < excluded.version`}

	commit   = statement{"commit_group", `commit`}
	rollback = statement{"rollback_group", `rollback`}
)

// commitStatements are prepared on a connection before its first commit.
var commitStatements = []statement{begin, deleteExpired, copyClaims, moveAside, releaseKeys, copyRows, saveSnapshots, commit, rollback}

// group is the units that are tried in one transaction, by their index.
type group struct {
	units []int
	tries int  // how often these very units were tried without learning why they failed
	sweep bool // claims met holds that are over
}

// maxTries is how often a group goes again, unchanged, before it is halved to part those who are in each other's way.
const maxTries = 2

// Commit makes the units durable in one transaction and one round trip, if all goes well. A group that fails goes
// again without those that were found to have lost; where nobody was found, in halves, until the unit at fault is
// alone. So the others commit, whatever one unit holds.
func (s *Store) Commit(ctx context.Context, units []store.Unit) ([]store.Fate, error) {
	if len(units) == 0 {
		return nil, nil
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("store: commit: %w", err)
	}
	defer conn.Release()
	for _, statement := range commitStatements {
		if _, err := conn.Conn().Prepare(ctx, statement.name, statement.sql); err != nil {
			return nil, fmt.Errorf("store: commit: %w", err)
		}
	}

	c := &committer{store: s, conn: conn.Conn(), units: units, fates: make([]store.Fate, len(units)), pipe: s.borrow()}
	defer s.giveBack(c.pipe)
	all := make([]int, len(units))
	for i := range all {
		all[i] = i
	}
	c.todo = append(c.todo, group{units: all})
	for len(c.todo) > 0 {
		last := len(c.todo) - 1
		next := c.todo[last]
		c.todo = c.todo[:last]
		err := ctx.Err()
		if err == nil {
			err = c.try(ctx, next)
		}
		if err != nil {
			if c.committed && !errors.Is(err, store.ErrUnknown) {
				err = fmt.Errorf("%w: a part of the group was committed: %w", store.ErrUnknown, err)
			}
			return nil, fmt.Errorf("store: commit: %w", err)
		}
	}
	return c.fates, nil
}

// borrow returns an idle pipeline, or a new one where more callers commit than were announced.
func (s *Store) borrow() *pipeline {
	select {
	case p := <-s.pipes:
		return p
	default:
		return new(pipeline)
	}
}

func (s *Store) giveBack(p *pipeline) {
	p.reset()
	select {
	case s.pipes <- p:
	default:
	}
}

// committer is one call of Commit.
type committer struct {
	store     *Store
	conn      *pgx.Conn
	pipe      *pipeline
	units     []store.Unit
	fates     []store.Fate // the zero value is Done
	todo      []group      // disjoint
	committed bool         // a group has
}

// try commits g or says what became of it: its units have their fate, or go again as other groups. An error is a
// fault of the infrastructure.
func (c *committer) try(ctx context.Context, g group) error {
	c.encode(g)
	err := c.send(ctx, "COMMIT")
	if err == nil {
		c.committed = true
		return nil
	}
	kind := classify(err)
	c.store.log.DebugContext(ctx, "group rolled back", "units", len(g.units), "class", kind, "error", err)
	switch kind {
	case raced:
		return c.afterRace(ctx, g, err)
	case again:
		if g.tries++; g.tries <= maxTries {
			c.todo = append(c.todo, g)
			return nil
		}
		fallthrough
	case blocked:
		return c.halve(g, func(unit int) error {
			c.fates[unit] = store.Fate{Verdict: store.Lost, Conflict: store.LockConflict}
			return nil
		})
	case refused:
		return c.halve(g, func(unit int) error { return c.blame(ctx, unit, err) })
	default:
		if uncertain(err) {
			return fmt.Errorf("%w: %w", store.ErrUnknown, err)
		}
		return err
	}
}

// send runs the pipeline, whose last command MUST be tagged want, and leaves the session idle or closed.
func (c *committer) send(ctx context.Context, want string) error {
	tag, err := c.pipe.exchange(ctx, c.conn.PgConn())
	if err == nil && tag.String() != want {
		err = fmt.Errorf("the transaction ended with %q, not with %q", tag, want)
	}
	if err != nil && !c.conn.IsClosed() {
		if _, failure := c.conn.PgConn().Exec(ctx, rollback.sql).ReadAll(); failure != nil {
			c.conn.Close(context.WithoutCancel(ctx))
		}
	}
	return err
}

// halve has both halves of g go again, or calls alone for the one unit there is.
func (c *committer) halve(g group, alone func(unit int) error) error {
	if len(g.units) == 1 {
		return alone(g.units[0])
	}
	middle := len(g.units) / 2
	c.todo = append(c.todo, group{units: g.units[middle:], sweep: g.sweep}, group{units: g.units[:middle], sweep: g.sweep})
	return nil
}

// afterRace finds who of g has lost, and has the rest go again.
func (c *committer) afterRace(ctx context.Context, g group, cause error) error {
	lost, expired, err := c.losers(ctx, g)
	if err != nil {
		return err
	}
	rest := make([]int, 0, len(g.units))
	for _, unit := range g.units {
		if conflict := lost[unit]; conflict != store.NoConflict {
			c.fates[unit] = store.Fate{Verdict: store.Lost, Conflict: conflict}
		} else {
			rest = append(rest, unit)
		}
	}
	next := group{units: rest, sweep: g.sweep || expired}
	switch {
	case len(rest) == 0:
		return nil
	case len(lost) > 0 || next.sweep != g.sweep:
		c.todo = append(c.todo, next)
		return nil
	}
	// Nobody: the rival is gone again, or the units of the group are each other's.
	if next.tries = g.tries + 1; next.tries <= maxTries {
		c.todo = append(c.todo, next)
		return nil
	}
	return c.halve(next, func(unit int) error {
		c.fates[unit] = store.Fate{Verdict: store.Lost, Conflict: conflictOf(cause)}
		return nil
	})
}

// encode fills the pipeline with the transaction of g. What g does not need is left out.
func (c *committer) encode(g group) {
	p := c.pipe
	p.reset()
	p.order = append(p.order, g.units...)
	slices.SortFunc(p.order, func(a, b int) int { return compareDigests(c.units[a].Stream, c.units[b].Stream) })

	p.execute(begin)
	c.encodeClaims(g.sweep)
	c.encodeReplaced()
	c.encodeReleases()
	c.encodeRows()
	c.encodeSnapshots()
	p.execute(commit)
	p.sync()
}

// encodeRows copies the units by stream, the rows of each in the order of their decisions and so of their versions.
func (c *committer) encodeRows() {
	p := c.pipe
	if !slices.ContainsFunc(p.order, func(unit int) bool { return len(c.units[unit].Rows) > 0 }) {
		return // snapshots alone
	}
	p.beginCopy(copyRows)
	for _, unit := range p.order {
		for i := range c.units[unit].Rows {
			p.buf = appendRow(p.buf, &c.units[unit].Rows[i])
			p.rowEnd()
		}
	}
	p.endCopy()
}

func (c *committer) encodeClaims(sweep bool) {
	p := c.pipe
	for _, unit := range p.order {
		u := &c.units[unit]
		for i := range u.Take {
			p.claims = append(p.claims, claim{id: u.Take[i].Digest(), key: &u.Take[i], unit: u})
		}
	}
	if len(p.claims) == 0 {
		return
	}
	slices.SortFunc(p.claims, func(a, b claim) int { return compareDigests(a.id, b.id) })
	if sweep {
		p.execute(deleteExpired, digests(len(p.claims), func(i int) command.Digest { return p.claims[i].id }))
	}
	p.beginCopy(copyClaims)
	for i := range p.claims {
		p.buf = appendClaim(p.buf, &p.claims[i])
		p.rowEnd()
	}
	p.endCopy()
}

func (c *committer) encodeReplaced() {
	var replaced []store.Replaced
	for _, unit := range c.pipe.order {
		replaced = append(replaced, c.units[unit].Replaced...)
	}
	if len(replaced) == 0 {
		return
	}
	slices.SortFunc(replaced, func(a, b store.Replaced) int { return compareDigests(a.Request, b.Request) })
	topics, partitions, offsets := positions(len(replaced), func(i int) (command.Position, bool) {
		return replaced[i].Position, replaced[i].FromRecord
	})
	c.pipe.execute(moveAside,
		digests(len(replaced), func(i int) command.Digest { return replaced[i].Request }),
		digests(len(replaced), func(i int) command.Digest { return replaced[i].Aside }),
		topics, partitions, offsets)
}

func (c *committer) encodeReleases() {
	type release struct{ id, holder command.Digest }
	var releases []release
	for _, unit := range c.pipe.order {
		u := &c.units[unit]
		for i := range u.Release {
			releases = append(releases, release{u.Release[i].Digest(), u.Stream})
		}
	}
	if len(releases) == 0 {
		return
	}
	slices.SortFunc(releases, func(a, b release) int { return compareDigests(a.id, b.id) })
	c.pipe.execute(releaseKeys,
		digests(len(releases), func(i int) command.Digest { return releases[i].id }),
		digests(len(releases), func(i int) command.Digest { return releases[i].holder }))
}

func (c *committer) encodeSnapshots() {
	var snapshots []*store.Snapshot
	for _, unit := range c.pipe.order { // by stream
		if snapshot := c.units[unit].Snapshot; snapshot != nil {
			snapshots = append(snapshots, snapshot)
		}
	}
	if len(snapshots) == 0 {
		return
	}
	n := len(snapshots)
	c.pipe.execute(saveSnapshots,
		digests(n, func(i int) command.Digest { return snapshots[i].Stream }),
		array(pgtype.Int8OID, n, func(dst []byte, i int) []byte { return appendInt64(dst, snapshots[i].Version) }),
		array(pgtype.Int4OID, n, func(dst []byte, i int) []byte { return appendInt32(dst, int32(snapshots[i].Revision)) }),
		texts(n, func(i int) string { return snapshots[i].Aggregate.Tenant }),
		texts(n, func(i int) string { return snapshots[i].Aggregate.Type }),
		texts(n, func(i int) string { return snapshots[i].Aggregate.ID }),
		texts(n, func(i int) string { return string(snapshots[i].State) }))
}
