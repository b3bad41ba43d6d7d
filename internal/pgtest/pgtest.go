// Package pgtest gives tests a real PostgreSQL server.
//
// Most tests want [Schema]: an empty schema of their own on a server that all tests of the binary
// share. Tests that stop or kill the server take one of their own from [Server]. A package that
// uses the shared server ends it in its TestMain:
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// The shared server is started by the first test that asks. Where no PostgreSQL is installed the
// tests skip; CI=true or WRIT_TEST_REQUIRE=1 makes a missing server a failure.
// WRIT_TEST_DATABASE_URL names a server to use in place of the shared one; its role MUST be
// allowed to create schemas.
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed54173720/writ/internal/embedded/postgres"
)

// external names the variable with the URL of a server to use in place of the shared one.
const external = "WRIT_TEST_DATABASE_URL"

// patience bounds what a server may take to start or to stop.
const patience = time.Minute

// Settings are server settings by name, on top of those of a small server.
type Settings map[string]string

// Fast gives up what only a power cut would show. Tests that kill or stop a server MUST NOT use
// it, lest they prove less than they claim.
var Fast = Settings{"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}

// small suits many servers on one machine, one for each package under test.
var small = Settings{
	"shared_buffers":  "64MB",
	"wal_buffers":     "4MB",
	"max_wal_size":    "1GB",
	"min_wal_size":    "80MB",
	"max_connections": "200",
}

// shared is the server of this test binary.
var shared struct {
	once     sync.Once
	settings []Settings
	dir      string
	server   *postgres.Server
	url      string
	err      error
}

// Main runs the tests of a package, ends the shared server and exits. Settings are the shared
// server's.
func Main(m *testing.M, settings ...Settings) {
	shared.settings = settings
	code := m.Run()
	if shared.server != nil {
		if err := stop(shared.server, shared.dir); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// URL is the connection string of the shared server's database. Tests MUST NOT leave anything
// behind there; [Schema] sees to that.
func URL(tb testing.TB) string {
	tb.Helper()
	shared.once.Do(startShared)
	if shared.err != nil {
		unavailable(tb, shared.err)
	}
	return shared.url
}

// Schema makes an empty schema for this test, dropped when it ends, and returns its name and a
// connection string that has it as search path.
func Schema(tb testing.TB) (connString, name string) {
	tb.Helper()
	base := URL(tb)
	name = "t_" + strings.ToLower(rand.Text())
	exec(tb, base, `create schema `+name)
	tb.Cleanup(func() { exec(tb, base, `drop schema `+name+` cascade`) })

	u, err := url.Parse(base)
	if err != nil {
		tb.Fatalf("pgtest: %s is not a URL: %v", external, err)
	}
	query := u.Query()
	query.Set("search_path", name)
	u.RawQuery = query.Encode()
	return u.String(), name
}

// Server starts a server of this test's own, which it may stop, kill and restart; it ends with
// the test.
func Server(tb testing.TB, settings ...Settings) *postgres.Server {
	tb.Helper()
	dir, err := throwAwayDir()
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	server, err := start(dir, settings)
	if err != nil {
		_ = os.RemoveAll(dir)
		unavailable(tb, err)
	}
	tb.Cleanup(func() {
		if err := stop(server, dir); err != nil {
			tb.Logf("pgtest: %v", err) // the test may have ended it in its own way
		}
	})
	return server
}

// Dir is a throw-away directory that the user of an embedded server can enter even when the
// tests run as root, which testing's TempDir is not.
func Dir(tb testing.TB) string {
	tb.Helper()
	dir, err := throwAwayDir()
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Errorf("pgtest: remove %s: %v", dir, err)
		}
	})
	return dir
}

func startShared() {
	if shared.url = os.Getenv(external); shared.url != "" {
		shared.err = printVersion(shared.url)
		return
	}
	if shared.dir, shared.err = throwAwayDir(); shared.err != nil {
		return
	}
	if shared.server, shared.err = start(shared.dir, shared.settings); shared.err != nil {
		_ = os.RemoveAll(shared.dir)
		return
	}
	shared.url = shared.server.URL()
	shared.err = printVersion(shared.url)
}

func start(dir string, settings []Settings) (*postgres.Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	merged := maps.Clone(small)
	for _, more := range settings {
		maps.Copy(merged, more)
	}
	return postgres.Start(ctx, postgres.Config{
		Dir:      dir + "/postgres",
		Settings: merged,
		Logger:   slog.New(slog.DiscardHandler),
	})
}

func stop(server *postgres.Server, dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(server.Stop(ctx), os.RemoveAll(dir))
}

// Version says which server the tests run on: the one in the environment, else the one that is
// installed.
func Version() (string, error) {
	if connString := os.Getenv(external); connString != "" {
		return versionOf(connString)
	}
	return postgres.Installed()
}

// printVersion says once per binary which server its tests ran on.
func printVersion(connString string) error {
	version, err := versionOf(connString)
	if err == nil {
		fmt.Println("pgtest:", version)
	}
	return err
}

func versionOf(connString string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, connString)
	if err != nil {
		return "", fmt.Errorf("connect to the test server: %w", err)
	}
	defer conn.Close(ctx)
	var version string
	if err := conn.QueryRow(ctx, `select version()`).Scan(&version); err != nil {
		return "", fmt.Errorf("read the test server's version: %w", err)
	}
	return version, nil
}

// unavailable skips the test where there is no server to run it on, unless one is required.
func unavailable(tb testing.TB, err error) {
	tb.Helper()
	required := os.Getenv("CI") == "true" || os.Getenv("WRIT_TEST_REQUIRE") == "1"
	if errors.Is(err, postgres.ErrNotInstalled) && !required {
		tb.Skipf("pgtest: %v", err)
	}
	tb.Fatalf("pgtest: %v", err)
}

func exec(tb testing.TB, connString, sql string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, connString)
	if err != nil {
		tb.Errorf("pgtest: connect: %v", err)
		return
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		tb.Errorf("pgtest: %s: %v", sql, err)
	}
}
