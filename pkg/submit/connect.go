package submit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/seed54173720/writ/internal/config"
	"github.com/seed54173720/writ/internal/datadir"
	"github.com/seed54173720/writ/internal/kafka"
	"github.com/seed54173720/writ/pkg/client"
	"github.com/seed54173720/writ/pkg/kernel"
)

// bindConnection adds the flags that say where the brokers are: the processor's
// own, so that both share their environment and their file.
func bindConnection(flags *pflag.FlagSet) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Bind(all)
	all.VisitAll(func(f *pflag.Flag) {
		if strings.HasPrefix(f.Name, "kafka-") || f.Name == "data-dir" || f.Name == "log-level" || f.Name == "config" {
			flags.AddFlag(f)
		}
	})
	flags.Lookup("kafka-brokers").Usage = "addresses of the brokers, host:port with commas between them; also --brokers (WRIT_KAFKA_BROKERS). " +
		"Default: those of the processor that runs on the data directory of this machine"
}

// alias makes --brokers another name of --kafka-brokers.
func alias(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "brokers" {
		name = "kafka-brokers"
	}
	return pflag.NormalizedName(name)
}

// connection is where to send to.
type connection struct {
	cfg     *config.Config
	brokers []string
	from    string // where the brokers' addresses come from, if they were not given
	log     *slog.Logger
}

func loadConnection(flags *pflag.FlagSet, stderr io.Writer) (*connection, error) {
	cfg, err := config.Load(flags, os.Environ())
	if err != nil {
		return nil, err
	}
	level := slog.LevelError // what is wrong with the connection is in the error
	if flags.Changed("log-level") || os.Getenv("WRIT_LOG_LEVEL") != "" {
		if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
			return nil, err
		}
	}
	return &connection{
		cfg:     cfg,
		brokers: cfg.KafkaBrokers,
		log:     slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level})),
	}, nil
}

// find looks for the processor of this machine, if no brokers were named.
func (c *connection) find() error {
	if len(c.brokers) > 0 {
		return nil
	}
	e, err := datadir.Read(c.cfg.DataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no processor runs on data directory %s: start one there, or name another directory (--data-dir) or the brokers (--kafka-brokers)", c.cfg.DataDir)
	case err != nil:
		return err
	case e.Kafka == "":
		return fmt.Errorf("%s names no brokers: give them with --kafka-brokers", datadir.File(c.cfg.DataDir))
	}
	c.brokers = strings.Split(e.Kafka, ",")
	c.from = fmt.Sprintf(" (from %s: does that processor still run?)", datadir.File(c.cfg.DataDir))
	return nil
}

func (c *connection) dial(ctx context.Context, types *kernel.Context, replyTopic string) (*client.Client, error) {
	if err := c.find(); err != nil {
		return nil, err
	}
	opts, err := kafka.Options(c.cfg, c.brokers, c.log)
	if err != nil {
		return nil, err
	}
	conn, err := client.New(ctx, client.Config{
		Brokers: c.brokers, Context: types.Name(), Types: types, ReplyTopic: replyTopic,
		Linger:  -1, // one command has nobody to wait for
		Options: opts, Logger: c.log,
	})
	if err != nil {
		return nil, fmt.Errorf("%w%s", kafka.Explain(err), c.from)
	}
	return conn, nil
}
