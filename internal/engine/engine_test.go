package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/internal/embedded/broker"
	"github.com/seed54173720/writ/internal/metrics"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/store/memory"
	"github.com/seed54173720/writ/pkg/store/storetest"
	"github.com/seed54173720/writ/topics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a broker with the topics of a context, an engine over it, and a reader of all replies.
type rig struct {
	*testing.T
	context *kernel.Context
	store   storetest.Store
	broker  *broker.Broker
	metrics *metrics.Metrics
	client  *kgo.Client
	stop    func() // the engine, gracefully

	mu      sync.Mutex
	replies map[int64][]command.Reply // by partition<<40 | offset
	letters []command.DeadLetter
	events  []*kgo.Record
	arrived chan struct{}
}

func newRig(t *testing.T, c *kernel.Context, partitions int32, s storetest.Store, adjust func(*Config)) *rig {
	t.Helper()
	ctx := t.Context()
	b, err := broker.Start(ctx, broker.Config{Dir: t.TempDir() + "/broker"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	r := &rig{T: t, context: c, store: s, broker: b, replies: map[int64][]command.Reply{}, arrived: make(chan struct{}, 1)}
	r.client = r.newClient(kgo.ConsumeTopics(c.Name()+".replies", c.Name()+".dead-letters", c.Name()+".events"), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	declared, err := topics.Declare(c.Name(), topics.Options{Partitions: partitions, Replication: 1, Events: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := topics.Create(ctx, kadm.NewClient(r.client), declared); err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	reading, stop := context.WithCancel(context.Background())
	done.Go(func() { r.read(reading) })
	t.Cleanup(func() { stop(); done.Wait() })
	r.start(adjust)
	return r
}

func (r *rig) newClient(opts ...kgo.Opt) *kgo.Client {
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(r.broker.Addr())}, opts...)...)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(cl.Close)
	return cl
}

func (r *rig) start(adjust func(*Config)) {
	level := slog.LevelWarn
	if testing.Verbose() {
		level = slog.LevelInfo
	}
	r.metrics = metrics.New(prometheus.NewRegistry())
	cfg := Config{
		Kernel:         &kernel.Kernel{Context: r.context, Store: r.store},
		Kafka:          []kgo.Opt{kgo.SeedBrokers(r.broker.Addr())},
		Metrics:        r.metrics,
		Logger:         slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})),
		SessionTimeout: 6 * time.Second, Heartbeat: 500 * time.Millisecond, RebalanceTimeout: 10 * time.Second, Drain: 4 * time.Second,
		RetryMin: time.Millisecond, RetryMax: 5 * time.Millisecond,
	}
	if adjust != nil {
		adjust(&cfg)
	}
	e, err := New(cfg)
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	var once sync.Once
	r.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				r.Errorf("engine ended: %v", err)
			}
		})
	}
	r.Cleanup(r.stop)
}

func (r *rig) read(ctx context.Context) {
	for ctx.Err() == nil {
		fetches := r.client.PollFetches(ctx)
		r.mu.Lock()
		fetches.EachRecord(func(rec *kgo.Record) {
			if rec.Topic == r.context.Name()+".events" {
				r.events = append(r.events, rec)
				return
			}
			if rec.Topic == r.context.Name()+".dead-letters" {
				letter, err := command.ReadDeadLetter(&command.Record{Key: rec.Key, Value: rec.Value, Headers: plain(nil, rec.Headers)})
				if err != nil {
					r.Error(err)
				}
				r.letters = append(r.letters, letter)
				return
			}
			reply, err := command.ParseReply(rec.Value)
			if err != nil {
				r.Errorf("reply %s: %v", rec.Value, err)
			}
			id := place(reply.Position)
			r.replies[id] = append(r.replies[id], reply)
		})
		r.mu.Unlock()
		select {
		case r.arrived <- struct{}{}:
		default:
		}
	}
}

func place(p command.Position) int64 { return int64(p.Partition)<<40 | p.Offset }

// send produces the commands in order and returns where each stands.
func (r *rig) send(cmds ...*command.Command) []int64 {
	r.Helper()
	records := make([]*kgo.Record, len(cmds))
	for i, c := range cmds {
		var rec command.Record
		c.Record(&rec)
		records[i] = &kgo.Record{Topic: r.context.Name() + ".commands", Key: rec.Key, Value: rec.Value, Headers: kafkaHeaders(nil, rec.Headers)}
	}
	return r.produce(records...)
}

