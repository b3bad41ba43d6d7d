package audit

import (
	"fmt"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store"
)

// Code is the stable name of a kind of finding.
type Code string

// The kinds of findings.
const (
	WrongStream      Code = "wrong-stream"       // a row's stream is not that of its aggregate
	WrongRequest     Code = "wrong-request"      // a row's request key is neither its request's nor that of a row moved aside
	WrongRow         Code = "wrong-row"          // a row holds what its outcome cannot have, or lacks what it must have
	VersionGap       Code = "version-gap"        // a version is missing, or there twice
	UnreadableEvents Code = "unreadable-events"  // this build cannot read a commit's events, or fold them
	WrongSnapshot    Code = "wrong-snapshot"     // a snapshot is not the state that the events make
	RequestTwice     Code = "request-twice"      // a request has more than one latest row
	RequestLost      Code = "request-lost"       // a row was moved aside, and none took its place
	RecordTwice      Code = "record-twice"       // a record has more than one row
	WrongKeys        Code = "wrong-keys"         // a row takes a key that its aggregate holds, or releases one that it does not hold
	KeyTwice         Code = "key-twice"          // by the journal, more than one aggregate holds a key
	KeyNotReserved   Code = "key-not-reserved"   // by the journal, an aggregate holds a key, and the reservations do not say so
	KeyNotInJournal  Code = "key-not-in-journal" // by the reservations, an aggregate holds a key, and the journal does not say so
)

// Finding is one thing that is not as it must be.
type Finding struct {
	Code  Code   `json:"code"`
	Where string `json:"where"` // the aggregate, version, request or key
	What  string `json:"what"`  // what is there, and what must be
	Look  string `json:"look"`  // how to see it
	Mend  string `json:"mend"`  // what to do
}

// String returns the finding on several lines.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s\n  look: %s\n  mend: %s", f.Code, f.Where, f.What, f.Look, f.Mend)
}

// mend says what to do about each kind. None of it is done by a program: each means that something went around the
// processor, or that the processor has a fault, and that has to be found out first.
var mend = map[Code]string{
	WrongStream:      "find out who wrote the row; correct its aggregate or its stream by the record that it names",
	WrongRequest:     "find out who wrote the row; its key is the hash of tenant, aggregate type and request ID",
	WrongRow:         "find out who wrote the row; restore it from a backup",
	VersionGap:       "restore the missing rows from a backup; until then the aggregate cannot be loaded without a snapshot",
	UnreadableEvents: "run the build that wrote the events, or register their types again in this one",
	WrongSnapshot:    "delete the snapshot: the state is then folded from the events. Where many are wrong, the meaning of an event was changed without a new state revision",
	RequestTwice:     "check that the index journal_request exists and is valid (reindex); the effects of one of the rows have to be undone by commands",
	RequestLost:      "restore the missing row from a backup; its request can be decided again until then",
	RecordTwice:      "check that the index journal_request exists and is valid (reindex); the effects of one of the rows have to be undone by commands",
	WrongKeys:        "compare the aggregate's history with its reservations; a release or a rename by command sets it right",
	KeyTwice:         "let all but one of the holders give the key up, by command; then correct the row of the table reservation",
	KeyNotReserved:   "insert the row into the table reservation, unless another holds the key by now",
	KeyNotInJournal:  "delete the row from the table reservation, if no processor is about to commit the key",
}

func (a *audit) findRow(code Code, row *store.Row, format string, args ...any) {
	where := fmt.Sprintf("%s request %q", row.Aggregate, row.RequestID)
	if row.Version > 0 {
		where = fmt.Sprintf("%s version %d", row.Aggregate, row.Version)
	}
	a.find(Finding{code, where, fmt.Sprintf(format, args...), show(row.Aggregate), mend[code]})
}

func show(of command.Aggregate) string { return "processor show " + of.String() }
