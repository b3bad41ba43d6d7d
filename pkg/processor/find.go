package processor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed54173720/writ/internal/datadir"
	"github.com/seed54173720/writ/internal/embedded/broker"
	embedded "github.com/seed54173720/writ/internal/embedded/postgres"
	"github.com/seed54173720/writ/pkg/store/postgres"
)

// withDatabase calls f with the URL of the configured database; else with that of the processor that runs on the data
// directory; else with that of the directory's own Postgres, which runs for the time of the call.
//
// Whether a processor runs is asked of the directory's lock, by trying to start: the file with its endpoints stays
// behind when a process is killed.
func (a *app) withDatabase(ctx context.Context, f func(url string) error) error {
	if !a.cfg.EmbeddedDatabase() {
		return f(a.cfg.DatabaseURL)
	}
	if _, err := os.Stat(filepath.Join(a.postgresDir(), "data")); errors.Is(err, fs.ErrNotExist) {
		// A processor that was told of its database publishes that as well.
		if e, err := datadir.Read(a.cfg.DataDir); err == nil && e.Database != "" {
			return f(e.Database)
		}
		return fmt.Errorf("data directory %s holds no database: name one with --database-url or --data-dir, or begin with processor serve", a.cfg.DataDir)
	}
	p := &parts{}
	err := a.startPostgres(ctx, p)
	if errors.Is(err, embedded.ErrInUse) {
		e, err := a.running(err)
		if err != nil {
			return err
		}
		return f(e.Database)
	}
	if err != nil {
		return err
	}
	defer p.stop(a)
	return f(p.database)
}

// withStore calls f with a checked store of the database.
func (a *app) withStore(ctx context.Context, f func(*postgres.Store) error) error {
	return a.withDatabase(ctx, func(url string) error {
		s, err := openStore(ctx, a.storeConfig(url))
		if err != nil {
			return err
		}
		defer s.Close()
		return f(s)
	})
}

// withBrokers is withDatabase for the brokers. Of a data directory that has no broker yet one is made: to create topics
// is a beginning.
func (a *app) withBrokers(ctx context.Context, f func(brokers []string) error) error {
	if !a.cfg.EmbeddedBroker() {
		return f(a.cfg.KafkaBrokers)
	}
	if _, err := os.Stat(a.brokerDir()); errors.Is(err, fs.ErrNotExist) {
		if e, err := datadir.Read(a.cfg.DataDir); err == nil && e.Kafka != "" {
			return f(strings.Split(e.Kafka, ","))
		}
	}
	if err := makeDataDir(a.cfg.DataDir); err != nil {
		return err
	}
	p := &parts{}
	err := a.startBroker(ctx, p)
	var inUse *broker.InUseError
	if errors.As(err, &inUse) {
		e, err := a.running(err)
		if err != nil {
			return err
		}
		return f(strings.Split(e.Kafka, ","))
	}
	if err != nil {
		return err
	}
	defer p.stop(a)
	return f(p.brokers)
}

// running returns the endpoints of the process that holds the data directory, as inUse says.
func (a *app) running(inUse error) (datadir.Endpoints, error) {
	e, err := datadir.Read(a.cfg.DataDir)
	if err != nil {
		return e, fmt.Errorf("%w, and it does not say yet where its parts listen: try again", inUse)
	}
	return e, nil
}
