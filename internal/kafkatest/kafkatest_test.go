package kafkatest_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/internal/embedded/broker"
	"github.com/seed54173720/writ/internal/kafkatest"
)

// parentEnv makes the test binary start a child in the named directory and wait
// to be killed.
const parentEnv = "KAFKATEST_PARENT"

func TestMain(m *testing.M) {
	broker.RunChild()
	if dir := os.Getenv(parentEnv); dir != "" {
		child, err := kafkatest.Child(context.Background(), broker.Config{Dir: dir})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(child.Addr())
		select {}
	}
	kafkatest.Main(m)
}

func TestApacheKafkaComesBackWithItsRecords(t *testing.T) {
	t.Parallel()
	ctx := within(t, 4*time.Minute)
	kafka, err := kafkatest.Apache(ctx, t.TempDir())
	if err != nil {
		kafkatest.Unavailable(t, err)
	}
	t.Cleanup(func() { _ = kafka.Kill9() })
	comesBack(ctx, t, kafka)
}

func TestEmbeddedBrokerComesBackWithItsRecords(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	child, err := kafkatest.Child(ctx, broker.Config{Dir: filepath.Join(t.TempDir(), "data")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Kill9() })
	comesBack(ctx, t, child)
}

// comesBack writes a record before each end of the broker and reads all of them
// after the last.
func comesBack(ctx context.Context, t *testing.T, p *kafkatest.Proc) {
	t.Helper()
	addr := p.Addr()
	client := newClient(t, addr)
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 1, 1, nil, "kept"); err != nil {
		t.Fatal(err)
	}
	ends := []struct {
		name string
		end  func() error
	}{
		{"kill", p.Kill9},
		{"stop", p.Stop},
	}
	for i, e := range ends {
		if err := client.ProduceSync(ctx, &kgo.Record{Topic: "kept", Value: []byte(e.name)}).FirstErr(); err != nil {
			t.Fatalf("produce before %s: %v", e.name, err)
		}
		if err := p.Restart(ctx); err == nil {
			t.Fatal("Restart of a running broker succeeded")
		}
		pid := p.PID()
		if err := e.end(); err != nil {
			t.Fatalf("%s: %v", e.name, err)
		}
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			t.Fatalf("after %s somebody still listens on %s", e.name, addr)
		}
		if err := p.Restart(ctx); err != nil {
			t.Fatalf("restart after %s: %v", e.name, err)
		}
		if p.Addr() != addr || p.PID() == pid {
			t.Fatalf("restart %d: process %d at %s, want another one than %d at %s", i, p.PID(), p.Addr(), pid, addr)
		}
	}
	reader := newClient(t, addr, kgo.ConsumeTopics("kept"))
	var got []string
	for len(got) < len(ends) {
		fetches := reader.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("read %q: %v", got, err)
		}
		fetches.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
	}
	if got[0] != "kill" || got[1] != "stop" {
		t.Errorf("read %q, want kill and stop", got)
	}
}

func TestSharedKafkaAnswers(t *testing.T) {
	t.Parallel()
	seeds := kafkatest.Shared(t)
	if err := newClient(t, seeds[0]).Ping(within(t, 10*time.Second)); err != nil {
		t.Fatal(err)
	}
	if again := kafkatest.Shared(t); again[0] != seeds[0] {
		t.Errorf("Shared started a second broker: %s and %s", seeds, again)
	}
}

func TestChildDiesWithItsParent(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	parent := exec.CommandContext(ctx, os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"="+filepath.Join(t.TempDir(), "data"))
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	addr = strings.TrimSpace(addr)
	if err := newClient(t, addr).Ping(ctx); err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // killed
	for ctx.Err() == nil {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		conn.Close()
	}
	t.Errorf("the child still listens on %s", addr)
}

func TestFailedStartShowsTheLog(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	b, err := broker.Start(t.Context(), broker.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	_, err = kafkatest.Child(within(t, time.Minute), broker.Config{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "in use by process") {
		t.Errorf("Child on a directory in use: %v, want the child's own words", err)
	}
}

func TestNoJavaMeansNotAvailable(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("JAVA_HOME", "")
	_, err := kafkatest.Apache(t.Context(), t.TempDir())
	if !strings.Contains(fmt.Sprint(err), "java") {
		t.Errorf("Apache without Java: %v, want one that names it", err)
	}
	for _, env := range []struct{ name, value string }{{"CI", "true"}, {"WRIT_TEST_REQUIRE", "1"}} {
		t.Run(env.name, func(t *testing.T) {
			t.Setenv("CI", "")
			t.Setenv("WRIT_TEST_REQUIRE", "")
			if tb := unavailable(err); !tb.skipped || tb.failed {
				t.Errorf("without %s the test is not skipped: %+v", env.name, tb)
			}
			t.Setenv(env.name, env.value)
			if tb := unavailable(err); !tb.failed {
				t.Errorf("with %s=%s the test does not fail: %+v", env.name, env.value, tb)
			}
		})
	}
}

// verdict notes how a test was ended.
type verdict struct {
	testing.TB
	skipped, failed bool
}

func (v *verdict) Helper()      {}
func (v *verdict) Skip(...any)  { v.skipped = true }
func (v *verdict) Fatal(...any) { v.failed = true }

func unavailable(err error) *verdict {
	v := new(verdict)
	kafkatest.Unavailable(v, err)
	return v
}

func newClient(t *testing.T, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(addr))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
