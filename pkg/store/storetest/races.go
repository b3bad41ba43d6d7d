package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store"
)

// racers is how many goroutines race in each of the cases.
const racers = 100

var raceCases = []claim{
	{"of rivals for a version one is done", func(t *testing.T, w *world) {
		a := w.aggregate("a")
		winner := w.race(store.VersionConflict, func(i int) store.Unit {
			return unit(w.committed(a, fmt.Sprint(i), 1))
		})
		sameRows(t, "tail", w.load(a, 1).Tail, winner.Rows)
	}},
	{"of rivals for a request one is done", func(t *testing.T, w *world) {
		winner := w.race(store.RequestConflict, func(i int) store.Unit {
			return unit(w.row(w.aggregate(fmt.Sprint(i)), "r", outcomes[i%len(outcomes)], 1))
		})
		same(t, "latest", w.latest("r"), winner.Rows[0])
	}},
	{"of rivals for a key one is done", func(t *testing.T, w *world) {
		winner := w.race(store.KeyConflict, func(i int) store.Unit {
			return unit(taking(w.committed(w.aggregate(fmt.Sprint(i)), fmt.Sprint(i), 1), w.key("k")))
		})
		w.holds(winner.Aggregate, w.key("k"))
		if held := len(w.reservations()); held != 1+racers {
			t.Errorf("keys held: got %d, want the one raced for and %d of the neighbours", held, racers)
		}
	}},
	{"of rivals for the same keys in any order one is done", func(t *testing.T, w *world) {
		winner := w.race(store.KeyConflict, func(i int) store.Unit {
			row := w.committed(w.aggregate(fmt.Sprint(i)), fmt.Sprint(i), 1)
			for _, k := range rand.Perm(5) {
				row = taking(row, w.key(fmt.Sprint(k)))
			}
			return unit(row)
		})
		for _, key := range winner.Take {
			w.holds(winner.Aggregate, key)
		}
	}},
	{"of rivals to replace a refusal one is done", func(t *testing.T, w *world) {
		old := w.refused(w.aggregate("old"), "r", command.Rejected)
		w.do(unit(old))
		winner := w.race(store.RequestConflict, func(i int) store.Unit {
			return replacing(unit(w.row(w.aggregate(fmt.Sprint(i)), "r", outcomes[i%len(outcomes)], 1)), old)
		})
		found := w.find(of(old))[0]
		same(t, "latest", found.Latest, winner.Rows[0])
		same(t, "own of the old record", found.Own, movedAside(old))
	}},
	{"of a unit sent twice one is done", func(t *testing.T, w *world) {
		row := taking(w.committed(w.aggregate("a"), "r", 1), w.key("k"))
		w.race("", func(int) store.Unit { return unit(row) })
		sameRows(t, "tail", w.load(row.Aggregate, 1).Tail, []store.Row{row})
	}},
	{"a key that changes hands always has one holder", func(t *testing.T, w *world) {
		// Each racer takes the key when it is free and gives it back, three times over.
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		w.ctx = ctx
		var held sync.Mutex // whoever commits a Take finds it open
		together(racers/4, func(i int) {
			a := w.aggregate(fmt.Sprint(i))
			for turn := range int64(3) {
				take := unit(taking(w.committed(a, fmt.Sprintf("%d takes %d", i, turn), 2*turn+1), w.key("k")))
				for w.contend(take).Verdict == store.Lost {
				}
				if ctx.Err() != nil {
					return
				}
				if !held.TryLock() {
					t.Errorf("racer %d, turn %d: took a key that is held", i, turn)
					return
				}
				give := unit(releasing(w.committed(a, fmt.Sprintf("%d gives %d", i, turn), 2*turn+2), w.key("k")))
				held.Unlock()
				if fate := w.contend(give); fate.Verdict != store.Done {
					t.Errorf("racer %d, turn %d: give back: %s", i, turn, describe(fate))
					return
				}
			}
		})
		w.ctx = context.Background()
		w.holds(command.Aggregate{}, w.key("k"))
	}},
}

// race commits a rival unit from each racer at once, each with a neighbour of its own in the same Commit, in either
// order. One rival has to win; the others have to lose by the conflict ("": by any), and all neighbours to be done.
// It returns the winner.
func (w *world) race(conflict store.Conflict, rival func(i int) store.Unit) store.Unit {
	w.t.Helper()
	rivals, neighbours := make([]store.Unit, racers), make([]store.Unit, racers)
	for i := range rivals {
		rivals[i] = rival(i)
		name := fmt.Sprintf("neighbour %d", i)
		neighbours[i] = unit(taking(w.committed(w.aggregate(name), name, 1), w.key(name)))
	}
	fates := make([]store.Fate, racers)
	together(racers, func(i int) {
		units, mine := []store.Unit{rivals[i], neighbours[i]}, 0
		if i%2 == 1 {
			units, mine = []store.Unit{neighbours[i], rivals[i]}, 1
		}
		for len(units) > 0 {
			got, err := w.s.Commit(w.ctx, units)
			if err != nil {
				w.t.Errorf("racer %d: Commit: %v", i, err)
				return
			}
			var again []store.Unit
			next := -1
			for j, fate := range got {
				switch {
				case fate.Verdict == store.Lost && fate.Conflict == store.LockConflict:
					if j == mine {
						next = len(again)
					}
					again = append(again, units[j])
				case j == mine:
					fates[i] = fate
				case fate.Verdict != store.Done:
					w.t.Errorf("racer %d: the neighbour is %s, want it done", i, describe(fate))
				}
			}
			units, mine = again, next
		}
	})
	winner := -1
	for i, fate := range fates {
		switch {
		case fate.Verdict == store.Done && winner >= 0:
			w.t.Errorf("racers %d and %d are both done", winner, i)
		case fate.Verdict == store.Done:
			winner = i
		case fate.Verdict != store.Lost || conflict != "" && fate.Conflict != conflict:
			w.t.Errorf("racer %d: %s, want it lost by %q", i, describe(fate), conflict)
		}
	}
	if winner < 0 {
		w.t.Fatalf("none of %d racers is done", racers)
	}
	return rivals[winner]
}

// contend commits the unit until it is done or loses to something other than a lock. An error fails the test and
// counts as bad.
func (w *world) contend(u store.Unit) store.Fate {
	for {
		fates, err := w.s.Commit(w.ctx, []store.Unit{u})
		if err != nil {
			w.t.Errorf("Commit: %v", err)
			return store.Fate{Verdict: store.Bad, Err: err}
		}
		if fates[0].Conflict != store.LockConflict {
			return fates[0]
		}
	}
}

// together runs n goroutines that start at once, and waits for them.
func together(n int, run func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			run(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}
