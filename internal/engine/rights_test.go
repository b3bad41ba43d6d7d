package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/internal/health"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store"
	"github.com/seed54173720/writ/pkg/store/memory"
	"github.com/seed54173720/writ/topics"
)

// A reply that was noted as undeliverable left its sender without an answer; one that was sent again went to another
// partition than its sender reads.
func TestReplyWaitsForItsTopicAndKeepsItsPartition(t *testing.T) {
	t.Parallel()
	h := &health.Health{}
	s := memory.New()
	r := newRig(t, catalog.Context(), 3, s, func(cfg *Config) { cfg.Health = h })
	admin := kadm.NewClient(r.newClient())
	awaitHealth := func(what string, so func(error) bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !so(h.Err()); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("waited in vain for %s: %v", what, h.Err())
			}
		}
	}
	says := func(words ...string) func(error) bool {
		return func(err error) bool {
			for _, word := range words {
				if err == nil || !strings.Contains(err.Error(), word) {
					return false
				}
			}
			return true
		}
	}
	awaitHealth("health", func(err error) bool { return err == nil })

	if _, err := admin.DeleteTopic(t.Context(), "catalog.replies"); err != nil {
		t.Fatal(err)
	}
	r.send(build(t, command.New("catalog.brand.create", "test").ID("waits").Subject("1").JSON(catalog.CreateBrand{Name: "Acme"}).
		ReplyTo("catalog.replies").ReplyPartition(1)))
	awaitHealth("the missing topic's name", says("write to topic catalog.replies", "topic catalog.replies does not exist"))

	declared, err := topics.Declare("catalog", topics.Options{Partitions: 3, Replication: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := topics.Create(t.Context(), admin, declared); err != nil {
		t.Fatal(err)
	}
	reader := r.newClient(kgo.ConsumeTopics("catalog.replies"), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var got []*kgo.Record
	for len(got) == 0 {
		got = reader.PollFetches(ctx).Records()
		if ctx.Err() != nil {
			t.Fatal("no reply after its topic was back")
		}
	}
	if string(got[0].Key) != "waits" || got[0].Partition != 1 {
		t.Errorf("reply to %s on partition %d, want that to waits on partition 1, where its key does not lead", got[0].Key, got[0].Partition)
	}
	awaitHealth("health", func(err error) bool { return err == nil })
	rows := 0
	if err := s.Journal(t.Context(), func(*store.Row) error { rows++; return nil }); err != nil || rows != 1 {
		t.Errorf("%d rows, %v, want one", rows, err)
	}
}
