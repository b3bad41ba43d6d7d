package dedupe

import (
	"testing"

	"github.com/seed54173720/writ/pkg/command"
)

var (
	here    = command.Position{TopicID: [16]byte{1}, Partition: 2, Offset: 3}
	earlier = command.Position{TopicID: [16]byte{1}, Partition: 2, Offset: 1}
	sent    = command.Digest{'s', 'e', 'n', 't'}
	other   = command.Digest{'o', 't', 'h', 'e', 'r'}
)

func from(p command.Position, outcome command.Outcome, fingerprint command.Digest) *Recorded {
	return &Recorded{Outcome: outcome, FromRecord: true, Position: p, Fingerprint: fingerprint}
}

func executed(outcome command.Outcome, fingerprint command.Digest) *Recorded {
	return &Recorded{Outcome: outcome, Fingerprint: fingerprint}
}

func TestEveryRowOfTheAnswerTable(t *testing.T) {
	t.Parallel()
	record := Request{FromRecord: true, Position: here, Fingerprint: sent}
	execute := Request{Fingerprint: sent}
	own := func(outcome command.Outcome, fingerprint command.Digest) (*Recorded, *Recorded) {
		row := from(here, outcome, fingerprint)
		return row, row
	}
	none := func(latest *Recorded) (*Recorded, *Recorded) { return latest, nil }
	aside := func(latest, own *Recorded) (*Recorded, *Recorded) { return latest, own }
	type found struct{ latest, own *Recorded }
	is := func(latest, own *Recorded) found { return found{latest, own} }

	for _, row := range []struct {
		name     string
		request  Request
		found    found
		collides bool
		want     Verdict
	}{
		{"new", record, is(none(nil)), false, Decide},
		{"new, nothing to compare", record, is(none(nil)), true, Decide},

		{"own committed", record, is(own(command.Committed, sent)), false, Own},
		{"own nothing", record, is(own(command.Nothing, sent)), false, Own},
		{"own rejected", record, is(own(command.Rejected, sent)), false, Own},
		{"own failed", record, is(own(command.Failed, sent)), false, Own},
		{"own of another fingerprint: not compared", record, is(own(command.Committed, other)), false, Own},
		{"own of a colliding request: not compared", record, is(own(command.Committed, sent)), true, Own},
		{"own aside, the latest committed", record, is(aside(from(earlier, command.Committed, sent), from(here, command.Rejected, sent))), false, Own},
		{"own aside, the latest refused again", record, is(aside(from(earlier, command.Rejected, sent), from(here, command.Failed, other))), false, Own},
		{"own aside, the latest executed", record, is(aside(executed(command.Committed, other), from(here, command.Rejected, sent))), false, Own},

		{"committed before", record, is(none(from(earlier, command.Committed, sent))), false, Duplicate},
		{"nothing before", record, is(none(from(earlier, command.Nothing, sent))), false, Duplicate},
		{"executed before", record, is(none(executed(command.Committed, sent))), false, Duplicate},
		{"committed before, other fingerprint", record, is(none(from(earlier, command.Committed, other))), false, Reused},
		{"nothing before, other fingerprint", record, is(none(from(earlier, command.Nothing, other))), false, Reused},
		{"committed before, keys collide", record, is(none(from(earlier, command.Committed, sent))), true, Reused},
		{"rejected before, keys collide", record, is(none(from(earlier, command.Rejected, sent))), true, Reused},

		{"rejected before", record, is(none(from(earlier, command.Rejected, sent))), false, Replace},
		{"failed before", record, is(none(from(earlier, command.Failed, sent))), false, Replace},
		{"rejected before, corrected now", record, is(none(from(earlier, command.Rejected, other))), false, Replace},
		{"refused in process before", record, is(none(executed(command.Rejected, sent))), false, Replace},

		{"execute: new", execute, is(none(nil)), false, Decide},
		{"execute: committed by a record", execute, is(none(from(earlier, command.Committed, sent))), false, Duplicate},
		{"execute: committed by a call", execute, is(none(executed(command.Committed, sent))), false, Duplicate},
		{"execute: committed, other fingerprint", execute, is(none(executed(command.Committed, other))), false, Reused},
		{"execute: refused by a call: every call is new", execute, is(none(executed(command.Rejected, sent))), false, Replace},
		{"execute: failed by a record", execute, is(none(from(earlier, command.Failed, sent))), false, Replace},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := Judge(row.request, row.found.latest, row.found.own, !row.collides); got != row.want {
				t.Errorf("Judge(%+v, %+v, %+v, same %v) = %v, want %v", row.request, row.found.latest, row.found.own, !row.collides, got, row.want)
			}
		})
	}
}

