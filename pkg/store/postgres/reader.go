package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// The statements of store.Reader. Their answers are read row by row as the server sends them, and the server sends
// no faster than they are read.
var (
	// Commits stand in the order of their versions, whatever the clocks of their processors said; refusals are put
	// between them by time.
	selectHistory = statement{"select_history", `
		select ` + rowColumns + ` from (
			select *, case when version is null then decided_at else max(decided_at) filter (where version is not null)
				over (order by version nulls last) end as place
			from journal where stream = $1) as j
		order by place, version nulls first`}

	selectJournal      = statement{"select_journal", `select ` + rowColumns + ` from journal order by stream, version nulls first, decided_at`}
	selectReservations = statement{"select_reservations", `
		select system, tenant, namespace, name, holder, holder_tenant, holder_type, holder_id, application
		from reservation where expires_at is null or expires_at > clock_timestamp() order by id`}
	selectSnapshots = statement{"select_snapshots", `
		select stream, tenant, aggregate_type, aggregate_id, version, revision, state from snapshot order by stream`}
)

// History implements store.Reader.
func (s *Store) History(ctx context.Context, stream command.Digest, f func(*store.Row) error) error {
	return s.readRows(ctx, "read a history", selectHistory, f, stream[:])
}

// Journal implements store.Reader.
func (s *Store) Journal(ctx context.Context, f func(*store.Row) error) error {
	return s.readRows(ctx, "read the journal", selectJournal, f)
}

func (s *Store) readRows(ctx context.Context, what string, statement statement, f func(*store.Row) error, params ...[]byte) error {
	return s.stream(ctx, what, statement, func(columns *columns) error {
		row := new(store.Row)
		if columns.row(row); columns.err != nil {
			return columns.err
		}
		return f(row)
	}, params...)
}

// Reservations implements store.Reader. A hold that is over is left out.
func (s *Store) Reservations(ctx context.Context, f func(keys.Key, store.Holder) error) error {
	return s.stream(ctx, "read reservations", selectReservations, func(columns *columns) error {
		key := keys.Key{System: columns.bool(), Tenant: columns.text(), Namespace: columns.text(), Name: columns.text()}
		holder := columns.holder()
		if columns.err != nil {
			return columns.err
		}
		return f(key, holder)
	})
}

// Snapshots implements store.Reader.
func (s *Store) Snapshots(ctx context.Context, f func(*store.Snapshot) error) error {
	return s.stream(ctx, "read snapshots", selectSnapshots, func(columns *columns) error {
		snapshot := &store.Snapshot{
			Stream:    columns.digest(),
			Aggregate: command.Aggregate{Tenant: columns.text(), Type: columns.text(), ID: columns.text()},
			Version:   columns.int64(),
			Revision:  int(columns.int32()),
			State:     []byte(columns.text()),
		}
		if columns.err != nil {
			return columns.err
		}
		return f(snapshot)
	})
}

// readAtLeisure lets the planner read a table from end to end and sort it in a fair amount of memory, which sessions
// otherwise forbid; a plan is made for the table as it is.
const readAtLeisure = `set local enable_seqscan = on; set local work_mem = '64MB'; set local plan_cache_mode = force_custom_plan`

// stream runs a statement over a whole table and calls f for each row. If f fails, the rest of the answer is not
// read: the connection is closed instead.
func (s *Store) stream(ctx context.Context, what string, statement statement, f func(*columns) error, params ...[]byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var stop error
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, readAtLeisure, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		return query(ctx, tx.Conn(), statement, func(values [][]byte) error {
			if stop = f(&columns{values: values}); stop != nil {
				cancel()
			}
			return stop
		}, params...)
	})
	if stop != nil {
		err = stop
	}
	if err != nil {
		return fmt.Errorf("store: %s: %w", what, err)
	}
	return nil
}
