package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/seed54173720/writ/internal/embedded/broker"
	"github.com/seed54173720/writ/internal/kafkatest"
	"github.com/seed54173720/writ/pkg/client/clienttest"
	"github.com/seed54173720/writ/pkg/command"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

func committed(r *clienttest.Responder, c clienttest.Received) {
	r.Send(c, c.Reply(command.Committed, ""))
}

func TestSendGetsTheAnswerToItsOwnRecord(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) []string{
		"embedded broker": embedded,
		"Apache Kafka":    func(t *testing.T) []string { return kafkatest.Shared(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokers := start(t)
			contextName := "own-" + strings.ToLower(rand.Text()) // the cluster may be an old one
			clienttest.CreateTopics(t, brokers, contextName)
			responder := clienttest.Respond(t, brokers, contextName, func(r *clienttest.Responder, c clienttest.Received) {
				other := c.Reply(command.Committed, "")
				other.RequestID, other.Position.Offset = "of-somebody-else", other.Position.Offset+100
				r.Send(c, other)
				r.Send(c, c.Reply(command.Rejected, "name-taken"))
			})
			c := dial(t, brokers, contextName)
			cmd := build(t, contextName, "r-1", "brand-1")
			reply, err := c.Send(within(t, 30*time.Second), cmd)
			if err != nil {
				t.Fatal(err)
			}
			got := responder.Await(1)[0]
			if reply.RequestID != "r-1" || reply.Outcome != command.Rejected || reply.Error.Code != "name-taken" {
				t.Errorf("Send: %+v, want r-1 rejected as name-taken", reply)
			}
			if reply.Position != got.Position || reply.Topic != contextName+".commands" {
				t.Errorf("Send: answer to %s/%v, want that to %s/%v", reply.Topic, reply.Position, got.Topic, got.Position)
			}
			if reply.CorrelationID != "r-1" {
				t.Errorf("Send: correlation ID %q, want the request ID", reply.CorrelationID)
			}
			if got.ReplyTo() != contextName+".replies" || got.Fingerprint() != cmd.Fingerprint() {
				t.Errorf("record: reply to %q, fingerprint %x; want our topic and the command's own fingerprint %x", got.ReplyTo(), got.Fingerprint(), cmd.Fingerprint())
			}
		})
	}
}

func TestLateNoToAnEarlierRecordIsNotTaken(t *testing.T) {
	t.Parallel()
	brokers := embedded(t)
	contextName := "late-no"
	clienttest.CreateTopics(t, brokers, contextName)
	var earlier clienttest.Received
	seen := 0
	clienttest.Respond(t, brokers, contextName, func(r *clienttest.Responder, c clienttest.Received) {
		if seen++; seen == 1 {
			earlier = c
			return
		}
		r.Send(c, earlier.Reply(command.Rejected, "name-taken"))
		r.Send(c, c.Reply(command.Committed, ""))
	})
	c := dial(t, brokers, contextName)
	if _, err := c.Post(within(t, 30*time.Second), build(t, contextName, "r", "b")); err != nil {
		t.Fatal(err)
	}
	reply, err := c.Send(within(t, 30*time.Second), build(t, contextName, "r", "b"))
	if err != nil || reply.Outcome != command.Committed {
		t.Errorf("Send: %v, %v; want the second record's committed", reply.Outcome, err)
	}
}

func TestFinalOutcomeOfTheRequestAnswersEveryRecordOfIt(t *testing.T) {
	t.Parallel()
	brokers := embedded(t)
	contextName := "final"
	clienttest.CreateTopics(t, brokers, contextName)
	var first clienttest.Received
	clienttest.Respond(t, brokers, contextName, func(r *clienttest.Responder, c clienttest.Received) {
		if first.Command == nil {
			first = c
			return
		}
		r.Send(c, first.Reply(command.Committed, ""))
	})
	c := dial(t, brokers, contextName)
	if _, err := c.Post(within(t, 30*time.Second), build(t, contextName, "r", "b")); err != nil {
		t.Fatal(err)
	}
	reply, err := c.Send(within(t, 30*time.Second), build(t, contextName, "r", "b"))
	if err != nil || reply.Outcome != command.Committed || reply.Position != first.Position {
		t.Errorf("Send: %v at %v, %v; want the first record's committed at %v", reply.Outcome, reply.Position, err, first.Position)
	}
}

