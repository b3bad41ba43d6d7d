package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed54173720/writ/internal/pgtest"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
	"github.com/seed54173720/writ/pkg/store/postgres"
)

// hold inserts a hold on the key, which ends in the given time.
const hold = `insert into reservation (id, system, tenant, namespace, name, application, token, expires_at)
	values ($1, false, '', $2, $3, 'a hold', gen_random_uuid(), now() + $4::interval)`

func insertHold(tb testing.TB, conn *pgx.Conn, key keys.Key, ends string) {
	tb.Helper()
	exec(tb, conn, hold, [16]byte(key.Digest()), key.Namespace, key.Name, ends)
}

// waiting returns the process of the session that waits for a lock of conn's. (pg_stat_activity stands still in a transaction.)
func waiting(tb testing.TB, conn *pgx.Conn) (pid int32) {
	tb.Helper()
	eventually(tb, "a commit that waits", func() bool {
		err := conn.QueryRow(tb.Context(), `select pid from pg_locks where not granted and $1 = any (pg_blocking_pids(pid))`, int32(conn.PgConn().PID())).Scan(&pid)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			tb.Fatal(err)
		}
		return err == nil
	})
	return pid
}

func TestBlockedUnitDoesNotKeepItsGroupFromCommitting(t *testing.T) {
	t.Parallel()
	s, rival := open(t)
	exec(t, rival, `begin`)
	insertHold(t, rival, name("taken"), "1 hour")

	fates, err := s.Commit(t.Context(), []store.Unit{unit("a", 1), unit("b", 1, name("free")), unit("c", 1, name("taken"))})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []store.Fate{{}, {}, {Verdict: store.Lost, Conflict: store.LockConflict}} {
		if fates[i] != want {
			t.Errorf("unit %d: got %+v, want %+v", i, fates[i], want)
		}
	}
}

// Losers are read, not guessed: the group goes again once, without them.
func TestLosersAreFoundAtOnce(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		loser store.Unit
		want  store.Conflict
	}{
		{"of a version", otherRequest(unit("first", 1)), store.VersionConflict},
		{"of a request", otherStream(unit("first", 1)), store.RequestConflict},
		{"of a key", unit("second", 1, name("taken")), store.KeyConflict},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var log rollbacks
			url, schema := pgtest.Schema(t)
			s := openAt(t, postgres.Config{URL: url, Schema: schema, Logger: slog.New(&log)})
			commit(t, s, unit("first", 1, name("taken")))
			group := []store.Unit{row.loser}
			for i := range 16 {
				group = append(group, unit(fmt.Sprint("other ", i), 1))
			}
			fates, err := s.Commit(t.Context(), group)
			if err != nil {
				t.Fatal(err)
			}
			for i, fate := range fates {
				want := store.Fate{}
				if i == 0 {
					want = store.Fate{Verdict: store.Lost, Conflict: row.want}
				}
				if fate != want {
					t.Errorf("unit %d: got %+v, want %+v", i, fate, want)
				}
			}
			if got := log.Load(); got != 1 {
				t.Errorf("got %d groups rolled back, want 1", got)
			}
		})
	}
}

// rollbacks counts the groups that were rolled back, by their lines in the log.
type rollbacks struct{ atomic.Int32 }

func (*rollbacks) Enabled(context.Context, slog.Level) bool { return true }
func (r *rollbacks) WithAttrs([]slog.Attr) slog.Handler     { return r }
func (r *rollbacks) WithGroup(string) slog.Handler          { return r }
func (r *rollbacks) Handle(_ context.Context, line slog.Record) error {
	if line.Message == "group rolled back" {
		r.Add(1)
	}
	return nil
}

func otherRequest(u store.Unit) store.Unit {
	u.Rows[0].Request = command.RequestDigest("brand", "", "other")
	return u
}

func otherStream(u store.Unit) store.Unit {
	other := unit("another", 1)
	other.Rows[0].Request = u.Rows[0].Request
	return other
}

func TestHoldThatIsOverMakesWay(t *testing.T) {
	t.Parallel()
	s, conn := open(t)
	insertHold(t, conn, name("over"), "-1 s")
	insertHold(t, conn, name("standing"), "1 hour")

	holders, err := s.Holders(t.Context(), []keys.Key{name("over"), name("standing")})
	if err != nil || holders[0].Held || !holders[1].Held {
		t.Errorf("got holders %+v and error %v, want only the second held", holders, err)
	}
	fates, err := s.Commit(t.Context(), []store.Unit{unit("a", 1, name("over")), unit("b", 1, name("standing"))})
	if err != nil {
		t.Fatal(err)
	}
	if fates[0].Verdict != store.Done || fates[1].Conflict != store.KeyConflict {
		t.Errorf("got %+v, want the first done and the second without its key", fates)
	}
}