func (r *rig) produce(records ...*kgo.Record) []int64 {
	r.Helper()
	results := r.client.ProduceSync(r.Context(), records...)
	if err := results.FirstErr(); err != nil {
		r.Fatal(err)
	}
	places := make([]int64, len(records))
	for i, rec := range records {
		places[i] = place(command.Position{Partition: rec.Partition, Offset: rec.Offset})
	}
	return places
}

// await returns the first reply to each place.
func (r *rig) await(places ...int64) []command.Reply {
	r.Helper()
	deadline := time.After(30 * time.Second)
	for {
		var out []command.Reply
		r.mu.Lock()
		for _, p := range places {
			if got := r.replies[p]; len(got) > 0 {
				out = append(out, got[0])
			}
		}
		r.mu.Unlock()
		if len(out) == len(places) {
			return out
		}
		select {
		case <-r.arrived:
		case <-deadline:
			r.Fatalf("%d of %d replies after 30 s", len(out), len(places))
		}
	}
}

func build(t testing.TB, b *command.Builder) *command.Command {
	t.Helper()
	c, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func create(t testing.TB, id, name string) *command.Command {
	return build(t, command.New("catalog.brand.create", "test").Subject(id).JSON(catalog.CreateBrand{Name: name}))
}

func TestEveryCommandIsAnsweredWithItsOutcome(t *testing.T) {
	t.Parallel()
	r := newRig(t, catalog.Context(), 1, memory.New(), nil)
	first := create(t, "1", "Acme")
	places := r.send(
		first, create(t, "2", "ACME"), first,
		build(t, command.New("catalog.brand.rename", "test").Subject("1").JSON(catalog.RenameBrand{Name: "Acme"})),
		build(t, command.New("catalog.brand.rename", "test").Subject("9").JSON(catalog.RenameBrand{Name: "Nine"})),
		build(t, command.New("catalog.brand.create", "test").Subject("3").Body([]byte(`{"nam":"x"}`))),
		build(t, command.New("catalog.brand.creat", "test").Subject("3").Body([]byte(`{}`))),
	)
	got := r.await(places...)
	for i, want := range []struct {
		outcome   command.Outcome
		code      command.Code
		duplicate bool
	}{
		{outcome: command.Committed},
		{outcome: command.Rejected, code: "name-taken"},
		{outcome: command.Committed, duplicate: true},
		{outcome: command.Nothing},
		{outcome: command.Rejected, code: command.CodeNotFound},
		{outcome: command.Rejected, code: command.CodeInvalidBody},
		{outcome: command.Rejected, code: command.CodeUnknownType},
	} {
		var code command.Code
		if got[i].Error != nil {
			code = got[i].Error.Code
		}
		if got[i].Outcome != want.outcome || code != want.code || got[i].Duplicate != want.duplicate {
			t.Errorf("command %d: got %v %q duplicate %v, want %+v", i, got[i].Outcome, code, got[i].Duplicate, want)
		}
	}
}

func TestRestartedEngineGoesOnBehindWhatWasFinished(t *testing.T) {
	t.Parallel()
	r := newRig(t, catalog.Context(), 3, memory.New(), nil)
	var places []int64
	for i := range 200 {
		places = append(places, r.send(create(t, fmt.Sprint(i), fmt.Sprint("name ", i)))...)
	}
	r.await(places...)
	r.stop()
	r.start(nil)
	r.await(r.send(create(t, "last", "last"))...)
	if n := testutil.ToFloat64(r.metrics.Redelivered); n != 0 {
		t.Errorf("%v records were delivered again after an orderly stop, want 0", n)
	}
}

func TestUnreadableRecordIsKeptAnsweredAndPassed(t *testing.T) {
	t.Parallel()
	r := newRig(t, catalog.Context(), 1, memory.New(), nil)
	bad := r.produce(&kgo.Record{Topic: "catalog.commands", Value: []byte("not json")}, &kgo.Record{Topic: "catalog.commands", Key: []byte("k")})
	good := r.send(create(t, "1", "Acme"))
	for _, reply := range r.await(bad...) {
		if reply.Outcome != command.Rejected || reply.Error == nil || reply.Error.Code != command.CodeUnreadable {
			t.Errorf("got %+v, want it refused as unreadable", reply)
		}
	}
	r.await(good...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.letters) != 2 {
		t.Errorf("%d dead letters, want 2", len(r.letters))
	}
}

// probe is a context whose commands sleep, panic or fail as their body says.
type probe struct {
	Sleep int  `json:"sleep"` // milliseconds
	Panic bool `json:"panic"`
	Fail  bool `json:"fail"`
}
type probed struct{}

func probeContext() *kernel.Context {
	c := kernel.New("probe")
	thing := kernel.Add[int](c, "thing")
	kernel.On(thing, "probed", func(n int, _ probed) int { return n + 1 })
	kernel.Handle(thing, "do", kernel.Either, func(ctx context.Context, s *kernel.Scope[int], p probe) (kernel.Decision, error) {
		select {
		case <-time.After(time.Duration(p.Sleep) * time.Millisecond):
		case <-ctx.Done():
			return kernel.Decision{}, ctx.Err()
		}
		switch {
		case p.Panic:
			panic("as told")
		case p.Fail:
			return kernel.Decision{}, errors.New("as told")
		}
		return kernel.Events(probed{}), nil
	})
	return c
}

func do(t testing.TB, id string, p probe) *command.Command {
	return build(t, command.New("probe.thing.do", "test").Subject(id).JSON(p))
}

func TestSleepingDecisionHoldsUpItsOwnAggregateOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, probeContext(), 1, memory.New(), nil)
	var others, slow []int64
	slow = append(slow, r.send(do(t, "slow", probe{Sleep: 5000}))...)
	for i := range 99 {
		others = append(others, r.send(do(t, fmt.Sprint(i), probe{}))...)
	}
	slow = append(slow, r.send(do(t, "slow", probe{}))...)
	r.await(others...)
	r.mu.Lock()
	early := len(r.replies[slow[0]]) + len(r.replies[slow[1]])
	r.mu.Unlock()
	if early != 0 {
		t.Fatal("the sleeping aggregate was answered before the others: the test shows nothing")
	}
	replies := r.await(slow...)
	if replies[0].Version != 1 || replies[1].Version != 2 {
		t.Errorf("versions %d, %d, want the aggregate's own order: 1, 2", replies[0].Version, replies[1].Version)
	}
}

