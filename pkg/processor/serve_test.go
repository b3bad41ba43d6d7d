package processor

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/internal/audit"
	"github.com/seed54173720/writ/internal/datadir"
	"github.com/seed54173720/writ/internal/embedded/broker"
	"github.com/seed54173720/writ/internal/pgtest"
	"github.com/seed54173720/writ/pkg/command"
)

//nolint:tparallel // the subtests follow one another on one processor
func TestServeNeedsNothingButADirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(pgtest.Dir(t), "writ")
	s := start(t, dir)

	first := send(t, s.Kafka, "r1", "catalog.brand.create", "7", `{"name":"Acme"}`)
	if first.Outcome != command.Committed || first.Version != 1 || first.Topic != "catalog.commands" {
		t.Errorf("reply %+v, want committed at version 1", first)
	}
	if again := send(t, s.Kafka, "r1", "catalog.brand.create", "7", `{"name":"Acme"}`); !again.Duplicate || again.Position == first.Position {
		t.Errorf("reply %+v to a repeat, want a duplicate from a record of its own", again)
	}

	t.Run("people look at it while it runs", func(t *testing.T) { look(t, dir) })
	t.Run("kcat is enough to send a command and to read its reply", func(t *testing.T) { kcat(t, s.Kafka) })
	t.Run("it tells how it is", func(t *testing.T) {
		if status, body := get(t, s.HTTP, "/livez"); status != http.StatusOK {
			t.Errorf("/livez: %d %s", status, body)
		}
		if _, body := get(t, s.HTTP, "/metrics"); !strings.Contains(body, `writ_outcomes_total{code="",outcome="committed",type="catalog.brand.create"}`) || !strings.Contains(body, "go_goroutines") {
			t.Errorf("/metrics lacks outcomes or the runtime:\n%s", body)
		}
	})
	t.Run("only its user may read where the database is", func(t *testing.T) {
		info, err := os.Stat(datadir.File(dir))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v, want 0600", info.Mode(), err)
		}
	})
	t.Run("a second one on the directory is refused", func(t *testing.T) {
		code, _, stderr := runOnce(t, "serve", "--data-dir", dir)
		if code != exitFailure || !strings.Contains(stderr, "runs on data directory "+dir+" already") {
			t.Errorf("ended with %d: %s", code, stderr)
		}
	})

	t.Run("it brings its database back", func(t *testing.T) {
		pid, err := os.ReadFile(filepath.Join(dir, "postgres", "data", "postmaster.pid"))
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.SplitN(string(pid), "\n", 2)[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if reply := send(t, s.Kafka, "r2", "catalog.brand.create", "8", `{"name":"Apex"}`); reply.Outcome != command.Committed {
			t.Errorf("reply %+v after its postgres was killed, want committed", reply)
		}
	})

	if code := s.stop(); code != exitOK {
		t.Fatalf("stopped with %d: %s", code, s.stderr.String())
	}
	if _, err := datadir.Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the endpoints are still there after the end: %v", err)
	}
	t.Run("people look at it when nothing runs", func(t *testing.T) { look(t, dir) })
}

// look checks what the commands for people say of brand 7.
func look(t *testing.T, dir string) {
	out := must(t, "show", "brand/7", "--data-dir", dir)
	for _, want := range []string{"brand/7 at version 1", `"name": "Acme"`, "catalog.brand.create", "r1", `created {"name":"Acme"}`} {
		if !strings.Contains(out, want) {
			t.Errorf("show lacks %q:\n%s", want, out)
		}
	}
	var v view
	if err := json.Unmarshal([]byte(must(t, "show", "brand/7", "--json", "--data-dir", dir)), &v); err != nil {
		t.Fatal(err)
	}
	if v.Version != 1 || len(v.History) != 1 || v.History[0].RequestID != "r1" || v.History[0].Outcome != "committed" {
		t.Errorf("show --json says %+v", v)
	}
	if out := must(t, "show", "brand/none", "--data-dir", dir); !strings.Contains(out, "brand/none does not exist") {
		t.Errorf("show of nothing says %q", out)
	}
	var sum audit.Summary
	if err := json.Unmarshal([]byte(must(t, "audit", "--json", "--data-dir", dir)), &sum); err != nil {
		t.Fatal(err)
	}
	if sum.Rows < 1 || sum.Reservations < 1 || sum.Findings != 0 {
		t.Errorf("audit says %+v", sum)
	}
	if out := must(t, "topics", "--check", "--data-dir", dir); !strings.Contains(out, "all 3 topics are as declared") {
		t.Errorf("topics --check says %q", out)
	}
	if out := must(t, "migrate", "--data-dir", dir); !strings.Contains(out, "schema catalog is at this build's version") {
		t.Errorf("migrate says %q", out)
	}
}