func TestCommitWhoseSessionEndsIsUnknown(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		end  func(t *testing.T, rival *pgx.Conn, cancel func())
	}{
		{"by the server", func(t *testing.T, rival *pgx.Conn, _ func()) {
			exec(t, rival, `select pg_terminate_backend($1)`, waiting(t, rival))
		}},
		{"by the caller", func(t *testing.T, rival *pgx.Conn, cancel func()) {
			waiting(t, rival)
			cancel()
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s, rival := open(t)
			exec(t, rival, `begin`)
			insertHold(t, rival, name("taken"), "1 hour")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error)
			go func() {
				_, err := s.Commit(ctx, []store.Unit{unit("a", 1, name("taken"))})
				ended <- err
			}()
			row.end(t, rival, cancel)
			err := <-ended
			if !errors.Is(err, store.ErrUnknown) || ctx.Err() != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("got error %v, want it to wrap ErrUnknown, and what ctx says", err)
			}

			// The session is gone, its transaction too, and the store takes another.
			exec(t, rival, `rollback`)
			eventually(t, "the end of the session", func() bool {
				var left int
				if err := rival.QueryRow(t.Context(), `
					select count(*) from pg_locks l join pg_class c on c.oid = l.relation
					where c.relnamespace = current_schema()::regnamespace and l.pid <> pg_backend_pid()`).Scan(&left); err != nil {
					t.Fatal(err)
				}
				return left == 0
			})
			found, err := s.Requests(t.Context(), []store.Lookup{{Request: unit("a", 1).Rows[0].Request}})
			if err != nil {
				t.Fatal(err)
			}
			if found[0].Latest == nil {
				commit(t, s, unit("a", 1, name("taken")))
			}
		})
	}
}

func TestStoreGoesOnAfterItsServerWasKilled(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	s := openAt(t, postgres.Config{URL: server.URL(), Schema: "writ"})
	commit(t, s, unit("a", 1))
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), []store.Unit{unit("a", 2)}); err == nil {
		t.Error("a commit without a server succeeded")
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a commit after the restart", func() bool {
		fates, err := s.Commit(t.Context(), []store.Unit{unit("a", 2)})
		return err == nil && fates[0].Verdict == store.Done
	})
	if heads, err := s.Heads(t.Context(), []command.Digest{unit("a", 1).Stream}); err != nil || heads[0] != 2 {
		t.Errorf("got head %v and error %v, want 2", heads, err)
	}
}

func TestSnapshotCanBeSavedWithoutRows(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	u := unit("a", 1)
	commit(t, s, u)
	u.Rows = nil
	u.Snapshot = &store.Snapshot{Stream: u.Stream, Aggregate: u.Aggregate, Version: 1, Revision: 1, State: []byte(`{}`)}
	commit(t, s, u)
	streams, err := s.Load(t.Context(), []store.Asked{{Stream: u.Stream, Revision: 1}})
	if err != nil || streams[0].Snapshot == nil || len(streams[0].Tail) != 0 {
		t.Errorf("got %+v and error %v, want the snapshot alone", streams, err)
	}
}

// It is one aggregate's damage, for the kernel to name: an error would be everybody's.
func TestStreamWithAGapIsLoadedAsItIs(t *testing.T) {
	t.Parallel()
	s, conn := open(t)
	for version := range int64(3) {
		commit(t, s, unit("a", version+1))
	}
	exec(t, conn, `delete from journal where version = 2`)
	streams, err := s.Load(t.Context(), []store.Asked{{Stream: unit("a", 1).Stream, Revision: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if tail := streams[0].Tail; len(tail) != 2 || tail[0].Version != 1 || tail[1].Version != 3 {
		t.Errorf("got %+v, want versions 1 and 3", tail)
	}
}

func TestJournalPlainIsLegible(t *testing.T) {
	t.Parallel()
	s, conn := open(t)
	u := unit("a", 1, name("Acme"))
	u.Rows[0].FromRecord = true
	u.Rows[0].Position = command.Position{TopicID: [16]byte{0xfb, 0xff}, Partition: 3, Offset: 42}
	refused := unit("b", 1)
	refused.Rows[0].Outcome, refused.Rows[0].Version, refused.Rows[0].Events = command.Rejected, 0, nil
	refused.Rows[0].Error = command.Errorf("name-taken", "another brand is named %q", "Acme")
	commit(t, s, u, refused)

	rows, _ := conn.Query(t.Context(), `
		select concat_ws(' ', outcome, aggregate, version, events -> 0 -> 'data' ->> 'name', error_code, error_message, keys_taken, topic_id, partition, "offset")
		from journal_plain order by aggregate`)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		`committed brand/a 1 a brand-name/Acme -_8AAAAAAAAAAAAAAAAAAA 3 42`,
		`rejected brand/b name-taken another brand is named "Acme"`,
	} {
		if got[i] != want {
			t.Errorf("row %d:\n got %s\nwant %s", i, got[i], want)
		}
	}
}
