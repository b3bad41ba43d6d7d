package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/internal/kafkatest"
)

const (
	// slow is the rate, commands a second, at which everybody's latency is measured beside half of its own rate.
	slow = 1_000
	// warmSeconds of a load come before those that count.
	warmSeconds = 1
)

// load is what one measurement under a steady load found.
type load struct {
	rate      float64 // commands a second
	latencies []time.Duration
	cpu       cpu // of the commands that count
}

// quantile is the latency that a part q of the commands does not exceed, in milliseconds.
func (l *load) quantile(q float64) float64 {
	if len(l.latencies) == 0 {
		return 0
	}
	return float64(l.latencies[min(int(q*float64(len(l.latencies))), len(l.latencies)-1)]) / float64(time.Millisecond)
}

// micros is d per command, in microseconds.
func (l *load) micros(d time.Duration) float64 {
	return float64(d) / float64(time.Microsecond) / float64(max(len(l.latencies), 1))
}

// loads measures a worker at each of the rates in turn.
func (b *bed) loads(ctx context.Context, cfg workerConfig, rates ...float64) (loads []load, err error) {
	on := b.embedded
	if err := b.freshTopics(ctx, on, 0); err != nil {
		return nil, err
	}
	cfg.Broker, cfg.Database, cfg.Group = on.Addr(), b.server.URL(), cfg.Schema
	w, err := b.startWorker(cfg)
	if err != nil {
		return nil, err
	}
	defer w.stop()
	work := newWorkload(b.options, cfg.Schema)
	// The first commands find the worker while it joins its group and plans its statements.
	if _, err := b.load(ctx, on, cfg, w, work, slow, time.Second); err != nil {
		return nil, fmt.Errorf("warm up: %w", err)
	}
	for _, rate := range rates {
		l, err := b.load(ctx, on, cfg, w, work, rate, b.seconds)
		if err != nil {
			return nil, fmt.Errorf("at %.0f/s: %w", rate, err)
		}
		loads = append(loads, l)
	}
	return loads, w.stop()
}

// load sends commands at a steady rate, whatever becomes of them, and waits for their replies. A latency is from when
// a command was to be sent, however late it was, to when its reply has come.
func (b *bed) load(ctx context.Context, on *kafkatest.Proc, cfg workerConfig, w *process, work *workload, rate float64, d time.Duration) (l load, err error) {
	warm := int(rate * warmSeconds)
	n := warm + int(rate*d.Seconds())
	first := work.made
	records, err := work.take(n, cfg.Commands)
	if err != nil {
		return l, err
	}
	askHere(records, cfg.Replies)
	if err := b.settle(ctx); err != nil {
		return l, err
	}
	ctx, stop := context.WithTimeout(ctx, time.Minute+d)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	producer, err := newProducer(on)
	if err != nil {
		return l, err
	}
	defer producer.Close()
	if err := producer.Ping(ctx); err != nil {
		return l, err
	}
	consumer, err := fromEnd(ctx, on, cfg.Replies)
	if err != nil {
		return l, err
	}
	defer consumer.Close()

	m := meter{postgres: b.postgres, broker: on.PID(), worker: w.pid()}
	var before cpu
	start := time.Now()
	due := func(i int) time.Time { return start.Add(time.Duration(float64(i) / rate * float64(time.Second))) }
	sent := make(chan error, 1)
	go func() {
		err := steadily(ctx, producer, records, due, warm, func() (err error) {
			before, err = m.read()
			return err
		})
		if err != nil {
			cancel(err)
		}
		sent <- err
	}()

	l.rate, l.latencies = rate, make([]time.Duration, 0, n-warm)
	answered := make([]bool, n)
	for left := n; left > 0; {
		fetches := consumer.PollFetches(ctx)
		now := time.Now()
		if err := errors.Join(fetches.Err(), context.Cause(ctx)); err != nil {
			return l, w.failed(fmt.Errorf("%d of %d commands are not answered: %w", left, n, err))
		}
		fetches.EachRecord(func(r *kgo.Record) {
			number, ok := numberOf(r.Key)
			i := int(number) - int(first)
			if !ok || i < 0 || i >= n || answered[i] {
				return
			}
			answered[i] = true
			left--
			if i >= warm {
				l.latencies = append(l.latencies, now.Sub(due(i)))
			}
		})
	}
	if err := <-sent; err != nil {
		return l, err
	}
	after, err := m.read()
	if err != nil {
		return l, err
	}
	l.cpu = after.minus(before)
	slices.Sort(l.latencies)
	return l, nil
}

// pace is how often commands that are due are sent.
const pace = 2 * time.Millisecond

// askHere has the commands ask for their replies on one partition, as every client of the product does; the loop
// replies to one as well.
func askHere(records []*kgo.Record, replies string) {
	for _, r := range records {
		r.Headers = append(r.Headers,
			kgo.RecordHeader{Key: "ce_replyto", Value: []byte(replies)}, kgo.RecordHeader{Key: "ce_replypartition", Value: []byte("0")})
	}
}

// steadily sends each record when it is due, and calls atWarm before the record of that number.
func steadily(ctx context.Context, producer *kgo.Client, records []*kgo.Record, due func(int) time.Time, warm int, atWarm func() error) error {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	failed := make(chan error, 1)
	promise := func(_ *kgo.Record, err error) {
		if err != nil {
			select {
			case failed <- err:
			default:
			}
		}
	}
	for i := 0; i < len(records); {
		now := time.Now()
		for ; i < len(records) && !due(i).After(now); i++ {
			if i == warm {
				if err := atWarm(); err != nil {
					return err
				}
			}
			producer.Produce(ctx, records[i], promise)
		}
		select {
		case <-tick.C:
		case err := <-failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return producer.Flush(ctx)
}

// fromEnd returns a consumer of what comes to the topic from now on.
func fromEnd(ctx context.Context, on *kafkatest.Proc, topic string) (*kgo.Client, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(on.Addr()))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	from := map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) { from[o.Partition] = kgo.NewOffset().At(o.Offset) })
	return kgo.NewClient(kgo.SeedBrokers(on.Addr()), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
}
