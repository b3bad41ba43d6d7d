package engine

import (
	"context"
	"sync"
	"time"

	"github.com/seed54173720/writ/internal/metrics"
	"github.com/seed54173720/writ/pkg/kernel"
)

// patience is how long a decision may run before the decider's other units are taken over from it.
const patience = time.Millisecond

// decider prepares batches of ready lanes, one after the other, until the engine stops or another goroutine has taken
// its place.
func (e *Engine) decider() {
	for {
		units := e.takeReady()
		if units == nil {
			return
		}
		if len(units) == 0 {
			continue
		}
		start := time.Now()
		if !e.prepare(nil, units, true) {
			return
		}
		metrics.Since(e.metrics.Prepare, start)
	}
}

// takeReady waits for lanes that are ready and makes units of them, up to a group's worth. nil: the engine stopped.
func (e *Engine) takeReady() []*unit {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.ready.len() == 0 && !e.stopped {
		e.lanesReady.Wait()
	}
	if e.stopped {
		return nil
	}
	var units []*unit
	for n := 0; n < e.cfg.GroupCommands; {
		l, ok := e.ready.pop()
		if !ok {
			break
		}
		if l.partition.closing || len(l.queue) == 0 {
			continue
		}
		u := e.form(l)
		n += len(u.tasks)
		units = append(units, u)
	}
	if units == nil {
		return []*unit{}
	}
	return units
}

// prepare brings units to the point where they can be committed: read, decide, settle, and again what turned out to
// rest on a wrong guess. decided are units that only have to be settled. decider says that the caller holds the place
// of a decider; the result says whether it still does.
func (e *Engine) prepare(decided, units []*unit, decider bool) bool {
	for len(units) > 0 || len(decided) > 0 {
		if !e.insist(storePart, func(ctx context.Context) error { return e.kernel.Read(ctx, kernels(units)) }) {
			return decider
		}
		decided, decider = e.decide(decided, units, decider)
		units = e.settle(decided)
		decided = nil
	}
	return decider
}

func kernels(units []*unit) []*kernel.Unit {
	out := make([]*kernel.Unit, len(units))
	for i, u := range units {
		out[i] = &u.Unit
	}
	return out
}

// turn is one round of decisions.
type turn struct {
	mu      sync.Mutex
	decided []*unit
	units   []*unit
	next    int // units before this index are decided or under way
	ended   bool
	over    bool // the rest was taken over
}

// decide runs the units' decisions in turn and returns them behind those decided before. A decision that blocks holds
// up its own unit only: once it has run longer than patience, another goroutine takes the turn's other units and the
// decider's place, and this one goes on with its unit alone.
func (e *Engine) decide(decided, units []*unit, decider bool) ([]*unit, bool) {
	t := &turn{decided: decided, units: units}
	seen := 0
	var watch *time.Timer
	t.mu.Lock()
	watch = time.AfterFunc(patience, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		switch {
		case t.ended || t.next == 0:
		case t.next != seen:
			seen = t.next
			watch.Reset(patience)
		default:
			t.over = true
			e.metrics.Blocked.Inc()
			done, left := append(t.decided[:len(t.decided):len(t.decided)], t.units[:t.next-1]...), t.units[t.next:]
			e.wg.Go(func() {
				if e.prepare(done, left, decider) && decider {
					e.decider()
				}
			})
		}
	})
	t.mu.Unlock()
	defer watch.Stop()
	t.mu.Lock()
	for t.next < len(units) {
		u := units[t.next]
		t.next++
		t.mu.Unlock()

		e.kernel.Decide(u.lane.partition.ctx, &u.Unit)
		if u.fit(); len(u.rest) > 0 {
			e.metrics.Attempts.Inc()
		}

		// Held until the next unit is taken: between the two the rest could be taken over, and decided twice.
		t.mu.Lock()
		if t.over {
			t.mu.Unlock()
			return []*unit{u}, false
		}
	}
	t.ended = true
	t.mu.Unlock()
	return append(decided, units...), decider
}

// settle sends what is ready on to the writers and returns what has to be decided again.
func (e *Engine) settle(units []*unit) (again []*unit) {
	live := units[:0:0]
	for _, u := range units {
		if u.lane.partition.ctx.Err() == nil {
			live = append(live, u)
			continue
		}
		e.giveBack(u, 0)
	}
	inner := kernels(live)
	redo := map[*kernel.Unit]bool{}
	if !e.insist(storePart, func(ctx context.Context) error {
		list, err := e.kernel.Settle(ctx, inner)
		for _, u := range list {
			redo[u] = true
		}
		return err
	}) {
		return nil
	}
	var ready []*unit
	for _, u := range live {
		if redo[&u.Unit] {
			again = append(again, u)
			continue
		}
		ready = append(ready, u)
	}
	e.enqueue(ready)
	return again
}

// enqueue hands units to the writers; those that write nothing are answered at once.
func (e *Engine) enqueue(units []*unit) {
	var writes, answered []*unit
	for _, u := range units {
		commit, ok := u.Commit()
		if !ok {
			answered = append(answered, u)
			continue
		}
		u.commit = commit
		writes = append(writes, u)
	}
	e.finish(answered)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, u := range writes {
		e.decided.push(u)
	}
}

// finish ends units whose outcomes are durable: their states may be cached, their tasks are answered, and then their
// lanes go on.
func (e *Engine) finish(units []*unit) {
	if len(units) == 0 {
		return
	}
	var tasks []*task
	e.mu.Lock()
	for _, u := range units {
		if p := u.lane.partition; u.State != nil && !p.closing {
			p.states.put(u.Stream, u.State)
		} else {
			p.states.drop(u.Stream)
		}
		u.lane.losses = 0
		tasks = append(tasks, u.tasks...)
	}
	e.mu.Unlock()
	e.answer(tasks)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, u := range units {
		e.release(u, e.delay(u))
	}
}

// delay is how long a lane rests because its next command has just failed.
func (e *Engine) delay(u *unit) time.Duration {
	if len(u.rest) == 0 || u.rest[0].item.Fault == nil {
		return 0
	}
	n := u.rest[0].item.Attempts
	return jitter(min(e.cfg.RetryMin<<min(n-1, 10), e.cfg.RetryMax))
}