func TestFinalOutcomeDoesNotAnswerAnotherCommandOfTheSameRequestID(t *testing.T) {
	t.Parallel()
	for name, await := range map[string]func(*Client, context.Context, *command.Command){
		"posted": func(c *Client, ctx context.Context, cmd *command.Command) { _, _ = c.Post(ctx, cmd) },
		"unanswered": func(c *Client, ctx context.Context, cmd *command.Command) {
			ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			defer cancel()
			_, _ = c.Send(ctx, cmd)
		},
		"under way": func(c *Client, ctx context.Context, cmd *command.Command) { go c.Send(ctx, cmd) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokers := embedded(t)
			contextName := "contested"
			clienttest.CreateTopics(t, brokers, contextName)
			var first clienttest.Received
			responder := clienttest.Respond(t, brokers, contextName, func(r *clienttest.Responder, c clienttest.Received) {
				if first.Command == nil {
					first = c
					return
				}
				r.Send(c, first.Reply(command.Committed, ""))
				r.Send(c, c.Reply(command.Rejected, command.CodeRequestIDReused))
			})
			c := dial(t, brokers, contextName)
			await(c, within(t, 30*time.Second), build(t, contextName, "r", "b"))
			responder.Await(1)
			other, err := command.New(contextName+".brand.rename", "tests").ID("r").Subject("b").JSON(map[string]string{"name": "other"}).Build()
			if err != nil {
				t.Fatal(err)
			}
			reply, err := c.Send(within(t, 30*time.Second), other)
			if err != nil || reply.Error == nil || reply.Error.Code != command.CodeRequestIDReused {
				t.Errorf("Send: %+v, %v; want %s", reply, err, command.CodeRequestIDReused)
			}
		})
	}
}

func TestAnswerThatOvertakesTheAcknowledgementIsHeld(t *testing.T) {
	t.Parallel()
	contextName := "overtaken"
	cluster, brokers := fake(t, contextName)
	c := dial(t, brokers, contextName)
	// The record is appended, and its acknowledgement kept back until the answer is here.
	fault := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: contextName + ".commands", Err: kerr.RequestTimedOut, Count: -1})
	clienttest.Respond(t, brokers, contextName, func(r *clienttest.Responder, c clienttest.Received) {
		r.Send(c, c.Reply(command.Rejected, "name-taken"))
	})
	go func() {
		if !poll(t, func() bool { return c.waiting("r", holds) }) {
			t.Error("the answer was not held")
		}
		fault.Remove()
	}()
	reply, err := c.Send(within(t, 30*time.Second), build(t, contextName, "r", "b"))
	if err != nil || reply.Outcome != command.Rejected {
		t.Errorf("Send: %v, %v; want the answer that came first", reply.Outcome, err)
	}
}

func TestFinalAnswerIsTakenThoughTheAcknowledgementIsLost(t *testing.T) {
	t.Parallel()
	contextName := "lost-ack"
	cluster, brokers := fake(t, contextName)
	c := dial(t, brokers, contextName)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: contextName + ".commands", Err: kerr.RequestTimedOut, Count: -1})
	clienttest.Respond(t, brokers, contextName, committed)
	ctx, cancel := context.WithCancel(within(t, 30*time.Second))
	defer cancel()
	go func() {
		poll(t, func() bool { return c.waiting("r", holds) })
		cancel()
	}()
	reply, err := c.Send(ctx, build(t, contextName, "r", "b"))
	if err != nil || reply.Outcome != command.Committed {
		t.Errorf("Send: %v, %v; want committed", reply.Outcome, err)
	}
}

func TestRecordThatStandsTwiceIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	contextName := "twice"
	cluster, brokers := fake(t, contextName)
	c := dial(t, brokers, contextName)
	// The first attempt is appended by hand and its connection dies; the library's second
	// attempt is the copy that is acknowledged.
	cmd := build(t, contextName, "r", "b")
	w := &wait{cmd: cmd, post: true}
	copyOf, _ := c.record(w)
	producer, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		return nil, errors.New("connection lost"), true
	})
	clienttest.Respond(t, brokers, contextName, func(r *clienttest.Responder, c clienttest.Received) {
		if c.Position.Offset == 0 {
			reply := c.Reply(command.Rejected, "name-taken")
			r.Send(c, reply)
			return
		}
		r.Send(c, c.Reply(command.Committed, ""))
	})
	go func() {
		poll(t, func() bool { return c.lost.Load() > 0 })
		if err := producer.ProduceSync(t.Context(), copyOf).FirstErr(); err != nil {
			t.Error(err)
		}
	}()
	reply, err := c.Send(within(t, 30*time.Second), cmd)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[int64]command.Outcome{0: command.Rejected, 1: command.Committed}[reply.Position.Offset]; reply.Outcome != want {
		t.Errorf("Send: %v at offset %d, want %v", reply.Outcome, reply.Position.Offset, want)
	}
}

func TestSendSaysWhetherTheCommandMayHaveBeenSent(t *testing.T) {
	t.Parallel()
	contextName := "said"
	block := func(c *kfake.Cluster) {
		c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: contextName + ".commands", Err: kerr.NotEnoughReplicas, Count: -1})
	}
	for _, test := range []struct {
		name     string
		sabotage func(*kfake.Cluster)
		cfg      Config
		cmd      func(*command.Builder) *command.Builder
		ctx      time.Duration
		until    func(*wait) bool // and then ctx is cancelled
		kind     error
		cause    error
		says     string
	}{
		{name: "cancelled once it was accepted", ctx: 30 * time.Second, until: known, kind: ErrUnknownOutcome, cause: context.Canceled, says: "accepted as said.commands/"},
		{name: "no acknowledgement in time", sabotage: block, ctx: 300 * time.Millisecond, kind: ErrUnknownOutcome, cause: context.DeadlineExceeded, says: "not acknowledged"},
		{name: "no time left", ctx: -1, kind: ErrNotSent, cause: context.DeadlineExceeded},
		{name: "too large for the topic", ctx: 30 * time.Second, kind: ErrNotSent, cause: kerr.MessageTooLarge,
			cmd: func(b *command.Builder) *command.Builder {
				return b.JSON(map[string]string{"name": strings.Repeat("x", 200_000)})
			},
			cfg: Config{Options: []kgo.Opt{kgo.ProducerBatchCompression(kgo.NoCompression())}}},
		{name: "no topic any more", ctx: 30 * time.Second, kind: ErrNotSent, cause: kerr.UnknownTopicOrPartition, sabotage: func(c *kfake.Cluster) {
			c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: contextName + ".commands", Err: kerr.UnknownTopicOrPartition, Count: -1})
		}},
		{name: "not allowed to write", ctx: 30 * time.Second, kind: ErrNotSent, cause: kerr.TopicAuthorizationFailed, sabotage: func(c *kfake.Cluster) {
			c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: contextName + ".commands", Err: kerr.TopicAuthorizationFailed, Count: -1})
		}},
		{name: "refused after a lost answer", ctx: time.Second, kind: ErrUnknownOutcome, cause: kerr.TopicAuthorizationFailed, sabotage: func(c *kfake.Cluster) {
			first := true
			c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
				if first {
					first = false
					c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: contextName + ".commands", Err: kerr.TopicAuthorizationFailed, Count: -1})
					return nil, errors.New("connection lost"), true
				}
				return nil, nil, false
			})
		}},
		{name: "of another context", ctx: 30 * time.Second, kind: ErrNotSent, cause: &command.Error{Code: command.CodeUnknownType}, cfg: Config{Context: "other"}},
		{name: "refused by admission", ctx: 30 * time.Second, kind: ErrNotSent, cause: &command.Error{Code: command.CodeUnauthorized},
			cfg: Config{Authorise: func(context.Context, *command.Command) error {
				return command.Errorf(command.CodeUnauthorized, "not you")
			}}},
		{name: "reply asked for elsewhere", ctx: 30 * time.Second, kind: ErrNotSent, says: "use Post",
			cmd: func(b *command.Builder) *command.Builder { return b.ReplyTo("said.replies.elsewhere") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cluster, brokers := fake(t, contextName)
			cfg := test.cfg
			if cfg.Context == "" {
				cfg.Context = contextName
			} else {
				clienttest.CreateTopics(t, brokers, cfg.Context)
			}
			cfg.Brokers = brokers
			c := dialWith(t, cfg)
			if test.sabotage != nil {
				test.sabotage(cluster)
			}
			b := command.New(contextName+".brand.rename", "tests").ID("r-77").Subject("b")
			if test.cmd != nil {
				b = test.cmd(b)
			}
			cmd, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(within(t, test.ctx))
			defer cancel()
			if test.until != nil {
				go func() {
					poll(t, func() bool { return c.waiting("r-77", test.until) })
					cancel()
				}()
			}
			_, err = c.Send(ctx, cmd)
			if !errors.Is(err, test.kind) || test.cause != nil && !errors.Is(err, test.cause) {
				t.Fatalf("Send: %v; want %v because of %v", err, test.kind, test.cause)
			}
			for other := range map[error]bool{ErrNotSent: true, ErrUnknownOutcome: true} {
				if other != test.kind && errors.Is(err, other) {
					t.Errorf("Send: %v is also %v", err, other)
				}
			}
			if !strings.Contains(err.Error(), "r-77") || !strings.Contains(err.Error(), test.says) {
				t.Errorf("Send: %v; want the request ID and %q in it", err, test.says)
			}
		})
	}
}

