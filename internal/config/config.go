package config

import (
	_ "embed"
	"time"
)

// This file is read by the program itself: the comment of a field of Config is the help of its flag and its entry in
// docs/configuration.md, and its last sentence names the default.

//go:embed config.go
var source string

// Config is every setting of the processor. A setting has one name everywhere: kafka-brokers in the file and as
// --kafka-brokers, WRIT_KAFKA_BROKERS in the environment.
type Config struct {
	// KafkaBrokers are the addresses, host:port with commas between them, to find the Kafka cluster by. Default: none,
	// which runs an embedded broker in the data directory, for trying out and for work on one machine.
	KafkaBrokers []string `koanf:"kafka-brokers"`

	// KafkaClientID is the name by which the brokers know this process in their logs and quotas. Default: writ.
	KafkaClientID string `koanf:"kafka-client-id"`

	// KafkaTLS encrypts the connections to the brokers. Default: false.
	KafkaTLS bool `koanf:"kafka-tls"`

	// KafkaCAFile holds the PEM certificates that the brokers' ones are checked against; it implies kafka-tls. This file
	// and those of the next two settings are read for every new connection, so that they may be renewed. Default: none,
	// which takes those of the system.
	KafkaCAFile string `koanf:"kafka-ca-file"`

	// KafkaCertFile holds the PEM certificate to show to the brokers; it implies kafka-tls and needs kafka-key-file.
	// Default: none.
	KafkaCertFile string `koanf:"kafka-cert-file"`

	// KafkaKeyFile holds the PEM key of kafka-cert-file. Default: none.
	KafkaKeyFile string `koanf:"kafka-key-file"`

	// KafkaSASL is how to log in at the brokers: plain, scram-sha-256, scram-sha-512 or oauthbearer. Default: none,
	// which does not log in.
	KafkaSASL string `koanf:"kafka-sasl"`

	// KafkaUser is the user to log in as, by plain or scram. Default: none.
	KafkaUser string `koanf:"kafka-user"`

	// KafkaPassword is the user's password. Keep it out of flags, which other users of the machine can read.
	// Default: none.
	KafkaPassword string `koanf:"kafka-password"`

	// KafkaPasswordFile holds the password, in place of kafka-password; it is read at every login, so that it may be
	// renewed. Default: none.
	KafkaPasswordFile string `koanf:"kafka-password-file"`

	// KafkaToken is the token of oauthbearer. It does not change while the process runs. Default: none.
	KafkaToken string `koanf:"kafka-token"`

	// KafkaTokenFile holds the token of oauthbearer; it is read at every login, so that it may be renewed. Default: none.
	KafkaTokenFile string `koanf:"kafka-token-file"`

	// KafkaTokenCommand is a program, with its arguments after spaces, that prints the token of oauthbearer; it is run
	// at every login, without a shell, for 10s at most. Default: none.
	KafkaTokenCommand string `koanf:"kafka-token-command"`

	// DatabaseURL is the Postgres database, as in postgres://user:password@host/database; it leads to the primary.
	// Default: none, which runs a Postgres in the data directory from the binaries that the system has installed.
	DatabaseURL string `koanf:"database-url"`

	// DatabaseURLFile holds the URL, in place of database-url; it is read once, at the start. Default: none.
	DatabaseURLFile string `koanf:"database-url-file"`

	// DatabaseSchema is the schema of the context, 1 to 63 bytes. Default: none, which takes the context's name.
	DatabaseSchema string `koanf:"database-schema"`

	// DataDir is the directory of the embedded parts, and of the file that says where they listen. Default: none, which
	// takes $XDG_DATA_HOME/writ, else ~/.local/share/writ; for root, where other users cannot get there, the same path
	// below /var/lib/writ, since Postgres does not run as root.
	DataDir string `koanf:"data-dir"`

	// HTTPAddr is where /metrics, /livez and /readyz listen, host:port, or off. Nobody is asked who they are there: keep
	// it on a loopback address or in a trusted network. Default: 127.0.0.1:9464; where that is taken and the broker or
	// the database is embedded, a free port.
	HTTPAddr string `koanf:"http-addr"`

	// LogFormat is text or json, on standard error. Default: text.
	LogFormat string `koanf:"log-format"`

	// LogLevel is debug, info, warn or error. Default: info; warn for demo and for commands that print and end.
	LogLevel string `koanf:"log-level"`

	// Topics creates the context's topics where they are missing, before anything else. Default: false; true on an
	// embedded broker.
	Topics bool `koanf:"topics"`

	// TopicsFile is a file of the application's own that is laid over topics.yaml. Default: none.
	TopicsFile string `koanf:"topics-file"`

	// TopicsPartitions is the number of partitions of each topic that is created. Default: 0, which is as the topics'
	// file says.
	TopicsPartitions int `koanf:"topics-partitions"`

	// TopicsReplication is the number of copies of each topic that is created; -1 is the brokers' default. Default: 0,
	// which is as the topics' file says.
	TopicsReplication int `koanf:"topics-replication"`

	// Migrate creates the database schema, or brings it to this build's version, before anything else. Default: false;
	// true on an embedded Postgres.
	Migrate bool `koanf:"migrate"`

	// BrokerPort is the port of the embedded broker. Default: 0, which is the port of the last start, else a free one.
	BrokerPort int `koanf:"broker-port"`

	// BrokerSyncWrites makes the embedded broker write every record to disk before it acknowledges it: what survives a
	// crash of the process by default then survives a loss of power, at half the rate. Default: false.
	BrokerSyncWrites bool `koanf:"broker-sync-writes"`

	// Group is the consumer group that shares the partitions of the command topic. Default: none, which takes the
	// context's name and ".processor".
	Group string `koanf:"group"`

	// Writers is how many transactions are under way at a time, 1 to 64. More make smaller groups. Default: 2.
	Writers int `koanf:"writers"`

	// Deciders is how many goroutines decide commands, 1 to 64. A decision that blocks does not hold up others.
	// Default: 2.
	Deciders int `koanf:"deciders"`

	// UnitCommands bounds the commands of one aggregate in one transaction, 1 to 10,000. Default: 512.
	UnitCommands int `koanf:"unit-commands"`

	// GroupCommands bounds the commands of one transaction, 1 to 100,000. Larger groups are faster, and every command
	// in them waits for longer. Default: 2000.
	GroupCommands int `koanf:"group-commands"`

	// GroupBytes bounds the bytes of the records of one transaction, 1 MiB to 1 GiB. Default: 8388608.
	GroupBytes int64 `koanf:"group-bytes"`

	// InFlightCommands bounds the commands that were taken from Kafka and are not answered yet, 1 to 1,000,000. Below
	// three times writers × group-commands the groups stay small. Default: 12000.
	InFlightCommands int `koanf:"in-flight-commands"`

	// InFlightBytes bounds the bytes of their records, at least 2 MiB. Default: 67108864.
	InFlightBytes int64 `koanf:"in-flight-bytes"`

	// PartitionCommands bounds the commands in flight of one partition, at most in-flight-commands. Default: 0, which is
	// three quarters of in-flight-commands.
	PartitionCommands int `koanf:"partition-commands"`

	// Window is how far a partition is read ahead of its oldest unfinished record, in records; at least
	// partition-commands. Default: 65536.
	Window int `koanf:"window"`

	// CacheBytes bounds the cached states of one partition, in bytes, about. Default: 8388608.
	CacheBytes int64 `koanf:"cache-bytes"`

	// Events publishes committed events to the topic <context>.events, in order per aggregate. Default: false.
	Events bool `koanf:"events"`

	// Linger is how long to wait for more after a small fetch or group. Default: 3ms.
	Linger time.Duration `koanf:"linger"`

	// Drain is how long work in flight may take to end when a partition is given up or the processor stops; at least 5s
	// below rebalance-timeout. Default: 8s.
	Drain time.Duration `koanf:"drain"`

	// SessionTimeout is how long the group waits for a sign of life before it gives this processor's partitions to
	// others. Default: 30s.
	SessionTimeout time.Duration `koanf:"session-timeout"`

	// Heartbeat is how often a sign of life is given, at most a third of session-timeout. Default: 3s.
	Heartbeat time.Duration `koanf:"heartbeat"`

	// RebalanceTimeout is how long the group waits for its members to join again. Default: 1m0s.
	RebalanceTimeout time.Duration `koanf:"rebalance-timeout"`

	// OffsetInterval is how often offsets are committed. Default: 1s.
	OffsetInterval time.Duration `koanf:"offset-interval"`

	// Attempts is how often a command whose decision fails is tried before it is recorded as failed, 1 to 100.
	// Default: 5.
	Attempts int `koanf:"attempts"`

	// BuildPatience is how long a command waits in its lane for a newer build, as in a rolling deploy: one of a type that
	// this build does not know, or for an aggregate with events that it cannot read. 0: not at all. Default: 30s.
	BuildPatience time.Duration `koanf:"build-patience"`

	// RetryMin is the shortest wait between two tries of a command that fails. Default: 50ms.
	RetryMin time.Duration `koanf:"retry-min"`

	// RetryMax is the longest wait between two tries of a command that fails. Default: 2s.
	RetryMax time.Duration `koanf:"retry-max"`

	// SnapshotEvery is the number of commits of an aggregate between two snapshots of it, at least 1. Default: 100.
	SnapshotEvery int64 `koanf:"snapshot-every"`

	explicit map[string]bool // names that file, environment or flags mention
}

