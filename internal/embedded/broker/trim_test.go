package broker_test

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/internal/embedded/broker"
)

// TestTrimmingStopsAtWhatIsNeeded writes ten records to one partition, lets
// groups commit, and reads where the log starts after a witness topic, written
// later and needed by nobody, has been trimmed too.
func TestTrimmingStopsAtWhatIsNeeded(t *testing.T) {
	t.Parallel()
	const records = 10
	for _, row := range []struct {
		name    string
		topic   string
		cfg     broker.Config
		commits map[string]int64 // by group
		want    int64
	}{
		{"nobody reads it", "a.commands", broker.Config{Keep: 1}, nil, 0},
		{"one group", "a.commands", broker.Config{Keep: 1}, map[string]int64{"g": 4}, 4},
		{"the slower of two", "a.commands", broker.Config{Keep: 1}, map[string]int64{"g": 4, "h": 2}, 2},
		{"the slower of two, the other way round", "a.commands", broker.Config{Keep: 1}, map[string]int64{"g": 2, "h": 4}, 2},
		{"only the named one", "a.commands", broker.Config{Keep: 1, Groups: []string{"g"}}, map[string]int64{"g": 4, "h": 2}, 4},
		{"the named one is unknown", "a.commands", broker.Config{Keep: 1, Groups: []string{"i"}}, map[string]int64{"g": 4}, 0},
		{"all read, some kept", "a.commands", broker.Config{Keep: 3}, map[string]int64{"g": 10}, 6},
		{"replies by count", "a.replies", broker.Config{Keep: 2}, nil, 7},
		{"replies by bytes", "a.replies", broker.Config{Keep: 5, KeepBytes: 1}, nil, 9},
		{"a reader of replies does not matter", "a.replies", broker.Config{Keep: 2}, map[string]int64{"g": 1}, 7},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			ctx := within(t)
			row.cfg.TrimEvery = 5 * time.Millisecond
			b := start(t, row.cfg)
			createTopic(t, b, row.topic, 1)
			createTopic(t, b, "witness", 1)
			c := client(t, b.Addr())
			admin := kadm.NewClient(c)
			for group, offset := range row.commits { // before there is anything to trim
				commit(ctx, t, admin, group, row.topic, offset)
			}
			numbers := make([]string, records)
			for i := range numbers {
				numbers[i] = strconv.Itoa(i)
			}
			produce(ctx, t, c, row.topic, numbers...)
			for range 2 { // the second trim began after the last record
				before := startOffset(ctx, t, admin, "witness")
				produce(ctx, t, c, "witness", numbers...)
				for startOffset(ctx, t, admin, "witness") == before {
					if err := ctx.Err(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if got := startOffset(ctx, t, admin, row.topic); got != row.want {
				t.Errorf("log starts at %d, want %d", got, row.want)
			}
		})
	}
}

// TestMemberWithoutCommitHoldsTheLog: it will begin where the log does.
func TestMemberWithoutCommitHoldsTheLog(t *testing.T) {
	t.Parallel()
	ctx := within(t)
	b := start(t, broker.Config{Keep: 1, TrimEvery: 5 * time.Millisecond})
	createTopic(t, b, "a.commands", 1)
	createTopic(t, b, "witness", 1)
	c := client(t, b.Addr())
	admin := kadm.NewClient(c)
	produce(ctx, t, c, "a.commands", "0", "1", "2", "3")
	reader := client(t, b.Addr(), kgo.ConsumerGroup("slow"), kgo.ConsumeTopics("a.commands"), kgo.DisableAutoCommit())
	if got := reader.PollFetches(ctx).NumRecords(); got == 0 {
		t.Fatal("the reader got nothing")
	}
	commit(ctx, t, admin, "fast", "a.commands", 3)
	for range 2 {
		before := startOffset(ctx, t, admin, "witness")
		produce(ctx, t, c, "witness", "0", "1", "2", "3")
		for startOffset(ctx, t, admin, "witness") == before {
			if err := ctx.Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := startOffset(ctx, t, admin, "a.commands"); got != 0 {
		t.Errorf("log starts at %d while a member has not committed, want 0", got)
	}
}

// TestOffsetsGoOnAfterEverythingWasDeleted: kfake starts an emptied partition
// again at offset 0, under the same topic ID.
func TestOffsetsGoOnAfterEverythingWasDeleted(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		until int64
	}{{"high watermark", 5}, {"by minus one", -1}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			ctx := within(t)
			dir := filepath.Join(t.TempDir(), "data")
			child := startChild(t, broker.Config{Dir: dir})
			c := client(t, child.Addr())
			admin := kadm.NewClient(c)
			if _, err := admin.CreateTopic(ctx, 1, 1, nil, "a.commands"); err != nil {
				t.Fatal(err)
			}
			produce(ctx, t, c, "a.commands", strings.Split("01234", "")...)
			var all kadm.Offsets
			all.AddOffset("a.commands", 0, row.until, -1)
			deleted, err := admin.DeleteRecords(ctx, all)
			if err != nil {
				t.Fatal(err)
			}
			if err := deleted.Error(); err != nil {
				t.Fatal(err)
			}
			if err := child.Kill9(); err != nil {
				t.Fatal(err)
			}
			start(t, broker.Config{Dir: dir})
			if got := endOffset(ctx, t, client(t, child.Addr()), "a.commands"); got != 5 {
				t.Errorf("the next offset is %d, want 5", got)
			}
		})
	}
}

func commit(ctx context.Context, t *testing.T, admin *kadm.Client, group, topic string, offset int64) {
	t.Helper()
	var offsets kadm.Offsets
	offsets.AddOffset(topic, 0, offset, -1)
	committed, err := admin.CommitOffsets(ctx, group, offsets)
	if err == nil {
		err = committed.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func startOffset(ctx context.Context, t *testing.T, admin *kadm.Client, topic string) int64 {
	t.Helper()
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	o, _ := starts.Lookup(topic, 0)
	return o.Offset
}
