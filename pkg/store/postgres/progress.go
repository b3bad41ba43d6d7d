package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/seed54173720/writ/pkg/store"
)

const saveProgress = `
	insert into progress (topic, topic_id, partition, "offset")
	select * from unnest($1::text[], $2::uuid[], $3::int4[], $4::int8[])
	on conflict (topic_id, partition) do update
	set topic = excluded.topic, "offset" = excluded."offset", saved_at = now()`

const selectProgress = `select topic, topic_id, partition, "offset" from progress where topic = $1 order by topic_id, partition`

// SaveProgress implements store.Store.
func (s *Store) SaveProgress(ctx context.Context, progress []store.Progress) error {
	n := len(progress)
	if n == 0 {
		return nil
	}
	topics, ids, partitions, offsets := make([]string, n), make([][16]byte, n), make([]int32, n), make([]int64, n)
	for i, p := range progress {
		topics[i], ids[i], partitions[i], offsets[i] = p.Topic, p.TopicID, p.Partition, p.Offset
	}
	if _, err := s.pool.Exec(ctx, saveProgress, topics, ids, partitions, offsets); err != nil {
		return fmt.Errorf("store: save progress: %w", err)
	}
	return nil
}

// Progress implements store.Store.
func (s *Store) Progress(ctx context.Context, topic string) ([]store.Progress, error) {
	rows, _ := s.pool.Query(ctx, selectProgress, topic) // the error is CollectRows's too
	progress, err := pgx.CollectRows(rows, pgx.RowToStructByPos[store.Progress])
	if err != nil {
		return nil, fmt.Errorf("store: read progress of topic %s: %w", topic, err)
	}
	return progress, nil
}
