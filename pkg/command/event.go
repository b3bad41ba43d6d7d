package command

import (
	"strconv"
	"time"
)

// Event is what a decision records: its registered name within the aggregate
// type, the revision of its form, and its data, a JSON value.
type Event struct {
	Type     string
	Revision int
	Data     []byte
}

// EventRecord is an event as it goes to the events topic. Its address is
// (aggregate, version, index). A reader keeps the highest address per aggregate:
// a lower one is a repeat; Count says whether more of the version follow.
type EventRecord struct {
	Context   string
	Aggregate Aggregate
	Version   int64 // of the aggregate, after the commit
	Index     int   // of the event within its commit, from 0
	Count     int   // of events in the commit
	Event     Event

	Time          time.Time // of the commit
	CausationID   string    // the request ID of the command
	CorrelationID string    // the command's, else its request ID
}

// Record writes e to dst as a CloudEvent in binary mode, keyed by the
// aggregate's address. It is a function of e, so that a repeat is the same
// record.
func (e *EventRecord) Record(dst *Record) {
	dst.reset()
	address := e.Aggregate.appendAddress(make([]byte, 0, 64))
	dst.Key, dst.Value = address, e.Event.Data

	id := append(make([]byte, 0, len(address)+24), address...)
	id = append(strconv.AppendInt(append(id, '/'), e.Version, 10), '/')
	id = strconv.AppendInt(id, int64(e.Index), 10)
	dst.Headers = append(dst.Headers,
		Header{contentType, valueJSON},
		Header{"ce_specversion", valueSpecVersion},
		Header{"ce_id", id},
		Header{"ce_source", []byte(e.Context)},
		Header{"ce_type", []byte(e.Context + "." + e.Aggregate.Type + "." + e.Event.Type)},
		Header{"ce_subject", []byte(e.Aggregate.ID)},
		Header{"ce_time", e.Time.UTC().AppendFormat(nil, time.RFC3339Nano)},
		Header{"ce_version", strconv.AppendInt(nil, e.Version, 10)},
		Header{"ce_index", strconv.AppendInt(nil, int64(e.Index), 10)},
		Header{"ce_count", strconv.AppendInt(nil, int64(e.Count), 10)},
		Header{"ce_revision", strconv.AppendInt(nil, int64(e.Event.Revision), 10)},
	)
	for _, h := range [...]struct{ key, value string }{
		{"ce_tenant", e.Aggregate.Tenant},
		{"ce_correlationid", e.CorrelationID},
		{"ce_causationid", e.CausationID},
	} {
		if h.value != "" {
			dst.Headers = append(dst.Headers, Header{h.key, []byte(h.value)})
		}
	}
}
