package processor

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/internal/datadir"
	"github.com/seed54173720/writ/internal/pgtest"
	"github.com/seed54173720/writ/pkg/client"
	"github.com/seed54173720/writ/pkg/command"
)

// childEnv makes the test binary a processor of the catalogue.
const childEnv = "WRIT_TEST_PROCESSOR"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		Main(catalog.Context(), WithDemo(catalog.Demo))
	}
	pgtest.Main(m, pgtest.Fast)
}

// patience bounds what may take long on a busy machine: making a database, joining a group.
const patience = time.Minute

// output is what a program has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// runOnce runs a command that ends by itself.
func runOnce(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, err bytes.Buffer
	code = Run(ctx, args, strings.NewReader(""), &out, &err, catalog.Context(), WithDemo(catalog.Demo))
	return code, out.String(), err.String()
}

// must is runOnce of a command that has to succeed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := runOnce(t, args...)
	if code != exitOK {
		t.Fatalf("processor %v ended with %d: %s%s", args, code, stdout, stderr)
	}
	return stdout
}

// server is a processor that runs in this process.
type server struct {
	datadir.Endpoints
	stdout, stderr output
	stop           func() int // returns the exit code
}

// start serves on a data directory until the test ends, or until it is stopped.
func start(t *testing.T, dir string, args ...string) *server {
	t.Helper()
	s := &server{}
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int, 1)
	go func() {
		args := append([]string{"serve", "--data-dir", dir, "--http-addr=127.0.0.1:0"}, args...)
		code <- Run(ctx, args, nil, &s.stdout, &s.stderr, catalog.Context())
	}()
	s.stop = sync.OnceValue(func() int {
		cancel()
		return <-code
	})
	t.Cleanup(func() {
		if got := s.stop(); got != exitOK {
			t.Errorf("serve ended with %d:\n%s", got, s.stderr.String())
		}
		if t.Failed() {
			t.Logf("serve said:\n%s", s.stderr.String())
		}
	})
	until(t, "the endpoints are published", func() bool {
		var err error
		if len(code) > 0 {
			t.Fatalf("serve ended before it served:\n%s", s.stderr.String())
		}
		s.Endpoints, err = datadir.Read(dir)
		return err == nil
	})
	until(t, "the processor is ready", func() bool {
		status, _ := get(t, s.HTTP, "/readyz")
		return status == http.StatusOK
	})
	return s
}

// until polls until it is so.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !so() {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %v in vain: %s", patience, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func get(t *testing.T, addr, path string) (status int, body string) {
	t.Helper()
	r, err := http.Get("http://" + addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

// send sends one command and returns its reply.
func send(t *testing.T, brokers, request, typ, subject, body string) command.Reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := client.New(ctx, client.Config{Brokers: strings.Split(brokers, ","), Context: "catalog"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cmd, err := command.New(typ, "test").ID(request).Subject(subject).Body([]byte(body)).Build()
	if err != nil {
		t.Fatal(err)
	}
	reply, err := c.Send(ctx, cmd)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// child prepares the test binary as a processor, with these entries in its environment.
func child(t *testing.T, env []string, args ...string) (*exec.Cmd, *output) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.Env = append(cmd.Env, env...)
	out := &output{}
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}
