package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// selectMissing names the rights that this session's role lacks of those that the statements of this package need. Only
// what exists is asked about: a schema that is not migrated is for Check to tell. deploy/postgres-roles.sql grants the
// same rights.
const selectMissing = `
	with schema as (select oid, nspname from pg_namespace where nspname = $1),
	needed (relation, columns, privilege) as (values
		('goose_db_version', null, 'select'),
		('journal', null, 'select'), ('journal', null, 'insert'), ('journal', '{request}', 'update'),
		('reservation', null, 'select'), ('reservation', null, 'insert'), ('reservation', null, 'delete'),
		('snapshot', null, 'select'), ('snapshot', null, 'insert'),
		('snapshot', '{version,revision,saved_at,tenant,aggregate_type,aggregate_id,state}', 'update'),
		('progress', null, 'select'), ('progress', null, 'insert'), ('progress', '{topic,offset,saved_at}', 'update'))
	select 'usage of schema ' || nspname from schema where not has_schema_privilege(oid, 'usage')
	union all
	select n.privilege || ' on table ' || nspname || '.' || c.relname || coalesce(' (' || array_to_string(n.columns::text[], ', ') || ')', '')
	from needed n
	cross join schema
	join pg_class c on c.relnamespace = schema.oid and c.relname = n.relation
	where not case
		when n.columns is null then has_table_privilege(c.oid, n.privilege)
		else (
			select coalesce(bool_and(has_column_privilege(c.oid, a.attname, n.privilege)), true)
			from pg_attribute a where a.attrelid = c.oid and a.attname = any (n.columns::name[]))
	end`

// Rights returns an error that names every right which the role lacks to execute commands, or nil.
func (s *Store) Rights(ctx context.Context) error { return s.rights(ctx, s.pool) }

// querier is the pool, or one session.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func (s *Store) rights(ctx context.Context, q querier) error {
	rows, _ := q.Query(ctx, selectMissing, s.schema) // the error is CollectRows's too
	missing, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("store: read the role's rights: %w", err)
	}
	if len(missing) > 0 {
		return fmt.Errorf("store: role %s lacks rights: %s: grant them, as deploy/postgres-roles.sql does", s.postgres.User, strings.Join(missing, "; "))
	}
	return nil
}
