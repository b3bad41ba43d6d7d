package store

import (
	"bytes"
	"maps"
	"slices"
)

// Clone returns a unit that shares no memory with u.
func (u Unit) Clone() Unit {
	u.Rows = slices.Clone(u.Rows)
	for i := range u.Rows {
		u.Rows[i] = u.Rows[i].Clone()
	}
	u.Replaced = slices.Clone(u.Replaced)
	u.Take = slices.Clone(u.Take)
	u.Release = slices.Clone(u.Release)
	if u.Snapshot != nil {
		snapshot := u.Snapshot.Clone()
		u.Snapshot = &snapshot
	}
	return u
}

// Clone returns a row that shares no memory with r.
func (r Row) Clone() Row {
	r.Events = slices.Clone(r.Events)
	for i := range r.Events {
		r.Events[i].Data = bytes.Clone(r.Events[i].Data)
	}
	r.Taken = slices.Clone(r.Taken)
	r.Released = slices.Clone(r.Released)
	if r.Error != nil {
		refusal := *r.Error
		refusal.Fields = maps.Clone(refusal.Fields)
		r.Error = &refusal
	}
	r.Result = bytes.Clone(r.Result)
	return r
}

// Clone returns a snapshot that shares no memory with s.
func (s Snapshot) Clone() Snapshot {
	s.State = bytes.Clone(s.State)
	return s
}
