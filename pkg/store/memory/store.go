// Package memory is a store that lives and dies with its process: one mutex, plain maps. It is for tests and small
// tools, and it is the reference that says what any other store has to do.
package memory

import (
	"context"
	"slices"
	"sync"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// Store is a store.Store and a store.Reader. It panics where a caller breaks a MUST of store.Unit, so that tests find
// the caller and not the symptom.
//
// What it takes and what it gives away shares no memory with what it keeps.
type Store struct {
	mu         sync.Mutex
	rows       map[command.Digest]*store.Row // by request key; a row that was moved aside by its new one
	aggregates map[command.Digest]*aggregate // by stream
	holders    map[keys.Key]store.Holder
	progress   map[partition]store.Progress
}

// aggregate is what is stored of one stream.
type aggregate struct {
	history  []*store.Row // every row, in the order of the decisions
	commits  []*store.Row // the committed ones: version v is at v-1
	snapshot *store.Snapshot
}

type partition struct {
	topicID [16]byte
	number  int32
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Reader = (*Store)(nil)
)

// New returns an empty store.
func New() *Store {
	return &Store{
		rows:       map[command.Digest]*store.Row{},
		aggregates: map[command.Digest]*aggregate{},
		holders:    map[keys.Key]store.Holder{},
		progress:   map[partition]store.Progress{},
	}
}

// Requests implements store.Store.
func (s *Store) Requests(ctx context.Context, asked []store.Lookup) ([]store.Found, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := make([]store.Found, len(asked))
	for i, a := range asked {
		latest := s.rows[a.Request]
		if latest == nil {
			continue
		}
		found[i].Latest = copied(latest)
		if !a.FromRecord {
			continue
		}
		if latest.Of(a.Position) {
			found[i].Own = found[i].Latest
		} else if own := s.rows[command.AsideDigest(a.Request, a.Position)]; own != nil && own.Of(a.Position) {
			found[i].Own = copied(own)
		}
	}
	return found, nil
}

// Load implements store.Store.
func (s *Store) Load(ctx context.Context, asked []store.Asked) ([]store.Stream, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	streams := make([]store.Stream, len(asked))
	for i, a := range asked {
		stored := s.aggregates[a.Stream]
		if stored == nil {
			continue
		}
		behind := int64(0)
		if stored.snapshot != nil && stored.snapshot.Revision == a.Revision {
			snapshot := stored.snapshot.Clone()
			streams[i].Snapshot = &snapshot
			behind = min(snapshot.Version, int64(len(stored.commits)))
		}
		for _, row := range stored.commits[behind:] {
			streams[i].Tail = append(streams[i].Tail, row.Clone())
		}
	}
	return streams, nil
}

// Heads implements store.Store.
func (s *Store) Heads(ctx context.Context, streams []command.Digest) ([]int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	heads := make([]int64, len(streams))
	for i, stream := range streams {
		heads[i] = s.head(stream)
	}
	return heads, nil
}

// Holders implements store.Store.
func (s *Store) Holders(ctx context.Context, asked []keys.Key) ([]store.Holder, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	holders := make([]store.Holder, len(asked))
	for i, key := range asked {
		holders[i] = s.holders[key]
	}
	return holders, nil
}

// SaveProgress implements store.Store.
func (s *Store) SaveProgress(ctx context.Context, progress []store.Progress) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range progress {
		s.progress[partition{p.TopicID, p.Partition}] = p
	}
	return nil
}

// Progress implements store.Store. The answer is ordered by topic ID and partition.
func (s *Store) Progress(ctx context.Context, topic string) ([]store.Progress, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var kept []store.Progress
	for _, p := range s.progress {
		if p.Topic == topic {
			kept = append(kept, p)
		}
	}
	slices.SortFunc(kept, byPartition)
	return kept, nil
}

// head returns the last version of the stream. The mutex is held.
func (s *Store) head(stream command.Digest) int64 {
	stored := s.aggregates[stream]
	if stored == nil {
		return 0
	}
	return int64(len(stored.commits))
}

func copied(r *store.Row) *store.Row {
	clone := r.Clone()
	return &clone
}
