// Package dedupe answers repeats: given the record at hand and what is recorded of its request, it says whether to
// decide, or which recorded outcome is the answer. It is the one place of that table; it reads and writes nothing.
package dedupe

import "github.com/seed54173720/writ/pkg/command"

// Recorded is what a journal row says of the request and record that it is the outcome of.
type Recorded struct {
	Outcome     command.Outcome
	FromRecord  bool             // false: executed in process, no record
	Position    command.Position // of the record, where FromRecord
	Fingerprint command.Digest
}

// Of reports whether the row is the outcome of the record at p.
func (r *Recorded) Of(p command.Position) bool { return r.FromRecord && r.Position == p }

// Request is the command at hand, as far as repeats are concerned.
type Request struct {
	FromRecord  bool
	Position    command.Position
	Fingerprint command.Digest
}

// Verdict is what to do with a command whose request may have been seen before.
type Verdict uint8

const (
	// Decide: the request is new. Decide it and insert its row.
	Decide Verdict = iota
	// Replace: the request was refused or failed before, under another record. Decide it anew, move the old row
	// aside and insert the new one.
	Replace
	// Own: this very record has its outcome already (it was delivered again). Answer it verbatim, not as a
	// duplicate; its events or dead letter go out again.
	Own
	// Duplicate: the request has its final outcome from another record. Answer that, marked duplicate.
	Duplicate
	// Reused: the request ID belongs to another, final request. Answer request-id-reused and write no row.
	Reused
)

var verdicts = [...]string{"decide", "replace", "own", "duplicate", "reused"}

func (v Verdict) String() string { return verdicts[v] }

// Judge answers a command from what is recorded: latest is the row under the request's key, own the row of this very
// record (latest itself or one moved aside), nil where there is none. same reports whether latest names the same
// request in full; two requests whose keys merely collide count as reused.
//
// The order of the cases is the rule: a record's own outcome comes before any comparison, for what a record was
// answered once is its answer for ever.
func Judge(r Request, latest, own *Recorded, same bool) Verdict {
	switch {
	case latest == nil && own == nil:
		return Decide
	case r.FromRecord && own != nil:
		return Own
	case !same:
		return Reused
	case !latest.Outcome.Final():
		return Replace
	case latest.Fingerprint == r.Fingerprint:
		return Duplicate
	default:
		return Reused
	}
}
