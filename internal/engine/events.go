package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/dedupe"
	"github.com/seed54173720/writ/pkg/store"
)

// publishes reports whether the task's events go to the events topic: those of its own commit, and again when its
// record is delivered again, for nobody knows whether they went out the first time.
func (e *Engine) publishes(t *task) bool {
	row := t.item.Row
	return e.cfg.Events && row != nil && row.Outcome == command.Committed && t.item.Verdict != dedupe.Duplicate
}

// sendEvents produces the events of a commit. The lane does not go on before, so that an aggregate's events are
// produced in the order of its versions.
func (e *Engine) sendEvents(t *task) {
	for _, r := range EventRecords(e.kernel.Context.Name(), t.item.Row) {
		e.sendEvent(t, r)
	}
}

func (e *Engine) sendEvent(t *task, r *kgo.Record) {
	e.producer.Produce(context.Background(), r, func(r *kgo.Record, err error) {
		if err == nil {
			e.health.Report(eventsPart, nil)
			e.done(t)
			return
		}
		if e.ctx.Err() != nil || errors.Is(err, kgo.ErrClientClosed) {
			return // left whole for the next owner
		}
		// A fault of the infrastructure: the event waits, and its record is not finished before. Later events of the
		// aggregate may have gone out by now; readers tell by the version.
		e.fault(eventsPart, fmt.Errorf("write to topic %s: %w", r.Topic, err))
		again := &kgo.Record{Topic: r.Topic, Partition: -1, Key: r.Key, Value: r.Value, Headers: r.Headers}
		time.AfterFunc(jitter(2*time.Second), func() { e.sendEvent(t, again) })
	})
}

// EventRecords returns a committed row's events as the records of the events topic.
func EventRecords(contextName string, row *store.Row) []*kgo.Record {
	records := make([]*kgo.Record, len(row.Events))
	correlation := row.Meta.CorrelationID
	if correlation == "" {
		correlation = row.RequestID
	}
	for i, event := range row.Events {
		var r command.Record
		(&command.EventRecord{
			Context: contextName, Aggregate: row.Aggregate, Version: row.Version, Index: i, Count: len(row.Events),
			Event: event, Time: row.Time, CausationID: row.RequestID, CorrelationID: correlation,
		}).Record(&r)
		records[i] = &kgo.Record{
			Topic: contextName + ".events", Partition: -1, Key: r.Key, Value: r.Value, Headers: kafkaHeaders(nil, r.Headers),
		}
	}
	return records
}
