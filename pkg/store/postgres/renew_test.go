package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed54173720/writ/internal/pgtest"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store/postgres"
)

func TestRenewedPasswordFileIsReadByTheNextConnection(t *testing.T) {
	t.Parallel()
	admin, schema := pgtest.Schema(t)
	owner := openAt(t, postgres.Config{URL: admin, Schema: schema})
	conn, role := connect(t, admin), schema+"_role"
	exec(t, conn, `create role `+role+` superuser login password 'new'`)
	t.Cleanup(func() {
		if _, err := conn.Exec(context.Background(), `drop role `+role); err != nil {
			t.Error(err)
		}
	})
	if _, err := owner.Heads(t.Context(), []command.Digest{{}}); err != nil {
		t.Fatal(err)
	}

	u, err := url.Parse(admin)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "passwords")
	write := func(password string) {
		if err := os.WriteFile(file, fmt.Appendf(nil, "*:*:*:%s:%s\n", role, password), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	u.User = url.User(role)
	query := u.Query()
	query.Set("passfile", file)
	u.RawQuery = query.Encode()
	write("old")
	s, err := postgres.Open(t.Context(), postgres.Config{URL: u.String(), Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if _, err := s.Heads(t.Context(), []command.Digest{{}}); err == nil {
		t.Error("the old password is taken")
	}
	write("new")
	if _, err := s.Heads(t.Context(), []command.Digest{{}}); err != nil {
		t.Errorf("with the renewed password: %v", err)
	}
}
