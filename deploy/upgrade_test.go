package deploy_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed54173720/writ/internal/embedded/postgres"
	"github.com/seed54173720/writ/internal/pgtest"
)

// From a version to itself, where no other is installed: the script's every step is taken all the same.
func TestUpgradeOfADataDirectoryKeepsWhatIsInIt(t *testing.T) {
	t.Parallel()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_upgrade")
	if len(found) == 0 {
		if os.Getenv("CI") == "true" || os.Getenv("WRIT_TEST_REQUIRE") == "1" {
			t.Fatal("pg_upgrade is not installed")
		}
		t.Skip("pg_upgrade is not installed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := pgtest.Dir(t)
	cfg := postgres.Config{Dir: filepath.Join(dir, "postgres"), Logger: slog.New(slog.DiscardHandler)}
	with := func(f func(*pgx.Conn)) {
		t.Helper()
		s, err := postgres.Start(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.Stop(context.WithoutCancel(ctx)); err != nil {
				t.Error(err)
			}
		}()
		conn, err := pgx.Connect(ctx, s.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		f(conn)
	}
	upgrade := func() (string, error) {
		old := filepath.Dir(found[0])
		if version, err := os.ReadFile(filepath.Join(cfg.Dir, "data", "PG_VERSION")); err == nil {
			old = "/usr/lib/postgresql/" + string(version[:len(version)-1]) + "/bin"
		}
		out, err := exec.CommandContext(ctx, "./upgrade-postgres.sh", dir, old, filepath.Dir(found[len(found)-1])).CombinedOutput()
		return string(out), err
	}

	with(func(conn *pgx.Conn) {
		if _, err := conn.Exec(ctx, `create table kept as select 7 as n`); err != nil {
			t.Fatal(err)
		}
		if out, err := upgrade(); err == nil {
			t.Errorf("upgraded under a server that runs: %s", out)
		}
	})
	if out, err := upgrade(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	with(func(conn *pgx.Conn) {
		var n int
		if err := conn.QueryRow(ctx, `select n from kept`).Scan(&n); err != nil || n != 7 {
			t.Errorf("after the upgrade: %d, %v", n, err)
		}
	})
}
