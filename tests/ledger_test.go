package tests

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/tests/model"
)

// sequence is the header that says which entry of the ledger a record is of. It is none that the processor knows.
const sequence = "test-sequence"

// entry is one record that was sent.
type entry struct {
	model.Record             // Place is set once acknowledged
	acked        time.Time   // zero: not
	record       *kgo.Record // for repeats
}

// ledger sends records, reads the answers, and keeps account of both.
type ledger struct {
	t        *testing.T
	context  string
	producer *kgo.Client
	reader   *kgo.Client
	reading  sync.WaitGroup
	stop     context.CancelFunc

	mu      sync.Mutex
	changed *sync.Cond
	sent    []*entry
	acked   map[model.Place]*entry
	seen    map[model.Place]bool // answered
	answers []model.Answer
	letters []model.Letter
	unacked int // sent and not acknowledged
	open    int // acknowledged and not answered
}

func newLedger(t *testing.T, name, seed string) *ledger {
	t.Helper()
	l := &ledger{t: t, context: name, acked: map[model.Place]*entry{}, seen: map[model.Place]bool{}}
	l.changed = sync.NewCond(&l.mu)
	byKey := kgo.StickyKeyPartitioner(nil)
	var err error
	if l.producer, err = kgo.NewClient(
		kgo.SeedBrokers(seed), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.MaxBufferedRecords(1<<20), kgo.AlwaysRetryEOF(),
		kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(func(topic string) func(*kgo.Record, int) int {
			keyed := byKey.ForTopic(topic)
			return func(r *kgo.Record, n int) int {
				if r.Partition >= 0 {
					return int(r.Partition)
				}
				return keyed.Partition(r, n)
			}
		})),
	); err != nil {
		t.Fatal(err)
	}
	if l.reader, err = kgo.NewClient(
		kgo.SeedBrokers(seed), kgo.ConsumeTopics(name+".replies", name+".dead-letters"), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(50*time.Millisecond), kgo.AlwaysRetryEOF(),
	); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	l.reading.Go(func() { l.read(ctx) })
	return l
}

// close ends the reader of answers and both clients.
func (l *ledger) close() {
	l.stop()
	l.reading.Wait()
	l.producer.Close()
	l.reader.Close()
}

// send produces the drafts at once, in order.
func (l *ledger) send(drafts ...draft) {
	l.mu.Lock()
	entries := make([]*entry, len(drafts))
	for i, d := range drafts {
		e := &entry{Record: d.known, record: &kgo.Record{
			Topic: l.context + ".commands", Partition: d.partition, Key: d.record.Key, Value: d.record.Value,
			Headers: append(kafkaHeaders(d.record.Headers), kgo.RecordHeader{Key: sequence, Value: strconv.AppendInt(nil, int64(len(l.sent)), 10)}),
		}}
		e.Bytes = bytesOf(e.record)
		l.sent = append(l.sent, e)
		entries[i] = e
	}
	l.unacked += len(drafts)
	l.mu.Unlock()
	for _, e := range entries {
		e.Sent = time.Now()
		l.producer.Produce(context.Background(), e.record, func(r *kgo.Record, err error) { l.acknowledged(e, r, err) })
	}
}

// acknowledged keeps the record's place. One that a broker refused, or lost its sequence number of, may stand on the
// topic or not; the topic tells.
func (l *ledger) acknowledged(e *entry, r *kgo.Record, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changed.Broadcast()
	l.unacked--
	if err != nil {
		l.t.Logf("record of request %q not acknowledged: %v", e.RequestID, err)
		return
	}
	e.acked, e.Place = time.Now(), model.Place{Partition: r.Partition, Offset: r.Offset}
	l.acked[e.Place] = e
	if !l.seen[e.Place] {
		l.open++
	}
}

