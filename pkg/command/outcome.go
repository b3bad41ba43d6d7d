package command

import "fmt"

// Outcome is what became of a request. The zero value is no outcome.
type Outcome uint8

const (
	// Committed means that events were recorded. It is final.
	Committed Outcome = iota + 1
	// Nothing means that there was nothing to do. It is final.
	Nothing
	// Rejected means that a rule refused the command. A later record of the
	// request is decided anew.
	Rejected
	// Failed means that the decision could not be brought to an end. A later
	// record of the request is decided anew.
	Failed
)

var outcomes = [...]string{Committed: "committed", Nothing: "nothing", Rejected: "rejected", Failed: "failed"}

// String returns the name of o on the wire.
func (o Outcome) String() string {
	if o == 0 || int(o) >= len(outcomes) {
		return fmt.Sprintf("outcome(%d)", uint8(o))
	}
	return outcomes[o]
}

// Final reports whether o is the answer to every later record of its request.
func (o Outcome) Final() bool { return o == Committed || o == Nothing }

// ParseOutcome is the inverse of [Outcome.String].
func ParseOutcome(s string) (Outcome, error) {
	for o := Committed; o <= Failed; o++ {
		if outcomes[o] == s {
			return o, nil
		}
	}
	return 0, fmt.Errorf("command: outcome %q: must be committed, nothing, rejected or failed", cut(s))
}

// Stage is how far the sender of a command waits, and how far its answer has
// got.
type Stage uint8

const (
	// StageCommitted answers once the outcome is recorded. It is the default.
	StageCommitted Stage = iota
	// StageSnapshot answers once the aggregate's snapshot has caught up too, so
	// that whoever reads snapshots sees the write.
	StageSnapshot
)

// String returns the name of s on the wire.
func (s Stage) String() string {
	switch s {
	case StageCommitted:
		return "committed"
	case StageSnapshot:
		return "snapshot"
	}
	return fmt.Sprintf("stage(%d)", uint8(s))
}

// ParseStage is the inverse of [Stage.String].
func ParseStage(s string) (Stage, error) {
	switch s {
	case "committed":
		return StageCommitted, nil
	case "snapshot":
		return StageSnapshot, nil
	}
	return 0, fmt.Errorf("command: stage %q: must be committed or snapshot", cut(s))
}
