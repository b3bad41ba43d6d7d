package audit

import (
	"context"
	"strings"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// holding is the keys that an aggregate holds by the fold of its rows.
type holding struct {
	stream command.Digest
	of     command.Aggregate
	keys   map[command.Digest]keys.Key
}

// eachStream reads the journal and calls row for each row and end after the last row of each stream.
func eachStream(ctx context.Context, r store.Reader, row func(*store.Row), end func(*holding)) error {
	var h *holding
	err := r.Journal(ctx, func(r *store.Row) error {
		if h == nil || h.stream != r.Stream {
			if h != nil {
				end(h)
			}
			h = &holding{stream: r.Stream, of: r.Aggregate, keys: map[command.Digest]keys.Key{}}
		}
		row(r)
		for _, k := range r.Taken {
			h.keys[k.Digest()] = k
		}
		for _, k := range r.Released {
			delete(h.keys, k.Digest())
		}
		return nil
	})
	if err == nil && h != nil {
		end(h)
	}
	return err
}

// stream checks the rows of one stream after the other.
type stream struct {
	audit     *audit
	snapshots *snapshots

	of      command.Aggregate
	id      command.Digest
	open    bool
	version int64                       // of the last commit
	held    map[command.Digest]struct{} // by the rows so far
	replay  *kernel.Replay              // nil: it cannot go on
	fault   error                       // why it could not begin; nil once that was reported
}

func (s *stream) add(row *store.Row) {
	a := s.audit
	if !s.open {
		s.begin(row)
	}
	s.checkIdentity(row)
	s.checkContent(row)
	s.checkKeys(row)
	if row.Outcome != command.Committed {
		return
	}
	if row.Version != s.version+1 {
		a.findRow(VersionGap, row, "version %d follows version %d", row.Version, s.version)
		s.replay = nil // what it makes of the rest says nothing
	}
	s.version = row.Version
	if s.fault != nil {
		a.findRow(UnreadableEvents, row, "%v", s.fault)
		s.fault = nil
	}
	if s.replay == nil {
		return
	}
	if err := s.replay.Apply(row); err != nil {
		a.findRow(UnreadableEvents, row, "%v", err)
		s.replay = nil
		return
	}
	s.checkSnapshot(row.Version)
}

func (s *stream) begin(row *store.Row) {
	s.orphans(&row.Stream)
	s.audit.sum.Aggregates++
	s.open, s.of, s.id, s.version, s.held = true, row.Aggregate, row.Stream, 0, map[command.Digest]struct{}{}
	s.replay, s.fault = s.audit.context.Replay(row.Aggregate)
}

func (s *stream) end() {
	if snapshot := s.snapshots.at(s.id); snapshot != nil {
		s.audit.sum.Snapshots++
		if s.replay == nil { // nothing to compare with; why, was found before
			s.snapshots.advance()
		} else {
			s.wrongSnapshot(snapshot, "it is of version %d, the last version is %d", snapshot.Version, s.version)
		}
	}
	s.open = false
}

func (s *stream) checkIdentity(row *store.Row) {
	a := s.audit
	if row.Aggregate != s.of {
		a.findRow(WrongStream, row, "the stream holds rows of %s too", s.of)
	} else if want := row.Aggregate.Stream(); row.Stream != want {
		a.findRow(WrongStream, row, "its stream is %s, and must be %s", row.Stream, want)
	}
	if !strings.HasPrefix(row.Type, a.context.Name()+"."+row.Aggregate.Type+".") {
		a.findRow(WrongRow, row, "its command type is %q, which is none of %s.%s", row.Type, a.context.Name(), row.Aggregate.Type)
	}
	request := requestOf(row)
	switch {
	case row.Request == request:
	case row.Outcome.Final():
		a.findRow(WrongRequest, row, "it is %s, which is final, and was moved aside", row.Outcome)
	case row.FromRecord && row.Request != command.AsideDigest(request, row.Position):
		a.findRow(WrongRequest, row, "its request key is %s, which is neither the request's nor that of a row moved aside", row.Request)
	}
}

func requestOf(row *store.Row) command.Digest {
	return command.RequestDigest(row.Aggregate.Type, row.Aggregate.Tenant, row.RequestID)
}

// checkContent checks what a row must and must not have by its outcome.
func (s *stream) checkContent(row *store.Row) {
	a := s.audit
	committed := row.Outcome == command.Committed
	must := func(ok bool, what string) {
		if !ok {
			a.findRow(WrongRow, row, "it is %s and has %s", row.Outcome, what)
		}
	}
	if committed {
		must(len(row.Events) > 0, "no events")
		must(row.Version > 0, "no version")
	} else {
		must(len(row.Events) == 0, "events")
		must(row.Version == 0, "a version")
		must(len(row.Taken) == 0 && len(row.Released) == 0, "keys taken or released")
	}
	if row.Outcome.Final() {
		must(row.Error == nil, "an error")
	} else {
		must(row.Error != nil && row.Error.Code != "", "no error")
		must(row.Result == nil, "a result")
	}
}

func (s *stream) checkKeys(row *store.Row) {
	for _, k := range row.Taken {
		id := k.Digest()
		if _, ok := s.held[id]; ok {
			s.audit.findRow(WrongKeys, row, "it takes key %s, which the aggregate held before", k)
		}
		s.held[id] = struct{}{}
		if !k.System && k.Tenant != row.Aggregate.Tenant {
			s.audit.findRow(WrongKeys, row, "it takes key %s of another tenant", k)
		}
	}
	for _, k := range row.Released {
		id := k.Digest()
		if _, ok := s.held[id]; !ok {
			s.audit.findRow(WrongKeys, row, "it releases key %s, which the aggregate did not hold", k)
		}
		delete(s.held, id)
	}
}