func (l *ledger) read(ctx context.Context) {
	for ctx.Err() == nil {
		fetches := l.reader.PollFetches(ctx)
		fetches.EachError(func(topic string, partition int32, err error) {
			if ctx.Err() == nil && !errors.Is(err, kgo.ErrClientClosed) {
				l.t.Logf("read %s/%d: %v", topic, partition, err)
			}
		})
		now := time.Now()
		l.mu.Lock()
		fetches.EachRecord(func(r *kgo.Record) {
			if err := l.take(now, r); err != nil {
				l.t.Errorf("%s %d/%d: %v", r.Topic, r.Partition, r.Offset, err)
			}
		})
		l.changed.Broadcast()
		l.mu.Unlock()
	}
}

func (l *ledger) take(now time.Time, r *kgo.Record) error {
	if r.Topic != l.context+".replies" {
		letter, err := command.ReadDeadLetter(&command.Record{Key: r.Key, Value: r.Value, Headers: plainHeaders(r.Headers)})
		if err != nil {
			return err
		}
		l.letters = append(l.letters, model.Letter{
			Place: model.Place{Partition: letter.Position.Partition, Offset: letter.Position.Offset},
			Bytes: model.Bytes(letter.Original.Key, letter.Original.Value, letter.Original.Headers),
		})
		return nil
	}
	reply, err := command.ParseReply(r.Value)
	if err != nil {
		return err
	}
	l.answers = append(l.answers, model.Answer{
		Place: model.Place{Partition: r.Partition, Offset: r.Offset}, Seen: now, Reply: reply, Bytes: bytesOf(r),
	})
	p := model.Place{Partition: reply.Position.Partition, Offset: reply.Position.Offset}
	if !l.seen[p] {
		l.seen[p] = true
		if l.acked[p] != nil {
			l.open--
		}
	}
	return nil
}

// await waits until holds, which is called under the ledger's lock, says so.
func (l *ledger) await(what string, within time.Duration, holds func() bool) {
	l.t.Helper()
	deadline := time.Now().Add(within)
	wake := time.AfterFunc(within, l.changed.Broadcast)
	defer wake.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for !holds() {
		if time.Now().After(deadline) {
			l.t.Fatalf("after %v: no %s; %d sent, %d of them not acknowledged, %d not answered", within, what, len(l.sent), l.unacked, l.open)
		}
		l.changed.Wait()
	}
}

// unansweredAt counts the records that were acknowledged by then and had no answer among the replies before the ends.
func (l *ledger) unansweredAt(then time.Time, ends map[int32]int64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	answered := map[model.Place]bool{}
	for i := range l.answers {
		if a := &l.answers[i]; a.Place.Offset < ends[a.Place.Partition] {
			answered[model.Place{Partition: a.Reply.Position.Partition, Offset: a.Reply.Position.Offset}] = true
		}
	}
	n := 0
	for p, e := range l.acked {
		if e.acked.Before(then) && !answered[p] {
			n++
		}
	}
	return n
}

// entryOf finds the ledger's entry for a record of the command topic.
func (l *ledger) entryOf(r *kgo.Record) (*entry, error) {
	for _, h := range r.Headers {
		if h.Key != sequence {
			continue
		}
		n, err := strconv.Atoi(string(h.Value))
		if err != nil || n < 0 || n >= len(l.sent) {
			return nil, fmt.Errorf("sequence %q is not the ledger's", h.Value)
		}
		return l.sent[n], nil
	}
	return nil, errors.New("not sent by the ledger")
}

func bytesOf(r *kgo.Record) string { return model.Bytes(r.Key, r.Value, plainHeaders(r.Headers)) }

func kafkaHeaders(hs []command.Header) []kgo.RecordHeader {
	out := make([]kgo.RecordHeader, len(hs), len(hs)+1)
	for i, h := range hs {
		out[i] = kgo.RecordHeader{Key: h.Key, Value: h.Value}
	}
	return out
}

func plainHeaders(hs []kgo.RecordHeader) []command.Header {
	out := make([]command.Header, len(hs))
	for i, h := range hs {
		out[i] = command.Header{Key: h.Key, Value: h.Value}
	}
	return out
}
