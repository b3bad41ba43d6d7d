package kernel_test

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel/kerneltest"
	"github.com/seed54173720/writ/pkg/store"
)

// history is a store that notes what it committed, in order.
type history struct {
	store.Store
	mu      sync.Mutex
	commits [][]store.Unit // the units that each Commit made durable
	since   map[command.Position]int
}

func newHistory(s store.Store) *history {
	return &history{Store: s, since: map[command.Position]int{}}
}

func (h *history) Commit(ctx context.Context, units []store.Unit) ([]store.Fate, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fates, err := h.Store.Commit(ctx, units)
	var done []store.Unit
	for i, fate := range fates {
		if fate.Verdict == store.Done {
			done = append(done, units[i].Clone())
		}
	}
	if len(done) > 0 {
		h.commits = append(h.commits, done)
	}
	return fates, err
}

// received notes that the records are about to be processed: what is decided of them has to be true at some moment
// from now on.
func (h *history) received(records []kerneltest.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range records {
		if _, ok := h.since[r.Position]; !ok {
			h.since[r.Position] = len(h.commits)
		}
	}
}

// audit replays the commits beside the model and returns the first thing that the model does not allow:
//   - every commit is what the model decides on the state and keys of its moment;
//   - every refusal, and every nothing-to-do, is what it decides on a state that was current, and keys that were held,
//     at some moment between the record's arrival and its outcome;
//   - the commands of one aggregate take effect in the order of their partition.
func (h *history) audit(entries []entry) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	ops := map[command.Position]op{}
	for _, e := range entries {
		ops[e.at] = e.op
	}
	type place struct {
		aggregate string
		partition int32
	}
	m := newModel()
	moments := []*model{m.clone()} // before each commit
	last := map[place]int64{}
	for seq, units := range h.commits {
		before := m.clone()
		for _, u := range units {
			for _, row := range u.Rows {
				o, ok := ops[row.Position]
				if !ok {
					return fmt.Errorf("commit %d: a row of %s, which was never sent", seq, row.Position)
				}
				where := place{o.aggregate(), row.Position.Partition}
				if offset, ok := last[where]; ok && offset >= row.Position.Offset {
					return fmt.Errorf("commit %d: offset %d of %s took effect after offset %d", seq, row.Position.Offset, o.aggregate(), offset)
				}
				last[where] = row.Position.Offset
				if err := allowed(o, &row, m, before, moments[h.since[row.Position]:]); err != nil {
					return fmt.Errorf("commit %d: %+v: %w", seq, o, err)
				}
			}
		}
		moments = append(moments, m.clone())
	}
	return nil
}

// allowed judges one row and, where it is a commit, applies it to m. before is the model before the row's group.
func allowed(o op, row *store.Row, m, before *model, moments []*model) error {
	if row.Outcome == command.Committed {
		holder, held := before.holders[o.key()]
		d := o.decide(m.states[o.aggregate()], held && holder != o.aggregate())
		var events string
		for _, e := range row.Events {
			events += e.Type + string(e.Data)
		}
		if d.outcome != command.Committed || d.event != events || d.next.version != row.Version {
			return fmt.Errorf("committed %s at version %d; the model decides %+v", events, row.Version, d)
		}
		if got, want := keyNames(row), nonEmpty(d.take, d.release); !slices.Equal(got, want) {
			return fmt.Errorf("took and released %v, want %v", got, want)
		}
		m.apply(o, d)
		return nil
	}
	var allowed []string
	for _, at := range append(moments, m) {
		for _, holding := range append(moments, m) {
			d := o.decide(at.states[o.aggregate()], holding.taken(o))
			if d.outcome == row.Outcome && (row.Error == nil) == (d.code == "") && (row.Error == nil || row.Error.Code == d.code) {
				return nil
			}
			allowed = append(allowed, fmt.Sprint(d.outcome, " ", d.code))
		}
	}
	return fmt.Errorf("recorded %s %v; since it arrived the model allowed %v", row.Outcome, row.Error, allowed)
}

func keyNames(row *store.Row) (names []string) {
	for _, k := range row.Taken {
		names = append(names, "+"+k.Namespace[:len(k.Namespace)-len("-name")]+":"+k.Name)
	}
	for _, k := range row.Released {
		names = append(names, "-"+k.Namespace[:len(k.Namespace)-len("-name")]+":"+k.Name)
	}
	return names
}

func nonEmpty(take, release string) (names []string) {
	if take != "" {
		names = append(names, "+"+take)
	}
	if release != "" {
		names = append(names, "-"+release)
	}
	return names
}
