package engine

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/seed54173720/writ/pkg/store"
)

// commitOffsets commits the offsets in the background, one commit at a time.
func (e *Engine) commitOffsets(ctx context.Context) {
	tick := time.NewTicker(e.cfg.OffsetInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := e.commitNow(limited, e.intake, e.owned(nil))
		cancel()
		if ctx.Err() != nil {
			return
		}
		// A commit that fails costs redeliveries, nothing else: the next one says more.
		if e.health.Report(offsetsPart, err) && err != nil {
			e.log.Warn("offsets not committed; after a restart more records would come again and be answered from their rows", "error", err)
		}
	}
}

// commitNow saves the partitions' progress in the store and then commits their offsets. Both say the same: after a
// loss of either, the lower one is where to go on.
func (e *Engine) commitNow(ctx context.Context, cl *kgo.Client, ps []*partition) error {
	e.commit.Lock()
	defer e.commit.Unlock()

	offsets := map[int32]kgo.EpochOffset{}
	var progress []store.Progress
	var topicID [16]byte
	e.mu.Lock()
	for _, p := range ps {
		if p.gone || !p.window.moved || p.window.next.offset == p.committed {
			continue
		}
		topicID = p.topicID
		next := p.window.next
		offsets[p.id] = kgo.EpochOffset{Epoch: next.epoch, Offset: next.offset}
		progress = append(progress, store.Progress{Topic: e.topic, TopicID: p.topicID, Partition: p.id, Offset: next.offset})
	}
	e.mu.Unlock()
	if len(progress) == 0 {
		return nil
	}
	if err := e.store.SaveProgress(ctx, progress); err != nil {
		return fmt.Errorf("save progress: %w", err)
	}
	id := hex.EncodeToString(topicID[:])
	ctx = kgo.PreCommitFnContext(ctx, func(r *kmsg.OffsetCommitRequest) error {
		for i := range r.Topics {
			for j := range r.Topics[i].Partitions {
				r.Topics[i].Partitions[j].Metadata = &id
			}
		}
		return nil
	})
	var fault error
	cl.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{e.topic: offsets}, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		fault = err
		if err == nil {
			fault = firstFault(resp)
		}
	})
	if fault != nil {
		return fmt.Errorf("commit offsets of topic %s in group %s: %w", e.topic, e.cfg.Group, fault)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range ps {
		if o, ok := offsets[p.id]; ok {
			p.committed = o.Offset
		}
	}
	return nil
}

// adjustOffsets says where to begin reading: at the lower of the committed offset and the progress in the store. A
// partition without progress, or with an offset of another topic of the name, begins at the start: whatever was decided
// before is answered from its rows.
func (e *Engine) adjustOffsets(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	mine := offsets[e.topic]
	if len(mine) == 0 {
		return offsets, nil
	}
	saved := map[int32]store.Progress{}
	other := map[int32]bool{}
	// The session ends with the next rebalance, which waits for this function to return.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	ok := e.insistUntil(ctx, offsetsPart, func(ctx context.Context) error {
		progress, err := e.store.Progress(ctx, e.topic)
		if err != nil {
			return err
		}
		committed, err := kadm.NewClient(e.producer).FetchOffsetsForTopics(ctx, e.cfg.Group, e.topic)
		if err != nil {
			return err
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		for id := range mine {
			p := e.partitions[id]
			if p == nil {
				continue
			}
			for _, row := range progress {
				if row.Partition == id && row.TopicID == p.topicID {
					saved[id] = row
				}
			}
			o, ok := committed.Lookup(e.topic, id)
			other[id] = ok && o.At >= 0 && o.Metadata != "" && o.Metadata != hex.EncodeToString(p.topicID[:])
		}
		return nil
	})
	if !ok {
		return nil, ctx.Err()
	}
	for id, offset := range mine {
		at := offset.EpochOffset().Offset
		row, known := saved[id]
		switch {
		case at < 0:
			// Nothing was committed: the start.
		case other[id]:
			e.log.Warn("the committed offset belongs to another topic of this name: the partition is read from its start", "topic", e.topic, "partition", id, "committed", at)
			mine[id] = kgo.NewOffset().AtStart()
		case !known:
			e.log.Warn("the database knows no progress of this partition: it is read from its start, and what was decided before is answered from its rows", "topic", e.topic, "partition", id, "committed", at)
			mine[id] = kgo.NewOffset().AtStart()
		case row.Offset < at:
			e.log.Warn("the database is behind the committed offset: the partition is read from what the database knows", "topic", e.topic, "partition", id, "committed", at, "progress", row.Offset)
			mine[id] = kgo.NewOffset().At(row.Offset)
		}
	}
	return offsets, nil
}

func firstFault(r *kmsg.OffsetCommitResponse) error {
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return fmt.Errorf("partition %d: %w", p.Partition, err)
			}
		}
	}
	return nil
}
