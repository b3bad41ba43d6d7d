package tests

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/tests/model"
)

// draft is a record to be sent.
type draft struct {
	known     model.Record // what its sender knows of it
	record    command.Record
	partition int32 // -1: by key
}

// on is the draft for an explicit partition, without key.
func (d draft) on(partition int32) draft {
	d.record.Key, d.partition = nil, partition
	return d
}

// drafted builds the command; wants is the key that it asks for, if any.
func drafted(t *testing.T, b *command.Builder, wants *keys.Key) draft {
	t.Helper()
	c, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	d := draft{partition: -1, known: model.Record{
		RequestID: c.RequestID(), Tenant: c.Tenant(), Aggregate: c.Aggregate(), WaitFor: c.WaitFor(), Wants: wants,
		Asked: fmt.Sprintf("%s %s %s %s", c.Type(), c.Aggregate(), c.Caller(), c.Body()),
	}}
	c.Record(&d.record)
	return d
}

func brandKey(name string) *keys.Key {
	return &keys.Key{Namespace: "brand-name", Name: keys.Fold(name)}
}

func createBrand(t *testing.T, request, id, name string) draft {
	return drafted(t, command.New("catalog.brand.create", "test").ID(request).Subject(id).JSON(catalog.CreateBrand{Name: name}), brandKey(name))
}

// workload makes commands of all kinds, with repeats and poison among them; equal seeds make equal ones.
type workload struct {
	t          *testing.T
	rnd        *rand.Rand
	partitions int32
	n          int // for names that nobody has used
	repeats    int
	sent       []draft // what may be repeated
	brands     []string
	products   []string
}

// next returns one draft or a few that belong together: to be sent at once.
func (w *workload) next() []draft {
	if len(w.sent) > 50 && w.rnd.IntN(100) < 6 {
		w.repeats++
		return []draft{w.somewhere(w.sent[max(0, len(w.sent)-1-w.rnd.IntN(300))])}
	}
	drafts := w.fresh()
	if d := drafts[0]; d.known.RequestID != "" && w.rnd.IntN(100) < 7 {
		w.repeats++
		drafts = append(drafts, w.somewhere(d))
	}
	for _, d := range drafts {
		if d.known.RequestID != "" {
			w.sent = append(w.sent, d)
		}
	}
	return drafts
}

// somewhere sends a repeat where the first went, or to any other partition.
func (w *workload) somewhere(d draft) draft {
	if w.rnd.IntN(2) == 0 {
		return d
	}
	return d.on(w.rnd.Int32N(w.partitions))
}

func (w *workload) fresh() []draft {
	w.n++
	id, request := fmt.Sprintf("a-%d", w.n), fmt.Sprintf("request-%d", w.n)
	one := func(d draft) []draft { return []draft{d} }
	build := func(typ, subject string, body any, wants *keys.Key) []draft {
		b := command.New("catalog."+typ, "test").ID(request).Subject(subject).JSON(body)
		switch w.rnd.IntN(20) {
		case 0:
			b.ReplyTo("catalog.replies").ReplyPartition(w.rnd.Int32N(w.partitions))
		case 1:
			b.WaitFor(command.StageSnapshot)
		}
		return one(drafted(w.t, b, wants))
	}
	switch n := w.rnd.IntN(100); {
	case n < 18 || len(w.brands) < 20:
		w.brands = append(w.brands, id)
		return one(createBrand(w.t, request, id, "Brand "+id))
	case n < 24: // a name that others want too
		name := w.common()
		w.brands = append(w.brands, id)
		return one(createBrand(w.t, request, id, name))
	case n < 28: // two for one new name, at once, in two partitions
		first := w.rnd.Int32N(w.partitions)
		a := createBrand(w.t, request, id, "Duel "+id).on(first)
		b := createBrand(w.t, request+"-rival", id+"-rival", "DUEL "+id).on((first + 1) % w.partitions)
		return []draft{a, b}
	case n < 38:
		name := w.common()
		return build("brand.rename", w.brand(), catalog.RenameBrand{Name: name}, brandKey(name))
	case n < 42:
		return build("brand.release-name", w.brand(), catalog.ReleaseBrandName{}, nil)
	case n < 45: // never created, or long after
		return build("brand.rename", "nobody-"+id, catalog.RenameBrand{Name: "Nobody"}, nil)
	case n < 47:
		return build("brand.create", id, catalog.CreateBrand{Name: "  "}, nil)
	case n < 57 || len(w.products) < 20:
		w.products = append(w.products, id)
		return build("product.create", id, catalog.CreateProduct{Name: "Product " + id, Brand: "b", Category: "c", Price: "9.99", Stock: 3}, nil)
	case n < 70:
		return build("product.add-stock", w.product(), catalog.AddStock{Quantity: 1 + w.rnd.Int64N(3)}, nil)
	case n < 84:
		return build("product.take-stock", w.product(), catalog.TakeStock{Quantity: 1 + w.rnd.Int64N(8)}, nil)
	case n < 89:
		return build("product.change-price", w.product(), catalog.ChangePrice{Price: catalog.Price(fmt.Sprintf("%d.50", w.rnd.IntN(2)))}, nil)
	case n < 91:
		return one(draft{partition: w.rnd.Int32N(w.partitions), record: poison[w.rnd.IntN(len(poison))]})
	case n < 93: // readable, and refused for what it is
		d := build("product.add-stock", w.product(), map[string]any{"quantity": "many"}, nil)
		return d
	case n < 94:
		d := build("product.add-stock", w.product(), catalog.AddStock{Quantity: 1}, nil)
		d[0].record.Key = []byte("brand/somebody-else")
		return d
	case n < 96: // another command under the ID of an earlier one
		earlier := w.sent[w.rnd.IntN(len(w.sent))].known
		if earlier.Aggregate.Type != "product" {
			return build("category.create", id, catalog.CreateCategory{Name: "Category " + id}, nil)
		}
		request = earlier.RequestID
		return build("product.add-stock", earlier.Aggregate.ID, catalog.AddStock{Quantity: 1000}, nil)
	default:
		return build("category.create", id, catalog.CreateCategory{Name: "Category " + id}, nil)
	}
}

func (w *workload) common() string { return fmt.Sprintf("Common %d", w.rnd.IntN(60)) }
func (w *workload) brand() string  { return w.recent(w.brands) }

// product is one of the last, or the one that grows old enough for snapshots.
func (w *workload) product() string {
	if w.rnd.IntN(8) == 0 {
		return w.products[0]
	}
	return w.recent(w.products)
}

// recent prefers the last ones: they are in flight.
func (w *workload) recent(ids []string) string { return ids[max(0, len(ids)-1-w.rnd.IntN(60))] }

// poison are records that nobody can read a command from.
var poison = []command.Record{
	{},
	{Value: []byte("not a command")},
	{Value: []byte(`{"specversion":"1.0","type":"catalog.brand.create"}`), Headers: []command.Header{{Key: "content-type", Value: []byte("application/cloudevents+json")}}},
	{Key: []byte("brand/1"), Value: []byte{0xff, 0xfe, 0}},
	{Value: []byte(`{}`), Headers: []command.Header{{Key: "ce_specversion", Value: []byte("1.0")}, {Key: "ce_type", Value: []byte("catalog.brand.create")}}},
}
