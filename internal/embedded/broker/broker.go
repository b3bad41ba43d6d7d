// Package broker runs a Kafka broker inside the program: one node on the
// loopback interface, durable in a directory, for trying out, for tests and for
// work on one machine.
//
// The broker is kfake, which speaks the protocol completely and fast but was
// made for tests: bare, it can be killed by a stray packet, let two processes
// write one directory, or start a partition again at offset 0. This package is
// the wrapper that makes it safe to keep data in. What remains:
//
//   - a crash of the process loses nothing that was acknowledged; a loss of power
//     may, unless [Config.SyncWrites] is set;
//   - a crash forgets group sessions (members join again) and the sequence numbers
//     of producers (a batch that is sent again can stand twice in the log);
//   - trimmed records can come back after a crash;
//   - there is no TLS and no SASL, quotas are not enforced, and replicas exist in
//     the metadata only.
package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Config says where the broker keeps its data, where it listens and how much of
// its log it keeps. Dir is required; every other zero value is a default.
type Config struct {
	// Dir holds the broker's data; it is made if it is missing. One broker uses
	// it at a time: a file beside it (Dir + ".lock") is locked while it runs.
	Dir string

	// Host is the address to listen on. It MUST be a loopback address, since
	// anybody who reaches the broker may do anything. Default: 127.0.0.1.
	Host string `json:",omitempty"`

	// Port is the port to listen on; it MUST be free. Default 0: the port of the
	// last start, or a free one where there was none or it is taken.
	Port int `json:",omitempty"`

	// NewPort makes a zero Port mean a fresh one at each start. Default: false.
	NewPort bool `json:",omitempty"`

	// ClusterID names the installation; it MUST be the one that Dir was made
	// with. Default: Dir's, or a random one for a new Dir.
	ClusterID string `json:",omitempty"`

	// SyncWrites makes each acknowledged record survive a loss of power, at half
	// the produce rate. Default: false.
	SyncWrites bool `json:",omitempty"`

	// TrimEvery is the time between two looks for records to trim; negative never
	// trims. The log is read into memory when the broker recovers from a crash, so
	// an untrimmed one costs memory as well as disk. Default: 10s.
	TrimEvery time.Duration `json:",omitempty"`

	// Keep is how many records of a partition stay although nobody needs them.
	// The newest record always stays. Default: 100,000.
	Keep int64 `json:",omitempty"`

	// KeepBytes bounds the same in bytes, by the mean size of the partition's
	// records. Default: 64 MiB.
	KeepBytes int64 `json:",omitempty"`

	// Groups are the consumer groups that command topics wait for: a record of a
	// topic that ends in ".commands" is trimmed when every one of them that reads
	// the topic has committed past it. Default: all groups there are.
	Groups []string `json:",omitempty"`

	// Logger receives what the broker has to say. Default: nobody.
	Logger *slog.Logger `json:"-"`
}

