package kernel

import (
	"context"
	"fmt"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
)

// Settle checks, in one query each, what the units' decisions took for granted: that the keys which they reserved are
// not held by others, and that refusals and nothing-to-do were decided on the aggregates' last versions. It returns
// the units that have to be decided again (after Read); the others are ready to commit. An error is an
// infrastructure fault; the same units may be settled again.
func (k *Kernel) Settle(ctx context.Context, units []*Unit) (again []*Unit, err error) {
	if err := k.readKeys(ctx, units); err != nil {
		return nil, err
	}
	var unproven []*Unit
	for _, u := range units {
		if n := u.firstMisjudged(); n < len(u.Items) {
			u.decided = n
			again = append(again, u)
			continue
		}
		if u.unproven() {
			unproven = append(unproven, u)
		}
	}
	stale, err := k.checkHeads(ctx, unproven)
	if err != nil {
		return nil, err
	}
	for _, u := range stale {
		u.forgetState()
	}
	again = append(again, stale...)
	for _, u := range units {
		if u.decided == len(u.Items) {
			k.finish(u)
		}
	}
	return again, nil
}

func (k *Kernel) readKeys(ctx context.Context, units []*Unit) error {
	var asked []keys.Key
	for _, u := range units {
		for i := range u.keys.entries {
			if e := &u.keys.entries[i]; !e.read {
				asked = append(asked, e.key)
			}
		}
	}
	if len(asked) == 0 {
		return nil
	}
	holders, err := k.Store.Holders(ctx, asked)
	if err != nil {
		return fmt.Errorf("kernel: read keys: %w", err)
	}
	for _, u := range units {
		for i := range u.keys.entries {
			if e := &u.keys.entries[i]; !e.read {
				e.read, e.holder = true, holders[0]
				holders = holders[1:]
			}
		}
	}
	return nil
}

// firstMisjudged returns the index of the first item that was granted a key which another holds, len(Items) if none.
func (u *Unit) firstMisjudged() int {
	for i, item := range u.Items {
		if !item.Writes() {
			continue
		}
		for j := range item.ops {
			if op := &item.ops[j]; !op.release && u.keys.find(op.id).another(u.Stream) {
				return i
			}
		}
	}
	return len(u.Items)
}

// unproven reports whether the unit records a refusal or nothing-to-do that depends on the state, and commits nothing
// whose version would prove that state.
func (u *Unit) unproven() bool {
	depends := false
	for _, item := range u.Items {
		if !item.Writes() {
			continue
		}
		if item.Row.Outcome == command.Committed {
			return false
		}
		depends = depends || !item.stateless
	}
	return depends
}

func (k *Kernel) checkHeads(ctx context.Context, units []*Unit) (stale []*Unit, err error) {
	if len(units) == 0 {
		return nil, nil
	}
	streams := make([]command.Digest, len(units))
	for i, u := range units {
		streams[i] = u.Stream
	}
	heads, err := k.Store.Heads(ctx, streams)
	if err != nil {
		return nil, fmt.Errorf("kernel: read heads: %w", err)
	}
	for i, u := range units {
		if heads[i] != u.base.Version {
			stale = append(stale, u)
		}
	}
	return stale, nil
}

// finish computes what the unit changes as a whole: keys, snapshot, state.
func (k *Kernel) finish(u *Unit) {
	u.State = u.base
	if len(u.states) > 0 {
		u.State = u.states[len(u.states)-1]
	}
	u.take, u.release, u.snapshot, u.SnapshotFault = nil, nil, nil, nil
	if len(u.keys.entries) > 0 {
		u.keys.begin()
		for _, item := range u.Items {
			if item.Writes() && item.Row.Outcome == command.Committed {
				item.Row.Taken, item.Row.Released = u.keys.apply(item.ops)
			}
		}
		u.take, u.release = u.keys.total()
	}
	if u.State == nil {
		u.promiseNoSnapshot() // unreadable, or of no type that is known: nothing is final here but repeats
		return
	}
	if !u.snapshotDue(k.snapshotEvery()) {
		return
	}
	snapshot, err := k.Context.aggregates[u.Aggregate.Type].take(u.Aggregate, u.Stream, u.State)
	if err != nil {
		u.SnapshotFault = err // the events are the truth; a snapshot only spares reading them
		u.promiseNoSnapshot()
		return
	}
	u.snapshot = snapshot
	u.State = &State{Version: u.State.Version, snapshot: u.State.Version, size: int64(len(snapshot.State)), life: u.State.life, value: u.State.value}
}

// promiseNoSnapshot takes back the stage that the unit's answers would claim.
func (u *Unit) promiseNoSnapshot() {
	for _, item := range u.Items {
		if item.Writes() {
			item.Row.Meta.Stage = command.StageCommitted
		}
		item.behind = item.behind || item.Stored()
	}
}

// snapshotDue reports whether the stored snapshot is far enough behind, or behind at all where a sender waits for it.
// There may be nothing to do for that sender, or its command may be a repeat: it wants what was committed to be seen. A
// unit of repeats writes a snapshot and no row.
func (u *Unit) snapshotDue(every int64) bool {
	if u.State.Version == u.State.snapshot {
		return false
	}
	far := u.State.Version-u.State.snapshot >= every
	for _, item := range u.Items {
		if item.awaitsSnapshot() || item.Writes() && (far || item.Command.WaitFor() == command.StageSnapshot) {
			return true
		}
	}
	return false
}