func TestFailingCommandIsRecordedKeptAndAnsweredWhileNeighboursCommit(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		body probe
		code command.Code
	}{
		{"panics", probe{Panic: true}, command.CodeDecisionPanicked},
		{"returns an error", probe{Fail: true}, command.CodeDecisionFailed},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, probeContext(), 1, memory.New(), nil)
			places := r.send(do(t, "a", probe{}), do(t, "a", row.body), do(t, "a", probe{}), do(t, "b", probe{}))
			got := r.await(places...)
			if got[1].Outcome != command.Failed || got[1].Error.Code != row.code {
				t.Errorf("got %v %v, want failed with %s", got[1].Outcome, got[1].Error, row.code)
			}
			for _, i := range []int{0, 2, 3} {
				if got[i].Outcome != command.Committed {
					t.Errorf("command %d: %v, want committed", i, got[i].Outcome)
				}
			}
			if got[2].Version != 2 {
				t.Errorf("the command behind the failed one has version %d, want 2", got[2].Version)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			if len(r.letters) != 1 || r.letters[0].RequestID != got[1].RequestID || r.letters[0].Code != row.code {
				t.Errorf("dead letters %+v, want the failed command's", r.letters)
			}
		})
	}
}

func TestRepeatsSentTogetherAreOneRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, catalog.Context(), 3, memory.New(), nil)
	var cmds []*command.Command
	for i := range 50 {
		c := build(t, command.New("catalog.brand.create", "test").ID(uuid.NewString()).Subject(fmt.Sprint(i)).JSON(catalog.CreateBrand{Name: fmt.Sprint("b", i)}))
		for range 4 {
			cmds = append(cmds, c)
		}
	}
	own := map[string]int{}
	for _, reply := range r.await(r.send(cmds...)...) {
		if reply.Outcome != command.Committed || reply.Version != 1 {
			t.Fatalf("got %+v, want committed at version 1", reply)
		}
		if !reply.Duplicate {
			own[reply.RequestID]++
		}
	}
	for id, n := range own {
		if n != 1 {
			t.Errorf("request %s was decided %d times", id, n)
		}
	}
}
