package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/internal/kafkatest"
)

// result is what one measurement of throughput found.
type result struct {
	commands int
	took     time.Duration
	cpu      cpu
	peakMB   float64
	journal  journal
}

func (r *result) rate() float64 { return float64(r.commands) / r.took.Seconds() }

// micros is d per command, in microseconds.
func (r *result) micros(d time.Duration) float64 {
	return float64(d) / float64(time.Microsecond) / float64(r.commands)
}

// drain measures a worker over a log that is there before it starts, from its first poll that returns records to its
// last reply's acknowledgement. Its schema is there before and after.
func (b *bed) drain(ctx context.Context, on *kafkatest.Proc, cfg workerConfig, records []*kgo.Record) (r result, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	r.commands = len(records)
	cfg.Broker, cfg.Database, cfg.Group, cfg.Expect = on.Addr(), b.server.URL(), cfg.Schema, int64(len(records))
	if err := preload(ctx, on, records); err != nil {
		return r, err
	}
	if err := b.settle(ctx); err != nil {
		return r, err
	}
	w, err := b.startWorker(cfg)
	if err != nil {
		return r, err
	}
	defer w.stop()
	m := meter{postgres: b.postgres, broker: on.PID(), worker: w.pid()}
	first, err := w.await(ctx, firstPoll)
	if err != nil {
		return r, err
	}
	before, err := m.read()
	if err != nil {
		return r, err
	}
	last, err := w.await(ctx, lastReply)
	if err != nil {
		return r, err
	}
	after, err := m.read()
	if err != nil {
		return r, err
	}
	r.took, r.cpu = last.At.Sub(first.At), after.minus(before)
	if r.peakMB, err = peakMB(w.pid()); err != nil {
		return r, err
	}
	if err := w.stop(); err != nil {
		return r, err
	}
	replies, err := b.count(ctx, on, cfg.Replies)
	if err == nil && replies != int64(len(records)) {
		err = fmt.Errorf("%s: %d replies to %d commands", cfg.Schema, replies, len(records))
	}
	return r, err
}

// writ measures the processor: b, e and f.
func (b *bed) writ(ctx context.Context, on *kafkatest.Proc, schema string, records []*kgo.Record, partitions int32) (r result, err error) {
	if err := b.freshTopics(ctx, on, partitions); err != nil {
		return r, err
	}
	if err := b.freshSchema(ctx, schema); err != nil {
		return r, err
	}
	cfg := workerConfig{Kind: kindWrit, Schema: schema, Commands: writCommands, Replies: writReplies, Tuning: b.tuning}
	if b.profile != "" {
		cfg.Profile = filepath.Join(b.profile, schema+"-")
	}
	if r, err = b.drain(ctx, on, cfg, records); err != nil {
		return r, err
	}
	r.journal, err = b.inspect(ctx, schema)
	if err == nil && r.journal.committed != int64(len(records)) {
		err = fmt.Errorf("%s: %d of %d commands are committed", schema, r.journal.committed, len(records))
	}
	return r, err
}

// plainLoop measures c.
func (b *bed) plainLoop(ctx context.Context, schema string, records []*kgo.Record) (r result, err error) {
	if err := b.freshLoopSchema(ctx, schema); err != nil {
		return r, err
	}
	r, err = b.drain(ctx, b.embedded, workerConfig{Kind: kindLoop, Schema: schema, Commands: loopCommands, Replies: loopReplies}, records)
	if err != nil {
		return r, err
	}
	err = b.db.QueryRow(ctx, "select count(*) from "+schema+".event").Scan(&r.journal.committed)
	if err == nil && r.journal.committed != int64(len(records)) {
		err = fmt.Errorf("%s: %d of %d commands are committed", schema, r.journal.committed, len(records))
	}
	return r, err
}

// journal describes what a measurement wrote.
type journal struct {
	committed  int64
	eventBytes float64 // a row, mean
	rowBytes   float64
	groupRows  float64 // a transaction, mean
}

func (b *bed) inspect(ctx context.Context, schema string) (j journal, err error) {
	err = b.db.QueryRow(ctx, `select count(*) filter (where outcome = 'c'), coalesce(avg(octet_length(events)), 0), coalesce(avg(pg_column_size(j.*)), 0),
		count(*)::float8 / greatest(count(distinct xmin::text), 1) from `+schema+`.journal j`).Scan(&j.committed, &j.eventBytes, &j.rowBytes, &j.groupRows)
	return j, err
}
