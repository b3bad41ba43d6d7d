package topics

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Names of the configurations that matter here.
const (
	cleanupPolicy  = "cleanup.policy"
	retentionTime  = "retention.ms"
	retentionBytes = "retention.bytes"
	maxMessage     = "max.message.bytes"
	minInSync      = "min.insync.replicas"
)

// Finding is one thing that is not as it should be about a topic.
type Finding struct {
	Topic   string
	Problem string
	Mend    string // what to do about it
	Refused bool   // the topic must not be used like this; else it is a warning
}

// String returns topic, problem and remedy on one line.
func (f Finding) String() string { return f.Topic + ": " + f.Problem + ": " + f.Mend }

// Report is what [Check] has found: nothing, if all is well.
type Report []Finding

// Warnings returns the findings that do not keep a processor from starting.
func (r Report) Warnings() Report { return r.refused(false) }

// Err returns an error that joins the findings that do, or nil.
func (r Report) Err() error {
	var faults []error
	for _, f := range r.refused(true) {
		faults = append(faults, fmt.Errorf("topics: %s", f))
	}
	return errors.Join(faults...)
}

func (r Report) refused(refused bool) (part Report) {
	for _, f := range r {
		if f.Refused == refused {
			part = append(part, f)
		}
	}
	return part
}

// Check compares the topics with what the brokers have, and reports all that is
// wrong at once. Its error means that the brokers could not be asked.
func Check(ctx context.Context, admin *kadm.Client, topics []Topic) (Report, error) {
	existing, err := list(ctx, admin, topics)
	if err != nil {
		return nil, err
	}
	var report Report
	for _, t := range topics {
		if !existing.Has(t.Name) {
			report = append(report, Finding{t.Name, "the topic does not exist",
				fmt.Sprintf("create it with %d partitions, or let the processor do it (processor topics, or serve --topics)", t.Partitions), true})
			continue
		}
		report = append(report, t.compareLayout(existing[t.Name])...)
		configs, err := describe(ctx, admin, t.Name)
		if err != nil {
			report = append(report, Finding{t.Name, fmt.Sprintf("its configuration could not be read (%v)", err),
				"allow the processor DescribeConfigs on it, or make sure by hand that it is as declared", false})
			continue
		}
		report = append(report, t.mustBe(configs)...)
		report = append(report, t.shouldBe(configs, existing[t.Name])...)
	}
	return report, nil
}

func describe(ctx context.Context, admin *kadm.Client, topic string) (map[string]string, error) {
	all, err := admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, err
	}
	r, err := all.On(topic, nil)
	if err == nil {
		err = r.Err
	}
	if err != nil {
		return nil, err
	}
	configs := make(map[string]string, len(r.Configs))
	for _, c := range r.Configs {
		configs[c.Key] = c.MaybeValue()
	}
	return configs, nil
}

func (t Topic) compareLayout(d kadm.TopicDetail) (findings Report) {
	if n := int32(len(d.Partitions)); n < t.Partitions {
		findings = append(findings, Finding{t.Name, fmt.Sprintf("it has %d partitions, %d are declared", n, t.Partitions),
			fmt.Sprintf("declare %d, or add partitions while nothing is sent", n), false})
	}
	return findings
}

// mustBe finds what would lose commands or answers, or refuse records that are
// within our own bounds.
func (t Topic) mustBe(configs map[string]string) (findings Report) {
	if (t.Purpose == Commands || t.Purpose == Replies) && strings.Contains(configs[cleanupPolicy], "compact") {
		findings = append(findings, Finding{t.Name,
			fmt.Sprintf("%s is %q: compaction removes %s of which nobody has heard", cleanupPolicy, configs[cleanupPolicy], t.Purpose),
			fmt.Sprintf("set %s to delete", cleanupPolicy), true})
	}
	want := t.leastMaxMessage()
	if got, ok := number(configs, maxMessage); ok && got < want {
		findings = append(findings, Finding{t.Name,
			fmt.Sprintf("%s is %d: records within the bounds of Writ do not fit", maxMessage, got),
			fmt.Sprintf("set it to %d or more", want), true})
	}
	return findings
}

// leastMaxMessage is the batch that must fit: Kafka's default, or what is
// declared above it.
func (t Topic) leastMaxMessage() int64 {
	const batch = 1_048_588
	declared, _ := number(t.Configs, maxMessage)
	return max(batch, declared)
}

// shouldBe finds what puts records at risk, though it may be meant.
func (t Topic) shouldBe(configs map[string]string, d kadm.TopicDetail) (findings Report) {
	warn := func(mend, format string, args ...any) {
		findings = append(findings, Finding{t.Name, fmt.Sprintf(format, args...), mend, false})
	}
	if t.Purpose == Commands {
		for _, name := range [...]string{retentionTime, retentionBytes} {
			if got, ok := number(configs, name); ok && got >= 0 {
				warn(fmt.Sprintf("set %s to -1", name),
					"%s is %d: a command that waits longer than its log is kept is lost, though it was accepted", name, got)
			}
		}
	}
	if (t.Purpose == Events || t.Purpose == DeadLetters) && strings.Contains(configs[cleanupPolicy], "compact") {
		warn(fmt.Sprintf("set %s to delete", cleanupPolicy),
			"%s is %q: compaction keeps one record per aggregate", cleanupPolicy, configs[cleanupPolicy])
	}
	copies := fewestCopies(d)
	inSync, ok := number(configs, minInSync)
	switch {
	case !ok || t.MinInSync == 0 || copies == 0:
	case inSync > copies:
		warn(fmt.Sprintf("set it to at most %d, or give the topic more copies", copies),
			"%s is %d with %d copies: nothing can be written", minInSync, inSync, copies)
	case copies >= 3 && inSync < int64(t.MinInSync):
		warn(fmt.Sprintf("set it to %d", t.MinInSync),
			"%s is %d with %d copies: what was acknowledged can be lost with one broker", minInSync, inSync, copies)
	}
	return findings
}

// fewestCopies is the number of copies that every partition has.
func fewestCopies(d kadm.TopicDetail) int64 {
	fewest := int64(0)
	for _, p := range d.Partitions {
		if n := int64(len(p.Replicas)); fewest == 0 || n < fewest {
			fewest = n
		}
	}
	return fewest
}

func number(configs map[string]string, name string) (int64, bool) {
	n, err := strconv.ParseInt(configs[name], 10, 64)
	return n, err == nil
}
