package memory

import (
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// check panics where the units break a MUST of store.Unit.
func check(units []store.Unit) {
	streams := map[command.Digest]bool{}
	requests := map[command.Digest]bool{}
	claims := map[keys.Key]bool{}
	for i := range units {
		u := &units[i]
		once(u, "stream", streams, u.Stream)
		for j := range u.Rows {
			once(u, "request", requests, u.Rows[j].Request)
		}
		for _, key := range u.Take {
			once(u, "claimed key", claims, key)
		}
		checkRows(u)
		checkReplaced(u)
		checkKeys(u)
	}
}

func once[K comparable](u *store.Unit, what string, seen map[K]bool, k K) {
	must(!seen[k], u, "%s %v must occur once in a Commit", what, k)
	seen[k] = true
}

func checkRows(u *store.Unit) {
	last := int64(0)
	for i := range u.Rows {
		r := &u.Rows[i]
		must(r.Stream == u.Stream && r.Aggregate == u.Aggregate, u, "row %d must be of the same aggregate, is of %s", i, r.Aggregate)
		committed := r.Outcome == command.Committed
		must(committed == (r.Version > 0), u, "row %d, %s, must have a version exactly if committed, has %d", i, r.Outcome, r.Version)
		must(committed == (len(r.Events) > 0), u, "row %d, %s, must have events exactly if committed, has %d", i, r.Outcome, len(r.Events))
		must(committed || len(r.Taken)+len(r.Released) == 0, u, "row %d, %s, must leave the keys as they are", i, r.Outcome)
		if committed {
			must(last == 0 || r.Version == last+1, u, "row %d: version %d must follow %d", i, r.Version, last)
			last = r.Version
		}
	}
	if u.Snapshot != nil {
		must(u.Snapshot.Stream == u.Stream && u.Snapshot.Version > 0, u, "snapshot at version %d must be of the same aggregate, at a version from 1", u.Snapshot.Version)
	}
}

func checkReplaced(u *store.Unit) {
	replaced := map[command.Digest]bool{}
	for i := range u.Replaced {
		request := u.Replaced[i].Request
		once(u, "replaced request", replaced, request)
		found := false
		for j := range u.Rows {
			found = found || u.Rows[j].Request == request
		}
		must(found, u, "replaced request %x must have a new row in the unit", request)
	}
}

// checkKeys compares what the unit takes and releases with the first and the last change of each key by its rows.
func checkKeys(u *store.Unit) {
	first, last := map[keys.Key]bool{}, map[keys.Key]bool{} // true: taken
	note := func(key keys.Key, taken bool) {
		if _, seen := last[key]; !seen {
			first[key] = taken
		}
		last[key] = taken
	}
	for i := range u.Rows {
		for _, key := range u.Rows[i].Released {
			note(key, false)
		}
		for _, key := range u.Rows[i].Taken {
			note(key, true)
		}
	}
	maps.DeleteFunc(first, func(_ keys.Key, taken bool) bool { return !taken })
	maps.DeleteFunc(last, func(_ keys.Key, taken bool) bool { return taken })

	take, release := map[keys.Key]bool{}, map[keys.Key]bool{}
	for _, key := range u.Take {
		take[key] = true // twice: see check
	}
	for _, key := range u.Release {
		_, twice := release[key]
		must(!twice, u, "released key %v must occur once", key)
		release[key] = false
	}
	must(maps.Equal(take, first) && maps.Equal(release, last), u, "keys taken %v and released %v must follow from the rows", u.Take, u.Release)
}

// replaces reports whether the unit moves the row under request aside.
func replaces(u *store.Unit, request command.Digest) bool {
	for i := range u.Replaced {
		if u.Replaced[i].Request == request {
			return true
		}
	}
	return false
}

func must(ok bool, u *store.Unit, rule string, args ...any) {
	if !ok {
		panic(fmt.Sprintf("memory: unit of %s: %s", u.Aggregate, fmt.Sprintf(rule, args...)))
	}
}

// storable returns the first row that a text column of Postgres would refuse, and why. A snapshot is the last row's.
func storable(u *store.Unit) (row int, err error) {
	for i := range u.Rows {
		if err := storableRow(&u.Rows[i]); err != nil {
			return i, err
		}
	}
	if u.Snapshot != nil {
		if err := text("state of the snapshot", string(u.Snapshot.State)); err != nil {
			return max(0, len(u.Rows)-1), err
		}
	}
	return 0, nil
}

func storableRow(r *store.Row) error {
	type field struct{ name, value string }
	fields := []field{
		{"type", r.Type}, {"tenant", r.Aggregate.Tenant}, {"aggregate type", r.Aggregate.Type}, {"aggregate id", r.Aggregate.ID},
		{"owner", r.Owner}, {"space", r.Space}, {"request id", r.RequestID}, {"caller", r.Caller}, {"result", string(r.Result)},
		{"correlation id", r.Meta.CorrelationID}, {"causation id", r.Meta.CausationID}, {"trace parent", r.Meta.TraceParent},
		{"reply address", r.Meta.ReplyTo},
	}
	for _, e := range r.Events {
		fields = append(fields, field{"event type", e.Type}, field{"event data", string(e.Data)})
	}
	for _, list := range [...][]keys.Key{r.Taken, r.Released} {
		for _, k := range list {
			fields = append(fields, field{"key tenant", k.Tenant}, field{"key namespace", k.Namespace}, field{"key name", k.Name})
		}
	}
	if e := r.Error; e != nil {
		fields = append(fields, field{"error code", string(e.Code)}, field{"error message", e.Message})
		for name, fault := range e.Fields {
			fields = append(fields, field{"error field", name}, field{"error field " + name, fault})
		}
	}
	for _, f := range fields {
		if err := text(f.name, f.value); err != nil {
			return err
		}
	}
	return nil
}

func text(name, value string) error {
	if !utf8.ValidString(value) || strings.IndexByte(value, 0) >= 0 {
		return fmt.Errorf("%s %.40q: must be valid UTF-8 without NUL", name, value)
	}
	return nil
}
