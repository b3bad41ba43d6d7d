package storetest

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store"
)

// same fails the test unless got is want, member by member, to the byte.
func same(t tb, what string, got *store.Row, want store.Row) {
	t.Helper()
	if got == nil {
		t.Errorf("%s: no row, want %s of %s", what, want.Outcome, want.RequestID)
		return
	}
	if d := diff(*got, want); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

// sameRows fails the test unless the rows are those wanted, in order.
func sameRows(t tb, what string, got, want []store.Row) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %s, want %s", what, outline(got), outline(want))
		return
	}
	for i := range got {
		same(t, fmt.Sprintf("%s, row %d", what, i), &got[i], want[i])
	}
}

func sameSnapshot(t tb, what string, got, want *store.Snapshot) {
	t.Helper()
	if (got == nil) != (want == nil) || got != nil && !reflect.DeepEqual(*got, *want) {
		t.Errorf("%s: got %s, want %s", what, snapshotText(got), snapshotText(want))
	}
}

// diff names the members in which two rows differ. Where the contract gives a member no meaning, it does not count.
func diff(got, want store.Row) string {
	plain(&got)
	plain(&want)
	var different []string
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		a, b := g.Field(i).Interface(), w.Field(i).Interface()
		if !reflect.DeepEqual(a, b) {
			different = append(different, fmt.Sprintf("%s: got %.300s, want %.300s", g.Type().Field(i).Name, show(a), show(b)))
		}
	}
	return strings.Join(different, "; ")
}

// plain gives equal rows one form: one zone, and nil for what is empty or means nothing.
func plain(r *store.Row) {
	r.Time = r.Time.UTC()
	if !r.FromRecord {
		r.Position = command.Position{}
	}
	if r.Meta.ReplyTo == "" {
		r.Meta.ReplyPartition = 0
	}
	if len(r.Events) == 0 {
		r.Events = nil
	}
	if len(r.Taken) == 0 {
		r.Taken = nil
	}
	if len(r.Released) == 0 {
		r.Released = nil
	}
	if len(r.Result) == 0 {
		r.Result = nil
	}
	if r.Error != nil && len(r.Error.Fields) == 0 {
		r.Error = &command.Error{Code: r.Error.Code, Message: r.Error.Message}
	}
}

// show writes a member so that a person can read it.
func show(v any) string {
	switch v := v.(type) {
	case []command.Event:
		var parts []string
		for _, e := range v {
			parts = append(parts, fmt.Sprintf("%s/%d %s", e.Type, e.Revision, e.Data))
		}
		return fmt.Sprintf("%d events [%s]", len(v), strings.Join(parts, ", "))
	case []byte:
		return fmt.Sprintf("%q", v)
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case *command.Error:
		if v == nil {
			return "none"
		}
		return fmt.Sprintf("%+v", *v)
	}
	return fmt.Sprintf("%+v", v)
}

func outline(rows []store.Row) string {
	var parts []string
	for i := range rows {
		parts = append(parts, fmt.Sprintf("%s %s@%d", rows[i].RequestID, rows[i].Outcome, rows[i].Version))
	}
	return fmt.Sprintf("%d rows [%s]", len(rows), strings.Join(parts, ", "))
}

func snapshotText(s *store.Snapshot) string {
	if s == nil {
		return "no snapshot"
	}
	return fmt.Sprintf("%s at version %d, revision %d: %.200s", s.Aggregate, s.Version, s.Revision, s.State)
}
