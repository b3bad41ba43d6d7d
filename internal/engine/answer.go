package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/dedupe"
	"github.com/seed54173720/writ/pkg/kernel"
)

// answer sends each task's events, its dead letter, where it is owed one, and its reply. A task is finished when they are
// acknowledged, or undeliverable for good.
func (e *Engine) answer(tasks []*task) {
	m := newReplyMemory(len(tasks))
	for _, t := range tasks {
		e.count(t)
		t.owed = 1
		if e.publishes(t) {
			t.owed += len(t.item.Row.Events)
			e.sendEvents(t)
		}
		if e.letterOwed(t) {
			e.sendLetter(t)
			continue
		}
		e.sendReply(t, m)
	}
}

func (e *Engine) count(t *task) {
	switch i := &t.item; {
	case t.refusal != nil && !t.refusal.Identified:
		e.metrics.Unreadable.WithLabelValues(string(t.refusal.Err.Code)).Inc()
	case i.Reused != nil:
		e.metrics.Reused.Inc()
	case i.Verdict == dedupe.Own:
		e.metrics.Redelivered.Inc()
	case i.Verdict == dedupe.Duplicate:
		e.metrics.Duplicates.Inc()
	default:
		e.metrics.Outcome(i.Row.Type, i.Row.Outcome, i.Row.Error)
		if i.Row.Outcome == command.Failed {
			e.log.Warn("a command failed; it is kept on the dead-letter topic, and its sender is told", "aggregate", i.Row.Aggregate.String(),
				"request_id", i.Row.RequestID, "partition", t.partition.id, "offset", t.record.Offset, "code", i.Row.Error.Code, "error", i.Row.Error.Message)
		}
	}
}

// letterOwed reports whether the record is kept on the dead-letter topic: unreadable, failed, or refused for what it
// is, not for what an authoriser, a guard or a decision thinks of it.
func (e *Engine) letterOwed(t *task) bool {
	err := t.fault()
	if err == nil {
		return false
	}
	if t.refusal != nil && !t.refusal.Identified {
		return true
	}
	if t.item.Row == nil {
		return false
	}
	if t.item.Row.Outcome == command.Failed {
		return t.item.Verdict != dedupe.Duplicate
	}
	info, known := err.Code.Info()
	return known && info.DeadLetter
}

// fault is the error that the task is answered with, nil: none.
func (t *task) fault() *command.Error {
	switch {
	case t.refusal != nil && !t.refusal.Identified:
		return &t.refusal.Err
	case t.item.Reused != nil:
		return t.item.Reused
	case t.item.Row != nil:
		return t.item.Row.Error
	}
	return nil
}

func (e *Engine) sendLetter(t *task) {
	letter := e.letter(t)
	e.letters.Produce(context.Background(), letter, func(_ *kgo.Record, err error) {
		if err == nil {
			e.metrics.DeadLetters.Inc()
			e.health.Report(lettersPart, nil)
			e.sendReply(t, newReplyMemory(1))
			return
		}
		if e.ctx.Err() != nil {
			return // left whole for the next owner
		}
		// The dead-letter topic is away: a fault of the infrastructure. The partition waits, the record is not dropped.
		e.fault(lettersPart, fmt.Errorf("write to topic %s: %w", letter.Topic, err))
		time.AfterFunc(jitter(2*time.Second), func() { e.sendLetter(t) })
	})
}

func (e *Engine) sendReply(t *task, m *replyMemory) {
	reply, to, partition := e.reply(t)
	r := m.record(&reply)
	if r.Topic = e.replyTopic(to); to == "" || r.Topic != to {
		partition = -1
	}
	r.Partition = partition
	e.producer.Produce(context.Background(), r, func(r *kgo.Record, err error) { e.replied(t, r, err) })
}

