package processor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed54173720/writ/internal/engine"
	"github.com/seed54173720/writ/internal/gc"
	"github.com/seed54173720/writ/internal/health"
	"github.com/seed54173720/writ/internal/kafka"
	"github.com/seed54173720/writ/internal/metrics"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/store/postgres"
	"github.com/seed54173720/writ/topics"
)

func (a *app) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Execute commands until interrupted",
		Long: `Serve executes the commands of the context until it is interrupted.

Without kafka-brokers it runs an embedded broker, without database-url a Postgres of its own, both in the data
directory; what an embedded part lacks (topics, schema) is made. On parts that are configured, --topics and --migrate
make what is missing first; else it is an error.`,
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.serve(cmd.Context(), func(ctx context.Context, _ *node) error {
				<-ctx.Done()
				return nil
			})
		},
	}
}

// node is a processor that serves.
type node struct {
	*parts
	http  string // where metrics and health are, "" where they are off
	store *postgres.Store
}

// serve runs a processor and, beside it, use. It stops in order when use returns or ctx ends.
func (a *app) serve(ctx context.Context, use func(context.Context, *node) error) error {
	h := &health.Health{}
	h.Report("start", errors.New("starting"))
	registry := metrics.NewRegistry()
	n := &node{}
	http, stopHTTP, err := a.serveHTTP(h, metrics.Handler(registry))
	if err != nil {
		return err
	}
	defer stopHTTP()
	n.http = http

	if n.parts, err = a.startParts(ctx); err != nil {
		return stopped(ctx, err)
	}
	defer n.stop(a)
	if err := a.reach(ctx, h, func() error { return a.prepareKafka(ctx, n.parts) }); err != nil {
		return stopped(ctx, err)
	}
	if err := a.reach(ctx, h, func() (err error) {
		n.store, err = a.prepareStore(ctx, n.parts)
		return err
	}); err != nil {
		return stopped(ctx, err)
	}
	defer n.store.Close()
	retract, err := a.publish(n.parts, http)
	if err != nil {
		return err
	}
	defer retract()
	h.Report("start", nil)
	a.log.Info("serving", "context", a.kernel.Name(), "kafka", n.brokers, "http", n.http, "version", version(), "pid", os.Getpid())

	running, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var broken error
	wg.Go(func() {
		defer cancel() // where it cannot go on, use has to end too
		broken = a.process(running, n, h, metrics.New(registry))
	})
	if n.postgres != nil {
		wg.Go(func() { a.keepPostgres(running, n.postgres) })
	}
	err = use(running, n)
	cancel()
	wg.Wait()
	return errors.Join(broken, err)
}

