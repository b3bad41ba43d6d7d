package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store"
)

// snapshots reads the snapshots, in the order of their streams, beside the journal.
type snapshots struct {
	now  *store.Snapshot // nil: there are no more
	err  error
	next func() (*store.Snapshot, error, bool)
	stop func()
}

// openSnapshots begins the read: what the first row is of stands when it returns.
func openSnapshots(ctx context.Context, r store.Reader) *snapshots {
	s := &snapshots{}
	errStopped := errors.New("stopped")
	s.next, s.stop = iter.Pull2(func(yield func(*store.Snapshot, error) bool) {
		err := r.Snapshots(ctx, func(snapshot *store.Snapshot) error {
			if !yield(snapshot, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	})
	s.advance()
	return s
}

func (s *snapshots) close() { s.stop() }

func (s *snapshots) advance() {
	var ok bool
	if s.now, s.err, ok = s.next(); !ok {
		s.now = nil
	}
}

// at returns the next snapshot if it is of the stream.
func (s *snapshots) at(stream command.Digest) *store.Snapshot {
	if s.now == nil || s.now.Stream != stream {
		return nil
	}
	return s.now
}

// checkSnapshot compares the snapshot with the replay, once that has reached its version.
func (s *stream) checkSnapshot(version int64) {
	snapshot := s.snapshots.at(s.id)
	if snapshot == nil || snapshot.Version != version {
		return
	}
	a := s.audit
	a.sum.Snapshots++
	if snapshot.Aggregate != s.of {
		s.wrongSnapshot(snapshot, "it is of aggregate %s", snapshot.Aggregate)
		return
	}
	if !s.replay.Current(snapshot) {
		a.sum.OldSnapshots++
		s.snapshots.advance()
		return
	}
	if err := s.replay.Check(snapshot); err != nil {
		s.wrongSnapshot(snapshot, "%v", err)
		return
	}
	s.snapshots.advance()
}

func (s *stream) wrongSnapshot(snapshot *store.Snapshot, format string, args ...any) {
	s.audit.find(Finding{
		Code: WrongSnapshot, Where: fmt.Sprintf("%s version %d", snapshot.Aggregate, snapshot.Version), What: fmt.Sprintf(format, args...),
		Look: fmt.Sprintf("select * from snapshot where stream = '%s'", snapshot.Stream), Mend: mend[WrongSnapshot],
	})
	s.snapshots.advance()
}

// orphans finds the snapshots of streams before the given one, all that are left for nil: the journal has nothing of
// them.
func (s *stream) orphans(before *command.Digest) {
	for s.snapshots.now != nil && (before == nil || bytes.Compare(s.snapshots.now.Stream[:], before[:]) < 0) {
		s.audit.sum.Snapshots++
		s.wrongSnapshot(s.snapshots.now, "the journal has no row of its stream")
	}
}
