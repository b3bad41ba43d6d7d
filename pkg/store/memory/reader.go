package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// The methods of store.Reader copy under the mutex and call f without it: f may use the store.

// History implements store.Reader.
func (s *Store) History(ctx context.Context, stream command.Digest, f func(*store.Row) error) error {
	s.mu.Lock()
	var rows []store.Row
	if stored := s.aggregates[stream]; stored != nil {
		rows = clones(stored.history)
	}
	s.mu.Unlock()
	return each(ctx, rows, f)
}

// Journal implements store.Reader.
func (s *Store) Journal(ctx context.Context, f func(*store.Row) error) error {
	s.mu.Lock()
	var stored []*store.Row
	for _, a := range s.aggregates {
		stored = append(stored, a.history...)
	}
	slices.SortStableFunc(stored, func(a, b *store.Row) int {
		return cmp.Or(bytes.Compare(a.Stream[:], b.Stream[:]), cmp.Compare(a.Version, b.Version), a.Time.Compare(b.Time))
	})
	rows := clones(stored)
	s.mu.Unlock()
	return each(ctx, rows, f)
}

// Reservations implements store.Reader. The keys are ordered by scope, namespace and name.
func (s *Store) Reservations(ctx context.Context, f func(keys.Key, store.Holder) error) error {
	type reservation struct {
		key    keys.Key
		holder store.Holder
	}
	s.mu.Lock()
	var held []reservation
	for key, holder := range s.holders {
		held = append(held, reservation{key, holder})
	}
	s.mu.Unlock()
	slices.SortFunc(held, func(a, b reservation) int { return byKey(a.key, b.key) })
	return each(ctx, held, func(r *reservation) error { return f(r.key, r.holder) })
}

// Snapshots implements store.Reader.
func (s *Store) Snapshots(ctx context.Context, f func(*store.Snapshot) error) error {
	s.mu.Lock()
	var snapshots []store.Snapshot
	for _, stored := range s.aggregates {
		if stored.snapshot != nil {
			snapshots = append(snapshots, stored.snapshot.Clone())
		}
	}
	s.mu.Unlock()
	slices.SortFunc(snapshots, func(a, b store.Snapshot) int { return bytes.Compare(a.Stream[:], b.Stream[:]) })
	return each(ctx, snapshots, f)
}

// each calls f until it errs or ctx ends.
func each[T any](ctx context.Context, all []T, f func(*T) error) error {
	for i := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f(&all[i]); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func clones(rows []*store.Row) []store.Row {
	cloned := make([]store.Row, len(rows))
	for i, row := range rows {
		cloned[i] = row.Clone()
	}
	return cloned
}

func byPartition(a, b store.Progress) int {
	return cmp.Or(bytes.Compare(a.TopicID[:], b.TopicID[:]), cmp.Compare(a.Partition, b.Partition))
}

func byKey(a, b keys.Key) int {
	scope := 0
	if a.System != b.System {
		scope = -1
		if a.System {
			scope = 1
		}
	}
	return cmp.Or(scope, cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
