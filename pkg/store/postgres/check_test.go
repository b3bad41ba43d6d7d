package postgres_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/seed54173720/writ/internal/pgtest"
	"github.com/seed54173720/writ/pkg/store/postgres"
)

func TestMigratedSchemaPassesTheCheck(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCheckNamesEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	url, schema := pgtest.Schema(t)
	s, err := postgres.Open(t.Context(), postgres.Config{URL: url + "&default_transaction_read_only=on", Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Check(t.Context())
	for _, want := range []string{"run the migrations", "read-only"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want it to say %q", err, want)
		}
	}
}

func TestCheckRefusesASchemaOfANewerBuild(t *testing.T) {
	t.Parallel()
	s, conn := open(t)
	exec(t, conn, `insert into goose_db_version (version_id, is_applied) values (99999, true)`)
	if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "at version 99999") {
		t.Errorf("got error %v, want it to name version 99999", err)
	}
}

func TestManyMayMigrateAtOnce(t *testing.T) {
	t.Parallel()
	url, schema := pgtest.Schema(t)
	cfg := postgres.Config{URL: url, Schema: schema + "_new"} // not there yet
	conn := connect(t, url)
	defer exec(t, conn, `drop schema `+cfg.Schema+` cascade`)
	var migrating sync.WaitGroup
	for range 4 {
		migrating.Go(func() {
			if err := postgres.Migrate(t.Context(), cfg); err != nil {
				t.Error(err)
			}
		})
	}
	migrating.Wait()
	var applied int
	if err := conn.QueryRow(t.Context(), `select count(*) from `+cfg.Schema+`.goose_db_version where version_id = 1`).Scan(&applied); err != nil || applied != 1 {
		t.Errorf("got version 1 applied %d times and error %v, want once", applied, err)
	}
}

func TestMigrationSetsTheRole(t *testing.T) {
	t.Parallel()
	url, schema := pgtest.Schema(t)
	if err := postgres.Migrate(t.Context(), postgres.Config{URL: url, Schema: schema}); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, url)
	for setting, want := range map[string]string{
		"idle_in_transaction_session_timeout": "5s",
		"lock_timeout":                        "1s",
		"synchronous_commit":                  "on",
	} {
		var got string
		if err := conn.QueryRow(t.Context(), `select current_setting($1)`, setting).Scan(&got); err != nil || got != want {
			t.Errorf("%s: got %q and error %v, want %q", setting, got, err, want)
		}
	}
}

func TestSystemHasAnIdentity(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	system, err := s.SystemID(t.Context())
	if err != nil || system.Identifier == 0 || system.Timeline == 0 {
		t.Errorf("got %+v and error %v, want both set", system, err)
	}
}

func TestConfigFaultsAreNamedTogether(t *testing.T) {
	t.Parallel()
	_, err := postgres.Open(t.Context(), postgres.Config{Schema: strings.Repeat("s", 64), Writers: -1})
	for _, want := range []string{"url", "schema", "writers"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want it to name %s", err, want)
		}
	}
}