func (c Config) withDefaults() Config {
	if c.Host == "" {
		c.Host = "127.0.0.1"
	}
	if c.TrimEvery == 0 {
		c.TrimEvery = 10 * time.Second
	}
	if c.Keep == 0 {
		c.Keep = 100_000
	}
	if c.KeepBytes == 0 {
		c.KeepBytes = 64 << 20
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate reports all that is wrong with c.
func (c Config) Validate() error {
	var faults []error
	if c.Dir == "" {
		faults = append(faults, errors.New(`broker: Dir "" is empty: the broker needs a directory`))
	}
	if c.Host != "" && !isLoopback(c.Host) {
		faults = append(faults, fmt.Errorf("broker: Host %q is not a loopback address: the embedded broker lets everybody in, use a Kafka cluster to listen elsewhere", c.Host))
	}
	if c.Port < 0 || c.Port > 65535 {
		faults = append(faults, fmt.Errorf("broker: Port %d is not in 0…65535", c.Port))
	}
	if c.Keep < 0 {
		faults = append(faults, fmt.Errorf("broker: Keep %d is negative", c.Keep))
	}
	if c.KeepBytes < 0 {
		faults = append(faults, fmt.Errorf("broker: KeepBytes %d is negative", c.KeepBytes))
	}
	return errors.Join(faults...)
}

// Broker is a running broker. Its methods are safe for concurrent use.
type Broker struct {
	cfg     Config
	id      identity
	lock    *dirLock
	cluster *kfake.Cluster
	trimmer *trimmer

	close    sync.Once
	closeErr error
}

// Start runs a broker until Close. ctx bounds the start alone.
//
// It fails with a [*InUseError] when another process runs a broker on the same
// directory.
func Start(ctx context.Context, cfg Config) (_ *Broker, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("broker: make the data directory: %w", err)
	}
	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			lock.release()
		}
	}()

	id, err := readIdentity(cfg.Dir)
	if err != nil {
		return nil, err
	}
	switch {
	case id.ClusterID == "" && cfg.ClusterID == "":
		id.ClusterID = rand.Text()
	case id.ClusterID == "":
		id.ClusterID = cfg.ClusterID
	case cfg.ClusterID != "" && cfg.ClusterID != id.ClusterID:
		return nil, fmt.Errorf("broker: ClusterID %q is not that of directory %s, which belongs to cluster %q", cfg.ClusterID, cfg.Dir, id.ClusterID)
	}

	ln, err := listen(ctx, cfg, id.Port)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			ln.Close()
		}
	}()
	id.Port = ln.Addr().(*net.TCPAddr).Port
	if err := id.write(cfg.Dir); err != nil {
		return nil, err
	}

	b := &Broker{cfg: cfg, id: id, lock: lock}
	if b.cluster, err = kfake.NewCluster(b.options(ln)...); err != nil {
		return nil, fmt.Errorf("broker: start on %s: %w", cfg.Dir, err)
	}
	keepLastRecord(b.cluster)
	if b.trimmer, err = startTrimmer(b); err != nil {
		b.cluster.Close()
		return nil, err
	}
	cfg.Logger.InfoContext(ctx, fmt.Sprintf("embedded broker on %s, one node, for trying out", b.Addr()),
		"dir", cfg.Dir, "cluster", id.ClusterID, "sync_writes", cfg.SyncWrites)
	return b, nil
}

// never is the interval, in milliseconds, at which kfake applies the retention of
// topics: a hundred years. A partition that retention empties would begin again
// at offset 0 under the same topic ID, where offsets name records for ever.
const never = "3153600000000"

func (b *Broker) options(ln net.Listener) []kfake.Opt {
	opts := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.ClusterID(b.id.ClusterID),
		kfake.DataDir(filepath.Join(b.cfg.Dir, "log")),
		kfake.WithLogger(logger{b.cfg.Logger}),
		kfake.ListenFn(func(string, string) (net.Listener, error) { return ln, nil }),
		kfake.BrokerConfigs(map[string]string{
			"log.segment.bytes":      "8388608",
			"message.max.bytes":      "1048588",
			"log.cleaner.backoff.ms": never,
		}),
	}
	if b.cfg.SyncWrites {
		opts = append(opts, kfake.SyncWrites())
	}
	return opts
}

// Addr is where the broker listens, as host:port.
func (b *Broker) Addr() string { return net.JoinHostPort(b.cfg.Host, fmt.Sprint(b.id.Port)) }

// ClusterID is the installation's name, which clients see in the metadata.
func (b *Broker) ClusterID() string { return b.id.ClusterID }

// CreateTopic makes a topic and has it on disk when it returns. Topics are never
// made by naming them: such a topic, and what was written to it, would be gone
// after a crash. Making a topic over the protocol is as good as this.
func (b *Broker) CreateTopic(topic string, partitions int32, configs map[string]string) error {
	if err := b.cluster.CreateTopic(topic, partitions, configs); err != nil {
		return fmt.Errorf("broker: create topic %q: %w", topic, err)
	}
	return nil
}

// Cluster is the broker inside, for tests that inject faults. After Close its
// methods MUST NOT be called.
func (b *Broker) Cluster() *kfake.Cluster { return b.cluster }

// Close stops the broker, puts its state on disk and frees its directory. Later
// calls return what the first one did.
func (b *Broker) Close() error {
	b.close.Do(func() {
		b.trimmer.stop()
		b.cluster.Close()
		b.closeErr = b.lock.release()
	})
	return b.closeErr
}
