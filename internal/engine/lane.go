package engine

import (
	"math/rand/v2"
	"time"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
)

// lane is the queue of one aggregate of one partition while it has commands in flight: first in, first out, one unit
// under way. Guarded by the engine's mutex.
type lane struct {
	partition *partition
	stream    command.Digest
	aggregate command.Aggregate
	queue     []*task
	busy      bool // ready, under way, or waiting to be tried again
	losses    int  // lost races in a row
}

// immediate is how many lost races in a row are tried again at once; after that the lane waits, longer each time.
const immediate = 8

// add puts a task into its aggregate's lane. The caller holds e.mu.
func (e *Engine) add(t *task) {
	p := t.partition
	stream := t.cmd.Stream()
	l := p.lanes[stream]
	if l == nil {
		l = &lane{partition: p, stream: stream, aggregate: t.cmd.Aggregate()}
		p.lanes[stream] = l
	}
	l.queue = append(l.queue, t)
	if !l.busy {
		l.busy = true
		e.ready.push(l)
	}
}

// form makes a unit of what is queued: up to the bounds, and up to a request that is in it already, whose repeat has
// to wait for the fate of the first. The caller holds e.mu.
func (e *Engine) form(l *lane) *unit {
	n := 0
	var bytes int64
	for n < len(l.queue) && n < e.cfg.UnitCommands && (n == 0 || bytes+l.queue[n].size <= e.cfg.GroupBytes) {
		if len(l.queue) > 1 {
			request := l.queue[n].cmd.Request()
			if _, repeat := e.seen[request]; repeat {
				break
			}
			e.seen[request] = struct{}{}
		}
		bytes += l.queue[n].size
		n++
	}
	clear(e.seen)
	u := &unit{lane: l, tasks: l.queue[:n:n], bytes: bytes}
	l.queue = l.queue[n:]
	u.Aggregate, u.Stream = l.aggregate, l.stream
	if u.Items = u.alone[:]; n > 1 {
		u.Items = make([]*kernel.Item, n)
	}
	for i, t := range u.tasks {
		u.Items[i] = &t.item
	}
	u.State = l.partition.states.get(l.stream)
	l.partition.working += n
	return u
}

// release frees the lane after its unit: what the unit left behind comes first, then what was queued meanwhile. With
// a delay the lane rests that long. The caller holds e.mu.
func (e *Engine) release(u *unit, delay time.Duration) {
	l := u.lane
	l.partition.working -= len(u.rest)
	if l.partition.closing {
		// What is queued stays for the partition's next owner.
		delete(l.partition.lanes, l.stream)
		l.partition.settled()
		return
	}
	if len(u.rest) > 0 {
		l.queue = append(u.rest[:len(u.rest):len(u.rest)], l.queue...)
	}
	switch {
	case len(l.queue) == 0:
		delete(l.partition.lanes, l.stream)
	case delay > 0:
		time.AfterFunc(delay, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			if !l.partition.closing {
				e.ready.push(l)
			}
		})
	default:
		e.ready.push(l)
	}
}

// giveBack takes a unit's whole work back to its lane, to begin again at "seen before?" with nothing cached.
func (e *Engine) giveBack(u *unit, delay time.Duration) {
	for _, t := range u.tasks {
		t.item.Forget()
	}
	u.rest = append(u.tasks[:len(u.tasks):len(u.tasks)], u.rest...)
	u.tasks, u.Items = nil, nil
	e.mu.Lock()
	defer e.mu.Unlock()
	u.lane.partition.states.drop(u.Stream)
	e.release(u, delay)
}

// lost gives a unit back that lost a race. Contention is never an outcome: the lane goes on until it wins.
func (e *Engine) lost(u *unit) {
	u.lane.losses++
	var delay time.Duration
	if u.lane.losses > immediate {
		delay = jitter(min(time.Duration(u.lane.losses-immediate)*5*time.Millisecond, 250*time.Millisecond))
	}
	e.giveBack(u, delay)
}

// jitter returns a time between half of d and d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
