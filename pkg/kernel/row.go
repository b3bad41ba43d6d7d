package kernel

import (
	"github.com/seed54173720/writ/pkg/store"
)

// begin fills the item's row but for its outcome. It sets the fields one by one: rows are large, and most fields are
// empty in most rows.
func (i *Item) begin(row *store.Row) {
	c := i.Command
	*row = store.Row{}
	row.FromRecord, row.Position, row.Fingerprint = i.FromRecord, i.Position, c.Fingerprint()
	row.Request, row.Stream, row.Time = c.Request(), c.Stream(), i.now
	row.Type, row.Aggregate, row.Owner, row.Space = c.Type(), c.Aggregate(), c.Owner(), c.Space()
	row.RequestID, row.Caller = c.RequestID(), c.Caller()
	m := &row.Meta
	m.CorrelationID, m.CausationID, m.TraceParent = c.CorrelationID(), c.CausationID(), c.TraceParent()
	m.ReplyTo, m.ReplyPartition, m.Stage = c.ReplyTo(), -1, c.WaitFor()
	if p, ok := c.ReplyPartition(); ok {
		m.ReplyPartition = p
	}
	i.Row = row
}
