// Package store is the contract between the kernel and what keeps its journal, reservations and snapshots. Package
// memory and package postgres keep it; package storetest proves that they do.
package store

import (
	"context"
	"errors"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
)

// ErrUnknown is in the error of a Commit of which nobody can say whether it happened: the connection was lost after
// the commit had been sent. Look the requests up: what is found has happened, the rest goes again, and a first
// attempt that lands late loses against whatever was recorded meanwhile.
var ErrUnknown = errors.New("outcome of the commit unknown")

// Store keeps one context's journal, reservations, snapshots and progress.
//
// All methods may be called concurrently. An error of any method is an infrastructure fault, never the fault of a
// command: the caller waits and calls again. Reads MUST see every commit that ended before the call began (on
// Postgres: they go to the primary). Slices in answers are aligned with the slices asked for.
type Store interface {
	// Requests returns what is recorded of each request.
	Requests(ctx context.Context, asked []Lookup) ([]Found, error)
	// Load returns each aggregate's snapshot and the committed rows behind it, read together, in the order of their
	// versions. A version that is missing is damage of that one aggregate: the store returns what there is, for the
	// caller to notice.
	Load(ctx context.Context, asked []Asked) ([]Stream, error)
	// Heads returns the last version of each stream, 0 where it has none.
	Heads(ctx context.Context, streams []command.Digest) ([]int64, error)
	// Holders returns who holds each key, the zero Holder where nobody does.
	Holders(ctx context.Context, asked []keys.Key) ([]Holder, error)
	// Commit makes the units durable in one transaction and says what became of each. Units that lose a race or
	// cannot be stored do not keep the others from committing. See Unit for what callers MUST keep to.
	//
	// An error means that no unit's fate is known to be Done; with ErrUnknown any of them may be.
	Commit(ctx context.Context, units []Unit) ([]Fate, error)

	// SaveProgress keeps, per topic ID and partition, the next offset to be read. It never moves backwards by
	// itself: the caller is the partition's owner and says what is true.
	SaveProgress(ctx context.Context, p []Progress) error
	// Progress returns what SaveProgress kept for the topic name.
	Progress(ctx context.Context, topic string) ([]Progress, error)
}

// Reader is what audits and people read a store by, slowly and in full. Both stores offer it.
type Reader interface {
	// History calls f for every row of the aggregate in the order in which it was decided, refusals included.
	History(ctx context.Context, stream command.Digest, f func(*Row) error) error
	// Journal calls f for every row, ordered by stream, then version, then time; rows without a version come first.
	Journal(ctx context.Context, f func(*Row) error) error
	// Reservations calls f for every key that is held.
	Reservations(ctx context.Context, f func(keys.Key, Holder) error) error
	// Snapshots calls f for every snapshot, ordered by stream.
	Snapshots(ctx context.Context, f func(*Snapshot) error) error
}

// Lookup asks for what is recorded of a request: the row under its key, and the row of the record at Position where
// FromRecord is set.
type Lookup struct {
	Request    command.Digest
	FromRecord bool
	Position   command.Position
}

// Found is the answer to a Lookup. Own == Latest where the latest row is the record's own.
type Found struct {
	Latest *Row // the row under the request's key; nil: the request is new
	Own    *Row // the row of this record, perhaps moved aside; nil: the record has no outcome yet
}

// Asked names an aggregate to load. A snapshot of another revision than the one asked for is left out, and the whole
// tail is read instead.
type Asked struct {
	Stream   command.Digest
	Revision int
}

// Stream is an aggregate as stored.
type Stream struct {
	Snapshot *Snapshot // nil: none
	Tail     []Row     // committed rows behind the snapshot, by version
}

// Snapshot is an aggregate's state at a version.
type Snapshot struct {
	Stream    command.Digest
	Aggregate command.Aggregate
	Version   int64
	Revision  int    // of the state type; the registration says which it can read
	State     []byte // JSON
}

// Holder is who holds a key. An application's holding has a Name and no Stream.
type Holder struct {
	Held      bool
	Stream    command.Digest    // of the aggregate
	Aggregate command.Aggregate // the zero value for an application
	Name      string            // of the application
}

// By reports whether the aggregate with this stream holds the key.
func (h Holder) By(stream command.Digest) bool { return h.Held && h.Name == "" && h.Stream == stream }

// Progress is how far a partition of a command topic is finished.
type Progress struct {
	Topic     string
	TopicID   [16]byte
	Partition int32
	Offset    int64 // next to be read
}
