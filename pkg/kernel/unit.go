package kernel

import (
	"time"

	"github.com/google/uuid"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/dedupe"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// Item is one command on its way through the kernel.
type Item struct {
	Command    *command.Command
	FromRecord bool
	Position   command.Position // of the record, where FromRecord
	Refused    *command.Error   // found at intake: recorded as rejected without a decision

	// Attempts counts the tries that ended in a fault of the command itself; Fault is the last one. The store's
	// refusal of the command's row counts too.
	Attempts int
	Fault    error

	// The answer. Row is the outcome: a new one of this command, or the stored one that answers it. It is nil where
	// the request ID belongs to another request, which is answered by Reused and writes nothing.
	Verdict dedupe.Verdict
	Row     *store.Row
	Reused  *command.Error

	looked    bool
	found     store.Found
	now       time.Time
	expired   bool
	body      any // decoded
	ops       []keyOp
	stateless bool // the refusal does not depend on the state
	guessed   bool // once decided as if its aggregate did not exist
	behind    bool // a repeat that waits for a snapshot which cannot be had
}

// Stored reports whether the item is answered by a row that stood in the store before.
func (i *Item) Stored() bool { return i.Verdict == dedupe.Own || i.Verdict == dedupe.Duplicate }

// Writes reports whether the item has a row of its own to commit.
func (i *Item) Writes() bool { return i.Row != nil && !i.Stored() }

// awaitsSnapshot reports whether the item is a repeat of a final outcome that waits for the aggregate's snapshot.
func (i *Item) awaitsSnapshot() bool {
	return i.Stored() && i.Row.Outcome.Final() && i.Command.WaitFor() == command.StageSnapshot && !i.behind
}

// Forget makes the item unseen again: what is recorded of its request has to be read anew.
func (i *Item) Forget() {
	i.looked, i.found, i.Verdict, i.Row, i.Reused, i.ops = false, store.Found{}, dedupe.Decide, nil, nil, nil
}

// Reply is the item's answer, a function of its row and its record alone; but a repeat that waits for a snapshot is told
// whether it was written. topic is the command topic's name.
func (i *Item) Reply(topic string) command.Reply {
	c := i.Command
	r := command.Reply{Topic: topic, Position: i.Position, CorrelationID: c.CorrelationID()}
	if i.Reused != nil {
		r.RequestID, r.Type, r.Aggregate, r.Outcome, r.Error = c.RequestID(), c.Type(), c.Aggregate(), command.Rejected, i.Reused
		return r
	}
	row := i.Row
	r.RequestID, r.Type, r.Aggregate = row.RequestID, row.Type, row.Aggregate
	r.Outcome, r.Version, r.Error, r.Result, r.Stage = row.Outcome, row.Version, row.Error, row.Result, row.Meta.Stage
	if r.Duplicate = i.Verdict == dedupe.Duplicate; r.Duplicate && i.awaitsSnapshot() {
		r.Stage = command.StageSnapshot
	}
	return r
}

// Unit is commands of one aggregate that are decided in a row and committed together. In one unit a request MUST
// occur once at most: a repeat has to wait for the fate of the first. A unit belongs to one goroutine at a time.
type Unit struct {
	Aggregate command.Aggregate
	Stream    command.Digest
	Items     []*Item
	// State is what the caller knows of the aggregate (nil: nothing) and in the end what the unit makes of it, which
	// is the truth once the unit has committed.
	State *State
	// SnapshotFault says why a snapshot that was due could not be taken: the state type does not marshal.
	SnapshotFault error

	base       *State // what the first item is decided on
	unreadable error  // why there is none
	states     []*State
	rows       []store.Row
	keys       keyView
	alone      struct { // of a unit of one item: no slices to allocate
		rows   [1]store.Row
		states [1]*State
	}
	decided  int // items before this index are decided
	take     []keys.Key
	release  []keys.Key
	snapshot *store.Snapshot
}

// Reset makes the unit begin again at "seen before?", knowing nothing: after a lost race, or a commit of unknown fate.
func (u *Unit) Reset() {
	u.forgetState()
	for _, item := range u.Items {
		item.Forget()
	}
}

func (u *Unit) forgetState() {
	u.State, u.base, u.unreadable, u.decided, u.snapshot = nil, nil, nil, 0, nil
	u.keys.entries = u.keys.entries[:0]
}

// cut takes the items from index n on out of the unit and returns them.
func (u *Unit) cut(n int) []*Item {
	rest := u.Items[n:]
	u.Items = u.Items[:n:n]
	return rest
}

// Commit returns what the unit asks of the store. ok is false where it has nothing to write: every item is answered
// by stored rows.
func (u *Unit) Commit() (c store.Unit, ok bool) {
	c = store.Unit{Stream: u.Stream, Aggregate: u.Aggregate, Take: u.take, Release: u.release, Snapshot: u.snapshot}
	if len(u.rows) > 0 && len(u.rows) == len(u.Items) && u.allWrite() {
		c.Rows = u.rows
	} else {
		for _, item := range u.Items {
			if item.Writes() {
				c.Rows = append(c.Rows, *item.Row)
			}
		}
	}
	for _, item := range u.Items {
		if item.Verdict != dedupe.Replace {
			continue
		}
		old := item.found.Latest
		aside := command.AsideDigest(old.Request, old.Position)
		if !old.FromRecord {
			aside = command.Digest(uuid.New()) // no record will ask for it, and a request may have many such rows
		}
		c.Replaced = append(c.Replaced, store.Replaced{
			Request: old.Request, FromRecord: old.FromRecord, Position: old.Position, Aside: aside,
		})
	}
	return c, len(c.Rows) > 0 || c.Snapshot != nil
}

// Blame counts the store's refusal of the unit (store.Bad) against the command whose row is at fault, and returns it:
// nil where the unit has no row but a snapshot, which is then not asked for again.
func (u *Unit) Blame(fate store.Fate) *Item {
	n := fate.Row
	for _, item := range u.Items {
		if !item.Writes() {
			continue
		}
		if n == 0 {
			item.Attempts++
			item.Fault = &StoreRefusedError{Err: fate.Err}
			return item
		}
		n--
	}
	for _, item := range u.Items {
		item.behind = item.Stored()
	}
	return nil
}

func (u *Unit) allWrite() bool {
	for _, item := range u.Items {
		if !item.Writes() {
			return false
		}
	}
	return true
}
