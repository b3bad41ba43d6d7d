package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kslog"
)

// connect makes the clients: what happens to consuming never holds up answers.
func (e *Engine) connect() (err error) {
	common := slices.Concat([]kgo.Opt{kgo.WithLogger(kslog.New(e.log)), kgo.AlwaysRetryEOF()}, e.cfg.Kafka)
	producing := slices.Concat(common, []kgo.Opt{
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(time.Millisecond),
		kgo.RecordPartitioner(replyPartitioner()),
		// Answers are produced from promises too, so producing must never block; the commands in flight bound it.
		kgo.MaxBufferedRecords(1 << 30),
		kgo.ProducerOnDataLossDetected(func(topic string, partition int32) {
			e.log.Error("the broker lost acknowledged records", "topic", topic, "partition", partition)
		}),
	})
	if e.producer, err = kgo.NewClient(producing...); err != nil {
		return fmt.Errorf("engine: reply producer: %w", err)
	}
	// A letter is larger than its record: the dead-letter topic takes twice what the command topic does.
	if e.letters, err = kgo.NewClient(append(producing, kgo.ProducerBatchMaxBytes(2<<20))...); err != nil {
		e.producer.Close()
		return fmt.Errorf("engine: dead-letter producer: %w", err)
	}
	e.intake, err = kgo.NewClient(append(common,
		kgo.ConsumerGroup(e.cfg.Group),
		kgo.ConsumeTopics(e.topic),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.KeepRetryableFetchErrors(),
		kgo.SessionTimeout(e.cfg.SessionTimeout),
		kgo.HeartbeatInterval(e.cfg.Heartbeat),
		kgo.RebalanceTimeout(e.cfg.RebalanceTimeout),
		kgo.FetchMaxWait(500*time.Millisecond),
		kgo.FetchMaxBytes(16<<20),
		kgo.FetchMaxPartitionBytes(256<<10), // what is read ahead costs memory and, in bigger bites, is no faster
		kgo.BrokerMaxReadBytes(100<<20),
		kgo.MaxDecompressBatchBytes(64<<20),
		kgo.OnPartitionsAssigned(e.assigned),
		kgo.OnPartitionsRevoked(e.revoked),
		kgo.OnPartitionsLost(e.lostPartitions),
		kgo.AdjustFetchOffsetsFn(e.adjustOffsets),
	)...)
	if err != nil {
		e.producer.Close()
		e.letters.Close()
		return fmt.Errorf("engine: intake: %w", err)
	}
	return nil
}

func replyPartitioner() kgo.Partitioner {
	byKey := kgo.StickyKeyPartitioner(nil)
	return kgo.BasicConsistentPartitioner(func(topic string) func(*kgo.Record, int) int {
		keyed := byKey.ForTopic(topic)
		return func(r *kgo.Record, n int) int {
			if r.Partition >= 0 && int(r.Partition) < n {
				return int(r.Partition)
			}
			return keyed.Partition(r, n)
		}
	})
}

func (e *Engine) assigned(_ context.Context, cl *kgo.Client, topics map[string][]int32) {
	ids := topics[e.topic]
	if len(ids) == 0 {
		e.health.Report(groupPart, nil) // there are more members than partitions
		return
	}
	var topicID [16]byte
	if !e.insist(intakePart, func(ctx context.Context) error {
		// Asked for with authorised operations, the answer is the broker's and not a cached one: a topic made anew has
		// another ID.
		meta, err := kadm.NewClient(e.producer).ListTopics(kadm.WithAuthorizedOps(ctx), e.topic)
		if err != nil {
			return err
		}
		if err := meta[e.topic].Err; err != nil {
			return fmt.Errorf("topic %s: %w", e.topic, err)
		}
		topicID = meta[e.topic].ID
		e.spread.Store(int32(len(meta[e.topic].Partitions)))
		return nil
	}) {
		return
	}
	cl.ResumeFetchPartitions(map[string][]int32{e.topic: ids}) // a pause outlives the assignment that it was made in
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range ids {
		e.partitions[id] = newPartition(id, topicID, e.cfg.CacheBytes)
	}
	e.metrics.Assigned.Set(float64(len(e.partitions)))
	e.health.Report(groupPart, nil)
	e.log.Info("partitions assigned", "topic", e.topic, "partitions", ids)
}

// revoked finishes what is in flight of the partitions, within the limit, before another processor gets them.
func (e *Engine) revoked(_ context.Context, cl *kgo.Client, topics map[string][]int32) {
	ids := topics[e.topic]
	if len(ids) == 0 {
		return
	}
	e.drain(cl, ids)
	e.log.Info("partitions revoked", "topic", e.topic, "partitions", ids)
}

// lostPartitions drops the partitions at once: another processor has them already. It may be called without an
// assignment before.
func (e *Engine) lostPartitions(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
	if len(topics[e.topic]) == 0 {
		return
	}
	e.drop(e.owned(topics[e.topic]))
	e.log.Warn("partitions lost: the group went on without this processor; what was in flight is decided by the next owner, or answered from its row", "topic", e.topic, "partitions", topics[e.topic])
}

// drain stops feeding the partitions' lanes (nil: of all partitions), waits for the units under way within the limit,
// commits the offsets, and drops the partitions.
func (e *Engine) drain(cl *kgo.Client, ids []int32) {
	closing := e.owned(ids)
	e.mu.Lock()
	for _, p := range closing {
		p.closing = true
		p.settled()
	}
	e.mu.Unlock()
	limit := time.NewTimer(e.cfg.Drain)
	defer limit.Stop()
	for _, p := range closing {
		select {
		case <-p.idle:
			continue
		case <-limit.C:
			e.log.Warn("not everything in flight was finished in time; it is left whole for the next owner", "partition", p.id)
		}
		break
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := e.commitNow(ctx, cl, closing); err != nil && !errors.Is(err, context.Canceled) {
		e.log.Warn("offsets not committed; the records come again and are answered from their rows", "error", err)
	}
	e.drop(closing)
}

func (e *Engine) owned(ids []int32) (owned []*partition) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ids == nil {
		for _, p := range e.partitions {
			owned = append(owned, p)
		}
		return owned
	}
	for _, id := range ids {
		if p := e.partitions[id]; p != nil {
			owned = append(owned, p)
		}
	}
	return owned
}

func (e *Engine) drop(ps []*partition) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range ps {
		if p.gone {
			continue
		}
		p.closing, p.gone = true, true
		p.cancel()
		e.commands -= p.commands
		e.bytes -= p.bytes
		if e.partitions[p.id] == p {
			delete(e.partitions, p.id)
		}
		e.health.Report(fmt.Sprintf("partition-%d", p.id), nil)
	}
	e.metrics.Assigned.Set(float64(len(e.partitions)))
	e.room.Broadcast()
}
