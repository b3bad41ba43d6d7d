package broker_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/internal/embedded/broker"
	"github.com/seed54173720/writ/internal/kafkatest"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

func TestStrayPacketIsShutOutAndHarmsNobody(t *testing.T) {
	t.Parallel()
	b := start(t, broker.Config{})
	request := func(size uint32, key int16) string {
		var p [14]byte
		binary.BigEndian.PutUint32(p[:], size)
		binary.BigEndian.PutUint16(p[4:], uint16(key))
		return string(p[:])
	}
	for _, row := range []struct{ name, packet string }{
		{"http", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		{"tls", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"},
		{"unknown key", request(10, 9999)},
		{"negative key", request(10, -1)},
		{"too large", request(32<<20+1, 3)},
		{"negative size", request(1<<31, 3)},
		{"no header", request(2, 3)},
		{"empty", request(0, 3)},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", b.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, row.packet); err != nil {
				t.Fatal(err)
			}
			if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			n, err := conn.Read(make([]byte, 1))
			if n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("after %q read %d bytes and %v, want the connection closed", row.packet, n, err)
			}
			if err := client(t, b.Addr()).Ping(within(t)); err != nil {
				t.Errorf("ping after %q: %v", row.packet, err)
			}
		})
	}
}

func TestLargestBatchPassesTheGuard(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	b := start(t, broker.Config{SyncWrites: true})
	createTopic(t, b, "large", 1)
	c := client(t, b.Addr(), kgo.ProducerBatchCompression(kgo.NoCompression()))
	value := []byte(strings.Repeat("x", 999_000))
	for range 3 {
		produce(ctx, t, c, "large", string(value))
	}
	if got := endOffset(ctx, t, c, "large"); got != 3 {
		t.Errorf("end offset %d, want 3", got)
	}
}

func TestSecondBrokerOnADirectoryIsRefused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first := start(t, broker.Config{Dir: dir})
	_, err := broker.Start(t.Context(), broker.Config{Dir: dir})
	var inUse *broker.InUseError
	if !errors.As(err, &inUse) || inUse.Dir != dir || inUse.PID != os.Getpid() {
		t.Fatalf("second start: %v, want InUseError of %s and process %d", err, dir, os.Getpid())
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, broker.Config{Dir: dir})
}

func TestRestartKeepsAddressClusterTopicsAndCommits(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		kill bool
	}{{"clean", false}, {"kill", true}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			ctx := within(t)
			cfg := broker.Config{Dir: filepath.Join(t.TempDir(), "data")}
			child := startChild(t, cfg)
			c := client(t, child.Addr())
			admin := kadm.NewClient(c)
			// Made over the protocol, as the processor does it.
			if _, err := admin.CreateTopic(ctx, 2, 1, nil, "a.commands"); err != nil {
				t.Fatal(err)
			}
			if err := c.ProduceSync(ctx, &kgo.Record{Topic: "a.commands", Value: []byte("v")}).FirstErr(); err != nil {
				t.Fatal(err)
			}
			var commit kadm.Offsets
			commit.AddOffset("a.commands", 1, 7, -1)
			if _, err := admin.CommitOffsets(ctx, "g", commit); err != nil {
				t.Fatal(err)
			}
			before, err := admin.Metadata(ctx)
			if err != nil {
				t.Fatal(err)
			}
			end := child.Stop
			if row.kill {
				end = child.Kill9
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}

			b := start(t, cfg)
			if b.Addr() != child.Addr() || b.ClusterID() != before.Cluster {
				t.Errorf("restarted as %s, cluster %s; was %s, cluster %s", b.Addr(), b.ClusterID(), child.Addr(), before.Cluster)
			}
			after, err := admin.Metadata(ctx)
			if err != nil {
				t.Fatal(err)
			}
			was, is := before.Topics["a.commands"], after.Topics["a.commands"]
			if is.ID != was.ID || len(is.Partitions) != 2 {
				t.Errorf("topic %s with %d partitions; was %s with 2", is.ID, len(is.Partitions), was.ID)
			}
			if got := endOffset(ctx, t, c, "a.commands"); got != 1 {
				t.Errorf("%d records, want 1", got)
			}
			offsets, err := admin.FetchOffsets(ctx, "g")
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := offsets.Lookup("a.commands", 1); got.At != 7 {
				t.Errorf("committed offset %d, want 7", got.At)
			}
		})
	}
}

func TestPortOfTheLastStartGivesWay(t *testing.T) {
	t.Parallel()
	cfg := broker.Config{Dir: filepath.Join(t.TempDir(), "data")}
	b := start(t, cfg)
	addr := b.Addr()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()

	explicit := cfg
	explicit.Port = taken.Addr().(*net.TCPAddr).Port
	if _, err := broker.Start(t.Context(), explicit); err == nil || !strings.Contains(err.Error(), strconv.Itoa(explicit.Port)) {
		t.Errorf("start on a taken port: %v, want an error that names it", err)
	}
	if b := start(t, cfg); b.Addr() == addr {
		t.Errorf("broker on %s, which is taken", addr)
	}
}

func TestNewPortTakesAnotherOne(t *testing.T) {
	t.Parallel()
	cfg := broker.Config{Dir: filepath.Join(t.TempDir(), "data"), NewPort: true}
	seen := map[string]bool{}
	for range 4 {
		b := start(t, cfg)
		seen[b.Addr()] = true
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) == 1 {
		t.Errorf("four starts, one address: %v", seen)
	}
}

func TestConfigThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	start(t, broker.Config{Dir: dir, ClusterID: "ours"}).Close()
	for _, row := range []struct {
		name string
		cfg  broker.Config
		want string
	}{
		{"no directory", broker.Config{}, "Dir"},
		{"all interfaces", broker.Config{Dir: dir, Host: "0.0.0.0"}, `"0.0.0.0" is not a loopback address`},
		{"a name", broker.Config{Dir: dir, Host: "broker.example"}, "not a loopback address"},
		{"an outside address", broker.Config{Dir: dir, Host: "192.0.2.1"}, "not a loopback address"},
		{"port", broker.Config{Dir: dir, Port: 70_000}, "70000"},
		{"keep", broker.Config{Dir: dir, Keep: -1}, "Keep"},
		{"another cluster's directory", broker.Config{Dir: dir, ClusterID: "theirs"}, `"ours"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b, err := broker.Start(context.Background(), row.cfg)
			if err == nil {
				b.Close()
			}
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("Start: %v, want an error with %s", err, row.want)
			}
		})
	}
}

func TestNamingATopicDoesNotMakeIt(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	b := start(t, broker.Config{})
	c := client(t, b.Addr(), kgo.AllowAutoTopicCreation(), kgo.UnknownTopicRetries(0))
	err := c.ProduceSync(ctx, &kgo.Record{Topic: "nobody.made", Value: []byte("v")}).FirstErr()
	if !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("produce to a topic that nobody made: %v", err)
	}
}

// TestKillLosesNoAcknowledgedRecord kills the broker several times under load: what
// it acknowledged is there in the end, in the order of sending.
func TestKillLosesNoAcknowledgedRecord(t *testing.T) {
	t.Parallel()
	const kills, between = 4, 2_000
	ctx := within(t)
	child := startChild(t, broker.Config{Dir: filepath.Join(t.TempDir(), "data")})
	c := client(t, child.Addr(), kgo.ProducerLinger(0), kgo.AlwaysRetryEOF())
	if _, err := kadm.NewClient(c).CreateTopic(ctx, 3, 1, nil, "kept"); err != nil {
		t.Fatal(err)
	}

	acked := make(chan string, 1024)
	sendCtx, stopSending := context.WithCancel(ctx)
	defer stopSending()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i := 0; sendCtx.Err() == nil; i++ {
			value := strconv.Itoa(i)
			c.Produce(ctx, &kgo.Record{Topic: "kept", Value: []byte(value)}, func(_ *kgo.Record, err error) {
				if err == nil {
					acked <- value
				}
			})
		}
	}()
	want := map[string]bool{}
	wait := func(n int) {
		t.Helper()
		for range n {
			select {
			case v := <-acked:
				want[v] = true
			case <-ctx.Done():
				t.Fatalf("%d records acknowledged: %v", len(want), ctx.Err())
			}
		}
	}
	for range kills {
		wait(between)
		if err := child.Kill9(); err != nil {
			t.Fatal(err)
		}
		if err := child.Restart(ctx); err != nil {
			t.Fatal(err)
		}
	}
	wait(between)
	stopSending()
	flushed := make(chan error, 1)
	go func() {
		<-sent
		flushed <- c.Flush(ctx)
	}()
	for done := false; !done; {
		select {
		case v := <-acked:
			want[v] = true
		case err := <-flushed:
			if err != nil {
				t.Fatal(err)
			}
			done = true
		}
	}
	close(acked)
	for v := range acked {
		want[v] = true
	}

	ends, err := kadm.NewClient(c).ListEndOffsets(ctx, "kept")
	if err != nil {
		t.Fatal(err)
	}
	var left int64
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	missing := len(want)
	reader := client(t, child.Addr(), kgo.ConsumeTopics("kept"))
	for left > 0 && ctx.Err() == nil {
		reader.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			left--
			if want[string(r.Value)] {
				delete(want, string(r.Value))
			}
		})
	}
	t.Logf("%d records acknowledged over %d kills", missing, kills)
	if len(want) > 0 {
		t.Errorf("%d of %d acknowledged records are lost", len(want), missing)
	}
}

// start runs a broker for the test, on a directory of its own unless cfg names
// one.
func start(t *testing.T, cfg broker.Config) *broker.Broker {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = filepath.Join(t.TempDir(), "data")
	}
	b, err := broker.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func startChild(t *testing.T, cfg broker.Config) *kafkatest.Proc {
	t.Helper()
	child, err := kafkatest.Child(within(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Kill9() })
	return child
}

func createTopic(t *testing.T, b *broker.Broker, topic string, partitions int32) {
	t.Helper()
	if err := b.CreateTopic(topic, partitions, nil); err != nil {
		t.Fatal(err)
	}
}

func client(t *testing.T, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addr)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// produce writes values to partition 0, each in a batch of its own.
func produce(ctx context.Context, t *testing.T, c *kgo.Client, topic string, values ...string) {
	t.Helper()
	for _, v := range values {
		if err := c.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(v)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// endOffset is the sum of the partitions' end offsets.
func endOffset(ctx context.Context, t *testing.T, c *kgo.Client, topic string) (sum int64) {
	t.Helper()
	ends, err := kadm.NewClient(c).ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	ends.Each(func(o kadm.ListedOffset) { sum += o.Offset })
	return sum
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