func TestCommandsWaitForRoomWithinTheirTime(t *testing.T) {
	t.Parallel()
	contextName := "room"
	cluster, brokers := fake(t, contextName)
	c := dialWith(t, Config{Brokers: brokers, Context: contextName, MaxBuffered: 1})
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: contextName + ".commands", Err: kerr.NotEnoughReplicas, Count: -1})
	if _, err := c.Send(within(t, 100*time.Millisecond), build(t, contextName, "r-1", "b")); !errors.Is(err, ErrUnknownOutcome) {
		t.Fatalf("Send: %v, want %v", err, ErrUnknownOutcome)
	}
	if _, err := c.Send(within(t, 100*time.Millisecond), build(t, contextName, "r-2", "b")); !errors.Is(err, ErrNotSent) {
		t.Fatalf("Send without room: %v, want %v", err, ErrNotSent)
	}
}

func TestSeveralWaitsForOneRequestAreEachAnswered(t *testing.T) {
	t.Parallel()
	brokers := embedded(t)
	contextName := "several"
	clienttest.CreateTopics(t, brokers, contextName)
	const n = 32
	clienttest.Respond(t, brokers, contextName, func(r *clienttest.Responder, c clienttest.Received) {
		r.Send(c, c.Reply(command.Rejected, "name-taken"))
	})
	c := dial(t, brokers, contextName)
	var all sync.WaitGroup
	var mu sync.Mutex
	offsets := map[int64]int{}
	for range n {
		all.Go(func() {
			reply, err := c.Send(within(t, 30*time.Second), build(t, contextName, "r", "b"))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			offsets[reply.Position.Offset]++
		})
	}
	all.Wait()
	if len(offsets) != n {
		t.Errorf("Send: answers to %d records, want one for each of %d", len(offsets), n)
	}
	c.waits.mu.Lock()
	defer c.waits.mu.Unlock()
	if len(c.waits.byID) > 0 {
		t.Errorf("%d waits are left over", len(c.waits.byID))
	}
}