// Every question that can be asked over two positions and two fingerprints is asked.
func TestInvariantsHoldForEveryQuestion(t *testing.T) {
	t.Parallel()
	asked := 0
	for _, q := range questions() {
		asked++
		got := Judge(q.Request, q.latest, q.own, q.same)
		ask := func(rule string, ok bool) {
			if !ok {
				t.Errorf("%s: Judge(%+v, %+v, %+v, same %v) = %v", rule, q.Request, q.latest, q.own, q.same, got)
			}
		}
		ask("a new request is decided, and only that", (got == Decide) == (q.latest == nil))
		ask("a record's own row is its answer, and only a record has one", (got == Own) == (q.own != nil && q.FromRecord))
		if q.latest == nil {
			continue
		}
		final := q.latest.Outcome.Final()
		ask("a final outcome is never replaced", got != Replace || !final)
		ask("only a refusal of this request is replaced", got == Replace == (got != Own && !final && q.same))
		ask("a duplicate has a final outcome, the same name and the same fingerprint",
			got != Duplicate || final && q.same && q.latest.Fingerprint == q.Fingerprint)
		ask("only a final row refuses a fingerprint", got != Reused || final || !q.same)

		changed := q.Request
		changed.Fingerprint = command.Digest{'n', 'e', 'v', 'e', 'r'}
		if got == Own || got == Replace {
			ask("the fingerprint is not compared", Judge(changed, q.latest, q.own, q.same) == got)
		} else {
			ask("a final row refuses every other fingerprint", Judge(changed, q.latest, q.own, q.same) == Reused)
		}
	}
	if asked < 500 {
		t.Errorf("asked %d questions: the domains have shrunk", asked)
	}
}

type question struct {
	Request
	latest, own *Recorded
	same        bool
}

// questions lists what a store can answer: a row that is the record's own is found as own; what was moved aside is a
// refusal; a call that is no record is told of an own row only by a store that errs, and is asked about all the same.
func questions() []question {
	var rows []*Recorded
	for _, outcome := range []command.Outcome{command.Committed, command.Nothing, command.Rejected, command.Failed} {
		for _, fingerprint := range []command.Digest{sent, other} {
			rows = append(rows, executed(outcome, fingerprint), from(here, outcome, fingerprint), from(earlier, outcome, fingerprint))
		}
	}
	var all []question
	for _, request := range []Request{
		{FromRecord: true, Position: here, Fingerprint: sent},
		{FromRecord: true, Position: earlier, Fingerprint: other},
		{Fingerprint: sent},
		{Position: here, Fingerprint: other},
	} {
		for _, same := range []bool{true, false} {
			all = append(all, question{Request: request, same: same})
			for _, latest := range rows {
				if request.FromRecord && latest.Of(request.Position) {
					all = append(all, question{request, latest, latest, same})
					continue
				}
				all = append(all, question{request, latest, nil, same})
				for _, own := range rows {
					if own.Of(request.Position) && !own.Outcome.Final() {
						all = append(all, question{request, latest, own, same})
					}
				}
			}
		}
	}
	return all
}
