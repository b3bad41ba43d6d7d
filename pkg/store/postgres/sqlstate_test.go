package postgres

import (
	"errors"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestStateAndConstraintDecideTheClass(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name       string
		state      string
		constraint string
		want       class
	}{
		{"a request that is recorded", "23505", "journal_request", raced},
		{"a version that is there", "23505", "journal_stream_version", raced},
		{"a key that is held", "23505", "reservation_pkey", raced},
		{"a unique index of somebody else", "23505", "their_index", refused},
		{"a row that does not make way", "22012", "", raced},
		{"a check", "23514", "journal_outcome", refused},
		{"a null", "23502", "", refused},
		{"broken text", "22021", "", refused},
		{"a value too large", "54000", "", refused},
		{"a deadlock", "40P01", "", again},
		{"a serialization failure", "40001", "", again},
		{"another rollback", "40003", "", fault},
		{"a lock timeout", "55P03", "", blocked},
		{"a cancelled statement", "57014", "", blocked},
		{"a lost connection", "08006", "", fault},
		{"a read-only server", "25006", "", fault},
		{"a full disk", "53100", "", fault},
		{"too many connections", "53300", "", fault},
		{"a shutdown", "57P01", "", fault},
		{"a starting server", "57P03", "", fault},
		{"an I/O error", "58030", "", fault},
		{"a missing table", "42P01", "", fault},
		{"an internal error", "XX000", "", fault},
		{"no state", "", "", fault},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			err := errors.Join(errors.New("context"), &pgconn.PgError{Code: row.state, ConstraintName: row.constraint})
			if got := classify(err); got != row.want {
				t.Errorf("%s %s: got %s, want %s", row.state, row.constraint, got, row.want)
			}
		})
	}
	if got := classify(io.ErrUnexpectedEOF); got != fault {
		t.Errorf("a broken connection: got %s, want %s", got, fault)
	}
}

func TestOnlyAnErrorSaysThatNothingWasCommitted(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		err  error
		want bool
	}{
		{"an error", &pgconn.PgError{SeverityUnlocalized: "ERROR", Code: "53100"}, false},
		{"the session's end", &pgconn.PgError{SeverityUnlocalized: "FATAL", Code: "57P01"}, true},
		{"the server's end", &pgconn.PgError{SeverityUnlocalized: "PANIC", Code: "58030"}, true},
		{"silence", io.ErrUnexpectedEOF, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := uncertain(row.err); got != row.want {
				t.Errorf("%v: got %t, want %t", row.err, got, row.want)
			}
		})
	}
}
