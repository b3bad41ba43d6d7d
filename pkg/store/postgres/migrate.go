package postgres

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the advisory lock that processors which migrate at the same time queue at. It is one for the whole
// database, since the settings of the role are one row for all schemas.
const migrationLock = 0x77726974 // "writ"

// Migrate creates the schema of cfg where it is missing and brings it to the version of this build. It may be called
// by many at once; who comes second finds nothing to do. It also sets the role's session settings (see Check).
func Migrate(ctx context.Context, cfg Config) error {
	if err := migrate(ctx, cfg); err != nil {
		return fmt.Errorf("store: migrate schema %s: %w", cfg.Schema, err)
	}
	return nil
}

func migrate(ctx context.Context, cfg Config) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	session, err := pgx.ParseConfig(cfg.URL)
	if err != nil {
		return err
	}
	prepareSession(session, cfg.Schema)
	session.RuntimeParams["lock_timeout"] = "0" // to queue at the lock, and behind commits under way
	conn, err := pgx.ConnectConfig(ctx, session)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) // which gives up the lock
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", int64(migrationLock)); err != nil {
		return err
	}
	if err := ensureSchema(ctx, conn, cfg.Schema); err != nil {
		return err
	}

	db := stdlib.OpenDB(*session)
	defer db.Close()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	done, err := provider.Up(ctx)
	if err != nil {
		return err
	}
	for _, m := range done {
		cfg.Logger.Info("schema migrated", "schema", cfg.Schema, "version", m.Source.Version)
	}
	return nil
}

// ensureSchema asks first: "if not exists" wants the right to create schemas even where it has nothing to do.
func ensureSchema(ctx context.Context, conn *pgx.Conn, schema string) error {
	var exists bool
	if err := conn.QueryRow(ctx, `select exists (select from pg_namespace where nspname = $1)`, schema).Scan(&exists); err != nil || exists {
		return err
	}
	_, err := conn.Exec(ctx, "create schema "+pgx.Identifier{schema}.Sanitize())
	return err
}

// latestVersion is the schema version that this build works with.
func latestVersion() (int64, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return 0, err
	}
	var latest int64
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return 0, err
		}
		latest = max(latest, version)
	}
	return latest, nil
}
