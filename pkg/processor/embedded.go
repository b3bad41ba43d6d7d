package processor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/seed54173720/writ/internal/datadir"
	"github.com/seed54173720/writ/internal/embedded/broker"
	"github.com/seed54173720/writ/internal/embedded/postgres"
)

// stopPatience is how long the embedded Postgres may take for an orderly shutdown.
const stopPatience = 30 * time.Second

// parts are the servers that a run works with: the configured ones, or those that it has started itself.
type parts struct {
	brokers  []string
	database string // URL

	broker   *broker.Broker
	postgres *postgres.Server
}

// startParts starts what is not configured. Stop what it returns.
func (a *app) startParts(ctx context.Context) (*parts, error) {
	p := &parts{brokers: a.cfg.KafkaBrokers, database: a.cfg.DatabaseURL}
	if a.cfg.EmbeddedBroker() || a.cfg.EmbeddedDatabase() {
		if err := makeDataDir(a.cfg.DataDir); err != nil {
			return nil, err
		}
	}
	if a.cfg.EmbeddedBroker() {
		if err := a.startBroker(ctx, p); err != nil {
			return nil, err
		}
	}
	if a.cfg.EmbeddedDatabase() {
		if err := a.startPostgres(ctx, p); err != nil {
			p.stop(a)
			return nil, err
		}
	}
	return p, nil
}

// stop ends what startParts has started.
func (p *parts) stop(a *app) {
	if p.postgres != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
		defer cancel()
		if err := p.postgres.Stop(ctx); err != nil {
			a.log.Warn("the embedded postgres did not stop in order; it recovers at the next start", "error", err)
		}
	}
	if p.broker != nil {
		if err := p.broker.Close(); err != nil {
			a.log.Warn("the embedded broker did not stop in order", "error", err)
		}
	}
}

// dataDirMode lets the user of a Postgres that root has started pass through. What is in the directory has modes of its
// own.
const dataDirMode = 0o711

func makeDataDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	if err := os.Mkdir(dir, dataDirMode); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make the data directory: %w", err)
	}
	return nil
}

func (a *app) startBroker(ctx context.Context, p *parts) error {
	b, err := broker.Start(ctx, broker.Config{
		Dir: a.brokerDir(), Port: a.cfg.BrokerPort, SyncWrites: a.cfg.BrokerSyncWrites, Logger: a.log,
	})
	if err != nil {
		return a.explainInUse(err)
	}
	p.broker, p.brokers = b, []string{b.Addr()}
	return nil
}

func (a *app) startPostgres(ctx context.Context, p *parts) error {
	s, err := postgres.Start(ctx, a.postgresConfig())
	var blocked *postgres.PassageError
	if errors.As(err, &blocked) && a.isDataDir(blocked.Dir) {
		// Somebody made the directory for its user alone. It is ours to open; its parents are not.
		if err := os.Chmod(blocked.Dir, dataDirMode); err != nil {
			return fmt.Errorf("let postgres pass through the data directory: %w", err)
		}
		s, err = postgres.Start(ctx, a.postgresConfig())
	}
	if err != nil {
		return a.explainInUse(err)
	}
	p.postgres, p.database = s, s.URL()
	return nil
}

// isDataDir reports whether a path, absolute and free of links, is that of the data directory.
func (a *app) isDataDir(path string) bool {
	dir, err := filepath.EvalSymlinks(a.cfg.DataDir)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	return err == nil && dir == path
}

func (a *app) postgresConfig() postgres.Config {
	return postgres.Config{Dir: a.postgresDir(), Logger: a.log}
}

func (a *app) brokerDir() string { return filepath.Join(a.cfg.DataDir, "broker") }

func (a *app) postgresDir() string { return filepath.Join(a.cfg.DataDir, "postgres") }

// explainInUse says who has the data directory, where another process does.
func (a *app) explainInUse(err error) error {
	var inUse *broker.InUseError
	if !errors.As(err, &inUse) && !errors.Is(err, postgres.ErrInUse) {
		return err
	}
	return fmt.Errorf("%w: a processor runs on data directory %s already: stop it, or choose another with --data-dir", err, a.cfg.DataDir)
}

// publish writes where the parts listen into the data directory, for programs on this machine, if anything of this run
// lives there. The result takes it back.
func (a *app) publish(p *parts, http string) (retract func(), err error) {
	if p.broker == nil && p.postgres == nil && !a.cfg.Explicit("data-dir") {
		return func() {}, nil
	}
	e := datadir.Endpoints{HTTP: http, Database: p.database, PID: os.Getpid()}
	for i, addr := range p.brokers {
		if i > 0 {
			e.Kafka += ","
		}
		e.Kafka += addr
	}
	if err := datadir.Write(a.cfg.DataDir, e); err != nil {
		return nil, err
	}
	return func() {
		if err := datadir.Remove(a.cfg.DataDir, os.Getpid()); err != nil {
			a.log.Warn("the file that says where the parts listen stays behind", "error", err)
		}
	}, nil
}
