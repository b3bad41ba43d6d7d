package postgres_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed54173720/writ/internal/embedded/postgres"
	"github.com/seed54173720/writ/internal/pgtest"
)

// childDir in the environment makes this binary serve that directory until it is killed.
const childDir = "WRIT_TEST_POSTGRES_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
	}
	required := os.Getenv("CI") == "true" || os.Getenv("WRIT_TEST_REQUIRE") == "1"
	text, err := postgres.Installed()
	if err != nil && !required {
		fmt.Println("tests skipped:", err)
		os.Exit(0)
	}
	fmt.Println(text)
	pgtest.Main(m)
}

func child(dir string) {
	server, err := postgres.Start(context.Background(), config(dir))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(server.URL())
	select {}
}

func config(dir string) postgres.Config {
	return postgres.Config{Dir: dir, Settings: map[string]string{"shared_buffers": "32MB", "max_wal_size": "256MB", "min_wal_size": "64MB"}}
}

// start serves dir until the test ends; the test may stop the server before.
func start(t *testing.T, dir string) *postgres.Server {
	t.Helper()
	server, err := postgres.Start(deadline(t), config(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Kill() })
	return server
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func connect(t *testing.T, connString string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(deadline(t), connString)
	if err != nil {
		t.Fatalf("connect to %s: %v", connString, err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func query[T any](t *testing.T, connString, sql string) (value T) {
	t.Helper()
	if err := connect(t, connString).QueryRow(deadline(t), sql).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// write commits a row and want checks that it is there.
func write(t *testing.T, connString string) {
	t.Helper()
	if _, err := connect(t, connString).Exec(deadline(t), `create table kept as select 7 as n`); err != nil {
		t.Fatal(err)
	}
}

func wantKept(t *testing.T, connString string) {
	t.Helper()
	if got := query[int](t, connString, `select n from kept`); got != 7 {
		t.Errorf("kept row = %d, want 7", got)
	}
}

func TestStoppedServerComesBackWithItsDataAndURL(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(pgtest.Dir(t), "pg")
	first := start(t, dir)
	write(t, first.URL())
	if err := first.Stop(deadline(t)); err != nil {
		t.Fatalf("stop: %v", err)
	}
	if err := first.Stop(deadline(t)); err != nil {
		t.Errorf("second stop: %v, want nil", err)
	}
	second := start(t, dir)
	if second.URL() != first.URL() {
		t.Errorf("URL of the second start = %s, want the first's %s", second.URL(), first.URL())
	}
	wantKept(t, second.URL())
	if err := second.Restart(deadline(t)); err != nil {
		t.Fatalf("restart: %v", err)
	}
	wantKept(t, first.URL())
}

func TestKilledServerRecovers(t *testing.T) {
	t.Parallel()
	server := start(t, filepath.Join(pgtest.Dir(t), "pg"))
	write(t, server.URL())
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-server.Done():
	default:
		t.Error("done is open after kill")
	}
	if err := server.Restart(deadline(t)); err != nil {
		t.Fatal(err)
	}
	wantKept(t, server.URL())
}

// The process that serves dies without a chance to stop anything: what it left must not stay,
// and what it committed must be there.
func TestServerOfAKilledProcessEndsAndIsServedAgain(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(pgtest.Dir(t), "pg")
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), childDir+"="+dir)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	connString, _ := bufio.NewReader(out).ReadString('\n')
	connString = strings.TrimSpace(connString)
	write(t, connString)
	postmaster := pidOf(t, dir)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if runtime.GOOS == "linux" { // elsewhere the next start ends it
		eventually(t, "the server is gone", func() bool { return syscall.Kill(postmaster, 0) == syscall.ESRCH })
	}
	server := start(t, dir)
	wantKept(t, server.URL())
	if server.URL() != connString {
		t.Errorf("URL = %s, want %s as before the kill", server.URL(), connString)
	}
}

func TestServerLeftRunningIsEnded(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("finds the server's program in /proc")
	}
	dir := filepath.Join(pgtest.Dir(t), "pg")
	first := start(t, dir)
	write(t, first.URL())
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pidOf(t, dir)))
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Stop(deadline(t)); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(first.URL())
	if err != nil {
		t.Fatal(err)
	}
	orphan := exec.Command(program, "-D", filepath.Join(dir, "data"), "-p", u.Port(), "-c", "unix_socket_directories=")
	orphan.Dir = "/"
	orphan.SysProcAttr = asOwnerOf(t, filepath.Join(dir, "data"))
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = orphan.Wait(); close(ended) }()
	t.Cleanup(func() { _ = orphan.Process.Kill(); <-ended })
	eventually(t, "the orphan serves", func() bool {
		conn, err := pgx.Connect(deadline(t), first.URL())
		return err == nil && conn.Close(context.Background()) == nil
	})
	second := start(t, dir)
	wantKept(t, second.URL())
	select {
	case <-ended:
	default:
		t.Error("the orphan still runs")
	}
}

