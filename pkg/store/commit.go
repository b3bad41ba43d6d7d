package store

import (
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
)

// Unit is what a lane commits together: commands of one aggregate that were decided in a row.
//
// In one Commit a stream, a request and a claimed key MUST each occur in one unit at most; rows of a unit MUST be in
// the order of their decisions, with contiguous versions among the committed ones; Take and Release MUST follow from
// the rows' keys. Stores may panic where that is not so.
//
// A key that a row takes and a later one gives up is in both: it was held for a moment, in which nobody else may have
// held it. Its net effect is none, and yet the unit MUST lose where another holds it.
type Unit struct {
	Stream    command.Digest
	Aggregate command.Aggregate
	Rows      []Row
	Replaced  []Replaced
	Take      []keys.Key // keys whose first change by the rows is to be taken; the aggregate did not hold them before
	Release   []keys.Key // keys whose last change is to be released; no effect where the aggregate does not hold one
	Snapshot  *Snapshot  // written unless a newer one stands there
}

// Replaced names a refused or failed row that makes way for a new attempt: its request key becomes Aside. The unit
// loses if the row under Request is not the one at Position (or not a refusal any more).
type Replaced struct {
	Request    command.Digest
	FromRecord bool
	Position   command.Position
	Aside      command.Digest
}

// Verdict is what became of a unit.
type Verdict uint8

const (
	// Done: the unit is durable.
	Done Verdict = iota
	// Lost: another commit was first to the version, a request or a key. Nothing of the unit is stored; read again
	// and decide again.
	Lost
	// Bad: the store refuses this unit's data, others commit. Row says which row is at fault. Nothing of the unit
	// is stored.
	Bad
)

// Conflict says what a unit lost, for the metrics.
type Conflict string

const (
	NoConflict      Conflict = ""
	VersionConflict Conflict = "version"
	RequestConflict Conflict = "request"
	KeyConflict     Conflict = "key"
	LockConflict    Conflict = "lock" // blocked beyond the lock timeout, or in a deadlock
)

// Fate is a unit's verdict.
type Fate struct {
	Verdict  Verdict
	Conflict Conflict // where Lost
	Row      int      // where Bad: index into the unit's rows
	Err      error    // where Bad: what the store said
}
