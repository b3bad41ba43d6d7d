package broker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// trimmer takes off the log what nobody needs. kfake's own retention does not
// do: it starts no timer for the broker's settings, does not arm a topic's again
// after a restart, and can empty a partition.
type trimmer struct {
	cfg     Config
	cluster *kfake.Cluster
	client  *kgo.Client // lists topics and groups, which the cluster itself does not
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// startTrimmer runs a trimmer until its stop, which waits for it.
func startTrimmer(b *Broker) (*trimmer, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.ClientID("writ-embedded-broker"))
	if err != nil {
		return nil, fmt.Errorf("broker: client for trimming: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t := &trimmer{cfg: b.cfg, cluster: b.cluster, client: client, cancel: cancel}
	if b.cfg.TrimEvery > 0 {
		t.done.Go(func() { t.run(ctx) })
	}
	return t, nil
}

func (t *trimmer) stop() {
	t.cancel()
	t.done.Wait()
	t.client.Close()
}

func (t *trimmer) run(ctx context.Context) {
	tick := time.NewTicker(t.cfg.TrimEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := t.trim(ctx); err != nil && ctx.Err() == nil {
			t.cfg.Logger.WarnContext(ctx, "embedded broker: could not trim the log", "error", err)
		}
	}
}

// trim looks at each partition once.
func (t *trimmer) trim(ctx context.Context) error {
	admin := kadm.NewClient(t.client)
	topics, err := admin.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	readers, err := t.readers(ctx, admin)
	if err != nil {
		return err
	}
	var faults []error
	for topic := range topics {
		for _, p := range t.cluster.PartitionInfos(topic) {
			start := t.newStart(p)
			if strings.HasSuffix(topic, ".commands") {
				start = min(start, readers.needs(topic, p.Partition))
			}
			if start <= p.LogStartOffset {
				continue
			}
			if err := t.cluster.DeleteRecords(topic, p.Partition, start); err != nil {
				faults = append(faults, fmt.Errorf("trim %s/%d to %d: %w", topic, p.Partition, start, err))
			}
		}
	}
	return errors.Join(faults...)
}

// newStart is the offset that leaves the records to keep, and at least the newest.
func (t *trimmer) newStart(p *kfake.PartitionInfo) int64 {
	keep := t.cfg.Keep
	if p.NumBytes > t.cfg.KeepBytes {
		records := float64(p.HighWatermark - p.LogStartOffset)
		keep = min(keep, int64(records*float64(t.cfg.KeepBytes)/float64(p.NumBytes)))
	}
	return min(p.HighWatermark-1-keep, p.LastStableOffset)
}

// readers are the groups that command topics wait for.
type readers []*kfake.GroupInfo

func (t *trimmer) readers(ctx context.Context, admin *kadm.Client) (readers, error) {
	names := t.cfg.Groups
	if names == nil {
		groups, err := admin.ListGroups(ctx)
		if err != nil {
			return nil, fmt.Errorf("list groups: %w", err)
		}
		names = groups.Groups()
	}
	var rs readers
	for _, name := range names {
		if g := t.cluster.GroupInfo(name); g != nil {
			rs = append(rs, g)
		}
	}
	return rs, nil
}

// needs is the lowest offset that one of the topic's readers has still to read:
// all of them where there is no reader, or one that has not committed yet.
func (rs readers) needs(topic string, partition int32) int64 {
	lowest := int64(math.MaxInt64)
	for _, g := range rs {
		if !reads(g, topic) {
			continue
		}
		commit, ok := g.Commits[topic][partition]
		if !ok {
			return 0
		}
		lowest = min(lowest, commit.Offset)
	}
	if lowest == math.MaxInt64 {
		return 0
	}
	return lowest
}

func reads(g *kfake.GroupInfo, topic string) bool {
	return len(g.Commits[topic]) > 0 || slices.ContainsFunc(g.Members, func(m kfake.GroupMember) bool {
		return slices.Contains(m.SubscribedTopics, topic)
	})
}

// keepLastRecord changes clients' DeleteRecords so that the newest record stays:
// a partition trimmed to empty begins again at offset 0 after a restart.
func keepLastRecord(c *kfake.Cluster) {
	c.ControlKey(int16(kmsg.DeleteRecords), func(req kmsg.Request) (kmsg.Response, error, bool) {
		for _, topic := range req.(*kmsg.DeleteRecordsRequest).Topics {
			for i := range topic.Partitions {
				p := &topic.Partitions[i]
				info := c.PartitionInfo(topic.Topic, p.Partition)
				if info == nil || info.HighWatermark == info.LogStartOffset {
					continue
				}
				if p.Offset == -1 || p.Offset == info.HighWatermark {
					p.Offset = info.HighWatermark - 1
				}
			}
		}
		return nil, nil, false
	})
}
