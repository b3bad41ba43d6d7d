package topics_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/internal/embedded/broker"
	"github.com/seed54173720/writ/internal/kafkatest"
	"github.com/seed54173720/writ/topics"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

func TestDefaultDeclarationKeepsCommandsUntilTheyAreFinished(t *testing.T) {
	t.Parallel()
	got, err := topics.Declare("catalog", topics.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"catalog.commands":     "delete -1 1048588",
		"catalog.replies":      "delete 604800000 1048588",
		"catalog.dead-letters": "delete -1 2097152",
	}
	if len(got) != len(want) {
		t.Errorf("Declare: %d topics, want %d", len(got), len(want))
	}
	for _, topic := range got {
		c := topic.Configs
		configs := c["cleanup.policy"] + " " + c["retention.ms"] + " " + c["max.message.bytes"]
		if configs != want[topic.Name] {
			t.Errorf("%s: configs %q, want %q", topic.Name, configs, want[topic.Name])
		}
		if topic.Partitions != 12 || topic.Replication != -1 || topic.MinInSync != 2 {
			t.Errorf("%s: %d partitions, replication %d, min-in-sync %d; want 12, -1, 2",
				topic.Name, topic.Partitions, topic.Replication, topic.MinInSync)
		}
	}
}

func TestOwnFileReplacesWhatItNames(t *testing.T) {
	t.Parallel()
	own := []byte("commands:\n  partitions: 48\nreplies:\n  configs: {retention.ms: 3600000, cleanup.policy: null, segment.ms: 60000}\nevents: {wanted: true}\n")
	got, err := topics.Declare("catalog", topics.Options{File: own, Replication: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 4 || got[0].Purpose != topics.Commands || got[2].Purpose != topics.Events {
		t.Fatalf("Declare: %v, want all four topics in order", got)
	}
	if c := got[0]; c.Partitions != 48 || c.Replication != 1 || c.Configs["retention.ms"] != "-1" {
		t.Errorf("commands: %+v, want 48 partitions, replication 1 and our retention", c)
	}
	configs := got[1].Configs
	if _, ok := configs["cleanup.policy"]; ok || configs["retention.ms"] != "3600000" || configs["segment.ms"] != "60000" || configs["max.message.bytes"] != "1048588" {
		t.Errorf("replies: %v, want the own retention and segment, no clean-up policy, our size", configs)
	}
}

func TestFaultyDeclarationsAreRefusedWithTheirPlace(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, file string
		want       []string
	}{
		{"unknown topic", "orders: {}", []string{`topic "orders"`}},
		{"unknown member", "commands: {partitons: 3}", []string{"line 1", "partitons"}},
		{"not yaml", "commands: [", []string{"topics file"}},
		{"all at once", "commands: {partitions: 0, replication: 0, configs: {retention.ms: week}}\nreplies: {min-in-sync: -1, configs: {max.message.bytes: 1000}}",
			[]string{"catalog.commands: partitions 0", "replication 0", `retention.ms "week"`, "min-in-sync -1", "max.message.bytes is 1000"}},
		{"compacted commands", "commands: {configs: {cleanup.policy: 'compact,delete'}}", []string{"compaction removes commands"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := topics.Declare("catalog", topics.Options{File: []byte(test.file)})
			if err == nil {
				t.Fatalf("Declare(%q) succeeded", test.file)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Declare(%q): %v, want %q in it", test.file, err, want)
				}
			}
		})
	}
}

func TestCreateMakesWhatIsMissingAndLeavesTheRest(t *testing.T) {
	t.Parallel()
	ctx, admin := cluster(t)
	if _, err := admin.CreateTopic(ctx, 3, 1, nil, "catalog.replies"); err != nil {
		t.Fatal(err)
	}
	declared := declare(t, topics.Options{Partitions: 4})
	created, err := topics.Create(ctx, admin, declared)
	if got := strings.Join(created, " "); err != nil || got != "catalog.commands catalog.dead-letters" {
		t.Fatalf("Create: %q, %v; want the two missing topics", got, err)
	}
	if created, err = topics.Create(ctx, admin, declared); err != nil || len(created) > 0 {
		t.Errorf("Create again: %q, %v; want nothing", created, err)
	}
	details, err := admin.ListTopics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"catalog.commands": 4, "catalog.replies": 3, "catalog.dead-letters": 4} {
		if got := len(details[name].Partitions); got != want {
			t.Errorf("%s: %d partitions, want %d", name, got, want)
		}
	}
	report, err := topics.Check(ctx, admin, declared)
	if err != nil || report.Err() != nil {
		t.Fatalf("Check: %v, %v", err, report.Err())
	}
	// The topic that was there is as Kafka made it: a reply topic of 3 partitions.
	if len(report) != 1 || !strings.Contains(report[0].String(), "catalog.replies: it has 3 partitions, 4 are declared") {
		t.Errorf("Check: %q, want a warning about the partitions of catalog.replies", report)
	}
}

