package model

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// Breaches returns a sentence for each way in which the history breaks a promise; none: all of them hold.
func (h *History) Breaches() []string {
	c := newChecker(h)
	for _, check := range []func(){
		c.everyRecordIsAnswered,
		c.answersToARecordNeverDiffer,
		c.answersSayWhatIsRecorded,
		c.aRequestHasOneFinalOutcome,
		c.finalOutcomesAnswerAllThatComesLater,
		c.versionsAreContiguous,
		c.commitsFollowThePartition,
		c.reservationsAreTheFoldOfTheKeys,
		c.refusalsAreTrue,
		c.offsetsStayBehindTheAnswers,
		c.lettersKeepWhatTheyShould,
	} {
		check()
	}
	return c.breaches
}

// request is the identity of a request within its context.
type request struct{ tenant, aggregateType, id string }

type checker struct {
	*History
	records  map[Place]*Record
	answers  map[Place][]*Answer // by the command's place
	rows     map[Place]*store.Row
	requests map[request][]*store.Row
	final    map[request]*store.Row
	streams  map[command.Aggregate][]*store.Row // committed, by version
	breaches []string
}

func newChecker(h *History) *checker {
	c := &checker{
		History: h,
		records: map[Place]*Record{}, answers: map[Place][]*Answer{}, rows: map[Place]*store.Row{},
		requests: map[request][]*store.Row{}, final: map[request]*store.Row{}, streams: map[command.Aggregate][]*store.Row{},
	}
	for i := range h.Records {
		c.records[h.Records[i].Place] = &h.Records[i]
	}
	for i := range h.Answers {
		p := placeOf(h.Answers[i].Reply.Position)
		c.answers[p] = append(c.answers[p], &h.Answers[i])
	}
	for i := range h.Rows {
		row := &h.Rows[i]
		p := placeOf(row.Position)
		if twin := c.rows[p]; twin != nil {
			c.breach("P1: the record at %s has two outcomes in the journal, %s and %s", p, twin.Outcome, row.Outcome)
		}
		if row.Position.TopicID != h.TopicID {
			c.breach("P1: the row of the record at %s names topic ID %x, the topic's is %x", p, row.Position.TopicID, h.TopicID)
		}
		c.rows[p] = row
		r := requestOf(row)
		c.requests[r] = append(c.requests[r], row)
		if row.Outcome.Final() {
			c.final[r] = row
		}
		if row.Outcome == command.Committed {
			c.streams[row.Aggregate] = append(c.streams[row.Aggregate], row)
		}
	}
	for _, rows := range c.streams {
		slices.SortStableFunc(rows, func(a, b *store.Row) int { return int(a.Version - b.Version) })
	}
	return c
}

func (c *checker) breach(format string, args ...any) {
	c.breaches = append(c.breaches, fmt.Sprintf(format, args...))
}

func placeOf(p command.Position) Place { return Place{p.Partition, p.Offset} }

func requestOf(r *store.Row) request {
	return request{r.Aggregate.Tenant, r.Aggregate.Type, r.RequestID}
}

func (r *Record) request() request { return request{r.Tenant, r.Aggregate.Type, r.RequestID} }

// answer is the first answer to the record, nil: there is none.
func (c *checker) answer(p Place) *Answer {
	if all := c.answers[p]; len(all) > 0 {
		return all[0]
	}
	return nil
}

func (c *checker) everyRecordIsAnswered() {
	for i := range c.Records {
		if r := &c.Records[i]; c.answer(r.Place) == nil {
			c.breach("P5: the record at %s (request %q) was never answered", r.Place, r.RequestID)
		}
	}
	for p, answers := range c.answers {
		if c.records[p] == nil {
			c.breach("P5: %d answers name a record at %s, where there is none: %s", len(answers), p, answers[0].Bytes)
		}
	}
	for p, row := range c.rows {
		if c.records[p] == nil {
			c.breach("P1: the journal has a row of request %q for a record at %s, where there is none", row.RequestID, p)
		}
	}
}

func (c *checker) answersToARecordNeverDiffer() {
	for p, answers := range c.answers {
		for _, a := range answers[1:] {
			if a.Bytes != answers[0].Bytes {
				c.breach("P5: the record at %s was answered in two ways, at %s and %s of the replies:\n\t%s\n\t%s", p, answers[0].Place, a.Place, answers[0].Bytes, a.Bytes)
				break
			}
		}
	}
}

func (c *checker) answersSayWhatIsRecorded() {
	for i := range c.Records {
		r := &c.Records[i]
		if a := c.answer(r.Place); a != nil {
			if fault := c.misstated(r, &a.Reply); fault != "" {
				c.breach("P5: the record at %s (request %q) was answered %s, but %s", r.Place, r.RequestID, a.Bytes, fault)
			}
		}
	}
}