// In a container, process numbers are small and soon taken again: the lock file of a dead server
// then names a living process of its user.
func TestLockFileNamingAnotherProcessIsNoObstacle(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(pgtest.Dir(t), "pg")
	server := start(t, dir)
	write(t, server.URL())
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "data", "postmaster.pid")
	bystander := exec.Command("sleep", "600")
	bystander.SysProcAttr = asOwnerOf(t, file)
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bystander.Process.Kill(); _ = bystander.Wait() })
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n")
	if err := os.WriteFile(file, fmt.Appendf(nil, "%d\n%s", bystander.Process.Pid, rest), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(deadline(t)); err != nil {
		t.Fatal(err)
	}
	wantKept(t, server.URL())
	if err := bystander.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process that the lock file named was ended: %v", err)
	}
}

func TestDirectoryIsServedOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(pgtest.Dir(t), "pg")
	server := start(t, dir)
	_, err := postgres.Start(deadline(t), config(dir))
	if !errors.Is(err, postgres.ErrInUse) {
		t.Fatalf("second start: %v, want ErrInUse", err)
	}
	for _, want := range []string{dir, strconv.Itoa(os.Getpid())} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %s", err, want)
		}
	}
	query[int](t, server.URL(), `select 1`) // the first is none the worse
}

func TestUnenterableDirectoryIsNamed(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("runs the server as another user only when run as root")
	}
	closed := filepath.Join(pgtest.Dir(t), "home")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := postgres.Start(deadline(t), config(filepath.Join(closed, "writ", "pg")))
	if err == nil || !strings.Contains(err.Error(), "cannot enter directory "+closed+":") {
		t.Errorf("start below a directory of mode 0700: %v, want an error that names %s", err, closed)
	}
}

func TestTakenPortIsReplacedUnlessItWasAskedFor(t *testing.T) {
	t.Parallel()
	holder := start(t, filepath.Join(pgtest.Dir(t), "pg"))
	u, err := url.Parse(holder.URL())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(pgtest.Dir(t), "pg")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "port"), []byte(u.Port()), 0o600); err != nil {
		t.Fatal(err)
	}
	other := start(t, dir) // remembers the holder's port
	if other.URL() == holder.URL() {
		t.Errorf("two servers at %s", other.URL())
	}
	if err := other.Stop(deadline(t)); err != nil {
		t.Fatal(err)
	}
	cfg := config(dir)
	if _, err := fmt.Sscan(u.Port(), &cfg.Port); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Start(deadline(t), cfg); err == nil || !strings.Contains(err.Error(), u.Port()) {
		t.Errorf("start on port %s, which is taken: %v, want an error that names it", u.Port(), err)
	}
}

func TestServerAsksForItsPassword(t *testing.T) {
	t.Parallel()
	server := start(t, filepath.Join(pgtest.Dir(t), "pg"))
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("writ", "wrong")
	if conn, err := pgx.Connect(deadline(t), u.String()); err == nil {
		conn.Close(context.Background())
		t.Error("a wrong password was let in")
	}
}

func TestServerIsSafeAndTuned(t *testing.T) {
	t.Parallel()
	cfg := config(filepath.Join(pgtest.Dir(t), "pg"))
	cfg.Settings = nil
	server, err := postgres.Start(deadline(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop(context.Background()) })
	for _, tt := range []struct{ name, want string }{
		{"fsync", "on"},
		{"full_page_writes", "on"},
		{"synchronous_commit", "on"},
		{"max_wal_size", "8GB"},
		{"jit", "off"},
		{"listen_addresses", "127.0.0.1"},
		{"unix_socket_directories", ""},
		{"server_encoding", "UTF8"},
		{"lc_collate", "C"},
	} {
		if got := query[string](t, server.URL(), `select current_setting('`+tt.name+`')`); got != tt.want {
			t.Errorf("%s = %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestErrorOfAFailedStartHoldsTheLog(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(pgtest.Dir(t), "pg")
	cfg := config(dir)
	cfg.Settings["shared_buffers"] = "a lot"
	_, err := postgres.Start(deadline(t), cfg)
	if err == nil || !strings.Contains(err.Error(), "shared_buffers") {
		t.Fatalf("start with a bad setting: %v, want what the server says of it", err)
	}
	start(t, dir) // and it leaves the directory free
}

func TestStartGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(pgtest.Dir(t), "pg")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // in the middle of initdb
	defer cancel()
	if _, err := postgres.Start(ctx, config(dir)); err == nil {
		t.Fatal("a cluster was made in 50 ms")
	}
	start(t, dir)
}

// asOwnerOf has a program run as the owner of path, which only root can.
func asOwnerOf(t *testing.T, path string) *syscall.SysProcAttr {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
}

func pidOf(t *testing.T, dir string) (pid int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

// eventually polls until the claim holds.
func eventually(t *testing.T, claim string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", claim)
		}
	}
}
