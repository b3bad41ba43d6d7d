package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/internal/health"
	"github.com/seed54173720/writ/internal/metrics"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/store"
)

// Engine runs one processor of one context. Its parts, each a goroutine or a few: intake polls and fills the lanes;
// deciders take ready lanes, read, decide and settle; writers commit groups; the producer's promises finish tasks;
// offsets are committed in the background.
type Engine struct {
	cfg     Config
	log     *slog.Logger
	metrics *metrics.Metrics
	health  *health.Health
	kernel  *kernel.Kernel
	store   store.Store
	topic   string // of commands
	replies string // the default topic of replies

	intake   *kgo.Client
	producer *kgo.Client // of replies
	letters  *kgo.Client // of dead letters

	ctx    context.Context // of the work: cancelled after the drain
	cancel context.CancelFunc
	wg     sync.WaitGroup // deciders, writers, decisions that block, retries

	mu         sync.Mutex
	room       *sync.Cond // work finished: there may be room to poll
	lanesReady *sync.Cond
	unitsReady *sync.Cond
	partitions map[int32]*partition
	ready      fifo[*lane]
	decided    fifo[*unit]
	claims     map[command.Digest]*group // streams, requests and keys of the groups under way
	commands   int                       // in flight
	bytes      int64                     // in flight
	stopped    bool
	seen       map[command.Digest]struct{} // scratch of form

	spread atomic.Int32         // partitions of the command topic
	home   kgo.TopicPartitioner // of a key; the poll's alone

	fetchFaultErr error // the last one
	fetchFaultAt  time.Time

	commit sync.Mutex // one offset commit at a time
}

// New returns an engine that is not running yet. It reports all faults of the configuration at once.
func New(cfg Config) (*Engine, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	if cfg.Metrics == nil {
		cfg.Metrics = metrics.New(nil)
	}
	e := &Engine{
		cfg: cfg, log: cfg.Logger, metrics: cfg.Metrics, health: cfg.Health,
		kernel: cfg.Kernel, store: cfg.Kernel.Store, topic: cfg.Kernel.Context.Name() + ".commands", replies: cfg.Kernel.Context.Name() + ".replies",
		partitions: map[int32]*partition{}, claims: map[command.Digest]*group{}, seen: map[command.Digest]struct{}{},
	}
	e.home = kgo.StickyKeyPartitioner(nil).ForTopic(e.topic)
	e.room = sync.NewCond(&e.mu)
	e.lanesReady = sync.NewCond(&e.mu)
	e.unitsReady = sync.NewCond(&e.mu)
	e.ready.wake, e.decided.wake = e.lanesReady.Signal, e.unitsReady.Signal
	return e, nil
}

// Run takes part in the consumer group until ctx ends, then stops fetching, finishes what is in flight within the
// drain limit, commits offsets and leaves the group. What is not finished by then is left whole for the next owner.
// An error means that the engine could not go on: the caller may make another.
func (e *Engine) Run(ctx context.Context) error {
	e.ctx, e.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer e.cancel()
	if err := e.connect(); err != nil {
		return err
	}
	defer e.producer.Close()
	defer e.letters.Close()
	defer e.intake.CloseAllowingRebalance()

	e.health.Report(groupPart, errors.New("not yet a member of the consumer group"))
	for range e.cfg.Deciders {
		e.wg.Go(e.decider)
	}
	for range e.cfg.Writers {
		e.wg.Go(e.writer)
	}
	beside, stopBeside := context.WithCancel(e.ctx)
	var background sync.WaitGroup
	background.Go(func() { e.commitOffsets(beside) })
	background.Go(func() { e.probe(beside) })

	err := e.poll(ctx)
	e.log.Info("stopping: no more fetches", "drain", e.cfg.Drain)
	e.drain(e.intake, nil)
	stopBeside()
	background.Wait()

	e.cancel()
	e.mu.Lock()
	e.stopped = true
	e.lanesReady.Broadcast()
	e.unitsReady.Broadcast()
	e.mu.Unlock()
	e.awaitWorkers()
	if leave := e.leave(); leave != nil && err == nil {
		e.log.Warn("the group was not left in order; its coordinator will notice after the session timeout", "error", leave)
	}
	return err
}

// awaitWorkers waits for the engine's goroutines. A decision that ignores its context is not waited for: whatever it
// decides is not committed any more.
func (e *Engine) awaitWorkers() {
	ended := make(chan struct{})
	go func() {
		e.wg.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(2 * time.Second):
		e.log.Warn("a decision does not end although its context was cancelled; it is left behind")
	}
}

func (e *Engine) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	e.intake.AllowRebalance()
	return e.intake.LeaveGroupContext(ctx)
}

// insist calls f until it succeeds. An error is a fault of the infrastructure: it waits, longer each time, reports
// ill health meanwhile and never gives up before the engine stops. It returns false where the engine has stopped.
func (e *Engine) insist(part string, f func(ctx context.Context) error) bool {
	return e.insistUntil(e.ctx, part, f)
}

// insistUntil does so until ctx ends, which MUST end when the engine stops.
func (e *Engine) insistUntil(ctx context.Context, part string, f func(ctx context.Context) error) bool {
	wait := 50 * time.Millisecond
	for {
		err := f(ctx)
		if err == nil {
			if e.health.Report(part, nil) {
				e.log.Info("works again", "part", part)
			}
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		e.fault(part, err)
		select {
		case <-time.After(jitter(wait)):
		case <-ctx.Done():
			return false
		}
		wait = min(2*wait, 2*time.Second)
	}
}

func (e *Engine) fault(part string, err error) {
	if part == storePart {
		e.metrics.StoreFaults.Inc()
	}
	if e.health.Report(part, err) && !errors.Is(err, context.Canceled) {
		e.log.Warn("does not work; commands wait and keep their order until it does", "part", part, "error", err)
	}
}

// Parts that health is reported of.
const (
	storePart       = "store"
	storeRightsPart = "store-rights"
	intakePart      = "kafka"
	rightsPart      = "kafka-rights"
	lettersPart     = "dead-letters"
	eventsPart      = "events"
	repliesPart     = "replies"
	offsetsPart     = "offsets"
	groupPart       = "group"
)