// misstated says what is wrong with the answer to the record, "" if nothing is.
func (c *checker) misstated(r *Record, reply *command.Reply) string {
	own := c.rows[r.Place]
	if r.RequestID == "" {
		switch {
		case own != nil:
			return "the record cannot be read, and has a row"
		case reply.Outcome != command.Rejected:
			return "the record cannot be read"
		}
		return ""
	}
	final := c.final[r.request()]
	switch {
	case reply.Duplicate:
		switch {
		case final == nil:
			return "no row of the request is final"
		case own != nil:
			return "the record has a row of its own"
		case c.asked(final) != r.Asked:
			return "the final row is of another request"
		}
		return differs(final, reply, r.WaitFor)
	case reply.Error != nil && reply.Error.Code == command.CodeRequestIDReused:
		switch {
		case final == nil:
			return "no row of the request is final"
		case own != nil:
			return "the record has a row of its own"
		case c.asked(final) == r.Asked:
			return "the final row is of the same request"
		}
		return ""
	case own == nil:
		return "the journal has no row of the record"
	case own.RequestID != r.RequestID || own.Aggregate != r.Aggregate:
		return fmt.Sprintf("the record's row is of request %q of %s", own.RequestID, own.Aggregate)
	}
	return differs(own, reply, r.WaitFor)
}

// asked is what the record asked that the row is the outcome of.
func (c *checker) asked(row *store.Row) string {
	if r := c.records[placeOf(row.Position)]; r != nil {
		return r.Asked
	}
	return ""
}

// differs holds an answer against its row. One that was waited for longer than its row says has got as far as that.
func differs(row *store.Row, reply *command.Reply, waitFor command.Stage) string {
	same := row.Outcome == reply.Outcome && row.Version == reply.Version && row.RequestID == reply.RequestID &&
		row.Aggregate == reply.Aggregate && row.Type == reply.Type && (!row.Outcome.Final() || reply.Stage == max(row.Meta.Stage, waitFor)) && bytes.Equal(row.Result, reply.Result) &&
		(row.Error == nil) == (reply.Error == nil)
	if same && row.Error != nil {
		same = row.Error.Code == reply.Error.Code && row.Error.Message == reply.Error.Message
	}
	if same {
		return ""
	}
	return fmt.Sprintf("the journal says %s at version %d, stage %s, %v", row.Outcome, row.Version, row.Meta.Stage, row.Error)
}

func (c *checker) aRequestHasOneFinalOutcome() {
	for r, rows := range c.requests {
		final, latest := 0, 0
		for _, row := range rows {
			if row.Outcome.Final() {
				final++
			}
			if row.Request == command.RequestDigest(r.aggregateType, r.tenant, r.id) {
				latest++
				if !row.Outcome.Final() && c.final[r] != nil {
					c.breach("P2: request %q is final at %s, and its latest row is %s, of the record at %s", r.id, placeOf(c.final[r].Position), row.Outcome, placeOf(row.Position))
				}
			}
		}
		if final > 1 {
			c.breach("P2: request %q has %d final outcomes", r.id, final)
		}
		if latest != 1 {
			c.breach("P2: request %q has %d rows under its key, want 1", r.id, latest)
		}
	}
}

func (c *checker) finalOutcomesAnswerAllThatComesLater() {
	first := map[request]*Answer{} // the final answer that was seen first
	for i := range c.Answers {
		a := &c.Answers[i]
		r := c.records[placeOf(a.Reply.Position)]
		if r == nil || !a.Reply.Outcome.Final() {
			continue
		}
		if f := first[r.request()]; f == nil || a.Seen.Before(f.Seen) {
			first[r.request()] = a
		}
	}
	for i := range c.Records {
		r := &c.Records[i]
		a := c.answer(r.Place)
		if a == nil || a.Reply.Duplicate || a.Reply.Error != nil && a.Reply.Error.Code == command.CodeRequestIDReused {
			continue
		}
		if f := first[r.request()]; f != nil && r.Sent.After(f.Seen) {
			c.breach("P2: request %q was answered %s before the record at %s was sent, which was decided anew: %s", r.RequestID, f.Reply.Outcome, r.Place, a.Reply.Outcome)
		}
		final := c.final[r.request()]
		if final != nil && final.Aggregate == r.Aggregate && final.Position.Partition == r.Place.Partition && final.Position.Offset < r.Place.Offset {
			c.breach("P2: the record at %s was decided anew (%s) behind %s, which made its request %q final", r.Place, a.Reply.Outcome, placeOf(final.Position), r.RequestID)
		}
	}
}

func (c *checker) versionsAreContiguous() {
	for aggregate, rows := range c.streams {
		for i, row := range rows {
			if row.Version != int64(i)+1 {
				c.breach("P2: commit %d of %s has version %d", i+1, aggregate, row.Version)
				break
			}
		}
	}
}

func (c *checker) commitsFollowThePartition() {
	for aggregate, rows := range c.streams {
		last := map[int32]int64{}
		for _, row := range rows {
			p := placeOf(row.Position)
			if before, ok := last[p.Partition]; ok && before > p.Offset {
				c.breach("P3: version %d of %s is of the record at %s, an earlier version of that at offset %d", row.Version, aggregate, p, before)
			}
			last[p.Partition] = p.Offset
		}
	}
}

