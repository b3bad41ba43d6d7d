package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/internal/engine"
	"github.com/seed54173720/writ/internal/gc"
	"github.com/seed54173720/writ/internal/metrics"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/store/postgres"
)

// workerEnv holds a worker's configuration as JSON.
const workerEnv = "WRIT_BENCH_WORKER"

// What a worker may be.
const (
	kindWrit = "writ"
	kindLoop = "loop"
)

// workerConfig says what a worker process executes.
type workerConfig struct {
	Kind     string
	Broker   string // host:port
	Database string // URL
	Schema   string
	Group    string
	Commands string // topic; the processor knows its own
	Replies  string // topic
	Expect   int64  // replies until it reports the last; 0: never
	Profile  string // prefix of files, or ""
	Tuning   tuning
}

// tuning is what may be tried with the processor; zero is the product's default.
type tuning struct {
	Writers, Deciders, GroupCommands, InFlightCommands int
	Linger                                             time.Duration
}

// milestone is what a worker reports, a line of JSON each.
type milestone struct {
	Name string
	At   time.Time
}

const (
	firstPoll = "first poll"
	lastReply = "last reply"
)

// runWorker turns the program into a worker and never returns, if its environment says so; else it does nothing. What
// is measured is a process of its own: its CPU time and its memory are its alone. It ends with its standard input.
func runWorker() {
	text, ok := os.LookupEnv(workerEnv)
	if !ok {
		return
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent, however that ends
		cancel()
	}()
	err := work(ctx, text)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench worker:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func work(ctx context.Context, text string) error {
	var cfg workerConfig
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return err
	}
	p := newProbe(cfg.Replies, cfg.Expect)
	registry := metrics.NewRegistry()
	profile := profiler{prefix: cfg.Profile, metrics: metrics.Handler(registry)}
	reported := make(chan error, 1)
	go func() { reported <- reportMilestones(ctx, p, &profile) }()

	var err error
	switch cfg.Kind {
	case kindWrit:
		err = runProcessor(ctx, cfg, p, metrics.New(registry))
	case kindLoop:
		err = runLoop(ctx, cfg, p)
	default:
		err = fmt.Errorf("kind %q: must be %s or %s", cfg.Kind, kindWrit, kindLoop)
	}
	if err != nil {
		return err // with which the reports end too
	}
	return <-reported
}

func reportMilestones(ctx context.Context, p *probe, profile *profiler) error {
	out := json.NewEncoder(os.Stdout)
	for _, m := range []struct {
		name string
		at   chan time.Time
		then func() error
	}{{firstPoll, p.first, profile.start}, {lastReply, p.last, profile.stop}} {
		select {
		case at := <-m.at:
			if err := errors.Join(out.Encode(milestone{Name: m.name, At: at}), m.then()); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// runProcessor is the product with its defaults: what `processor serve` runs.
func runProcessor(ctx context.Context, cfg workerConfig, p *probe, m *metrics.Metrics) error {
	gc.Tune()
	st, err := postgres.Open(ctx, postgres.Config{URL: cfg.Database, Schema: cfg.Schema, Writers: cfg.Tuning.Writers, Logger: slog.Default()})
	if err != nil {
		return err
	}
	defer st.Close()
	if err := st.Check(ctx); err != nil {
		return err
	}
	e, err := engine.New(engine.Config{
		Kernel:  &kernel.Kernel{Context: catalog.Context(), Store: st},
		Kafka:   []kgo.Opt{kgo.SeedBrokers(cfg.Broker), kgo.WithHooks(p)},
		Group:   cfg.Group,
		Metrics: m,
		Writers: cfg.Tuning.Writers, Deciders: cfg.Tuning.Deciders, GroupCommands: cfg.Tuning.GroupCommands,
		InFlightCommands: cfg.Tuning.InFlightCommands, Linger: cfg.Tuning.Linger,
	})
	if err != nil {
		return err
	}
	return e.Run(ctx)
}

// loopConnections is one for each partition of the loop's topic.
const loopConnections = 16

func runLoop(ctx context.Context, cfg workerConfig, p *probe) error {
	pool, err := pgxpool.ParseConfig(cfg.Database)
	if err != nil {
		return err
	}
	pool.MaxConns = loopConnections
	pool.ConnConfig.RuntimeParams["search_path"] = cfg.Schema
	l := &loop{replies: cfg.Replies}
	if l.pool, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return err
	}
	defer l.pool.Close()
	if l.producer, err = kgo.NewClient(kgo.SeedBrokers(cfg.Broker), kgo.WithHooks(p),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(time.Millisecond)); err != nil {
		return err
	}
	defer l.producer.Close()
	if l.consumer, err = kgo.NewClient(kgo.SeedBrokers(cfg.Broker), kgo.WithHooks(p),
		kgo.ConsumerGroup(cfg.Group), kgo.ConsumeTopics(cfg.Commands), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.AutoCommitMarks(), kgo.AutoCommitInterval(time.Second), kgo.FetchMaxWait(500*time.Millisecond)); err != nil {
		return err
	}
	defer l.consumer.Close()
	return l.run(ctx)
}
