package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/pkg/command"
)

// fetchRecords bounds the records of one poll: a poll is handed over whole.
const fetchRecords = 2_000

// errTopicReplaced ends a run whose topic was deleted and created anew under its name.
var errTopicReplaced = errors.New("the command topic was deleted and created anew")

// poll fetches records and hands them to the lanes until ctx ends. While the engine is full it does not poll; that
// neither drops anything nor leaves the group nor holds up a rebalance.
func (e *Engine) poll(ctx context.Context) error {
	stop := context.AfterFunc(ctx, e.room.Broadcast)
	defer stop()
	for {
		room := e.awaitRoom(ctx)
		if ctx.Err() != nil {
			return nil
		}
		fetches := e.intake.PollRecords(ctx, min(room, fetchRecords))
		n, err := e.take(fetches)
		e.intake.AllowRebalance()
		if err != nil || fetches.IsClientClosed() {
			return err
		}
		if n > 0 {
			e.metrics.FetchRecords.Observe(float64(n))
		}
		if n > 0 && n < small {
			e.restOr(ctx, e.cfg.Linger)
		}
	}
}

func (e *Engine) restOr(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// stuck is how long a partition that is full may hold up the polling of all before it is paused: pausing drops what
// was fetched of it, so it is for partitions that do not move.
const stuck = 50 * time.Millisecond

// awaitRoom waits until there is room in all, and returns how many commands may come. A partition that alone is full,
// and stays so, is paused; it goes on once it is half empty.
func (e *Engine) awaitRoom(ctx context.Context) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	var since time.Time
	for ctx.Err() == nil {
		e.resume()
		if e.commands < e.cfg.InFlightCommands && e.bytes < e.cfg.InFlightBytes {
			full := e.full()
			if len(full) == 0 {
				break
			}
			if since.IsZero() {
				since = time.Now()
				time.AfterFunc(stuck, e.room.Broadcast)
			}
			if time.Since(since) >= stuck {
				e.pause(full)
				break
			}
		}
		e.room.Wait()
	}
	return e.cfg.InFlightCommands - e.commands
}

func (e *Engine) full() (full []*partition) {
	for _, p := range e.partitions {
		if !p.paused && (p.commands >= e.cfg.PartitionCommands || p.window.len() >= e.cfg.Window || p.bytes >= e.cfg.InFlightBytes*3/4) {
			full = append(full, p)
		}
	}
	return full
}

func (e *Engine) pause(full []*partition) {
	for _, p := range full {
		p.paused = true
		e.metrics.Pauses.Inc()
		e.intake.PauseFetchPartitions(map[string][]int32{e.topic: {p.id}})
		e.log.Debug("partition paused: it is full and does not move", "partition", p.id, "commands", p.commands, "window", p.window.len())
	}
}

func (e *Engine) resume() {
	for _, p := range e.partitions {
		if p.paused && !p.lost && p.commands <= e.cfg.PartitionCommands/2 && p.window.len() <= e.cfg.Window/2 && p.bytes <= e.cfg.InFlightBytes*3/8 {
			p.paused = false
			e.intake.ResumeFetchPartitions(map[string][]int32{e.topic: {p.id}})
		}
	}
}

// take reads the envelopes of a poll's records and hands them over together.
func (e *Engine) take(fetches kgo.Fetches) (n int, err error) {
	fetches.EachError(func(_ string, partition int32, fault error) {
		if fatal := e.fetchFault(partition, fault); fatal != nil {
			err = fatal
		}
	})
	if n = fetches.NumRecords(); n == 0 {
		return 0, err
	}
	tasks := make([]task, n)
	now := time.Now()
	i := 0
	var scratch command.Record
	fetches.EachRecord(func(r *kgo.Record) {
		t := &tasks[i]
		i++
		t.record, t.size, t.fetched = r, recordSize(r), now
		t.item.FromRecord = true
		if e.strays(r) {
			e.metrics.Strays.Inc()
		}
		scratch.Key, scratch.Value, scratch.Headers = r.Key, r.Value, plain(scratch.Headers[:0], r.Headers)
		t.refusal = command.Read(&t.cmd, e.kernel.Context.Name(), &scratch)
		t.item.Command = &t.cmd
		if t.refusal != nil && t.refusal.Identified {
			t.item.Refused = &t.refusal.Err
		}
	})
	e.handOver(tasks)
	return n, err
}

// strays reports whether the record stands where its key does not lead, by the hash of Kafka's own clients: two
// partitions may then race for one aggregate, which costs conflicts and nothing else.
func (e *Engine) strays(r *kgo.Record) bool {
	n := int(e.spread.Load())
	return n > 0 && len(r.Key) > 0 && e.home.Partition(r, n) != int(r.Partition)
}

// handOver puts tasks into their lanes; those without an identity are answered at once, for no row is written of them.
func (e *Engine) handOver(tasks []task) {
	var unreadable []*task
	e.mu.Lock()
	for i := range tasks {
		t := &tasks[i]
		p := e.partitions[t.record.Partition]
		if p == nil || p.closing {
			continue // its next owner reads it
		}
		t.partition = p
		t.item.Position = command.Position{TopicID: p.topicID, Partition: p.id, Offset: t.record.Offset}
		t.seq = p.window.open(t.record.Offset, t.record.LeaderEpoch)
		p.commands++
		p.bytes += t.size
		e.commands++
		e.bytes += t.size
		if t.refusal != nil && !t.refusal.Identified {
			p.working++
			unreadable = append(unreadable, t)
			continue
		}
		e.add(t)
	}
	e.metrics.InFlight.Set(float64(e.commands))
	e.metrics.InFlightByte.Set(float64(e.bytes))
	e.mu.Unlock()
	e.answer(unreadable)
}

// fetchFault handles an error in place of records. What cannot mend itself ends the run, loudly.
func (e *Engine) fetchFault(partition int32, err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, kgo.ErrClientClosed):
		return nil
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.InconsistentTopicID):
		return fmt.Errorf("%w: %s", errTopicReplaced, e.topic)
	case errors.Is(err, kerr.OffsetOutOfRange):
		e.mu.Lock()
		if p := e.partitions[partition]; p != nil {
			p.lost = true
			e.intake.PauseFetchPartitions(map[string][]int32{e.topic: {partition}})
		}
		e.mu.Unlock()
		err = fmt.Errorf("partition %d: the next record to read is not in the log any more: %w", partition, err)
		e.fault(fmt.Sprintf("partition-%d", partition), err)
		return nil
	}
	var session *kgo.ErrGroupSession
	if errors.As(err, &session) {
		err = fmt.Errorf("join group %s: %w", e.cfg.Group, err)
	} else {
		err = fmt.Errorf("read topic %s, partition %d: %w", e.topic, partition, err)
	}
	e.mu.Lock()
	e.fetchFaultErr, e.fetchFaultAt = err, time.Now()
	e.mu.Unlock()
	return nil
}