func (c *checker) reservationsAreTheFoldOfTheKeys() {
	fold := map[keys.Key]command.Aggregate{}
	for aggregate, rows := range c.streams {
		held := map[keys.Key]bool{}
		for _, row := range rows {
			for _, k := range row.Taken {
				if held[k] {
					c.breach("P4: version %d of %s takes %s, which it holds", row.Version, aggregate, k)
				}
				held[k] = true
			}
			for _, k := range row.Released {
				if !held[k] {
					c.breach("P4: version %d of %s releases %s, which it does not hold", row.Version, aggregate, k)
				}
				delete(held, k)
			}
		}
		for k := range held {
			if other, ok := fold[k]; ok {
				c.breach("P4: by the journal %s is held by %s and by %s", k, other, aggregate)
			}
			fold[k] = aggregate
		}
	}
	for _, h := range c.Held {
		if owner, ok := fold[h.Key]; !ok || owner != h.Holder.Aggregate {
			c.breach("P4: %s is reserved for %s; by the journal it is %s's", h.Key, h.Holder.Aggregate, orNobody(owner, ok))
		}
		delete(fold, h.Key)
	}
	for k, owner := range fold {
		c.breach("P4: by the journal %s is %s's, and nobody has reserved it", k, owner)
	}
}

func orNobody(a command.Aggregate, ok bool) string {
	if !ok {
		return "nobody"
	}
	return a.String()
}

// refusalsAreTrue holds refusals against what had been announced before their command was sent, and against what never
// was.
func (c *checker) refusalsAreTrue() {
	exists := map[command.Aggregate]*Answer{} // the first commit that was seen
	for i := range c.Answers {
		a := &c.Answers[i]
		if f := exists[a.Reply.Aggregate]; a.Reply.Outcome == command.Committed && (f == nil || a.Seen.Before(f.Seen)) {
			exists[a.Reply.Aggregate] = a
		}
	}
	takers := map[keys.Key]map[command.Aggregate]bool{}
	for aggregate, rows := range c.streams {
		for _, row := range rows {
			for _, k := range row.Taken {
				if takers[k] == nil {
					takers[k] = map[command.Aggregate]bool{}
				}
				takers[k][aggregate] = true
			}
		}
	}
	for i := range c.Records {
		r := &c.Records[i]
		row := c.rows[r.Place]
		if row == nil || row.Error == nil {
			continue
		}
		switch row.Error.Code {
		case command.CodeNotFound:
			if a := exists[r.Aggregate]; a != nil && r.Sent.After(a.Seen) {
				c.breach("P3: the record at %s did not find %s, whose version %d had been announced before it was sent", r.Place, r.Aggregate, a.Reply.Version)
			}
		case command.CodeAlreadyExists:
			if len(c.streams[r.Aggregate]) == 0 {
				c.breach("P2: the record at %s was refused because %s exists, which never did", r.Place, r.Aggregate)
			}
		case "name-taken":
			if r.Wants == nil {
				break
			}
			others := len(takers[*r.Wants])
			if takers[*r.Wants][r.Aggregate] {
				others--
			}
			if others == 0 {
				c.breach("P4: the record at %s was refused %s, which no other aggregate ever held", r.Place, r.Wants)
			}
		}
	}
}

func (c *checker) offsetsStayBehindTheAnswers() {
	for _, cut := range c.Cuts {
		for i := range c.Records {
			r := &c.Records[i]
			if r.Place.Offset >= cut.Finished[r.Place.Partition] {
				continue
			}
			if !slices.ContainsFunc(c.answers[r.Place], func(a *Answer) bool { return a.Place.Offset < cut.Replies[a.Place.Partition] }) {
				c.breach("P1: %s the offset of partition %d was %d, and the record at %s had no answer on the reply topic", cut.Name, r.Place.Partition, cut.Finished[r.Place.Partition], r.Place)
			}
		}
	}
	ends := map[int32]int64{}
	for i := range c.Records {
		p := c.Records[i].Place
		ends[p.Partition] = max(ends[p.Partition], p.Offset+1)
	}
	for partition, end := range ends {
		if c.Finished != nil && c.Finished[partition] != end {
			c.breach("P7: everything is answered, and the offset of partition %d stays at %d of %d", partition, c.Finished[partition], end)
		}
	}
}

func (c *checker) lettersKeepWhatTheyShould() {
	kept := map[Place]bool{}
	for _, l := range c.Letters {
		kept[l.Place] = true
		if r := c.records[l.Place]; r == nil || r.Bytes != l.Bytes {
			c.breach("P7: the dead letter of the record at %s does not hold what stands there: %s", l.Place, l.Bytes)
		}
	}
	for i := range c.Records {
		r := &c.Records[i]
		a := c.answer(r.Place)
		if a == nil || a.Reply.Duplicate {
			continue
		}
		owed := false
		if e := a.Reply.Error; e != nil {
			info, ok := e.Code.Info()
			owed = r.RequestID == "" || a.Reply.Outcome == command.Failed || ok && info.DeadLetter
		}
		if owed != kept[r.Place] {
			c.breach("P7: the record at %s, answered %s, is owed a dead letter: %v; it has one: %v", r.Place, a.Bytes, owed, kept[r.Place])
		}
	}
}
