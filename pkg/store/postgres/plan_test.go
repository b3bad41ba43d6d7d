package postgres

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed54173720/writ/internal/pgtest"
)

const oneRowEach = `
	insert into journal (version, decided_at, outcome, stream, request, fingerprint, type, tenant, aggregate_type, aggregate_id, request_id, caller, events)
	values (1, now(), 'c', gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), '', '', '', '', '', '', '[]');
	insert into reservation (id, system, tenant, namespace, name, application) values (gen_random_uuid(), false, '', '', '', '');
	insert into snapshot (version, revision, stream, tenant, aggregate_type, aggregate_id, state) values (1, 1, gen_random_uuid(), '', '', '', '');
	analyze journal, reservation, snapshot`

// Sessions go by plans made once. A statement without an index would be noticed in production only.
func TestHotStatementsGoByIndex(t *testing.T) {
	t.Parallel()
	url, schema := pgtest.Schema(t)
	cfg := Config{URL: url, Schema: schema}
	if err := Migrate(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	session, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	prepareSession(session, schema)
	conn, err := pgx.ConnectConfig(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	// A table of one page, as a processor meets it at its start, is cheaper to read from end to end.
	if _, err := conn.Exec(t.Context(), oneRowEach, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	for _, s := range []statement{deleteExpired, moveAside, releaseKeys, selectRequests, selectHeads, selectHolders, selectStreams, selectOutcomes, selectHistory} {
		prepared, err := conn.Prepare(t.Context(), s.name, s.sql)
		if err != nil {
			t.Fatal(err)
		}
		nulls := strings.TrimSuffix(strings.Repeat("null,", len(prepared.ParamOIDs)), ",")
		rows, _ := conn.Query(t.Context(), "explain execute "+s.name+"("+nulls+")", pgx.QueryExecModeSimpleProtocol)
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(plan, "\n"); strings.Contains(text, "Seq Scan") || !strings.Contains(text, "Index") {
			t.Errorf("%s: want a plan that goes by index, got\n%s", s.name, text)
		}
	}
}
