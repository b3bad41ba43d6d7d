package storetest

import (
	"fmt"
	"testing"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/dedupe"
	"github.com/seed54173720/writ/pkg/store"
)

// arrival is a command as it comes in: which record it is (0: a call that is no record), what it says, what its
// decision would be, the verdict that it has to get, and the arrival whose row has to answer it.
type arrival struct {
	record      int
	fingerprint byte
	outcome     command.Outcome
	want        dedupe.Verdict
	answer      int // index of an arrival, this one where it is decided
}

// answerTable has a row or more for each row of the table of answers to repeats: one request over its life.
var answerTable = []struct {
	name     string
	arrivals []arrival
}{
	{"a new request is decided", []arrival{
		{1, 'a', command.Committed, dedupe.Decide, 0},
	}},
	{"a redelivered commit answers itself", []arrival{
		{1, 'a', command.Committed, dedupe.Decide, 0},
		{1, 'a', command.Committed, dedupe.Own, 0},
	}},
	{"a redelivered refusal answers itself", []arrival{
		{1, 'a', command.Rejected, dedupe.Decide, 0},
		{1, 'a', command.Committed, dedupe.Own, 0},
		{1, 'a', command.Committed, dedupe.Own, 0},
	}},
	{"a redelivered failure answers itself", []arrival{
		{1, 'a', command.Failed, dedupe.Decide, 0},
		{1, 'a', command.Committed, dedupe.Own, 0},
	}},
	{"a repeat of a commit is a duplicate", []arrival{
		{1, 'a', command.Committed, dedupe.Decide, 0},
		{2, 'a', command.Committed, dedupe.Duplicate, 0},
		{3, 'a', command.Rejected, dedupe.Duplicate, 0},
		{1, 'a', command.Committed, dedupe.Own, 0},
	}},
	{"a repeat of nothing-to-do is a duplicate", []arrival{
		{1, 'a', command.Nothing, dedupe.Decide, 0},
		{2, 'a', command.Committed, dedupe.Duplicate, 0},
	}},
	{"another command under a final request is refused and leaves no row", []arrival{
		{1, 'a', command.Committed, dedupe.Decide, 0},
		{2, 'b', command.Committed, dedupe.Reused, 0},
		{2, 'b', command.Committed, dedupe.Reused, 0},
		{3, 'a', command.Committed, dedupe.Duplicate, 0},
	}},
	{"a repeat of a refusal is decided anew, a corrected one too", []arrival{
		{1, 'a', command.Rejected, dedupe.Decide, 0},
		{2, 'a', command.Failed, dedupe.Replace, 1},
		{3, 'b', command.Committed, dedupe.Replace, 2},
		{4, 'b', command.Committed, dedupe.Duplicate, 2},
		{5, 'a', command.Committed, dedupe.Reused, 2},
	}},
	{"the old record of a replaced refusal keeps its no", []arrival{
		{1, 'a', command.Rejected, dedupe.Decide, 0},
		{2, 'a', command.Rejected, dedupe.Replace, 1},
		{1, 'a', command.Committed, dedupe.Own, 0},
		{2, 'a', command.Committed, dedupe.Own, 1},
		{3, 'a', command.Committed, dedupe.Replace, 4},
		{1, 'a', command.Committed, dedupe.Own, 0},
		{2, 'a', command.Committed, dedupe.Own, 1},
		{3, 'a', command.Committed, dedupe.Own, 4},
	}},
	{"an old record of another fingerprint keeps its no", []arrival{
		{1, 'a', command.Rejected, dedupe.Decide, 0},
		{2, 'b', command.Committed, dedupe.Replace, 1},
		{1, 'a', command.Committed, dedupe.Own, 0},
	}},
	{"every refused call counts as new", []arrival{
		{0, 'a', command.Rejected, dedupe.Decide, 0},
		{0, 'a', command.Rejected, dedupe.Replace, 1},
		{0, 'a', command.Committed, dedupe.Replace, 2},
		{0, 'a', command.Committed, dedupe.Duplicate, 2},
		{0, 'b', command.Committed, dedupe.Reused, 2},
	}},
	{"records and calls of a request see each other", []arrival{
		{1, 'a', command.Rejected, dedupe.Decide, 0},
		{0, 'a', command.Failed, dedupe.Replace, 1},
		{1, 'a', command.Committed, dedupe.Own, 0},
		{2, 'a', command.Nothing, dedupe.Replace, 3},
		{0, 'a', command.Committed, dedupe.Duplicate, 3},
		{1, 'a', command.Committed, dedupe.Own, 0},
	}},
}

// testAnswers plays the table: each arrival is looked up and judged, and what is to be decided is committed.
func testAnswers(t *testing.T, s Store) {
	for _, row := range answerTable {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, s)
			a := w.aggregate("a")
			decided := make([]store.Row, len(row.arrivals))
			version := int64(0)
			for i, x := range row.arrivals {
				next := w.row(a, "r", x.outcome, version+1)
				next.Fingerprint = command.Digest{x.fingerprint}
				next.Position = command.Position{TopicID: w.topic, Partition: 1, Offset: int64(1000 + x.record)}
				if x.record == 0 {
					next = inProcess(next)
				}
				found := w.find(of(next))[0]
				got := judge(&next, found)
				if got != x.want {
					t.Fatalf("arrival %d: %s, want %s", i, got, x.want)
				}
				switch got {
				case dedupe.Decide:
					w.do(unit(next))
					decided[i], found.Latest = next, &next
				case dedupe.Replace:
					w.do(replacing(unit(next), *found.Latest))
					decided[i], found.Latest = next, &next
				case dedupe.Own:
					found.Latest = found.Own
				case dedupe.Duplicate, dedupe.Reused:
				}
				version = w.head(a)
				answer := decided[x.answer]
				if found.Latest.Request != answer.Request { // it was moved aside since
					answer = movedAside(answer)
				}
				same(t, fmt.Sprintf("answer to arrival %d", i), found.Latest, answer)
			}
		})
	}

	t.Run("a request whose key merely collides is refused as reused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, s)
		row := w.refused(w.aggregate("a"), "another", command.Rejected)
		row.Request = w.request("r")
		w.do(unit(row))
		collides := w.committed(w.aggregate("a"), "r", 1)
		if got := judge(&collides, w.find(of(collides))[0]); got != dedupe.Reused {
			t.Errorf("verdict: %s, want %s", got, dedupe.Reused)
		}
	})
}

// judge asks dedupe about the command that x would be the row of.
func judge(x *store.Row, found store.Found) dedupe.Verdict {
	recorded := func(r *store.Row) *dedupe.Recorded {
		if r == nil {
			return nil
		}
		return &r.Recorded
	}
	named := found.Latest != nil && found.Latest.RequestID == x.RequestID &&
		found.Latest.Aggregate.Tenant == x.Aggregate.Tenant && found.Latest.Aggregate.Type == x.Aggregate.Type
	return dedupe.Judge(dedupe.Request{FromRecord: x.FromRecord, Position: x.Position, Fingerprint: x.Fingerprint},
		recorded(found.Latest), recorded(found.Own), named)
}