// replied ends a task whose reply was acknowledged. A reply that its topic does not take goes to the default topic. One
// that no topic would take as it is, is noted: its sender gets the answer by sending the request ID again. Whatever else
// keeps the default topic from taking it is a fault of the infrastructure: the reply waits, for its record is not
// finished before.
func (e *Engine) replied(t *task, r *kgo.Record, err error) {
	if err == nil {
		if r.Topic == e.replies {
			e.health.Report(repliesPart, nil)
		}
		e.done(t)
		return
	}
	if e.ctx.Err() != nil || errors.Is(err, kgo.ErrClientClosed) {
		return // left whole for the next owner
	}
	again := func(partition int32) {
		again := &kgo.Record{Topic: e.replies, Partition: partition, Key: r.Key, Value: r.Value, Headers: r.Headers}
		e.producer.Produce(context.Background(), again, func(r *kgo.Record, err error) { e.replied(t, r, err) })
	}
	switch {
	case r.Topic != e.replies:
		e.metrics.Undelivered.WithLabelValues(reason(err)).Inc()
		e.log.Warn("the reply topic does not take a reply; it goes to the default topic", "topic", r.Topic, "error", err)
		go again(-1)
	case unfit(err):
		e.metrics.Undelivered.WithLabelValues(reason(err)).Inc()
		e.log.Warn("a reply cannot be delivered; the same request ID sent again is answered again", "topic", r.Topic, "request_id", string(r.Key), "error", err)
		e.done(t)
	default:
		e.fault(repliesPart, fmt.Errorf("write to topic %s: %w", r.Topic, err))
		time.AfterFunc(jitter(2*time.Second), func() { again(r.Partition) })
	}
}

// unfit reports whether err is about the record itself, which no later attempt mends.
func unfit(err error) bool {
	for _, about := range []error{kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.InvalidTimestamp} {
		if errors.Is(err, about) {
			return true
		}
	}
	return false
}

func reason(err error) string {
	var k *kerr.Error
	if errors.As(err, &k) {
		return strings.ToLower(k.Message)
	}
	return "other"
}

// reply returns the task's reply and where its record asks for it.
func (e *Engine) reply(t *task) (r command.Reply, to string, partition int32) {
	if t.refusal != nil && !t.refusal.Identified {
		ref := t.refusal
		return command.Reply{
			RequestID: ref.RequestID, Outcome: command.Rejected, Error: &ref.Err, Topic: e.topic, Position: t.item.Position,
		}, ref.ReplyTo, ref.ReplyPartition
	}
	partition = -1
	if p, ok := t.cmd.ReplyPartition(); ok {
		partition = p
	}
	return t.item.Reply(e.topic), t.cmd.ReplyTo(), partition
}

// replyTopic returns where a reply may go: the topic asked for if it is a reply topic of the context, else the default.
func (e *Engine) replyTopic(to string) string {
	if own := e.replies; to == own || strings.HasPrefix(to, own+".") {
		return to
	}
	return e.replies
}

// letter is the record that keeps t's record, with where it came from and why.
func (e *Engine) letter(t *task) *kgo.Record {
	err := t.fault()
	d := command.DeadLetter{
		Original: command.Record{Key: t.record.Key, Value: t.record.Value, Headers: plain(nil, t.record.Headers)},
		Topic:    e.topic, Position: t.item.Position, Timestamp: t.record.Timestamp, Code: err.Code, Message: err.Message,
	}
	if t.refusal == nil || t.refusal.Identified {
		d.RequestID = t.cmd.RequestID()
	} else {
		d.RequestID = t.refusal.RequestID
	}
	var r command.Record
	d.Record(&r)
	return &kgo.Record{Topic: e.kernel.Context.Name() + ".dead-letters", Partition: -1, Key: r.Key, Value: r.Value, Headers: kafkaHeaders(nil, r.Headers)}
}

// plain returns a Kafka record's headers in the words of package command.
func plain(dst []command.Header, hs []kgo.RecordHeader) []command.Header {
	for _, h := range hs {
		dst = append(dst, command.Header{Key: h.Key, Value: h.Value})
	}
	return dst
}

// done notes one acknowledgement. With the last one that it is owed the task is finished: its record needs nothing
// more, and the partition's offset may move behind it.
func (e *Engine) done(t *task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := t.partition
	if t.owed--; p.gone || t.owed > 0 {
		return
	}
	e.metrics.Answered.Observe(time.Since(t.fetched).Seconds())
	p.window.finish(t.seq)
	p.commands--
	p.bytes -= t.size
	p.working--
	e.commands--
	e.bytes -= t.size
	e.metrics.InFlight.Set(float64(e.commands))
	e.metrics.InFlightByte.Set(float64(e.bytes))
	p.settled()
	if p.paused {
		e.resume() // the poll waits for records, and a paused partition has none to wake it with
	}
	e.room.Signal()
	// Tasks of one poll share their memory: give back what this one refers to before the last of them is done.
	t.record, t.refusal, t.cmd, t.item = nil, nil, command.Command{}, kernel.Item{}
}
