package submit

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/internal/datadir"
	"github.com/seed54173720/writ/internal/embedded/broker"
	"github.com/seed54173720/writ/pkg/client/clienttest"
	"github.com/seed54173720/writ/pkg/command"
)

// answers makes the test's processor: what it says follows from the aggregate's ID.
func answers(r *clienttest.Responder, c clienttest.Received) {
	switch c.Aggregate().ID {
	case "silent":
	case "taken":
		r.Send(c, c.Reply(command.Rejected, "name-taken"))
	case "broken":
		r.Send(c, c.Reply(command.Failed, command.CodeDecisionFailed))
	case "same":
		r.Send(c, c.Reply(command.Nothing, ""))
	default:
		reply := c.Reply(command.Committed, "")
		reply.Result = []byte("{\n \"price\": 1.50 }")
		r.Send(c, reply)
	}
}

func TestExitCodeAndOutputSayWhatBecameOfTheCommand(t *testing.T) {
	t.Parallel()
	addr, _ := processor(t)
	ctx, gone := t.Context(), "127.0.0.1:1"
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	const name = `{"name":"Acme"}`
	for _, test := range []struct {
		name    string
		ctx     context.Context
		brokers string
		args    []string
		stdin   io.Reader
		code    int
		stdout  string // in it, on one line; "" for none
		stderr  string // in it, beside the request ID
	}{
		{name: "committed", args: []string{"catalog.brand.create", "b", "-d", name}, code: 0, stdout: `"outcome":"committed"`},
		{name: "result on the same line", args: []string{"catalog.brand.create", "b", "-d", name}, code: 0, stdout: `"result":{"price":1.50}`},
		{name: "nothing to do", args: []string{"catalog.brand.rename", "same", "-d", name}, code: 0, stdout: `"outcome":"nothing"`},
		{name: "rejected", args: []string{"catalog.brand.create", "taken", "-d", name}, code: 1, stdout: `"code":"name-taken"`},
		{name: "failed", args: []string{"catalog.brand.create", "broken", "-d", name}, code: 1, stdout: `"outcome":"failed"`},
		{name: "accepted", args: []string{"catalog.brand.create", "silent", "-d", name, "--wait", "accepted"}, code: 0, stdout: `"accepted":true,"position":{"topic":"catalog.commands"`},
		{name: "derived ID", args: []string{"catalog.brand.create", "-d", name}, code: 0, stdout: `"aggregate":{"type":"brand","id":"`},
		{name: "body from standard input", args: []string{"catalog.brand.create", "b"}, stdin: strings.NewReader(name + "\n"), code: 0, stdout: `"outcome":"committed"`},

		{name: "unknown flag", args: []string{"catalog.brand.create", "--colour", "red"}, code: 2, stderr: "--colour"},
		{name: "no type", code: 2, stderr: "usage: submit send TYPE [SUBJECT]"},
		{name: "timeout of zero", args: []string{"catalog.brand.create", "-d", name, "--timeout", "0s"}, code: 2, stderr: "--timeout 0s must be more than 0"},
		{name: "negative timeout", args: []string{"catalog.brand.create", "-d", name, "--timeout", "-1s"}, code: 2, stderr: "--timeout -1s must be more than 0"},
		{name: "unknown stage", args: []string{"catalog.brand.create", "-d", name, "--wait", "forever"}, code: 2, stderr: `--wait "forever" must be`},
		{name: "not JSON", args: []string{"catalog.brand.create", "-d", "{name"}, code: 2, stderr: "not JSON"},
		{name: "no such file", args: []string{"catalog.brand.create", "-d", "@/nowhere/body.json"}, code: 2, stderr: "/nowhere/body.json"},
		{name: "attribute with a flag", args: []string{"catalog.brand.create", "-d", name, "-H", "tenant=t"}, code: 2, stderr: "other attributes have flags"},
		{name: "standard input left open", args: []string{"catalog.brand.create", "--timeout", "100ms"}, stdin: open(t), code: 2, stderr: "give it with --data"},

		{name: "no answer in time", args: []string{"catalog.brand.create", "silent", "-d", name, "--timeout", "1s"}, code: 3, stderr: "outcome unknown"},

		{name: "unregistered type", args: []string{"catalog.brand.paint", "b"}, stdin: strings.NewReader(""), code: 4, stderr: "unknown-type"},
		{name: "unknown member", args: []string{"catalog.brand.create", "-d", `{"nmae":"Acme"}`}, code: 4, stderr: "nmae"},
		{name: "aggregate missing", args: []string{"catalog.brand.rename", "-d", name}, code: 4, stderr: "subject is missing"},
		{name: "nobody listens", brokers: gone, args: []string{"catalog.brand.create", "-d", name}, code: 4, stderr: gone},
		{name: "nobody answers", brokers: silent(t), args: []string{"catalog.brand.create", "-d", name, "--timeout", "500ms"}, code: 4, stderr: "reach the brokers"},
		{name: "interrupted before", ctx: cancelled, args: []string{"catalog.brand.create", "-d", name}, code: 4, stderr: "canceled"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, brokers := t.Context(), addr
			if test.ctx != nil {
				ctx = test.ctx
			}
			if test.brokers != "" {
				brokers = test.brokers
			}
			requestID := "request-" + strings.ReplaceAll(test.name, " ", "-")
			args := append([]string{"send", "--brokers", brokers, "--request-id", requestID}, test.args...)
			var stdout, stderr bytes.Buffer
			code := Run(ctx, args, test.stdin, &stdout, &stderr, catalog.Context())
			if code != test.code {
				t.Errorf("exit code %d, want %d; stderr: %s", code, test.code, &stderr)
			}
			out := stdout.String()
			if test.stdout == "" && out != "" || !strings.Contains(out, test.stdout) {
				t.Errorf("stdout: %q, want %q", out, test.stdout)
			}
			if out != "" && (strings.Count(out, "\n") != 1 || !json.Valid(stdout.Bytes())) {
				t.Errorf("stdout: %q, want JSON on one line", out)
			}
			if !strings.Contains(stderr.String(), test.stderr) {
				t.Errorf("stderr: %q, want %q in it", &stderr, test.stderr)
			}
			if named := strings.HasPrefix(stderr.String(), "request "+requestID+"\n"); !named && test.stderr != "--colour" && len(test.args) > 0 {
				t.Errorf("stderr: %q, want the request ID first", &stderr)
			}
		})
	}
}

