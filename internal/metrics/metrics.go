// Package metrics declares what the processor measures, the one place that knows Prometheus.
package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed54173720/writ/pkg/command"
)

// Metrics are the processor's instruments. Safe for concurrent use.
type Metrics struct {
	Outcomes     *prometheus.CounterVec // type, outcome, code
	Duplicates   prometheus.Counter
	Redelivered  prometheus.Counter
	Reused       prometheus.Counter
	Unreadable   *prometheus.CounterVec // code
	Conflicts    *prometheus.CounterVec // kind
	Unknown      prometheus.Counter
	Attempts     prometheus.Counter
	DeadLetters  prometheus.Counter
	Undelivered  *prometheus.CounterVec // reason
	StoreFaults  prometheus.Counter
	Pauses       prometheus.Counter
	Blocked      prometheus.Counter
	Strays       prometheus.Counter
	InFlight     prometheus.Gauge
	InFlightByte prometheus.Gauge
	Assigned     prometheus.Gauge
	GroupRows    prometheus.Histogram
	FetchRecords prometheus.Histogram
	Commit       prometheus.Histogram
	Prepare      prometheus.Histogram
	Answered     prometheus.Histogram

	outcomes sync.Map // outcome -> prometheus.Counter: looking a counter up by its labels costs half a microsecond
}

// New makes the instruments and registers them with r, unless r is nil. Names begin with writ_; durations are in seconds.
func New(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		Outcomes:     counterVec("outcomes_total", "Commands that got their own outcome, by command type, outcome and code.", "type", "outcome", "code"),
		Duplicates:   counter("duplicates_total", "Commands answered with the final outcome of another record of their request."),
		Redelivered:  counter("redelivered_total", "Records that were delivered again and answered from their own row."),
		Reused:       counter("request_id_reused_total", "Commands refused because their request ID belongs to another request."),
		Unreadable:   counterVec("unreadable_total", "Records without an identity, by code.", "code"),
		Conflicts:    counterVec("conflicts_total", "Units that lost a race at commit and were decided again, by kind.", "kind"),
		Unknown:      counter("unknown_commits_total", "Groups whose commit's fate had to be looked up."),
		Attempts:     counter("failed_attempts_total", "Tries of commands that ended in a fault of the command itself."),
		DeadLetters:  counter("dead_letters_total", "Records kept on the dead-letter topic."),
		Undelivered:  counterVec("undelivered_replies_total", "Replies that could not be delivered, by reason.", "reason"),
		StoreFaults:  counter("store_faults_total", "Calls of the store that failed for reasons of the infrastructure."),
		Pauses:       counter("pauses_total", "Partitions paused because one of them alone was full."),
		Blocked:      counter("blocked_decisions_total", "Decisions that blocked and were left to a goroutine of their own."),
		Strays:       counter("stray_records_total", "Records on another partition than their key's."),
		InFlight:     gauge("in_flight_commands", "Commands taken from Kafka and not yet answered."),
		InFlightByte: gauge("in_flight_bytes", "Bytes of the records of the commands in flight."),
		Assigned:     gauge("assigned_partitions", "Partitions of the command topic that this processor owns."),
		GroupRows:    histogram("group_rows", "Journal rows per transaction.", prometheus.ExponentialBuckets(1, 2, 12)),
		FetchRecords: histogram("fetch_records", "Records per poll that returned any.", prometheus.ExponentialBuckets(1, 2, 14)),
		Commit:       histogram("commit_seconds", "Time of one group's transaction.", seconds),
		Prepare:      histogram("prepare_seconds", "Time to read, decide and settle one batch of units.", seconds),
		Answered:     histogram("answer_seconds", "Time from a command's fetch to its acknowledged reply.", seconds),
	}
	if r == nil {
		return m
	}
	r.MustRegister(m.Outcomes, m.Duplicates, m.Redelivered, m.Reused, m.Unreadable, m.Conflicts, m.Unknown, m.Attempts,
		m.DeadLetters, m.Undelivered, m.StoreFaults, m.Pauses, m.Blocked, m.Strays, m.InFlight, m.InFlightByte, m.Assigned,
		m.GroupRows, m.FetchRecords, m.Commit, m.Prepare, m.Answered)
	return m
}

// Since observes the time since start in seconds.
func Since(h prometheus.Histogram, start time.Time) { h.Observe(time.Since(start).Seconds()) }

// Outcome counts one command's own outcome.
func (m *Metrics) Outcome(typ string, o command.Outcome, err *command.Error) {
	key := outcome{typ: typ, outcome: o}
	if err != nil {
		key.code = err.Code
	}
	counter, ok := m.outcomes.Load(key)
	if !ok {
		counter, _ = m.outcomes.LoadOrStore(key, m.Outcomes.WithLabelValues(typ, o.String(), string(key.code)))
	}
	counter.(prometheus.Counter).Inc()
}

// outcome is what an outcome's counter goes by.
type outcome struct {
	typ     string
	outcome command.Outcome
	code    command.Code
}

var seconds = prometheus.ExponentialBuckets(100e-6, 2, 18) // 100 µs to 13 s

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "writ", Name: name, Help: help})
}

func counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "writ", Name: name, Help: help}, labels)
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "writ", Name: name, Help: help})
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "writ", Name: name, Help: help, Buckets: buckets})
}
