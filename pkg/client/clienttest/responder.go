// Package clienttest answers commands without executing them, so that what sends
// commands can be tested against brokers alone.
package clienttest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/topics"
)

// Received is a command with the place of its record.
type Received struct {
	*command.Command
	Topic    string
	Position command.Position
}

// Reply returns an answer to r's very record. A rejection gets code as its error.
func (r Received) Reply(o command.Outcome, code command.Code) command.Reply {
	reply := command.Reply{
		RequestID: r.RequestID(), Type: r.Type(), Aggregate: r.Aggregate(), CorrelationID: r.CorrelationID(),
		Outcome: o, Version: 1, Topic: r.Topic, Position: r.Position,
	}
	if !o.Final() {
		reply.Error = command.Errorf(code, "refused by the test")
	}
	return reply
}

// Responder plays the processor of a context: it reads the command topic from its
// start and sends the answers that it is told to. It decides and records nothing.
type Responder struct {
	tb     testing.TB
	name   string
	kafka  *kgo.Client
	answer func(*Responder, Received)
	done   sync.WaitGroup

	mu       sync.Mutex
	received []Received
	arrived  chan struct{} // closed and replaced when a command arrives
}

// CreateTopics makes the topics of a context, with few partitions.
func CreateTopics(tb testing.TB, brokers []string, contextName string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	declared, err := topics.Declare(contextName, topics.Options{Partitions: 3, Replication: 1})
	if err != nil {
		tb.Fatal(err)
	}
	kafka, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		tb.Fatal(err)
	}
	defer kafka.Close()
	if _, err := topics.Create(ctx, kadm.NewClient(kafka), declared); err != nil {
		tb.Fatal(err)
	}
}

// Respond runs a responder until the end of the test. answer is called for each
// command in turn and calls [Responder.Send] as often as it likes; nil answers
// nothing.
func Respond(tb testing.TB, brokers []string, contextName string, answer func(*Responder, Received)) *Responder {
	tb.Helper()
	kafka, err := kgo.NewClient(
		kgo.SeedBrokers(brokers...),
		kgo.ConsumeTopics(topics.Commands.Of(contextName)),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(100*time.Millisecond),
		kgo.MetadataMinAge(50*time.Millisecond),
		kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(func(string) func(*kgo.Record, int) int {
			hash := kgo.StickyKeyPartitioner(nil).ForTopic("")
			return func(r *kgo.Record, n int) int {
				if r.Partition >= 0 {
					return int(r.Partition)
				}
				return hash.Partition(r, n)
			}
		})),
		kgo.ProducerLinger(0),
	)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Responder{tb: tb, name: contextName, kafka: kafka, answer: answer, arrived: make(chan struct{})}
	r.done.Go(func() { r.run(ctx) })
	tb.Cleanup(func() {
		cancel()
		r.done.Wait()
		kafka.Close()
	})
	return r
}

func (r *Responder) run(ctx context.Context) {
	var ids map[string]kadm.TopicID
	for ctx.Err() == nil {
		fetches := r.kafka.PollFetches(ctx)
		if ids == nil && fetches.NumRecords() > 0 {
			if ids = r.topicIDs(ctx); ids == nil {
				return
			}
		}
		fetches.EachRecord(func(record *kgo.Record) {
			r.take(record, ids[record.Topic])
		})
	}
}

func (r *Responder) topicIDs(ctx context.Context) map[string]kadm.TopicID {
	details, err := kadm.NewClient(r.kafka).ListTopics(ctx, topics.Commands.Of(r.name))
	if err != nil {
		if ctx.Err() == nil {
			r.tb.Errorf("clienttest: %v", err)
		}
		return nil
	}
	ids := map[string]kadm.TopicID{}
	for name, d := range details {
		ids[name] = d.ID
	}
	return ids
}

func (r *Responder) take(record *kgo.Record, topicID [16]byte) {
	wire := command.Record{Key: record.Key, Value: record.Value}
	for _, h := range record.Headers {
		wire.Headers = append(wire.Headers, command.Header(h))
	}
	cmd := new(command.Command)
	if refusal := command.Read(cmd, r.name, &wire); refusal != nil {
		r.tb.Errorf("clienttest: record %s/%d/%d is no command: %v", record.Topic, record.Partition, record.Offset, refusal)
		return
	}
	received := Received{cmd, record.Topic, command.Position{TopicID: topicID, Partition: record.Partition, Offset: record.Offset}}
	r.mu.Lock()
	r.received = append(r.received, received)
	close(r.arrived)
	r.arrived = make(chan struct{})
	r.mu.Unlock()
	if r.answer != nil {
		r.answer(r, received)
	}
}

// Send sends a reply to where the command asks for it.
func (r *Responder) Send(to Received, reply command.Reply) {
	record := &kgo.Record{Topic: to.ReplyTo(), Partition: -1, Key: []byte(reply.RequestID), Value: reply.Append(nil)}
	if record.Topic == "" {
		record.Topic = topics.Replies.Of(r.name)
	}
	if p, ok := to.ReplyPartition(); ok {
		record.Partition = p
	}
	headers, _ := reply.Headers(nil, nil)
	for _, h := range headers {
		record.Headers = append(record.Headers, kgo.RecordHeader(h))
	}
	r.kafka.Produce(context.Background(), record, func(_ *kgo.Record, err error) {
		switch {
		case err == nil, errors.Is(err, kgo.ErrClientClosed):
		case errors.Is(err, kerr.UnknownTopicID): // the topic was made anew, which a producer does not get over by itself
			go r.kafka.PurgeTopicsFromProducing(record.Topic)
		default:
			r.tb.Errorf("clienttest: send a reply: %v", err)
		}
	})
}

// Await returns the first n commands, when they have arrived.
func (r *Responder) Await(n int) []Received {
	r.tb.Helper()
	deadline := time.After(time.Minute)
	for {
		r.mu.Lock()
		received, arrived := r.received, r.arrived
		r.mu.Unlock()
		if len(received) >= n {
			return received[:n:n]
		}
		select {
		case <-arrived:
		case <-deadline:
			r.tb.Fatalf("clienttest: %d commands of %s arrived within a minute, want %d", len(received), r.name, n)
		}
	}
}
