package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/internal/embedded/broker"
	"github.com/seed54173720/writ/internal/embedded/postgres"
	"github.com/seed54173720/writ/internal/kafkatest"
	store "github.com/seed54173720/writ/pkg/store/postgres"
	"github.com/seed54173720/writ/topics"
)

// bed is what is measured on: one Postgres and one embedded broker for the whole run, and Apache Kafka where asked for.
type bed struct {
	options
	dir      string
	out      io.Writer
	server   *postgres.Server
	db       *pgx.Conn
	postgres int // process ID
	embedded *kafkatest.Proc
	apache   *kafkatest.Proc // nil unless f is measured
}

func openBed(ctx context.Context, o options, out io.Writer) (b *bed, err error) {
	b = &bed{options: o, out: out}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.dir, err = os.MkdirTemp(o.dir, "writ-bench-"); err != nil {
		return b, err
	}
	// Postgres runs as another user where this is root.
	if err = os.Chmod(b.dir, 0o711); err != nil {
		return b, err
	}
	quiet := slog.New(slog.DiscardHandler)
	if b.server, err = postgres.Start(ctx, postgres.Config{Dir: filepath.Join(b.dir, "postgres"), Logger: quiet}); err != nil {
		return b, err
	}
	if b.db, err = pgx.Connect(ctx, b.server.URL()); err != nil {
		return b, err
	}
	backend, err := readStat(int(b.db.PgConn().PID()))
	if err != nil {
		return b, err
	}
	b.postgres = backend.parent
	if b.embedded, err = kafkatest.Child(ctx, broker.Config{Dir: filepath.Join(b.dir, "broker")}); err != nil {
		return b, err
	}
	if o.measures('f') {
		if b.apache, err = kafkatest.Apache(ctx, filepath.Join(b.dir, "kafka")); err != nil {
			return b, fmt.Errorf("%w (leave f out with -only a,b,c,d,e)", err)
		}
		if err = b.warmUp(ctx, b.apache); err != nil {
			return b, err
		}
	}
	return b, b.describe(ctx)
}

func (b *bed) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var faults []error
	for _, p := range []*kafkatest.Proc{b.embedded, b.apache} {
		if p != nil {
			faults = append(faults, p.Kill9()) // nobody reads its data again
		}
	}
	if b.db != nil {
		b.db.Close(ctx)
	}
	if b.server != nil {
		faults = append(faults, b.server.Stop(ctx))
	}
	if b.dir != "" {
		faults = append(faults, os.RemoveAll(b.dir))
	}
	if err := errors.Join(faults...); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// selectSettings are those that decide what a commit costs.
const selectSettings = `select name, current_setting(name) from pg_settings where name in ('fsync', 'full_page_writes',
'synchronous_commit', 'wal_sync_method', 'wal_compression', 'max_wal_size', 'shared_buffers') order by name`

// describe prints what the run is on.
func (b *bed) describe(ctx context.Context) error {
	fmt.Fprintf(b.out, "Postgres %s", b.server.Version())
	rows, err := b.db.Query(ctx, selectSettings)
	if err != nil {
		return err
	}
	var name, value string
	if _, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		fmt.Fprintf(b.out, ", %s %s", name, value)
		return nil
	}); err != nil {
		return err
	}
	fmt.Fprintf(b.out, "\n%s", b.embedded.Version())
	if b.apache != nil {
		fmt.Fprintf(b.out, "; %s", b.apache.Version())
	}
	fmt.Fprintf(b.out, "\n%s\n%d rounds: %d commands over Kafka, %d by the loop, %d for one product; %d products, each created by the first of its commands\n",
		machine(), b.rounds, b.commands, b.loopCommands, b.hotCommands, b.aggregates)
	return nil
}

// The topics of the processor's context, and the loop's.
const (
	writCommands = "catalog.commands"
	writReplies  = "catalog.replies"
	loopCommands = "loop.commands"
	loopReplies  = "loop.replies"
)

