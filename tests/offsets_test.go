package tests

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/internal/embedded/broker"
	"github.com/seed54173720/writ/internal/engine"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/store"
	"github.com/seed54173720/writ/pkg/store/memory"
	"github.com/seed54173720/writ/topics"
)

// gate holds up what a client produces.
type gate struct {
	open chan struct{}
}

func (g *gate) dial(ctx context.Context, network, host string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, host)
	if err != nil {
		return nil, err
	}
	return &gatedConn{Conn: conn, gate: g, closed: make(chan struct{})}, nil
}

// gatedConn relies on the client writing each request by one call.
type gatedConn struct {
	net.Conn
	gate   *gate
	once   sync.Once
	closed chan struct{}
}

func (c *gatedConn) Write(request []byte) (int, error) {
	key := int16(request[4])<<8 | int16(request[5]) // behind the size
	if key == (&kmsg.ProduceRequest{}).Key() {
		select {
		case <-c.gate.open:
		case <-c.closed:
		}
	}
	return c.Conn.Write(request)
}

func (c *gatedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func TestOffsetsStayBehindAnswersThatAreNotAcknowledged(t *testing.T) {
	t.Parallel()
	const commands = 50
	ctx := t.Context()
	b, err := broker.Start(ctx, broker.Config{Dir: t.TempDir() + "/broker"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	admin := kadm.NewClient(cl)
	declared, err := topics.Declare("catalog", topics.Options{Partitions: 1, Replication: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := topics.Create(ctx, admin, declared); err != nil {
		t.Fatal(err)
	}
	for i := range commands {
		// One in ten cannot be read: such a record has no row, and a dead letter and an answer all the same.
		r := &kgo.Record{Topic: "catalog.commands", Value: []byte("poison")}
		if i%10 != 9 {
			c, err := command.New("catalog.brand.create", "test").JSON(catalog.CreateBrand{Name: fmt.Sprint("Brand ", i)}).Build()
			if err != nil {
				t.Fatal(err)
			}
			var rec command.Record
			c.Record(&rec)
			r.Value, r.Headers = rec.Value, kafkaHeaders(rec.Headers)
		}
		if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}

	s := memory.New()
	g := &gate{open: make(chan struct{})}
	e, err := engine.New(engine.Config{
		Kernel: &kernel.Kernel{Context: catalog.Context(), Store: s},
		Kafka:  []kgo.Opt{kgo.SeedBrokers(b.Addr()), kgo.Dialer(g.dial)},
		Logger: slog.New(slog.DiscardHandler), OffsetInterval: 10 * time.Millisecond, Drain: 4 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("engine ended: %v", err)
		}
	})

	finished := func() int64 {
		offsets, err := admin.FetchOffsets(ctx, group)
		if err != nil {
			t.Fatal(err)
		}
		at := int64(0)
		offsets.Each(func(o kadm.OffsetResponse) { at = max(at, o.At) })
		progress, err := s.Progress(ctx, "catalog.commands")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range progress {
			at = max(at, p.Offset)
		}
		return at
	}
	rows := func() (n int) {
		if err := s.Journal(ctx, func(*store.Row) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	await := func(what string, holds func() bool) {
		for !holds() {
			select {
			case <-tick.C:
			case <-late:
				t.Fatalf("after %v: no %s", patience, what)
			}
		}
	}
	await("row for every command", func() bool { return rows() == commands*9/10 })
	for range 50 { // as many times as offsets could have been committed
		<-tick.C
		if at := finished(); at > 0 {
			t.Fatalf("the offset is %d, and no answer has reached the broker", at)
		}
	}
	close(g.open)
	await("offset behind the last command", func() bool { return finished() == commands })
}