func TestFlagsBecomeTheCommandsAttributes(t *testing.T) {
	t.Parallel()
	addr, responder := processor(t)
	file := filepath.Join(t.TempDir(), "body.json")
	if err := os.WriteFile(file, []byte(`{"name":"Acme"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code := Run(t.Context(), []string{"send", "catalog.brand.rename", "b/7", "--kafka-brokers", addr, "--data", "@" + file,
		"--request-id", "r", "--source", "shop", "--tenant", "t", "--owner", "o", "--space", "s", "--expect-version", "0",
		"--expires-in", "1h", "--correlation-id", "c", "--wait", "snapshot", "-H", "causationid=because"},
		nil, &stdout, &stderr, catalog.Context())
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	c := responder.Await(1)[0]
	version, expected := c.ExpectedVersion()
	got := []string{c.RequestID(), c.Caller(), c.Aggregate().String(), c.Owner(), c.Space(), c.CorrelationID(), c.CausationID(), c.WaitFor().String(), string(c.Body())}
	want := []string{"r", "shop", "t/brand/b%2F7", "o", "s", "c", "because", "snapshot", `{"name":"Acme"}`}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("command has %q, want %q", got[i], want[i])
		}
	}
	if !expected || version != 0 {
		t.Errorf("expected version %d, %t; want 0", version, expected)
	}
	if left := time.Until(c.Expires()); left < 50*time.Minute || left > time.Hour {
		t.Errorf("command expires in %v, want about an hour", left)
	}
}

func TestReplyIsAwaitedOnTheTopicThatIsAskedFor(t *testing.T) {
	t.Parallel()
	addr, responder := processor(t)
	var stdout, stderr bytes.Buffer
	args := []string{"send", "catalog.brand.create", "b", "--brokers", addr, "-d", `{"name":"x"}`, "--reply-to", "catalog.dead-letters"} // any topic there is
	if code := Run(t.Context(), args, nil, &stdout, &stderr, catalog.Context()); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	if c := responder.Await(1)[0]; c.ReplyTo() != "catalog.dead-letters" {
		t.Errorf("reply asked for on %q", c.ReplyTo())
	}
}

func TestProcessorOfThisMachineIsFoundByItsDataDirectory(t *testing.T) {
	t.Parallel()
	addr, _ := processor(t)
	dir := t.TempDir()
	send := func() (int, string) {
		var stdout, stderr bytes.Buffer
		code := Run(t.Context(), []string{"send", "catalog.brand.create", "b", "-d", `{"name":"x"}`, "--data-dir", dir}, nil, &stdout, &stderr, catalog.Context())
		return code, stderr.String()
	}
	if code, stderr := send(); code != ExitNotSent || !strings.Contains(stderr, "no processor runs on data directory "+dir) {
		t.Errorf("without processor: exit code %d, %s", code, stderr)
	}
	if err := datadir.Write(dir, datadir.Endpoints{Kafka: "127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	if code, stderr := send(); code != ExitNotSent || !strings.Contains(stderr, "does that processor still run?") {
		t.Errorf("after the processor was killed: exit code %d, %s", code, stderr)
	}
	if err := datadir.Write(dir, datadir.Endpoints{Kafka: addr}); err != nil {
		t.Fatal(err)
	}
	if code, stderr := send(); code != ExitDone {
		t.Errorf("with a processor: exit code %d, %s", code, stderr)
	}
}

func TestEnvironmentStandsInForFlags(t *testing.T) {
	addr, responder := processor(t)
	t.Setenv("WRIT_KAFKA_BROKERS", addr)
	t.Setenv("WRIT_SOURCE", "shop")
	t.Setenv("WRIT_REQUEST_ID", "from-the-environment")
	t.Setenv("WRIT_TENANT", "wrong")
	var stdout, stderr bytes.Buffer
	if code := Run(t.Context(), []string{"send", "catalog.brand.create", "b", "-d", `{"name":"x"}`, "--tenant", "right"}, nil, &stdout, &stderr, catalog.Context()); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	c := responder.Await(1)[0]
	if c.RequestID() != "from-the-environment" || c.Caller() != "shop" || c.Tenant() != "right" {
		t.Errorf("command %q of %q in tenant %q, want the environment's, and the flag's tenant", c.RequestID(), c.Caller(), c.Tenant())
	}
	t.Setenv("WRIT_TIMEOUT", "soon")
	if code := Run(t.Context(), []string{"send", "catalog.brand.create", "b"}, nil, &stdout, &stderr, catalog.Context()); code != ExitUsage || !strings.Contains(stderr.String(), `WRIT_TIMEOUT is "soon"`) {
		t.Errorf("exit code %d: %s; want the variable named", code, &stderr)
	}
}

func TestHelpAndVersionGoToStandardOutput(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"submit ":               {"--version"},
		"catalog.product.":      {"send", "--help"},
		"Sends commands of con": {},
	} {
		var stdout, stderr bytes.Buffer
		if code := Run(t.Context(), args, nil, &stdout, &stderr, catalog.Context()); code != 0 || !strings.Contains(stdout.String(), want) || stderr.Len() > 0 {
			t.Errorf("submit %q: exit code %d, stdout %q, stderr %q; want %q on stdout", args, code, &stdout, &stderr, want)
		}
	}
}

// processor runs an embedded broker and what answers the catalogue's commands.
func processor(t *testing.T) (string, *clienttest.Responder) {
	t.Helper()
	b, err := broker.Start(t.Context(), broker.Config{Dir: t.TempDir() + "/kafka"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	clienttest.CreateTopics(t, []string{b.Addr()}, "catalog")
	return b.Addr(), clienttest.Respond(t, []string{b.Addr()}, "catalog", answers)
}

// silent is the address of something that takes connections and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// open is an input that nobody writes to and nobody closes.
func open(t *testing.T) io.Reader {
	t.Helper()
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	return r
}
