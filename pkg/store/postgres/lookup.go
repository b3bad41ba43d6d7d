package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// The look-ups go by index for each key that is asked for: "lateral (… offset 0)" forbids the planner to join in
// another way, which cost a hundred times as much where statistics were behind.
var (
	selectRequests = statement{"select_requests", `
		select a.n, j.*
		from unnest($1::uuid[]) with ordinality as a (asked, n)
		cross join lateral (select ` + rowColumns + ` from journal where request = a.asked offset 0) as j`}

	// The unique index read backwards: the first entry with a version is the last.
	selectHeads = statement{"select_heads", `
		select a.n, j.version
		from unnest($1::uuid[]) with ordinality as a (asked, n)
		cross join lateral (
			select version from journal where stream = a.asked and version is not null
			order by version desc nulls last limit 1) as j`}

	// Whether a hold is over is for the server's clock to say.
	selectHolders = statement{"select_holders", `
		select a.n, coalesce(r.expires_at <= clock_timestamp(), false), r.holder, r.holder_tenant, r.holder_type, r.holder_id, r.application
		from unnest($1::uuid[]) with ordinality as a (asked, n)
		cross join lateral (select * from reservation where id = a.asked offset 0) as r`}
)

// Requests implements store.Store. Rows that were moved aside are asked for only where the row under the request's
// key is another record's: what was moved made way for it.
func (s *Store) Requests(ctx context.Context, asked []store.Lookup) ([]store.Found, error) {
	found := make([]store.Found, len(asked))
	if len(asked) == 0 {
		return found, nil
	}
	err := s.read(ctx, "look up requests", func(conn *pgx.Conn) error {
		latest := digests(len(asked), func(i int) command.Digest { return asked[i].Request })
		var others []int
		if err := readRows(ctx, conn, latest, func(i int, row *store.Row) {
			found[i].Latest = row
			switch {
			case !asked[i].FromRecord:
			case row.Of(asked[i].Position):
				found[i].Own = row
			default:
				others = append(others, i)
			}
		}); err != nil || len(others) == 0 {
			return err
		}
		aside := digests(len(others), func(i int) command.Digest {
			return command.AsideDigest(asked[others[i]].Request, asked[others[i]].Position)
		})
		return readRows(ctx, conn, aside, func(i int, row *store.Row) {
			if row.Of(asked[others[i]].Position) {
				found[others[i]].Own = row
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Heads implements store.Store.
func (s *Store) Heads(ctx context.Context, streams []command.Digest) ([]int64, error) {
	heads := make([]int64, len(streams))
	err := s.read(ctx, "read heads", func(conn *pgx.Conn) error {
		return readHeads(ctx, conn, streams, func(i int, head int64) { heads[i] = head })
	})
	if err != nil {
		return nil, err
	}
	return heads, nil
}

// Holders implements store.Store. A hold that is over holds nothing. Keys of one digest count as one key: that both
// are ever asked for would take 2^64 of them.
func (s *Store) Holders(ctx context.Context, asked []keys.Key) ([]store.Holder, error) {
	holders := make([]store.Holder, len(asked))
	ids := make([]command.Digest, len(asked))
	for i := range asked {
		ids[i] = asked[i].Digest()
	}
	err := s.read(ctx, "read the holders of keys", func(conn *pgx.Conn) error {
		return readHolders(ctx, conn, ids, func(i int, holder store.Holder, over bool) {
			if !over {
				holders[i] = holder
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return holders, nil
}

// read lends f a connection and says in an error what was attempted.
func (s *Store) read(ctx context.Context, what string, f func(*pgx.Conn) error) error {
	err := s.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error { return f(conn.Conn()) })
	if err != nil {
		return fmt.Errorf("store: %s: %w", what, err)
	}
	return nil
}

// readRows calls f for each request that has a row, with its index.
func readRows(ctx context.Context, conn *pgx.Conn, requests []byte, f func(i int, row *store.Row)) error {
	return query(ctx, conn, selectRequests, func(values [][]byte) error {
		columns := columns{values: values}
		i := int(columns.int64() - 1)
		row := new(store.Row)
		columns.row(row)
		f(i, row)
		return columns.err
	}, requests)
}

// readHeads calls f for each stream that has a version, with its index.
func readHeads(ctx context.Context, conn *pgx.Conn, streams []command.Digest, f func(i int, head int64)) error {
	if len(streams) == 0 {
		return nil
	}
	return query(ctx, conn, selectHeads, func(values [][]byte) error {
		columns := columns{values: values}
		i := int(columns.int64() - 1)
		f(i, columns.int64())
		return columns.err
	}, digests(len(streams), func(i int) command.Digest { return streams[i] }))
}

// readHolders calls f for each key that has a row, with its index; over: by a hold that has ended.
func readHolders(ctx context.Context, conn *pgx.Conn, ids []command.Digest, f func(i int, holder store.Holder, over bool)) error {
	if len(ids) == 0 {
		return nil
	}
	return query(ctx, conn, selectHolders, func(values [][]byte) error {
		columns := columns{values: values}
		i := int(columns.int64() - 1)
		over := columns.bool()
		f(i, columns.holder(), over)
		return columns.err
	}, digests(len(ids), func(i int) command.Digest { return ids[i] }))
}

// holder reads the columns holder, holder_tenant, holder_type, holder_id and application.
func (c *columns) holder() store.Holder {
	return store.Holder{
		Held:      true,
		Stream:    c.digest(),
		Aggregate: command.Aggregate{Tenant: c.text(), Type: c.text(), ID: c.text()},
		Name:      c.text(),
	}
}
