package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store"
)

// selectStreams reads snapshots and the commits behind them at one instant. Of a snapshot the state comes with the
// first row only.
var selectStreams = statement{"select_streams", `
	select a.n, s.snapshot_version, s.tenant, s.aggregate_type, s.aggregate_id,
		case when j.version is null or j.version = s.snapshot_version + 1 then s.state end, j.*
	from unnest($1::uuid[], $2::int4[]) with ordinality as a (asked, asked_revision, n)
	left join lateral (
		select version as snapshot_version, tenant, aggregate_type, aggregate_id, state
		from snapshot where stream = a.asked and revision = a.asked_revision offset 0) as s on true
	left join lateral (
		select ` + rowColumns + ` from journal
		where stream = a.asked and version > coalesce(s.snapshot_version, 0) order by version offset 0) as j on true
	where s.snapshot_version is not null or j.version is not null`}

// Load implements store.Store. A version that is missing from a stream is an error that names the aggregate and the
// gap: the journal was tampered with.
func (s *Store) Load(ctx context.Context, asked []store.Asked) ([]store.Stream, error) {
	streams := make([]store.Stream, len(asked))
	if len(asked) == 0 {
		return streams, nil
	}
	ids := digests(len(asked), func(i int) command.Digest { return asked[i].Stream })
	revisions := array(pgtype.Int4OID, len(asked), func(dst []byte, i int) []byte { return appendInt32(dst, int32(asked[i].Revision)) })
	err := s.read(ctx, "load aggregates", func(conn *pgx.Conn) error {
		return query(ctx, conn, selectStreams, func(values [][]byte) error {
			columns := columns{values: values}
			i := int(columns.int64() - 1)
			columns.stream(&streams[i], asked[i])
			return columns.err
		}, ids, revisions)
	})
	if err != nil {
		return nil, err
	}
	for i := range streams { // the plan keeps the order in practice; SQL does not promise it
		slices.SortFunc(streams[i].Tail, func(a, b store.Row) int { return cmp.Compare(a.Version, b.Version) })
	}
	return streams, nil
}

// stream adds one row of selectStreams to what is known of its stream.
func (c *columns) stream(stream *store.Stream, asked store.Asked) {
	hasSnapshot := c.values[0] != nil
	snapshot := store.Snapshot{
		Stream:    asked.Stream,
		Revision:  asked.Revision,
		Version:   c.int64(),
		Aggregate: command.Aggregate{Tenant: c.text(), Type: c.text(), ID: c.text()},
	}
	state := c.next(0)
	if hasSnapshot && stream.Snapshot == nil {
		stream.Snapshot = &snapshot
	}
	if state != nil {
		stream.Snapshot.State = slices.Clone(state)
	}
	if c.values[0] == nil { // no version: nothing is behind the snapshot
		return
	}
	stream.Tail = append(stream.Tail, store.Row{})
	c.row(&stream.Tail[len(stream.Tail)-1])
}
