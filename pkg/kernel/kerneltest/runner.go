package kerneltest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// Topic is the name of the command topic in the replies of a Runner.
const Topic = "commands"

// Record is a command as it stands on a topic.
type Record struct {
	Command  *command.Command
	Position command.Position
	Refused  *command.Error // found at intake: to be recorded as rejected without a decision
	InProc   bool           // executed in process: there is no record, Position is ignored
}

// Runner takes commands through a kernel and a store as an engine does, in the goroutine of its caller: a lane for
// each aggregate, units that end before a repeat of a request, many units in a group, one claimant for each key in a
// group, losers decided again from the start, states kept between batches. A Runner belongs to one goroutine; several
// Runners may share a store, as several processors do.
type Runner struct {
	Kernel *kernel.Kernel
	// MaxUnit and MaxGroup bound the commands of a unit and the units of a group. Default: 256 and 1,000.
	MaxUnit, MaxGroup int
	// NoCache forgets the states after each batch, as a processor does that has just started.
	NoCache bool
	// Trace, where set, is told of every unit that the store answered, before the Runner acts on it.
	Trace func(store.Unit, store.Fate)

	states map[command.Digest]*kernel.State
}

// NewRunner returns a Runner of a kernel with defaults.
func NewRunner(c *kernel.Context, s store.Store) *Runner {
	return &Runner{Kernel: &kernel.Kernel{Context: c, Store: s}}
}

// batch is what is under way in one call of Process.
type batch struct {
	*Runner
	lanes    []*lane // in the order of their first commands
	indices  map[*kernel.Item]int
	replies  []command.Reply
	finished int
}

// lane is the queue of one aggregate.
type lane struct {
	aggregate command.Aggregate
	stream    command.Digest
	queue     []*kernel.Item
}

// Process takes the records from "seen before?" to their answers, which are aligned with the records. Records of one
// aggregate are processed in the order given. A commit of unknown fate is looked up and goes again; after another
// error of the store, which is returned, the answers that are there already are valid and the others are zero: call
// again with the same records, as if they were delivered again.
func (r *Runner) Process(ctx context.Context, records ...Record) ([]command.Reply, error) {
	b := batch{Runner: r, indices: map[*kernel.Item]int{}, replies: make([]command.Reply, len(records))}
	if r.states == nil {
		r.states = map[command.Digest]*kernel.State{}
	}
	byStream := map[command.Digest]*lane{}
	for i, record := range records {
		item := &kernel.Item{
			Command: record.Command, FromRecord: !record.InProc, Position: record.Position, Refused: record.Refused,
		}
		if record.InProc {
			item.Position = command.Position{}
		}
		b.indices[item] = i
		l := byStream[record.Command.Stream()]
		if l == nil {
			l = &lane{aggregate: record.Command.Aggregate(), stream: record.Command.Stream()}
			byStream[l.stream] = l
			b.lanes = append(b.lanes, l)
		}
		l.queue = append(l.queue, item)
	}
	defer func() {
		if r.NoCache {
			clear(r.states)
		}
	}()
	for b.finished < len(records) {
		units, owners := b.form()
		if err := b.run(ctx, units, owners); err != nil {
			clear(r.states)
			return b.replies, err
		}
	}
	return b.replies, nil
}

// form takes the next group out of the lanes: one unit of each, no request twice.
func (b *batch) form() (units []*kernel.Unit, owners map[*kernel.Unit]*lane) {
	requests := map[command.Digest]bool{}
	owners = map[*kernel.Unit]*lane{}
	for _, l := range b.lanes {
		if len(units) == bound(b.MaxGroup, 1000) {
			break
		}
		n := 0
		for n < len(l.queue) && n < bound(b.MaxUnit, 256) && !requests[l.queue[n].Command.Request()] {
			requests[l.queue[n].Command.Request()] = true
			n++
		}
		if n == 0 {
			continue
		}
		u := &kernel.Unit{Aggregate: l.aggregate, Stream: l.stream, Items: slices.Clone(l.queue[:n]), State: b.states[l.stream]}
		l.queue = l.queue[n:]
		units, owners[u] = append(units, u), l
	}
	return units, owners
}

// run takes the units to their end. What a fault cuts out of a unit goes back to the head of its lane.
func (b *batch) run(ctx context.Context, units []*kernel.Unit, owners map[*kernel.Unit]*lane) error {
	for len(units) > 0 {
		ready, err := b.decide(ctx, units, owners)
		if err != nil {
			return err
		}
		if units, err = b.commit(ctx, ready); err != nil {
			return err
		}
	}
	return nil
}

// decide brings all units to where they may be committed.
func (b *batch) decide(ctx context.Context, units []*kernel.Unit, owners map[*kernel.Unit]*lane) (ready []*kernel.Unit, err error) {
	for todo := units; len(todo) > 0; {
		if err := b.Kernel.Read(ctx, todo); err != nil {
			return nil, err
		}
		for _, u := range todo {
			if rest := b.Kernel.Decide(ctx, u); len(rest) > 0 {
				l := owners[u]
				l.queue = append(slices.Clone(rest), l.queue...)
			}
		}
		again, err := b.Kernel.Settle(ctx, todo)
		if err != nil {
			return nil, err
		}
		for _, u := range todo {
			if !slices.Contains(again, u) {
				ready = append(ready, u)
			}
		}
		todo = again
	}
	return ready, nil
}

// commit writes the units in as many groups as their claims need and returns those that lost, to begin again.
func (b *batch) commit(ctx context.Context, units []*kernel.Unit) (lost []*kernel.Unit, err error) {
	for len(units) > 0 {
		var group, later []*kernel.Unit
		var asked []store.Unit
		claimed := map[keys.Key]bool{}
		for _, u := range units {
			c, ok := u.Commit()
			switch {
			case !ok:
				b.finish(u)
			case slices.ContainsFunc(c.Take, func(k keys.Key) bool { return claimed[k] }):
				later = append(later, u)
			default:
				for _, k := range c.Take {
					claimed[k] = true
				}
				group, asked = append(group, u), append(asked, c)
			}
		}
		units = later
		if len(group) == 0 {
			continue
		}
		fates, err := b.Kernel.Store.Commit(ctx, asked)
		if errors.Is(err, store.ErrUnknown) {
			for _, u := range group {
				b.forget(u)
				lost = append(lost, u)
			}
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("kerneltest: commit: %w", err)
		}
		for i, u := range group {
			if b.Trace != nil {
				b.Trace(asked[i], fates[i])
			}
			if fates[i].Verdict == store.Done {
				b.finish(u)
				continue
			}
			if fates[i].Verdict == store.Bad {
				u.Blame(fates[i])
			}
			b.forget(u)
			lost = append(lost, u)
		}
	}
	return lost, nil
}

func (b *batch) forget(u *kernel.Unit) {
	u.Reset()
	delete(b.states, u.Stream)
}

func (b *batch) finish(u *kernel.Unit) {
	if u.State == nil {
		delete(b.states, u.Stream)
	} else {
		b.states[u.Stream] = u.State
	}
	for _, item := range u.Items {
		reply := item.Reply(Topic)
		if !item.FromRecord {
			reply.Topic = ""
		}
		b.replies[b.indices[item]] = reply
		b.finished++
	}
}

func bound(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}
