package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed54173720/writ/internal/pgtest"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/dedupe"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
	"github.com/seed54173720/writ/pkg/store/postgres"
	"github.com/seed54173720/writ/pkg/store/storetest"
)

func TestMain(m *testing.M) {
	pgtest.Main(m, pgtest.Settings{"shared_buffers": "256MB", "max_wal_size": "8GB"}) // as the benchmark wants it
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Store {
		s, _ := open(t)
		return s
	})
}

func BenchmarkConformance(b *testing.B) {
	storetest.Benchmark(b, func(b *testing.B) storetest.Store {
		s, _ := open(b)
		return s
	})
}

// open returns a store in a schema of its own, and a session that sees the same tables.
func open(tb testing.TB) (*postgres.Store, *pgx.Conn) {
	tb.Helper()
	url, schema := pgtest.Schema(tb)
	return openAt(tb, postgres.Config{URL: url, Schema: schema}), connect(tb, url)
}

func openAt(tb testing.TB, cfg postgres.Config) *postgres.Store {
	tb.Helper()
	if err := postgres.Migrate(tb.Context(), cfg); err != nil {
		tb.Fatal(err)
	}
	s, err := postgres.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

func connect(tb testing.TB, url string) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func exec(tb testing.TB, conn *pgx.Conn, sql string, args ...any) {
	tb.Helper()
	if _, err := conn.Exec(tb.Context(), sql, args...); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

// unit returns a unit of one commit of the brand, which takes the keys.
func unit(id string, version int64, take ...keys.Key) store.Unit {
	a := command.Aggregate{Type: "brand", ID: id}
	requestID := id + " at " + string(rune('0'+version))
	return store.Unit{
		Stream:    a.Stream(),
		Aggregate: a,
		Take:      take,
		Rows: []store.Row{{
			Recorded:  dedupe.Recorded{Outcome: command.Committed},
			Request:   command.RequestDigest(a.Type, a.Tenant, requestID),
			Stream:    a.Stream(),
			Version:   version,
			Time:      time.Date(2026, 11, 30, 12, 0, int(version), 0, time.UTC),
			Type:      "catalog.brand.create",
			Aggregate: a,
			RequestID: requestID,
			Caller:    "test",
			Events:    []command.Event{{Type: "created", Revision: 1, Data: []byte(`{"name":"` + id + `"}`)}},
			Taken:     take,
		}},
	}
}

func name(s string) keys.Key { return keys.Key{Namespace: "brand-name", Name: s} }

// commit commits units of which every one must be done.
func commit(tb testing.TB, s *postgres.Store, units ...store.Unit) {
	tb.Helper()
	fates, err := s.Commit(tb.Context(), units)
	if err != nil {
		tb.Fatal(err)
	}
	for i, fate := range fates {
		if fate.Verdict != store.Done {
			tb.Fatalf("unit %d of %s: got %+v, want it done", i, units[i].Aggregate, fate)
		}
	}
}

// eventually polls until done, or fails the test after ten seconds.
func eventually(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("waited in vain: %s", what)
		}
	}
}
