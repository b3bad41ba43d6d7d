package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/seed54173720/writ/pkg/store"
)

// Commit implements store.Store.
//
// Every unit is judged against the state before the call, then the winners are written. That is enough, because no
// two units of a Commit share a stream, a request or a claimed key; and it makes a key that one unit releases free for
// others from the next Commit on.
func (s *Store) Commit(ctx context.Context, units []store.Unit) ([]store.Fate, error) {
	check(units)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fates := make([]store.Fate, len(units))
	for i := range units {
		fates[i] = s.judge(&units[i])
	}
	for i := range units {
		if fates[i].Verdict == store.Done {
			s.write(units[i].Clone())
		}
	}
	return fates, nil
}

// judge says what becomes of the unit and changes nothing.
func (s *Store) judge(u *store.Unit) store.Fate {
	if row, err := storable(u); err != nil {
		return store.Fate{Verdict: store.Bad, Row: row, Err: err}
	}
	if s.late(u) {
		return store.Fate{Verdict: store.Lost, Conflict: store.VersionConflict}
	}
	if s.recorded(u) {
		return store.Fate{Verdict: store.Lost, Conflict: store.RequestConflict}
	}
	for _, key := range u.Take {
		if holder := s.holders[key]; holder.Held && !holder.By(u.Stream) {
			return store.Fate{Verdict: store.Lost, Conflict: store.KeyConflict}
		}
	}
	return store.Fate{}
}

// late reports whether a version of the unit is there already.
func (s *Store) late(u *store.Unit) bool {
	next := s.head(u.Stream) + 1
	for i := range u.Rows {
		version := u.Rows[i].Version
		if version == 0 {
			continue
		}
		if version > next {
			panic(fmt.Sprintf("memory: unit of %s: version %d must follow %d", u.Aggregate, version, next-1))
		}
		return version < next // the first committed row decides, the others follow it
	}
	return false
}

// recorded reports whether a row to be replaced is not the one that is there, or a request of the unit has a row that
// does not make way.
func (s *Store) recorded(u *store.Unit) bool {
	for i := range u.Replaced {
		r := &u.Replaced[i]
		stands := s.rows[r.Request]
		if stands == nil || stands.Outcome.Final() || stands.FromRecord != r.FromRecord ||
			r.FromRecord && stands.Position != r.Position || s.rows[r.Aside] != nil {
			return true
		}
	}
	for i := range u.Rows {
		if request := u.Rows[i].Request; s.rows[request] != nil && !replaces(u, request) {
			return true
		}
	}
	return false
}

// write keeps the unit, which shares no memory with its caller's.
func (s *Store) write(u store.Unit) {
	for _, r := range u.Replaced {
		row := s.rows[r.Request]
		delete(s.rows, r.Request)
		row.Request = r.Aside
		s.rows[r.Aside] = row
	}
	for _, key := range u.Take {
		s.holders[key] = store.Holder{Held: true, Stream: u.Stream, Aggregate: u.Aggregate}
	}
	for _, key := range u.Release {
		if s.holders[key].By(u.Stream) {
			delete(s.holders, key)
		}
	}
	stored := s.aggregates[u.Stream]
	if stored == nil {
		stored = &aggregate{}
		s.aggregates[u.Stream] = stored
	}
	for i := range u.Rows {
		row := &u.Rows[i]
		row.Time = row.Time.UTC().Truncate(time.Microsecond)
		s.rows[row.Request] = row
		stored.history = append(stored.history, row)
		if row.Version > 0 {
			stored.commits = append(stored.commits, row)
		}
	}
	if u.Snapshot != nil && (stored.snapshot == nil || stored.snapshot.Version < u.Snapshot.Version) {
		stored.snapshot = u.Snapshot
	}
}
