package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/dedupe"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

var (
	acme = command.Aggregate{Type: "brand", ID: "acme"}
	bolt = command.Aggregate{Type: "brand", ID: "bolt"}
	name = keys.Key{Namespace: "brand-name", Name: "acme"}
	noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

// sound is a history that keeps every promise: a commit (0/0), its repeat (1/0), another aggregate that wants the same
// key (0/1), a second command of the first one (0/2), and a record that cannot be read (0/3).
func sound() *History {
	h := &History{
		Finished: map[int32]int64{0: 4, 1: 1},
		Cuts:     []Cut{{Name: "half way", Finished: map[int32]int64{0: 2}, Replies: map[int32]int64{0: 3}}},
		Held:     []Held{{Key: name, Holder: store.Holder{Held: true, Aggregate: acme}}},
	}
	send := func(p Place, minute int, request string, a command.Aggregate, asked string) {
		h.Records = append(h.Records, Record{Place: p, Sent: noon.Add(time.Duration(minute) * time.Minute), RequestID: request, Aggregate: a, Asked: asked, Bytes: p.String()})
	}
	send(Place{0, 0}, 0, "r1", acme, "create acme")
	send(Place{1, 0}, 5, "r1", acme, "create acme")
	send(Place{0, 1}, 1, "r2", bolt, "create bolt")
	send(Place{0, 2}, 2, "r3", acme, "rename acme")
	send(Place{0, 3}, 3, "", command.Aggregate{}, "")
	h.Records[2].Wants = &name
	record := func(r *Record, o command.Outcome, version int64, e *command.Error, taken ...keys.Key) {
		h.Rows = append(h.Rows, store.Row{
			Recorded: dedupe.Recorded{Outcome: o, FromRecord: true, Position: command.Position{Partition: r.Place.Partition, Offset: r.Place.Offset}},
			Request:  command.RequestDigest(r.Aggregate.Type, "", r.RequestID), Version: version, Type: "catalog.brand.create",
			Aggregate: r.Aggregate, RequestID: r.RequestID, Error: e, Taken: taken,
		})
	}
	taken := &command.Error{Code: "name-taken", Message: "taken"}
	record(&h.Records[0], command.Committed, 1, nil, name)
	record(&h.Records[2], command.Rejected, 0, taken)
	record(&h.Records[3], command.Committed, 2, nil)
	answer := func(r *Record, row *store.Row, duplicate bool) {
		reply := command.Reply{Outcome: command.Rejected, Error: &command.Error{Code: command.CodeUnreadable}}
		if row != nil {
			reply = command.Reply{RequestID: row.RequestID, Type: row.Type, Aggregate: row.Aggregate, Outcome: row.Outcome, Version: row.Version, Error: row.Error, Duplicate: duplicate}
		}
		reply.Position = command.Position{Partition: r.Place.Partition, Offset: r.Place.Offset}
		h.Answers = append(h.Answers, Answer{Place: Place{0, int64(len(h.Answers))}, Seen: noon.Add(time.Duration(len(h.Answers)+1) * time.Minute), Reply: reply, Bytes: fmt.Sprintf("%+v", reply)})
	}
	answer(&h.Records[0], &h.Rows[0], false)
	answer(&h.Records[2], &h.Rows[1], false)
	answer(&h.Records[3], &h.Rows[2], false)
	answer(&h.Records[4], nil, false)
	answer(&h.Records[1], &h.Rows[0], true)
	answer(&h.Records[0], &h.Rows[0], false) // delivered twice
	h.Letters = []Letter{{Place: Place{0, 3}, Bytes: "0/3"}}
	return h
}

func TestSoundHistoryBreaksNothing(t *testing.T) {
	t.Parallel()
	if found := sound().Breaches(); len(found) > 0 {
		t.Errorf("got %q, want nothing", found)
	}
}

func TestEveryBreachIsFound(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		damage func(h *History)
		want   string // in one of the sentences
	}{
		{"no answer", func(h *History) { h.Answers = slices.Delete(h.Answers, 2, 3) }, "0/2 (request \"r3\") was never answered"},
		{"answer to nothing", func(h *History) { h.Answers[3].Reply.Position.Offset = 9 }, "name a record at 0/9, where there is none"},
		{"row of nothing", func(h *History) { h.Rows[1].Position.Offset = 9 }, "has a row of request \"r2\" for a record at 0/9"},
		{"two rows of a record", func(h *History) { h.Rows[1].Position.Offset = 0 }, "0/0 has two outcomes"},
		{"another topic's row", func(h *History) { h.TopicID[0] = 1 }, "names topic ID"},
		{"two answers that differ", func(h *History) { h.Answers[5].Bytes = "other" }, "0/0 was answered in two ways"},
		{"an answer that is not recorded", func(h *History) { h.Answers[2].Reply.Version = 3 }, "but the journal says committed at version 2"},
		{"a reason that is not recorded", func(h *History) {
			h.Answers[1].Reply.Error = &command.Error{Code: "name-taken", Message: "another"}
		}, "but the journal says rejected"},
		{"a stage that was not waited for", func(h *History) { h.Records[0].WaitFor = command.StageSnapshot }, "but the journal says committed at version 1, stage committed"},
		{"a duplicate of nothing", func(h *History) { h.Answers[1].Reply.Duplicate = true }, "no row of the request is final"},
		{"a duplicate of another request", func(h *History) { h.Records[1].Asked = "something else" }, "the final row is of another request"},
		{"an ID that was not reused", func(h *History) {
			h.Answers[4].Reply = command.Reply{Outcome: command.Rejected, Error: &command.Error{Code: command.CodeRequestIDReused}, Position: h.Answers[4].Reply.Position}
		}, "the final row is of the same request"},
		{"an answer without row", func(h *History) { h.Rows = slices.Delete(h.Rows, 1, 2) }, "no row of the record"},
		{"a request that committed twice", func(h *History) {
			twin := h.Rows[0]
			twin.Position, twin.Version, twin.Request, twin.Taken = command.Position{Partition: 1}, 3, command.Digest{1}, nil
			h.Rows = append(h.Rows, twin)
		}, "\"r1\" has 2 final outcomes"},
		{"two latest rows", func(h *History) {
			twin := h.Rows[1]
			twin.Position = command.Position{Partition: 1}
			h.Rows = append(h.Rows, twin)
		}, "\"r2\" has 2 rows under its key"},
		{"a final outcome that was undone", func(h *History) { h.Answers[4].Reply.Duplicate = false }, "1/0 was sent, which was decided anew"},
		{"a gap", func(h *History) { h.Rows[2].Version = 3; h.Answers[2].Reply.Version = 3 }, "commit 2 of brand/acme has version 3"},
		{"commits out of order", func(h *History) { h.Rows[0].Version, h.Rows[2].Version = 2, 1 }, "an earlier version of that at offset 2"},
		{"a key that nobody took", func(h *History) { h.Rows[0].Taken = nil }, "by the journal it is nobody's"},
		{"a key that is lost", func(h *History) { h.Held = nil }, "nobody has reserved it"},
		{"a key with another holder", func(h *History) { h.Held[0].Holder.Aggregate = bolt }, "is reserved for brand/bolt; by the journal it is brand/acme's"},
		{"two holders", func(h *History) {
			h.Rows[1].Outcome, h.Rows[1].Version, h.Rows[1].Taken = command.Committed, 1, []keys.Key{name}
		}, "is held by"},
		{"a key taken twice", func(h *History) { h.Rows[2].Taken = []keys.Key{name} }, "which it holds"},
		{"a key released that is not held", func(h *History) { h.Rows[2].Released = []keys.Key{{Namespace: "n", Name: "x"}} }, "which it does not hold"},
		{"a key refused that was free", func(h *History) { h.Rows[0].Taken, h.Held = nil, nil }, "which no other aggregate ever held"},
		{"something that exists is not found", func(h *History) {
			h.Records[3].Sent = noon.Add(time.Hour)
			h.Rows[2] = store.Row{Recorded: h.Rows[2].Recorded, Aggregate: acme, RequestID: "r3", Error: &command.Error{Code: command.CodeNotFound}}
		}, "did not find brand/acme"},
		{"something exists that never did", func(h *History) { h.Rows[1].Error = &command.Error{Code: command.CodeAlreadyExists} }, "which never did"},
		{"an offset before its answer", func(h *History) { h.Cuts[0].Finished[0] = 4 }, "half way the offset of partition 0 was 4, and the record at 0/3 had no answer"},
		{"an offset that stays", func(h *History) { h.Finished[0] = 3 }, "stays at 3 of 4"},
		{"a letter that is missing", func(h *History) { h.Letters = nil }, "is owed a dead letter: true; it has one: false"},
		{"a letter too many", func(h *History) { h.Letters = append(h.Letters, Letter{Place: Place{0, 1}, Bytes: "0/1"}) }, "is owed a dead letter: false; it has one: true"},
		{"a letter that was changed", func(h *History) { h.Letters[0].Bytes = "x" }, "does not hold what stands there"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			h := sound()
			row.damage(h)
			found := h.Breaches()
			if !slices.ContainsFunc(found, func(s string) bool { return strings.Contains(s, row.want) }) {
				t.Errorf("got %q, want one with %q", found, row.want)
			}
		})
	}
}