func TestWhatIsCreatedOnApacheKafkaPassesTheCheck(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Shared(t)
	ctx, admin := connect(t, brokers...)
	declared, err := topics.Declare("topics-"+strings.ToLower(rand.Text()), topics.Options{Events: true})
	if err != nil {
		t.Fatal(err)
	}
	created, err := topics.Create(ctx, admin, declared)
	if err != nil || len(created) != len(declared) {
		t.Fatalf("Create: %q, %v; want all of %d", created, err, len(declared))
	}
	report, err := topics.Check(ctx, admin, declared)
	if err != nil || len(report) > 0 {
		t.Errorf("Check: %q, %v; want nothing", report, err)
	}
}

func TestCheckReportsAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		commands map[string]string
		missing  bool
		refused  []string
		warnings []string
	}{
		{name: "as declared"},
		{name: "missing", missing: true, refused: []string{"catalog.commands: the topic does not exist: create it with 2 partitions"}},
		{name: "compacted and too small", commands: map[string]string{"cleanup.policy": "compact", "max.message.bytes": "100000"},
			refused: []string{`cleanup.policy is "compact"`, "max.message.bytes is 100000"}},
		{name: "compacted beside delete", commands: map[string]string{"cleanup.policy": "compact,delete"},
			refused: []string{`cleanup.policy is "compact,delete"`}},
		{name: "finite retention", commands: map[string]string{"retention.ms": "604800000", "retention.bytes": "1000000"},
			warnings: []string{"retention.ms is 604800000", "retention.bytes is 1000000"}},
		{name: "unwritable", commands: map[string]string{"min.insync.replicas": "2"},
			warnings: []string{"min.insync.replicas is 2 with 1 copies"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, admin := cluster(t)
			declared := declare(t, topics.Options{Partitions: 2})
			if _, err := topics.Create(ctx, admin, declared[1:]); err != nil {
				t.Fatal(err)
			}
			if !test.missing {
				changed := declared[0]
				for name, value := range test.commands {
					changed.Configs[name] = value
				}
				if _, err := topics.Create(ctx, admin, []topics.Topic{changed}); err != nil {
					t.Fatal(err)
				}
			}
			report, err := topics.Check(ctx, admin, declare(t, topics.Options{Partitions: 2}))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, "warnings", report.Warnings(), test.warnings)
			if len(report) != len(test.refused)+len(test.warnings) {
				t.Errorf("Check: %d findings, want %d: %q", len(report), len(test.refused)+len(test.warnings), report)
			}
			refusal := report.Err()
			if refusal == nil && len(test.refused) > 0 {
				t.Fatalf("Check found nothing to refuse, want %q", test.refused)
			}
			for _, want := range test.refused {
				if !strings.Contains(refusal.Error(), want) {
					t.Errorf("Err: %v, want %q in it", refusal, want)
				}
			}
		})
	}
}

func compare(t *testing.T, what string, report topics.Report, want []string) {
	t.Helper()
	if len(report) != len(want) {
		t.Errorf("%s: %q, want %q", what, report, want)
		return
	}
	for i, f := range report {
		if !strings.Contains(f.String(), want[i]) || f.Mend == "" {
			t.Errorf("%s: %q, want %q in it and a remedy", what, f, want[i])
		}
	}
}

func declare(t *testing.T, opts topics.Options) []topics.Topic {
	t.Helper()
	declared, err := topics.Declare("catalog", opts)
	if err != nil {
		t.Fatal(err)
	}
	return declared
}

// cluster runs an embedded broker for the test.
func cluster(t *testing.T) (context.Context, *kadm.Client) {
	t.Helper()
	b, err := broker.Start(t.Context(), broker.Config{Dir: t.TempDir() + "/kafka"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return connect(t, b.Addr())
}

func connect(t *testing.T, brokers ...string) (context.Context, *kadm.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return ctx, kadm.NewClient(client)
}
