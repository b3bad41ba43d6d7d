package kernel

import (
	"reflect"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/dedupe"
	"github.com/seed54173720/writ/pkg/store"
)

// newRow is the item's row without its outcome.
func newRow(i *Item) store.Row {
	c := i.Command
	return store.Row{
		Recorded: dedupe.Recorded{FromRecord: i.FromRecord, Position: i.Position, Fingerprint: c.Fingerprint()},
		Request:  c.Request(), Stream: c.Stream(), Time: i.now,
		Type: c.Type(), Aggregate: c.Aggregate(), Owner: c.Owner(), Space: c.Space(),
		RequestID: c.RequestID(), Caller: c.Caller(),
		Meta: meta(c),
	}
}

func meta(c *command.Command) store.Meta {
	m := store.Meta{
		CorrelationID: c.CorrelationID(), CausationID: c.CausationID(), TraceParent: c.TraceParent(),
		ReplyTo: c.ReplyTo(), ReplyPartition: -1, Stage: c.WaitFor(),
	}
	if p, ok := c.ReplyPartition(); ok {
		m.ReplyPartition = p
	}
	return m
}

func (a *aggregate) eventType(e any) *eventType { return a.byType[reflect.TypeOf(e)] }
