package kernel_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel/kerneltest"
	"github.com/seed54173720/writ/pkg/store"
	"github.com/seed54173720/writ/pkg/store/memory"
)

// damaged is a store whose journal has lost a version of an aggregate.
type damaged struct {
	*memory.Store
	stream  command.Digest
	version int64
}

func (d *damaged) Load(ctx context.Context, asked []store.Asked) ([]store.Stream, error) {
	streams, err := d.Store.Load(ctx, asked)
	for i := range asked {
		if asked[i].Stream == d.stream {
			streams[i].Tail = slices.DeleteFunc(streams[i].Tail, func(r store.Row) bool { return r.Version == d.version })
		}
	}
	return streams, err
}

// A gap once made the whole batch's look-up fail: every other lane waited for ever.
func TestGapInAJournalFailsItsOwnAggregateOnly(t *testing.T) {
	t.Parallel()
	s := &damaged{Store: memory.New(), stream: command.Aggregate{Type: "brand", ID: "1"}.Stream(), version: 2}
	send := func(offset int64, typ, subject string, body any) kerneltest.Record {
		c, err := command.New(typ, "test").Subject(subject).JSON(body).Build()
		if err != nil {
			t.Fatal(err)
		}
		return kerneltest.Record{Command: c, Position: command.Position{Offset: offset}}
	}
	before := kerneltest.NewRunner(catalog.Context(), s)
	if _, err := before.Process(t.Context(),
		send(1, "catalog.brand.create", "1", catalog.CreateBrand{Name: "One"}),
		send(2, "catalog.brand.rename", "1", catalog.RenameBrand{Name: "Uno"}),
		send(3, "catalog.brand.rename", "1", catalog.RenameBrand{Name: "Un"}),
		send(4, "catalog.brand.create", "2", catalog.CreateBrand{Name: "Two"}),
	); err != nil {
		t.Fatal(err)
	}
	after := kerneltest.NewRunner(catalog.Context(), s) // nothing cached
	replies, err := after.Process(t.Context(),
		send(5, "catalog.brand.rename", "1", catalog.RenameBrand{Name: "Eins"}),
		send(6, "catalog.brand.rename", "2", catalog.RenameBrand{Name: "Zwei"}),
	)
	if err != nil {
		t.Fatal(err)
	}
	if replies[0].Outcome != command.Failed || !strings.Contains(replies[0].Error.Message, "version 2 is missing") {
		t.Errorf("the damaged aggregate: got %v %v, want it failed for version 2", replies[0].Outcome, replies[0].Error)
	}
	if replies[1].Outcome != command.Committed {
		t.Errorf("its neighbour: got %v %v, want committed", replies[1].Outcome, replies[1].Error)
	}
}
