// Package postgres keeps the journal, reservations and snapshots of a context in one Postgres schema. It is the one
// package that knows SQL and SQLSTATEs; docs/journal.md describes the tables for people who read them.
//
// A group of units is one transaction and one round trip (see Commit); every read is one statement for many lanes.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed54173720/writ/pkg/store"
)

// Config says where a context is stored.
type Config struct {
	URL     string       // of the database, as libpq reads it; it MUST lead to the primary
	Schema  string       // of the context, 1 to 63 bytes
	Writers int          // Commits at a time; reads have 4 connections beside them. Default 2
	Logger  *slog.Logger // Default: discard
}

// readers is how many connections are kept for reads beside those of the writers.
const readers = 4

func (c *Config) validate() error {
	var faults []error
	if c.URL == "" {
		faults = append(faults, errors.New("url is empty: name the database, as in postgres://user@host/database"))
	}
	if len(c.Schema) == 0 || len(c.Schema) > 63 {
		faults = append(faults, fmt.Errorf("schema %q: must be 1 to 63 bytes, is %d", c.Schema, len(c.Schema)))
	}
	if c.Writers < 0 {
		faults = append(faults, fmt.Errorf("writers %d: must not be negative", c.Writers))
	}
	if c.Writers == 0 {
		c.Writers = 2
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return errors.Join(faults...)
}

// sessionSettings are wished for by every session. The first three are promises, which Check looks at; the others
// keep plans that were made while tables were small from outliving that: every statement here goes by an index.
var sessionSettings = map[string]string{
	"idle_in_transaction_session_timeout": "5s",
	"lock_timeout":                        "1s",
	"synchronous_commit":                  "on",
	"tcp_user_timeout":                    "10s",
	"plan_cache_mode":                     "force_generic_plan",
	"enable_seqscan":                      "off",
	"jit":                                 "off",
}

// Store is a context's schema. It keeps store.Store and store.Reader.
type Store struct {
	pool     *pgxpool.Pool
	schema   string
	log      *slog.Logger
	pipes    chan *pipeline // idle ones; as many as writers
	postgres *pgx.ConnConfig
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Reader = (*Store)(nil)
)

// Open returns the store of cfg. It connects when it is first used: call Check to know at once whether it can be.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	pool, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	prepareSession(pool.ConnConfig, cfg.Schema)
	if pool.ConnConfig.ValidateConnect == nil {
		// After a failover a list of hosts may lead to a standby, whose reads would be of the past.
		pool.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	pool.MaxConns = int32(cfg.Writers + readers)
	pool.BeforeConnect = func(_ context.Context, session *pgx.ConnConfig) error { return renew(session, cfg.URL) }
	s := &Store{
		schema:   cfg.Schema,
		log:      cfg.Logger,
		pipes:    make(chan *pipeline, cfg.Writers),
		postgres: pool.ConnConfig,
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return s, nil
}

// renew reads the files again that the URL names, certificates and passwords (sslrootcert, sslcert, sslkey, passfile):
// they are renewed while the processor runs.
func renew(session *pgx.ConnConfig, url string) error {
	fresh, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	session.Password, session.TLSConfig, session.Fallbacks = fresh.Password, fresh.TLSConfig, fresh.Fallbacks
	return nil
}

// prepareSession gives sessions made of cfg their schema and settings.
func prepareSession(cfg *pgx.ConnConfig, schema string) {
	for name, value := range sessionSettings {
		cfg.RuntimeParams[name] = value
	}
	cfg.RuntimeParams["search_path"] = pgx.Identifier{schema}.Sanitize()
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "writ"
	}
	// A peer that is gone without a word is noticed in about 15 seconds, not in hours.
	dialer := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 2}}
	cfg.DialFunc = dialer.DialContext
}

// Close ends all sessions. It waits for the calls under way.
func (s *Store) Close() { s.pool.Close() }