// Default returns the settings that nobody has changed.
func Default() Config {
	return Config{
		KafkaClientID:    "writ",
		HTTPAddr:         "127.0.0.1:9464",
		LogFormat:        "text",
		LogLevel:         "info",
		Writers:          2,
		Deciders:         2,
		UnitCommands:     512,
		GroupCommands:    2_000,
		GroupBytes:       8 << 20,
		InFlightCommands: 12_000,
		InFlightBytes:    64 << 20,
		Window:           65_536,
		CacheBytes:       8 << 20,
		Linger:           3 * time.Millisecond,
		Drain:            8 * time.Second,
		SessionTimeout:   30 * time.Second,
		Heartbeat:        3 * time.Second,
		RebalanceTimeout: time.Minute,
		OffsetInterval:   time.Second,
		Attempts:         5,
		BuildPatience:    30 * time.Second,
		RetryMin:         50 * time.Millisecond,
		RetryMax:         2 * time.Second,
		SnapshotEvery:    100,
	}
}

// EmbeddedBroker reports whether the processor runs a broker of its own.
func (c *Config) EmbeddedBroker() bool { return len(c.KafkaBrokers) == 0 }

// EmbeddedDatabase reports whether the processor runs a Postgres of its own.
func (c *Config) EmbeddedDatabase() bool { return c.DatabaseURL == "" }

// Explicit reports whether somebody has set the setting of that name, be it to its default.
func (c *Config) Explicit(name string) bool { return c.explicit[name] }
