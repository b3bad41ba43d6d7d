package config

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"
)

// faults returns all that is wrong with the values, each with the setting's name, its value, the rule and what to do.
func (c *Config) faults() []error {
	r := &rules{c: c}
	for _, addr := range c.KafkaBrokers {
		r.must(hostPort(addr), "kafka-brokers", "every broker must be host:port, such as kafka-1:9092, and %q is not", addr)
	}
	r.login()
	r.must(len(c.DatabaseSchema) <= 63, "database-schema", "must be at most 63 bytes, is %d", len(c.DatabaseSchema))
	r.must(c.HTTPAddr == "off" || hostPort(c.HTTPAddr), "http-addr", "must be host:port, such as 127.0.0.1:9464, or off")
	r.oneOf("log-format", c.LogFormat, "text", "json")
	r.oneOf("log-level", c.LogLevel, "debug", "info", "warn", "error")
	r.within("topics-partitions", int64(c.TopicsPartitions), 0, 10_000)
	r.within("topics-replication", int64(c.TopicsReplication), -1, 100)
	r.within("broker-port", int64(c.BrokerPort), 0, 65_535)

	r.within("writers", int64(c.Writers), 1, 64)
	r.within("deciders", int64(c.Deciders), 1, 64)
	r.within("unit-commands", int64(c.UnitCommands), 1, 10_000)
	r.within("group-commands", int64(c.GroupCommands), 1, 100_000)
	r.within("group-bytes", c.GroupBytes, 1<<20, 1<<30)
	r.within("in-flight-commands", int64(c.InFlightCommands), 1, 1_000_000)
	r.within("in-flight-bytes", c.InFlightBytes, 2<<20, 1<<40)
	r.within("partition-commands", int64(c.PartitionCommands), 0, int64(c.InFlightCommands))
	r.within("window", int64(c.Window), int64(max(c.PartitionCommands, 1)), 1<<30)
	r.within("cache-bytes", c.CacheBytes, 1, 1<<40)
	r.within("attempts", int64(c.Attempts), 1, 100)
	r.within("snapshot-every", c.SnapshotEvery, 1, 1<<40)
	r.times()
	return r.found
}

type rules struct {
	c     *Config
	found []error
}

// must notes a fault of the named setting unless ok.
func (r *rules) must(ok bool, name, rule string, args ...any) {
	if ok {
		return
	}
	s := find(name)
	r.found = append(r.found, fmt.Errorf("%s is %q: "+rule, append([]any{name, s.shown(s.text(r.c))}, args...)...))
}

func (r *rules) within(name string, n, least, most int64) {
	r.must(n >= least && n <= most, name, "must be %d to %d", least, most)
}

func (r *rules) oneOf(name, value string, allowed ...string) {
	r.must(slices.Contains(allowed, value), name, "must be one of %q", allowed)
}

// login checks what belongs to TLS and SASL.
func (r *rules) login() {
	c := r.c
	if c.EmbeddedBroker() {
		for _, name := range []string{
			"kafka-tls", "kafka-ca-file", "kafka-cert-file", "kafka-key-file", "kafka-sasl", "kafka-user", "kafka-password",
			"kafka-password-file", "kafka-token", "kafka-token-file", "kafka-token-command",
		} {
			defaults := Default()
			s := find(name)
			r.must(s.text(c) == s.text(&defaults), name, "is for a cluster, and the embedded broker has neither TLS nor logins: set kafka-brokers, or leave it out")
		}
		return
	}
	r.must((c.KafkaCertFile == "") == (c.KafkaKeyFile == ""), "kafka-cert-file", "needs kafka-key-file beside it, and the other way round")

	byPassword := []string{"kafka-user", "kafka-password", "kafka-password-file"}
	byToken := []string{"kafka-token", "kafka-token-file", "kafka-token-command"}
	switch c.KafkaSASL {
	case "":
		r.unused(byPassword, "is not used without kafka-sasl: set it to plain, scram-sha-256 or scram-sha-512")
		r.unused(byToken, "is not used without kafka-sasl: set it to oauthbearer")
	case "plain", "scram-sha-256", "scram-sha-512":
		r.must(c.KafkaUser != "", "kafka-user", "must be set, for kafka-sasl is %s", c.KafkaSASL)
		r.must((c.KafkaPassword == "") != (c.KafkaPasswordFile == ""), "kafka-password", "must be set, or else kafka-password-file, for kafka-sasl is %s", c.KafkaSASL)
		r.unused(byToken, "is used by kafka-sasl oauthbearer alone: leave it out")
	case "oauthbearer":
		given := 0
		for _, token := range []string{c.KafkaToken, c.KafkaTokenFile, c.KafkaTokenCommand} {
			if token != "" {
				given++
			}
		}
		r.must(given == 1, "kafka-token-file", "must be set, or else kafka-token or kafka-token-command, for kafka-sasl is oauthbearer")
		r.unused(byPassword, "is used by kafka-sasl plain and scram alone: leave it out")
	default:
		r.oneOf("kafka-sasl", c.KafkaSASL, "plain", "scram-sha-256", "scram-sha-512", "oauthbearer")
	}
}

// unused finds settings that are set and that nothing reads.
func (r *rules) unused(names []string, rule string) {
	for _, name := range names {
		r.must(find(name).text(r.c) == "", name, "%s", rule)
	}
}

func (r *rules) times() {
	c := r.c
	for name, d := range map[string]time.Duration{
		"session-timeout": c.SessionTimeout, "heartbeat": c.Heartbeat, "rebalance-timeout": c.RebalanceTimeout,
		"offset-interval": c.OffsetInterval, "retry-min": c.RetryMin, "drain": c.Drain, "linger": c.Linger,
	} {
		r.must(d > 0 && d <= time.Hour, name, "must be above 0 and at most 1h")
	}
	r.must(c.Heartbeat <= c.SessionTimeout/3, "heartbeat", "must be at most a third of session-timeout, which is %v", c.SessionTimeout)
	r.must(c.RetryMax >= c.RetryMin && c.RetryMax <= time.Hour, "retry-max", "must be at least retry-min, which is %v, and at most 1h", c.RetryMin)
	r.must(c.BuildPatience >= 0 && c.BuildPatience <= 24*time.Hour, "build-patience", "must be 0 to 24h")
	r.must(c.Drain+5*time.Second <= c.RebalanceTimeout, "drain",
		"must be at least 5s below rebalance-timeout, which is %v, or a draining processor is thrown out of its group", c.RebalanceTimeout)
}

func hostPort(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	n, err := strconv.Atoi(port)
	return err == nil && n >= 0 && n <= 65_535
}
