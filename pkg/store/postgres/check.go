package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// promised are the settings without which a stopped processor would hold others up, or an answer would not be
// durable.
var promised = []struct{ name, value, why string }{
	{"idle_in_transaction_session_timeout", "5s", "a processor that is stopped in mid-commit would hold its locks for ever"},
	{"lock_timeout", "1s", "one blocked aggregate would hold up its whole group"},
	{"synchronous_commit", "on", "an answered command could be lost with the server"},
}

// ErrUnreachable is why Check and Migrate fail where the server does not answer, or does not let the role in.
var ErrUnreachable = errors.New("the database cannot be reached")

// Check reports everything about the database that keeps this build from working with it, each fault with how to mend
// it, joined into one error.
func (s *Store) Check(ctx context.Context) error {
	cfg := s.postgres.Copy()
	cfg.ValidateConnect = nil // a read-only server is one of the faults to be named
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("store: check: %w: %w", ErrUnreachable, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))

	var faults []error
	for _, check := range []func(context.Context, *pgx.Conn) ([]error, error){s.checkVersion, checkSettings, checkWritable} {
		found, err := check(ctx, conn)
		if err != nil {
			return fmt.Errorf("store: check: %w", err)
		}
		faults = append(faults, found...)
	}
	if len(faults) > 0 {
		return fmt.Errorf("store: the database cannot be used:\n%w", errors.Join(faults...))
	}
	return nil
}

// selectVersion reads goose's table: the schema version that stands.
const selectVersion = `select coalesce(max(version_id), 0) from goose_db_version where is_applied`

func (s *Store) checkVersion(ctx context.Context, conn *pgx.Conn) ([]error, error) {
	want, err := latestVersion()
	if err != nil {
		return nil, err
	}
	var got int64
	err = conn.QueryRow(ctx, selectVersion).Scan(&got)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == undefinedTable {
		if err := s.rights(ctx, conn); err != nil {
			return []error{err}, nil // a schema that may not be used looks like one that is not there
		}
		err = nil
	}
	switch {
	case err != nil:
		return nil, err
	case got < want:
		return []error{fmt.Errorf("schema %q is at version %d, this build needs %d: run the migrations (processor migrate)", s.schema, got, want)}, nil
	case got > want:
		return []error{fmt.Errorf("schema %q is at version %d, this build knows %d: use the build that migrated it, or a newer one", s.schema, got, want)}, nil
	}
	return nil, nil
}

func checkSettings(ctx context.Context, conn *pgx.Conn) ([]error, error) {
	var faults []error
	for _, p := range promised {
		var got string
		if err := conn.QueryRow(ctx, `select current_setting($1)`, p.name).Scan(&got); err != nil {
			return nil, err
		}
		if got != p.value {
			faults = append(faults, fmt.Errorf("%s is %s in this session, must be %s, or %s: take it out of the URL, let a proxy pass it, or run: alter role %s in database %s set %s = '%s'",
				p.name, got, p.value, p.why, pgx.Identifier{conn.Config().User}.Sanitize(), pgx.Identifier{conn.Config().Database}.Sanitize(), p.name, p.value))
		}
	}
	return faults, nil
}

func checkWritable(ctx context.Context, conn *pgx.Conn) ([]error, error) {
	var standby, readOnly bool
	if err := conn.QueryRow(ctx, `select pg_is_in_recovery(), current_setting('transaction_read_only')::bool`).Scan(&standby, &readOnly); err != nil {
		return nil, err
	}
	switch {
	case standby:
		return []error{fmt.Errorf("server %s is a standby: let the URL lead to the primary", conn.Config().Host)}, nil
	case readOnly:
		return []error{fmt.Errorf("sessions of role %s are read-only: alter role or database reset default_transaction_read_only", conn.Config().User)}, nil
	}
	return nil, nil
}

// System is the identity of a database's history. Another one means another past: what was read before may not be
// there.
type System struct {
	Identifier uint64 // of the cluster, given by initdb
	Timeline   uint32 // of its write-ahead log; a failover or a restore begins another
}

// selectSystem asks the log for the timeline; the control file names the one of the last checkpoint only.
const selectSystem = `select system_identifier, ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint from pg_control_system()`

// SystemID returns whose past this database has.
func (s *Store) SystemID(ctx context.Context) (System, error) {
	var identifier, timeline int64
	if err := s.pool.QueryRow(ctx, selectSystem).Scan(&identifier, &timeline); err != nil {
		return System{}, fmt.Errorf("store: read the system identifier: %w", err)
	}
	return System{Identifier: uint64(identifier), Timeline: uint32(timeline)}, nil
}
