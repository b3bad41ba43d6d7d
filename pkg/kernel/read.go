package kernel

import (
	"context"
	"fmt"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/dedupe"
	"github.com/seed54173720/writ/pkg/store"
)

// Read finds out, in one query each, what is recorded of the units' requests and the states that their decisions
// need. An error is an infrastructure fault; the same units may be read again.
func (k *Kernel) Read(ctx context.Context, units []*Unit) error {
	if err := k.look(ctx, units); err != nil {
		return err
	}
	return k.load(ctx, units)
}

func (k *Kernel) look(ctx context.Context, units []*Unit) error {
	n := 0
	for _, u := range units {
		n += len(u.Items)
	}
	asked := make([]store.Lookup, 0, n)
	for _, u := range units {
		for _, item := range u.Items {
			if !item.looked {
				asked = append(asked, store.Lookup{Request: item.Command.Request(), FromRecord: item.FromRecord, Position: item.Position})
			}
		}
	}
	if len(asked) == 0 {
		return nil
	}
	found, err := k.Store.Requests(ctx, asked)
	if err != nil {
		return fmt.Errorf("kernel: look requests up: %w", err)
	}
	for _, u := range units {
		for _, item := range u.Items {
			if item.looked {
				continue
			}
			item.looked, item.found = true, found[0]
			found = found[1:]
			item.judge()
			if item.Stored() {
				// Somebody else may have committed since the state was cached.
				u.State, u.base = nil, nil
			}
		}
	}
	return nil
}

// judge answers the item from what is recorded, where that answers it.
func (i *Item) judge() {
	latest, own := i.found.Latest, i.found.Own
	same := latest != nil && latest.Names(i.Command)
	i.Verdict = dedupe.Judge(
		dedupe.Request{FromRecord: i.FromRecord, Position: i.Position, Fingerprint: i.Command.Fingerprint()},
		recorded(latest), recorded(own), same)
	switch i.Verdict {
	case dedupe.Own:
		i.Row = own
	case dedupe.Duplicate:
		i.Row = latest
	case dedupe.Reused:
		i.Reused = command.Errorf(command.CodeRequestIDReused,
			"request ID %q was used for another request of this tenant and aggregate type; use a new one", i.Command.RequestID())
	}
}

func recorded(r *store.Row) *dedupe.Recorded {
	if r == nil {
		return nil
	}
	return &r.Recorded
}

func (i *Item) undecided() bool { return i.Verdict == dedupe.Decide || i.Verdict == dedupe.Replace }

func (k *Kernel) load(ctx context.Context, units []*Unit) error {
	var asked []store.Asked
	var missing []*Unit
	for _, u := range units {
		if u.base != nil || u.unreadable != nil {
			continue
		}
		if u.State != nil {
			u.base = u.State
			continue
		}
		typ := k.Context.aggregates[u.Aggregate.Type]
		first, awaited := u.firstUndecided(), u.snapshotAwaited()
		if typ == nil || first == nil && !awaited {
			continue
		}
		if !awaited && k.guessNew(u, first) {
			u.base = &State{value: typ.zero}
			continue
		}
		asked = append(asked, store.Asked{Stream: u.Stream, Revision: typ.snapshotRevision()})
		missing = append(missing, u)
	}
	if len(asked) == 0 {
		return nil
	}
	streams, err := k.Store.Load(ctx, asked)
	if err != nil {
		return fmt.Errorf("kernel: load states: %w", err)
	}
	for i, u := range missing {
		u.base, u.unreadable = k.Context.aggregates[u.Aggregate.Type].fold(u.Aggregate, &streams[i])
	}
	return nil
}

// snapshotAwaited reports whether a repeat waits for the snapshot, so that the state has to be known.
func (u *Unit) snapshotAwaited() bool {
	for _, item := range u.Items {
		if item.awaitsSnapshot() {
			return true
		}
	}
	return false
}

func (u *Unit) firstUndecided() *Item {
	for _, item := range u.Items {
		if item.undecided() {
			return item
		}
	}
	return nil
}

// doubt is how many creates are loaded, after a guess was wrong, before the next one is guessed.
const doubt = 10_000

// guessNew reports whether the unit may be decided as if its aggregate did not exist, without a look: it begins with a
// create, and creates nearly always find nothing. A wrong guess is found out like any outdated state, by the version
// of the commit or by the heads that refusals are checked against; as it costs its group another turn, a wrong guess
// makes the next creates be loaded.
func (k *Kernel) guessNew(u *Unit, first *Item) bool {
	h := k.Context.commands[first.Command.Type()]
	if h == nil || h.existence != Creates {
		return false
	}
	if first.guessed {
		k.doubts.Store(doubt)
		return false
	}
	if k.doubts.Load() > 0 {
		k.doubts.Add(-1)
		return false
	}
	for _, item := range u.Items {
		item.guessed = true
	}
	return true
}
