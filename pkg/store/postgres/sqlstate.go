package postgres

import (
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// class is what a failed transaction means for the group that it carried.
type class uint8

const (
	fault   class = iota // of the infrastructure: nobody's units are to blame
	raced                // another commit was first to a version, a request or a key
	again                // rolled back by the server to break a circle of waits
	blocked              // waited for a lock for too long
	refused              // the data of some row cannot be stored
)

var classes = [...]string{"fault", "raced", "again", "blocked", "refused"}

func (c class) String() string { return classes[c] }

const undefinedTable = "42P01"

// states gives SQLSTATEs their class, by code or by their first two characters. What is not here is a fault.
var states = []struct {
	state string
	class class
}{
	{"23505", refused}, // unique_violation; raced where the index is one of ours, see classify
	{"22012", raced},   // division_by_zero: how moveAside says so; nothing else divides
	{"40001", again},   // serialization_failure
	{"40P01", again},   // deadlock_detected
	{"55P03", blocked}, // lock_not_available: lock_timeout
	{"57014", blocked}, // query_canceled: statement_timeout, or somebody's pg_cancel_backend
	{"22", refused},    // data exception: invalid UTF-8, NUL, a value out of range
	{"23", refused},    // integrity constraint violation
	{"54", refused},    // program limit exceeded: a value too large
}

// races are the unique indexes that decide between commits.
var races = []string{"journal_request", "journal_stream_version", "reservation_pkey"}

// classify goes by SQLSTATE and constraint name alone; messages are for people and translated.
func classify(err error) class {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return fault
	}
	if pgErr.Code == "23505" && slices.Contains(races, pgErr.ConstraintName) {
		return raced
	}
	for _, s := range states {
		if pgErr.Code == s.state || len(s.state) == 2 && len(pgErr.Code) == 5 && pgErr.Code[:2] == s.state {
			return s.class
		}
	}
	return fault
}

// uncertain reports whether err leaves open what became of a transaction whose commit had been sent: the connection
// was lost, or the server ended it.
func uncertain(err error) bool {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		return true
	}
	return pgErr.SeverityUnlocalized != "ERROR"
}
