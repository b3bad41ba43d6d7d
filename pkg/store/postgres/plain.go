package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// SelectPlain is how people look at the journal, and what Plain asks: its newest rows first.
const SelectPlain = `select outcome, tenant, aggregate, version, type, request_id, error_code, keys_taken, keys_released, partition, "offset"
from journal_plain order by decided_at desc, partition desc, "offset" desc`

// Plain returns the newest rows of the journal, the oldest of them first, every column as psql shows it; null is "".
func (s *Store) Plain(ctx context.Context, limit int) (columns []string, rows [][]string, err error) {
	// The simple protocol answers in text, whatever the column's type.
	answer, err := s.pool.Query(ctx, SelectPlain+` limit $1`, pgx.QueryExecModeSimpleProtocol, limit)
	if err != nil {
		return nil, nil, fmt.Errorf("store: read the plain journal: %w", err)
	}
	defer answer.Close()
	for answer.Next() {
		values := answer.RawValues()
		row := make([]string, len(values))
		for i, value := range values {
			row[i] = string(value)
		}
		rows = append(rows, row)
	}
	if err := answer.Err(); err != nil {
		return nil, nil, fmt.Errorf("store: read the plain journal: %w", err)
	}
	for _, f := range answer.FieldDescriptions() {
		columns = append(columns, f.Name)
	}
	slices.Reverse(rows)
	return columns, rows, nil
}
