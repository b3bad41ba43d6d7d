package pgtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed54173720/writ/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.Fast) }

func connect(t *testing.T, connString string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, connString)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func TestSchemasDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	for range 2 {
		connString, name := pgtest.Schema(t)
		conn := connect(t, connString)
		if _, err := conn.Exec(t.Context(), `create table things (n int)`); err != nil {
			t.Fatalf("create the table in %s: %v", name, err)
		}
		var schema string
		err := conn.QueryRow(t.Context(), `select relnamespace::regnamespace::text from pg_class where oid = 'things'::regclass`).Scan(&schema)
		if err != nil || schema != name {
			t.Errorf("the table is in schema %q (%v), want %q", schema, err, name)
		}
	}
}

func TestSchemaIsDroppedWithItsTest(t *testing.T) { //nolint:tparallel // its subtest ends before the next line
	t.Parallel()
	var name string
	t.Run("owner", func(t *testing.T) { _, name = pgtest.Schema(t) })
	var exists bool
	err := connect(t, pgtest.URL(t)).QueryRow(t.Context(), `select exists (select from pg_namespace where nspname = $1)`, name).Scan(&exists)
	if err != nil || exists {
		t.Errorf("schema %s exists = %v (%v), want it dropped", name, exists, err)
	}
}

func TestOwnServerKeepsItsDataOverKillAndRestart(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	if _, err := connect(t, server.URL()).Exec(t.Context(), `create table kept as select 7 as n`); err != nil {
		t.Fatal(err)
	}
	before := server.URL()
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := server.URL(); got != before {
		t.Errorf("URL after restart = %s, want %s", got, before)
	}
	var n int
	if err := connect(t, before).QueryRow(t.Context(), `select n from kept`).Scan(&n); err != nil || n != 7 {
		t.Errorf("kept row = %d (%v), want 7", n, err)
	}
}
