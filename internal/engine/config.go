// Package engine is the Kafka side of the processor: it takes records from the command topic, brings them through the
// kernel in lanes, commits them in groups, answers them, and moves the offsets behind what is finished.
package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/internal/health"
	"github.com/seed54173720/writ/internal/metrics"
	"github.com/seed54173720/writ/pkg/kernel"
)

// Config configures an Engine. Zero fields take the defaults that their comments name.
type Config struct {
	Kernel  *kernel.Kernel // required, with its Context and Store
	Kafka   []kgo.Opt      // required: seed brokers, and TLS, SASL and client ID where needed
	Group   string         // consumer group. Defaults to "<context>.processor".
	Logger  *slog.Logger   // Defaults to slog.Default().
	Metrics *metrics.Metrics
	Health  *health.Health

	// Events publishes what is committed to the topic <context>.events. Defaults to false.
	Events bool

	// Writers is how many groups are committed side by side. 1 to 64. Defaults to 2: one encodes while Postgres works
	// for the other; more make small groups.
	Writers int
	// Deciders is how many goroutines decide side by side. 1 to 64. Defaults to 2.
	Deciders int
	// UnitCommands bounds the commands of one aggregate in one transaction. 1 to 10,000. Defaults to 512.
	UnitCommands int
	// GroupCommands bounds the commands of one transaction. 1 to 100,000. Defaults to 2,000: larger groups are
	// faster and keep each command waiting for longer.
	GroupCommands int
	// GroupBytes bounds the record bytes of one transaction. Defaults to 8 MiB.
	GroupBytes int64
	// InFlightCommands bounds the commands taken from Kafka and not yet answered. Defaults to 12,000: with less than
	// three times Writers × GroupCommands the groups stay small, with more their memory outgrows the CPU's caches.
	InFlightCommands int
	// InFlightBytes bounds their record bytes. Defaults to 64 MiB.
	InFlightBytes int64
	// PartitionCommands bounds the commands in flight of one partition. Defaults to three quarters of
	// InFlightCommands, so that one stuck partition leaves room for the others.
	PartitionCommands int
	// Window bounds how far a partition is read ahead of its oldest unfinished record, in records. Defaults to 65,536.
	Window int
	// CacheBytes bounds the estimated size of the cached states of one partition. Defaults to 8 MiB.
	CacheBytes int64
	// Linger is how long to wait before the next poll or group after a small one. Defaults to 3 ms.
	Linger time.Duration
	// Drain is how long a revoked partition, or the whole processor at shutdown, may take to finish what is in
	// flight. Defaults to 8 s.
	Drain time.Duration
	// SessionTimeout, Heartbeat and RebalanceTimeout are the consumer group's. Default to 30 s, 3 s, 60 s.
	SessionTimeout, Heartbeat, RebalanceTimeout time.Duration
	// OffsetInterval is how often offsets are committed. Defaults to 1 s.
	OffsetInterval time.Duration
	// Retry is the range of waits between tries of a command that fails. Default to 50 ms and 2 s.
	RetryMin, RetryMax time.Duration
}

// WithDefaults returns c with each zero field at its default. The settings of the processor have the same ones.
func (c Config) WithDefaults() Config {
	defaultTo(&c.Group, c.Kernel.Context.Name()+".processor")
	defaultTo(&c.Writers, 2)
	defaultTo(&c.Deciders, 2)
	defaultTo(&c.UnitCommands, 512)
	defaultTo(&c.GroupCommands, 2_000)
	defaultTo(&c.GroupBytes, 8<<20)
	defaultTo(&c.InFlightCommands, 12_000)
	defaultTo(&c.InFlightBytes, 64<<20)
	defaultTo(&c.PartitionCommands, max(c.InFlightCommands*3/4, 1))
	defaultTo(&c.Window, 65_536)
	defaultTo(&c.CacheBytes, 8<<20)
	defaultTo(&c.Linger, 3*time.Millisecond)
	defaultTo(&c.Drain, 8*time.Second)
	defaultTo(&c.SessionTimeout, 30*time.Second)
	defaultTo(&c.Heartbeat, 3*time.Second)
	defaultTo(&c.RebalanceTimeout, 60*time.Second)
	defaultTo(&c.OffsetInterval, time.Second)
	defaultTo(&c.RetryMin, 50*time.Millisecond)
	defaultTo(&c.RetryMax, 2*time.Second)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Health == nil {
		c.Health = &health.Health{}
	}
	return c
}

func (c Config) validate() error {
	var faults []error
	within := func(name string, n, low, high int64) {
		if n < low || n > high {
			faults = append(faults, fmt.Errorf("%s is %d: must be %d to %d", name, n, low, high))
		}
	}
	within("writers", int64(c.Writers), 1, 64)
	within("deciders", int64(c.Deciders), 1, 64)
	within("unit-commands", int64(c.UnitCommands), 1, 10_000)
	within("group-commands", int64(c.GroupCommands), 1, 100_000)
	within("group-bytes", c.GroupBytes, 1<<20, 1<<30)
	within("in-flight-commands", int64(c.InFlightCommands), 1, 1_000_000)
	within("in-flight-bytes", c.InFlightBytes, 2<<20, 1<<40)
	within("partition-commands", int64(c.PartitionCommands), 1, int64(c.InFlightCommands))
	within("window", int64(c.Window), int64(c.PartitionCommands), 1<<30)
	within("cache-bytes", c.CacheBytes, 0, 1<<40)
	if c.Drain+5*time.Second > c.RebalanceTimeout {
		faults = append(faults, fmt.Errorf("drain is %v: must be at least 5s below the rebalance timeout of %v, or a draining processor is thrown out of its group", c.Drain, c.RebalanceTimeout))
	}
	return errors.Join(faults...)
}

func defaultTo[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
