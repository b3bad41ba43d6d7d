package engine

import (
	"context"

	"github.com/seed54173720/writ/pkg/command"
)

// partition is an owned partition of the command topic. Its lanes, states and window hang under it and go with it.
// Guarded by the engine's mutex.
type partition struct {
	id      int32
	topicID [16]byte
	ctx     context.Context // cancelled when the partition is lost or drained
	cancel  context.CancelFunc

	lanes  map[command.Digest]*lane
	states *cache
	window window

	commands int   // in flight
	bytes    int64 // in flight
	working  int   // tasks in units under way or waiting for their answers to be acknowledged
	paused   bool
	lost     bool // the next record to read is not in the log: it stays paused
	closing  bool
	gone     bool          // no longer counted
	idle     chan struct{} // closed when closing and working reaches 0

	committed int64 // the offset that was committed last
}

func newPartition(id int32, topicID [16]byte, cacheBytes int64) *partition {
	ctx, cancel := context.WithCancel(context.Background())
	return &partition{
		id: id, topicID: topicID, ctx: ctx, cancel: cancel, committed: -1,
		lanes: map[command.Digest]*lane{}, states: newCache(cacheBytes), idle: make(chan struct{}),
	}
}

// settled notes that work has ended. The caller holds e.mu.
func (p *partition) settled() {
	if p.closing && p.working == 0 {
		select {
		case <-p.idle:
		default:
			close(p.idle)
		}
	}
}

// window follows the records of a partition from the oldest unfinished one on: the offset may move to it and no
// further. It counts records as they were seen, for offsets have holes where transactions were aborted.
type window struct {
	marks []mark
	first int64 // sequence number of marks[0]
	next  mark  // what may be committed: the offset behind the last finished record before any unfinished one
	moved bool  // since the last commit
}

type mark struct {
	offset int64
	epoch  int32
	done   bool
}

// open adds a record that was fetched and returns its sequence number.
func (w *window) open(offset int64, epoch int32) int64 {
	w.marks = append(w.marks, mark{offset: offset, epoch: epoch})
	return w.first + int64(len(w.marks)) - 1
}

// finish marks a record as finished and moves on behind all that are.
func (w *window) finish(seq int64) {
	w.marks[seq-w.first].done = true
	n := 0
	for n < len(w.marks) && w.marks[n].done {
		n++
	}
	if n == 0 {
		return
	}
	last := w.marks[n-1]
	w.next, w.moved = mark{offset: last.offset + 1, epoch: last.epoch}, true
	w.first += int64(n)
	if w.marks = w.marks[n:]; len(w.marks) == 0 {
		w.marks = nil
	}
}

func (w *window) len() int { return len(w.marks) }
