package postgres_test

import (
	"testing"

	"github.com/seed54173720/writ/internal/pgtest"
	"github.com/seed54173720/writ/pkg/store/postgres"
	"github.com/seed54173720/writ/pkg/store/storetest"
)

func TestMain(m *testing.M) {
	pgtest.Main(m, pgtest.Settings{"shared_buffers": "256MB", "max_wal_size": "8GB"}) // as the benchmark wants it
}

// open returns a store in an empty schema of its own.
func open(tb testing.TB) *postgres.Store {
	tb.Helper()
	url, schema := pgtest.Schema(tb)
	return openAt(tb, postgres.Config{URL: url, Schema: schema})
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

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Store { return open(t) })
}

func TestMigratedSchemaPassesTheCheck(t *testing.T) {
	t.Parallel()
	if err := open(t).Check(t.Context()); err != nil {
		t.Error(err)
	}
}