func TestSendAllHasTheWholeWindowUnderWayInOrder(t *testing.T) {
	t.Parallel()
	brokers := embedded(t)
	contextName := "many"
	clienttest.CreateTopics(t, brokers, contextName)
	const n, aggregates = 10_000, 100
	var held []clienttest.Received
	order := map[string][]string{}
	clienttest.Respond(t, brokers, contextName, func(r *clienttest.Responder, c clienttest.Received) {
		order[c.Aggregate().ID] = append(order[c.Aggregate().ID], c.RequestID())
		if held = append(held, c); len(held) < n {
			return // nothing is answered before all have arrived
		}
		for _, c := range held {
			r.Send(c, c.Reply(command.Committed, ""))
		}
	})
	c := dial(t, brokers, contextName)
	results := map[string]int{}
	err := c.SendAll(within(t, time.Minute), func(yield func(*command.Command) bool) {
		for i := range n {
			if !yield(build(t, contextName, fmt.Sprintf("r-%05d", i), fmt.Sprint("b-", i%aggregates))) {
				return
			}
		}
	}, n, func(r Result) {
		if r.Err != nil || r.Reply.Outcome != command.Committed || r.Topic == "" || r.Reply.Position != r.Position {
			t.Errorf("%s: %+v", r.Command.RequestID(), r)
		}
		results[r.Command.RequestID()]++
	})
	if err != nil || len(results) != n {
		t.Fatalf("SendAll: %v with %d results, want %d", err, len(results), n)
	}
	for id, requests := range order {
		if !slices.IsSorted(requests) {
			t.Errorf("%s: commands stand on the topic in the order %q", id, requests)
		}
	}
}

func TestSendAllEndsWithItsContext(t *testing.T) {
	t.Parallel()
	brokers := embedded(t)
	contextName := "cancelled"
	clienttest.CreateTopics(t, brokers, contextName)
	responder := clienttest.Respond(t, brokers, contextName, nil)
	c := dial(t, brokers, contextName)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		responder.Await(10)
		cancel()
	}()
	taken, unknown := 0, 0
	err := c.SendAll(ctx, func(yield func(*command.Command) bool) {
		for yield(build(t, contextName, fmt.Sprint("r-", taken), "b")) {
			taken++
		}
	}, 10, func(r Result) {
		if errors.Is(r.Err, ErrUnknownOutcome) {
			unknown++
		}
	})
	if !errors.Is(err, context.Canceled) || unknown != 10 {
		t.Errorf("SendAll: %v with %d unknown outcomes, want %v with 10", err, unknown, context.Canceled)
	}
}

func TestCloseEndsAllWaits(t *testing.T) {
	t.Parallel()
	brokers := embedded(t)
	contextName := "closed"
	clienttest.CreateTopics(t, brokers, contextName)
	responder := clienttest.Respond(t, brokers, contextName, nil)
	c := dial(t, brokers, contextName)
	errs := make(chan error)
	for i := range 3 {
		go func() {
			_, err := c.Send(context.Background(), build(t, contextName, fmt.Sprint("r-", i), "b"))
			errs <- err
		}()
	}
	responder.Await(3)
	c.Close()
	for range 3 {
		if err := <-errs; !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, ErrClosed) {
			t.Errorf("Send: %v, want %v because of %v", err, ErrUnknownOutcome, ErrClosed)
		}
	}
	if _, err := c.Send(t.Context(), build(t, contextName, "r-4", "b")); !errors.Is(err, ErrNotSent) || !errors.Is(err, ErrClosed) {
		t.Errorf("Send on a closed client: %v, want %v because of %v", err, ErrNotSent, ErrClosed)
	}
	if _, err := c.Post(t.Context(), build(t, contextName, "r-5", "b")); !errors.Is(err, ErrNotSent) {
		t.Errorf("Post on a closed client: %v, want %v", err, ErrNotSent)
	}
	c.Close()
}