// freshTopics replaces all topics by empty ones. The command topic of the context has that many partitions, 0 meaning
// the product's default.
func (b *bed) freshTopics(ctx context.Context, on *kafkatest.Proc, partitions int32) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(on.Addr()))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	wanted, err := topics.Declare("catalog", topics.Options{})
	if err != nil {
		return err
	}
	for i := range wanted {
		if wanted[i].Purpose == topics.Commands && partitions > 0 {
			wanted[i].Partitions = partitions
		}
	}
	for _, name := range []string{loopCommands, loopReplies} {
		wanted = append(wanted, topics.Topic{Name: name, Partitions: loopConnections, Replication: 1})
	}
	var names []string
	for _, t := range wanted {
		names = append(names, t.Name)
	}
	deleted, err := admin.DeleteTopics(ctx, names...)
	if err != nil {
		return err
	}
	for _, d := range deleted {
		if d.Err != nil && !errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
			return fmt.Errorf("delete topic %s: %w", d.Topic, d.Err)
		}
	}
	// A deleted topic can be seen for a while, and is then not created again.
	for {
		created, err := topics.Create(ctx, admin, wanted)
		if err != nil {
			return err
		}
		wanted = slices.DeleteFunc(wanted, func(t topics.Topic) bool { return slices.Contains(created, t.Name) })
		if len(wanted) == 0 {
			return nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// preload writes records to their topic and returns when all are acknowledged.
func preload(ctx context.Context, on *kafkatest.Proc, records []*kgo.Record) error {
	client, err := newProducer(on)
	if err != nil {
		return err
	}
	defer client.Close()
	return client.ProduceSync(ctx, records...).FirstErr()
}

func newProducer(on *kafkatest.Proc) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(on.Addr()), kgo.ProducerLinger(time.Millisecond), kgo.MaxBufferedRecords(1<<20), kgo.MaxBufferedBytes(1<<30))
}

// count is how many records stand on a topic.
func (b *bed) count(ctx context.Context, on *kafkatest.Proc, topic string) (n int64, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(on.Addr()))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		return 0, err
	}
	ends.Each(func(o kadm.ListedOffset) { n += o.Offset; err = errors.Join(err, o.Err) })
	return n, err
}

// freshSchema makes an empty schema with the processor's tables.
func (b *bed) freshSchema(ctx context.Context, name string) error {
	return store.Migrate(ctx, store.Config{URL: b.server.URL(), Schema: name})
}

// freshLoopSchema makes an empty schema with the loop's tables.
func (b *bed) freshLoopSchema(ctx context.Context, name string) error {
	_, err := b.db.Exec(ctx, "create schema "+name+"; set search_path to "+name+";"+loopTables+"reset search_path")
	return err
}

func (b *bed) dropSchema(ctx context.Context, name string) error {
	_, err := b.db.Exec(ctx, "drop schema "+name+" cascade")
	return err
}

// settle makes every measurement start with nothing left to be written by Postgres or by the system.
func (b *bed) settle(ctx context.Context) error {
	if _, err := b.db.Exec(ctx, "checkpoint"); err != nil {
		return err
	}
	settleDisk()
	return nil
}

// warmUp lets a Java machine compile its way of records in and out: cold, it is several times slower.
func (b *bed) warmUp(ctx context.Context, on *kafkatest.Proc) error {
	const n, rounds = 100_000, 8
	if err := b.freshTopics(ctx, on, 0); err != nil {
		return err
	}
	records, err := newWorkload(b.options, "warm").take(n, writCommands)
	if err != nil {
		return err
	}
	for range rounds {
		if err := preload(ctx, on, records); err != nil {
			return err
		}
		for _, r := range records {
			*r = kgo.Record{Topic: r.Topic, Key: r.Key, Value: r.Value, Headers: r.Headers}
		}
	}
	consumer, err := kgo.NewClient(kgo.SeedBrokers(on.Addr()), kgo.ConsumeTopics(writCommands), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer consumer.Close()
	for seen := 0; seen < n*rounds; {
		fetches := consumer.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		seen += fetches.NumRecords()
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
