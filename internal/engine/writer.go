package engine

import (
	"context"
	"errors"
	"time"

	"github.com/seed54173720/writ/internal/metrics"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store"
)

// group is one transaction for the units of many lanes.
type group struct {
	units  []*unit
	claims []command.Digest
	rows   int
	// rivals want a stream, request or key of this group: they begin again once its fate is known.
	rivals []*unit
}

// small is the number of commands below which a fetch or a group is worth waiting for more: tiny ones cost many times
// the CPU per command.
const small = 256

// writer commits groups, one after the other, until the engine stops.
func (e *Engine) writer() {
	for {
		g := e.takeGroup()
		if g == nil {
			return
		}
		e.write(g)
		if g.rows < small {
			e.rest(e.cfg.Linger)
		}
	}
}

// takeGroup waits for decided units and takes as many as one transaction may hold.
func (e *Engine) takeGroup() *group {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		for e.decided.len() == 0 && !e.stopped {
			e.unitsReady.Wait()
		}
		if e.stopped {
			return nil
		}
		g := &group{}
		var bytes int64
		for g.rows < e.cfg.GroupCommands && bytes < e.cfg.GroupBytes {
			u, ok := e.decided.pop()
			if !ok {
				break
			}
			if owner := e.claim(g, u); owner != nil {
				owner.rivals = append(owner.rivals, u)
				continue
			}
			g.units = append(g.units, u)
			g.rows += len(u.commit.Rows)
			bytes += u.bytes
		}
		if len(g.units) > 0 {
			return g
		}
	}
}

// claim notes the unit's stream, requests and keys as the group's, or returns the group under way that has one of
// them. The caller holds e.mu.
func (e *Engine) claim(g *group, u *unit) (owner *group) {
	first := len(g.claims)
	g.claims = append(g.claims, u.Stream)
	for i := range u.commit.Rows {
		g.claims = append(g.claims, u.commit.Rows[i].Request)
	}
	for i := range u.commit.Take {
		g.claims = append(g.claims, u.commit.Take[i].Digest())
	}
	for i, id := range g.claims[first:] {
		if owner = e.claims[id]; owner != nil {
			for _, taken := range g.claims[first : first+i] {
				delete(e.claims, taken)
			}
			g.claims = g.claims[:first]
			return owner
		}
		e.claims[id] = g
	}
	return nil
}

// write commits a group and gives every unit its fate.
func (e *Engine) write(g *group) {
	commits := make([]store.Unit, len(g.units))
	for i, u := range g.units {
		commits[i] = u.commit
	}
	start := time.Now()
	fates, err := e.store.Commit(e.ctx, commits)
	metrics.Since(e.metrics.Commit, start)
	e.metrics.GroupRows.Observe(float64(g.rows))

	if err != nil {
		// Nothing is answered before its own row is known to be durable. Whatever did commit is found by the look-up.
		if errors.Is(err, store.ErrUnknown) {
			e.metrics.Unknown.Inc()
		}
		e.fault(storePart, err)
		e.awaitStore()
		e.end(g)
		for _, u := range append(g.units, g.rivals...) {
			e.giveBack(u, 0)
		}
		return
	}
	e.health.Report(storePart, nil)
	e.end(g) // before the lanes go on: their next units are no rivals
	done := g.units[:0]
	for i, u := range g.units {
		switch f := fates[i]; f.Verdict {
		case store.Done:
			if u.SnapshotFault != nil {
				e.log.Warn("no snapshot: the state does not marshal; loads read the whole journal of this aggregate", "aggregate", u.Aggregate.String(), "error", u.SnapshotFault)
			}
			done = append(done, u)
		case store.Lost:
			e.metrics.Conflicts.WithLabelValues(string(f.Conflict)).Inc()
			e.lost(u)
		case store.Bad:
			e.refused(u, f)
		}
	}
	e.finish(done)
	for _, u := range g.rivals {
		e.metrics.Conflicts.WithLabelValues("group").Inc()
		e.lost(u)
	}
}

// refused gives a unit back whose row the store does not take: a fault of that command, counted as a try.
func (e *Engine) refused(u *unit, f store.Fate) {
	log := e.log.With("aggregate", u.Aggregate.String(), "error", f.Err)
	if item := u.Blame(f); item != nil {
		e.metrics.Attempts.Inc()
		log.Warn("the store refuses a command's row", "request_id", item.Command.RequestID(), "attempt", item.Attempts)
	} else {
		log.Warn("the store refuses a snapshot; who waits for it is told so")
	}
	e.giveBack(u, jitter(e.cfg.RetryMin))
}

// end frees what the group claimed; its rivals may begin again.
func (e *Engine) end(g *group) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range g.claims {
		delete(e.claims, id)
	}
}

// awaitStore returns once the store answers again.
func (e *Engine) awaitStore() {
	e.rest(20 * time.Millisecond)
	e.insist(storePart, func(ctx context.Context) error {
		_, err := e.store.Heads(ctx, []command.Digest{{}})
		return err
	})
}

// rest waits unless the engine stops.
func (e *Engine) rest(d time.Duration) {
	select {
	case <-time.After(d):
	case <-e.ctx.Done():
	}
}