// reach calls f again until the servers that it needs let it in: at the start they may be away as at any other time, and
// a password may come later. Readiness says meanwhile why. Any other error is returned.
func (a *app) reach(ctx context.Context, h *health.Health, f func() error) error {
	const shortest, longest = 500 * time.Millisecond, 5 * time.Second
	last := ""
	for wait := shortest; ; wait = min(2*wait, longest) {
		err := f()
		if !errors.Is(err, kafka.ErrUnreachable) && !errors.Is(err, postgres.ErrUnreachable) || ctx.Err() != nil {
			h.Report("start", errors.New("starting"))
			return err
		}
		h.Report("start", err)
		if err.Error() != last {
			last = err.Error()
			a.log.Warn("cannot start yet; tries again until it can", "error", err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// stopped makes a quiet end of an error that is only the end of ctx.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// prepareKafka creates the topics where it should, and checks them.
func (a *app) prepareKafka(ctx context.Context, p *parts) error {
	admin, declared, err := a.admin(ctx, p.brokers)
	if err != nil {
		return err
	}
	defer admin.Close()
	if a.cfg.Topics || p.broker != nil {
		created, err := topics.Create(ctx, admin, declared)
		if err != nil {
			return err
		}
		if len(created) > 0 {
			a.log.Info("topics created", "topics", created)
		}
	}
	report, err := topics.Check(ctx, admin, declared)
	if err != nil {
		return err
	}
	for _, f := range report.Warnings() {
		a.log.Warn("a topic is not as declared", "topic", f.Topic, "problem", f.Problem, "mend", f.Mend)
	}
	return report.Err()
}

// admin returns an administration client and the context's topics as declared.
func (a *app) admin(ctx context.Context, brokers []string) (*kafka.Admin, []topics.Topic, error) {
	declared, err := a.declaredTopics()
	if err != nil {
		return nil, nil, err
	}
	opts, err := kafka.Options(a.cfg, brokers, a.log)
	if err != nil {
		return nil, nil, err
	}
	client, err := kafka.Connect(ctx, opts, brokers)
	return client, declared, err
}

func (a *app) declaredTopics() ([]topics.Topic, error) {
	opts := topics.Options{Partitions: int32(a.cfg.TopicsPartitions), Replication: int16(a.cfg.TopicsReplication), Events: a.cfg.Events}
	if a.cfg.TopicsFile != "" {
		text, err := os.ReadFile(a.cfg.TopicsFile)
		if err != nil {
			return nil, &usageError{fmt.Errorf("topics-file: %w", err)}
		}
		opts.File = text
	}
	declared, err := topics.Declare(a.kernel.Name(), opts)
	if err != nil {
		return nil, &usageError{err}
	}
	return declared, nil
}

func (a *app) storeConfig(url string) postgres.Config {
	schema := a.cfg.DatabaseSchema
	if schema == "" {
		schema = a.kernel.Name()
	}
	return postgres.Config{URL: url, Schema: schema, Writers: a.cfg.Writers, Logger: a.log}
}

// prepareStore migrates the database where it should, and returns its store once it was checked.
func (a *app) prepareStore(ctx context.Context, p *parts) (*postgres.Store, error) {
	cfg := a.storeConfig(p.database)
	if a.cfg.Migrate || p.postgres != nil {
		if err := postgres.Migrate(ctx, cfg); err != nil {
			return nil, err
		}
	}
	return openStore(ctx, cfg)
}

func openStore(ctx context.Context, cfg postgres.Config) (*postgres.Store, error) {
	s, err := postgres.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := s.Check(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// engineConfig is an engine's part of the settings.
func (a *app) engineConfig() engine.Config {
	return engine.Config{
		Kernel: &kernel.Kernel{
			Context: a.kernel, Authorise: a.authorise, SnapshotEvery: a.cfg.SnapshotEvery, Attempts: a.cfg.Attempts,
			BuildPatience: a.cfg.BuildPatience,
		},
		Group: a.cfg.Group, Logger: a.log, Events: a.cfg.Events,
		Writers: a.cfg.Writers, Deciders: a.cfg.Deciders,
		UnitCommands: a.cfg.UnitCommands, GroupCommands: a.cfg.GroupCommands, GroupBytes: a.cfg.GroupBytes,
		InFlightCommands: a.cfg.InFlightCommands, InFlightBytes: a.cfg.InFlightBytes,
		PartitionCommands: a.cfg.PartitionCommands, Window: a.cfg.Window, CacheBytes: a.cfg.CacheBytes,
		Linger: a.cfg.Linger, Drain: a.cfg.Drain,
		SessionTimeout: a.cfg.SessionTimeout, Heartbeat: a.cfg.Heartbeat, RebalanceTimeout: a.cfg.RebalanceTimeout,
		OffsetInterval: a.cfg.OffsetInterval, RetryMin: a.cfg.RetryMin, RetryMax: a.cfg.RetryMax,
	}
}

// process runs engines, one after the other, until ctx ends: one that cannot go on is followed by another, which
// begins with what is true then.
func (a *app) process(ctx context.Context, n *node, h *health.Health, m *metrics.Metrics) (err error) {
	gc.Tune()
	cfg := a.engineConfig()
	cfg.Kernel.Store, cfg.Metrics, cfg.Health = n.store, m, h
	if cfg.Kafka, err = kafka.Options(a.cfg, n.brokers, a.log); err != nil {
		return err
	}
	const shortest, longest = time.Second, 30 * time.Second
	for wait := shortest; ; wait = min(2*wait, longest) {
		e, err := engine.New(cfg)
		if err != nil {
			return err
		}
		began := time.Now()
		err = e.Run(ctx)
		if ctx.Err() != nil {
			return nil // what it could not do at the end, it has logged
		}
		if time.Since(began) > longest {
			wait = shortest
		}
		h.Report("engine", fmt.Errorf("stopped, and starts again: %w", err))
		a.log.Error("the engine cannot go on; another one begins", "error", err, "wait", wait)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		h.Report("engine", nil)
	}
}
