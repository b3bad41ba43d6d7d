package kernel_test

import (
	"testing"

	"github.com/seed54173720/writ/internal/pgtest"
	"github.com/seed54173720/writ/pkg/store/postgres"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.Fast) }

func TestMemoryEqualsPostgres(t *testing.T) {
	t.Parallel()
	url, schema := pgtest.Schema(t)
	config := postgres.Config{URL: url, Schema: schema}
	if err := postgres.Migrate(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	s, err := postgres.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	testStoresAgree(t, s)
}
