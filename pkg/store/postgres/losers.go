package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store"
)

// selectOutcomes reads as much of the rows under request keys as tells whether an attempt has lost.
var selectOutcomes = statement{"select_outcomes", `
	select a.n, j.outcome, j.topic_id, j.partition, j."offset"
	from unnest($1::uuid[]) with ordinality as a (asked, n)
	cross join lateral (select outcome, topic_id, partition, "offset" from journal where request = a.asked offset 0) as j`}

// losers reads what stands where the units of g wanted to write, after their transaction was rolled back, and returns
// what each loser lost. expired reports that a claim met a hold that is over. It runs on the committer's own
// connection: callers that wait for a second one could wait for each other.
func (c *committer) losers(ctx context.Context, g group) (lost map[int]store.Conflict, expired bool, err error) {
	lost = make(map[int]store.Conflict)
	if expired, err = c.lostKeys(ctx, g, lost); err != nil {
		return nil, false, err
	}
	if err := c.lostRequests(ctx, g, lost); err != nil {
		return nil, false, err
	}
	return lost, expired, c.lostVersions(ctx, g, lost)
}

func (c *committer) lostKeys(ctx context.Context, g group, lost map[int]store.Conflict) (expired bool, err error) {
	var ids []command.Digest
	var units []int
	for _, unit := range g.units {
		for _, key := range c.units[unit].Take {
			ids, units = append(ids, key.Digest()), append(units, unit)
		}
	}
	if len(ids) == 0 {
		return false, nil
	}
	err = readHolders(ctx, c.conn, ids, func(i int, _ store.Holder, over bool) {
		if over {
			expired = true
		} else {
			lost[units[i]] = store.KeyConflict
		}
	})
	return expired, err
}

func (c *committer) lostRequests(ctx context.Context, g group, lost map[int]store.Conflict) error {
	var requests []command.Digest
	var units []int
	making := make(map[int]int) // how many rows are still to be found that make way for the unit's
	for _, unit := range g.units {
		u := &c.units[unit]
		for i := range u.Rows {
			requests, units = append(requests, u.Rows[i].Request), append(units, unit)
		}
		if len(u.Replaced) > 0 {
			making[unit] = len(u.Replaced)
		}
	}
	asked := digests(len(requests), func(i int) command.Digest { return requests[i] })
	err := query(ctx, c.conn, selectOutcomes, func(values [][]byte) error {
		columns := columns{values: values}
		i := int(columns.int64() - 1)
		if columns.makesWay(&c.units[units[i]], requests[i]) {
			making[units[i]]--
		} else {
			lost[units[i]] = store.RequestConflict
		}
		return columns.err
	}, asked)
	for unit, missing := range making {
		if missing > 0 {
			lost[unit] = store.RequestConflict
		}
	}
	return err
}

// makesWay reads the outcome and the record of the row under a request's key, and reports whether it is the very row
// that u replaces.
func (c *columns) makesWay(u *store.Unit, request command.Digest) bool {
	outcome := c.outcome()
	fromRecord := c.values[0] != nil
	position := command.Position{TopicID: c.digest(), Partition: c.int32(), Offset: c.int64()}
	return !outcome.Final() && slices.ContainsFunc(u.Replaced, func(r store.Replaced) bool {
		return r.Request == request && r.FromRecord == fromRecord && (!fromRecord || r.Position == position)
	})
}

func (c *committer) lostVersions(ctx context.Context, g group, lost map[int]store.Conflict) error {
	var streams []command.Digest
	var units []int
	var first []int64
	for _, unit := range g.units {
		for i := range c.units[unit].Rows {
			if version := c.units[unit].Rows[i].Version; version != 0 {
				streams, units, first = append(streams, c.units[unit].Stream), append(units, unit), append(first, version)
				break
			}
		}
	}
	return readHeads(ctx, c.conn, streams, func(i int, head int64) {
		if head >= first[i] {
			lost[units[i]] = store.VersionConflict
		}
	})
}

// conflictOf names what was lost by the index that says so.
func conflictOf(err error) store.Conflict {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		switch pgErr.ConstraintName {
		case "journal_stream_version":
			return store.VersionConflict
		case "reservation_pkey":
			return store.KeyConflict
		}
	}
	return store.RequestConflict
}