// kcat sends a command in each mode and reads the replies, by nothing but kcat.
func kcat(t *testing.T, brokers string) {
	path, err := exec.LookPath("kcat")
	if err != nil {
		if os.Getenv("CI") == "true" || os.Getenv("WRIT_TEST_REQUIRE") == "1" {
			t.Fatal(err)
		}
		t.Skip("kcat is not installed")
	}
	run := func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), path, append([]string{"-b", brokers}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		var stderr output
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("kcat %v: %v: %s", args, err, stderr.String())
		}
		return string(out)
	}
	run(`{"name":"Binary"}`, "-t", "catalog.commands", "-P", "-H", "ce_specversion=1.0", "-H", "ce_type=catalog.brand.create",
		"-H", "ce_id=kcat-1", "-H", "ce_source=kcat", "-H", "ce_subject=binary", "-H", "content-type=application/json")
	run(`{"specversion":"1.0","type":"catalog.brand.create","id":"kcat-2","source":"kcat","subject":"structured","data":{"name":"Structured"}}`,
		"-t", "catalog.commands", "-P", "-k", "brand/structured", "-H", "content-type=application/cloudevents+json")
	for request, subject := range map[string]string{"kcat-1": "binary", "kcat-2": "structured"} {
		var reply command.Reply
		until(t, "kcat reads the reply to "+request, func() bool {
			for line := range strings.Lines(run("", "-t", "catalog.replies", "-C", "-e", "-q", "-f", `%k %s\n`)) {
				key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
				if key == request {
					if reply, err = command.ParseReply([]byte(value)); err != nil {
						t.Fatal(err)
					}
					return true
				}
			}
			return false
		})
		if reply.Outcome != command.Committed || reply.Aggregate.ID != subject {
			t.Errorf("reply to %s: %+v, want committed", request, reply)
		}
	}
}

func TestProcessOutlivesAKillAndEndsInOrderOnSIGTERM(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(pgtest.Dir(t), "writ")
	serve := func() (*exec.Cmd, datadir.Endpoints) {
		cmd, out := child(t, nil, "serve", "--data-dir", dir, "--http-addr=127.0.0.1:0")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("serve said:\n%s", out.String())
			}
		})
		var e datadir.Endpoints
		until(t, "the child serves", func() bool {
			var err error
			e, err = datadir.Read(dir)
			return err == nil && e.PID == cmd.Process.Pid
		})
		return cmd, e
	}

	killed, e := serve()
	send(t, e.Kafka, "before", "catalog.brand.create", "7", `{"name":"Acme"}`)
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()

	ended, e := serve()
	// The first record may come again too, and its answer be the first to arrive: then it is no duplicate.
	if reply := send(t, e.Kafka, "before", "catalog.brand.create", "7", `{"name":"Acme"}`); reply.Outcome != command.Committed || reply.Version != 1 {
		t.Errorf("reply after the kill %+v, want the outcome from before", reply)
	}
	if err := ended.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := ended.Wait(); err != nil {
		t.Errorf("SIGTERM: %v, want exit code 0", err)
	}
}

func TestConfiguredPartsAreUsedAsTheyAre(t *testing.T) {
	t.Parallel()
	b, err := broker.Start(t.Context(), broker.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	url, schema := pgtest.Schema(t)
	parts := []string{"--kafka-brokers", b.Addr(), "--database-url", url, "--database-schema", schema}

	code, _, stderr := runOnce(t, append(parts, "serve", "--http-addr=off")...)
	if code != exitFailure || !strings.Contains(stderr, "catalog.commands: the topic does not exist") || !strings.Contains(stderr, "--topics") {
		t.Errorf("without topics it ended with %d: %s", code, stderr)
	}
	must(t, append(parts, "topics", "--create")...)
	code, _, stderr = runOnce(t, append(parts, "serve", "--http-addr=off")...)
	if code != exitFailure || !strings.Contains(stderr, "run the migrations (processor migrate)") {
		t.Errorf("without schema it ended with %d: %s", code, stderr)
	}

	dir := t.TempDir()
	s := start(t, dir, append(parts, "--topics", "--migrate")...)
	if s.Kafka != b.Addr() || s.Database != url {
		t.Errorf("endpoints %+v, want those that were configured", s.Endpoints)
	}
	if reply := send(t, s.Kafka, "r1", "catalog.brand.create", "7", `{"name":"Acme"}`); reply.Outcome != command.Committed {
		t.Errorf("reply %+v, want committed", reply)
	}
	if out := must(t, "show", "brand/7", "--data-dir", dir, "--database-schema", schema); !strings.Contains(out, "brand/7 at version 1") {
		t.Errorf("show, told of the directory only, says %q", out)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("the data directory holds %v, want the endpoints only", entries)
	}

	// A topic that is made anew ends the engine; the next one takes the new topic from its beginning.
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if _, err := kadm.NewClient(client).DeleteTopic(t.Context(), "catalog.commands"); err != nil {
		t.Fatal(err)
	}
	must(t, append(parts, "topics", "--create")...)
	if reply := send(t, s.Kafka, "r2", "catalog.brand.create", "8", `{"name":"Apex"}`); reply.Outcome != command.Committed {
		t.Errorf("reply on the new topic %+v, want committed", reply)
	}
}

func TestBrokerRunsAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "writ")
	cmd, out := child(t, nil, "broker", "--data-dir", dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the broker prints its address", func() bool { return strings.HasSuffix(out.String(), "\n") })
	addr := strings.TrimSpace(out.String())
	if got := must(t, "topics", "--check", "--kafka-brokers", addr); !strings.Contains(got, "as declared") {
		t.Errorf("topics --check says %q", got)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("an interrupt: %v, want exit code 0", err)
	}
}
