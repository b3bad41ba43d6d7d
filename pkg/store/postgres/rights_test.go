package postgres_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed54173720/writ/internal/pgtest"
	"github.com/seed54173720/writ/pkg/store/postgres"
)

func TestRightsThatAreMissingAreNamed(t *testing.T) {
	t.Parallel()
	url_, schema := pgtest.Schema(t)
	owner := openAt(t, postgres.Config{URL: url_, Schema: schema})
	if err := owner.Rights(t.Context()); err != nil {
		t.Errorf("of the owner: %v", err)
	}

	conn, role := connect(t, url_), schema+"_role"
	exec(t, conn, `create role `+role+` login password 'role'`)
	t.Cleanup(func() {
		if _, err := conn.Exec(context.Background(), `drop owned by `+role+`; drop role `+role); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(url_)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "role")
	s, err := postgres.Open(t.Context(), postgres.Config{URL: u.String(), Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)

	all := map[string]string{ // grant: what the error says without it
		"usage on schema " + schema:     "usage of schema " + schema,
		"select on goose_db_version":    "select on table " + schema + ".goose_db_version",
		"select on journal":             "select on table " + schema + ".journal",
		"insert on journal":             "insert on table " + schema + ".journal",
		"update (request) on journal":   "update on table " + schema + ".journal (request)",
		"select, insert on reservation": "insert on table " + schema + ".reservation",
		"delete on reservation":         "delete on table " + schema + ".reservation",
		"select, insert on snapshot":    "select on table " + schema + ".snapshot",
		"update on snapshot":            "update on table " + schema + ".snapshot (version",
		"select, insert on progress":    "insert on table " + schema + ".progress",
		"update on progress":            "update on table " + schema + ".progress (topic",
	}
	for grant := range all {
		exec(t, conn, `grant `+grant+` to `+pgx.Identifier{role}.Sanitize())
	}
	if err := s.Rights(t.Context()); err != nil {
		t.Errorf("with every right: %v", err)
	}
	for grant, want := range all {
		exec(t, conn, `revoke `+grant+` from `+role)
		if err := s.Rights(t.Context()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), role) {
			t.Errorf("without %s: %v, want an error that says %q", grant, err, want)
		}
		exec(t, conn, `grant `+grant+` to `+role)
	}
}