func TestReplyTopicMadeAnewIsReadOn(t *testing.T) {
	t.Parallel()
	brokers := embedded(t)
	contextName := "anew"
	clienttest.CreateTopics(t, brokers, contextName)
	clienttest.Respond(t, brokers, contextName, committed)
	c := dial(t, brokers, contextName)
	if _, err := c.Send(within(t, 30*time.Second), build(t, contextName, "r-1", "b")); err != nil {
		t.Fatal(err)
	}
	if _, err := kadm.NewClient(c.kafka).DeleteTopics(t.Context(), contextName+".replies"); err != nil {
		t.Fatal(err)
	}
	clienttest.CreateTopics(t, brokers, contextName)
	answered := poll(t, func() bool { // the responder, too, has to notice
		_, err := c.Send(within(t, time.Second), build(t, contextName, "r-2", "b"))
		return err == nil
	})
	if !answered {
		t.Error("no answer came through the new topic")
	}
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	ctx := within(t, 5*time.Second)
	if _, err := New(ctx, Config{}); err == nil || !strings.Contains(err.Error(), "Brokers") || !strings.Contains(err.Error(), "Context") {
		t.Errorf("New of nothing: %v, want all faults", err)
	}
	if _, err := New(ctx, Config{Brokers: embedded(t), Context: "nowhere"}); err == nil ||
		!strings.Contains(err.Error(), "nowhere.commands") || !strings.Contains(err.Error(), "nowhere.replies") {
		t.Errorf("New without topics: %v, want both named", err)
	}
	began := time.Now()
	if _, err := New(ctx, Config{Brokers: []string{"127.0.0.1:1"}, Context: "nowhere"}); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("New without broker: %v, want the address", err)
	} else if since := time.Since(began); since > 10*time.Second {
		t.Errorf("New without broker: failed after %v, want within its context", since)
	} else {
		t.Log(since, err)
	}
}

func embedded(t *testing.T) []string {
	t.Helper()
	b, err := broker.Start(t.Context(), broker.Config{Dir: t.TempDir() + "/kafka"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return []string{b.Addr()}
}

// fake runs the bare broker, whose faults can be chosen.
func fake(t *testing.T, contextName string) (*kfake.Cluster, []string) {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{"message.max.bytes": "100000"}),
		kfake.SeedTopics(1, contextName+".commands", contextName+".replies"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster, cluster.ListenAddrs()
}

func dial(t *testing.T, brokers []string, contextName string) *Client {
	t.Helper()
	return dialWith(t, Config{Brokers: brokers, Context: contextName})
}

func dialWith(t *testing.T, cfg Config) *Client {
	t.Helper()
	cfg.Options = append(cfg.Options, kgo.MetadataMinAge(50*time.Millisecond))
	c, err := New(within(t, 30*time.Second), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func build(t *testing.T, contextName, requestID, aggregate string) *command.Command {
	t.Helper()
	cmd, err := command.New(contextName+".brand.rename", "tests").ID(requestID).Subject(aggregate).JSON(map[string]string{"name": "x"}).Build()
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// waiting reports whether the request is waited for in a state that is told.
func (c *Client) waiting(requestID string, is func(*wait) bool) bool {
	c.waits.mu.Lock()
	defer c.waits.mu.Unlock()
	return slices.ContainsFunc(c.waits.byID[requestID], is)
}

func known(w *wait) bool { return w.known }
func holds(w *wait) bool { return len(w.held) > 0 }

// poll asks until the answer is yes, for half a minute.
func poll(t *testing.T, is func() bool) bool {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case <-tick.C:
			if is() {
				return true
			}
		case <-deadline:
			return false
		}
	}
}
