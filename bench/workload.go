package main

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/pkg/command"
)

// minName leaves room for what makes a name unique.
const minName = 40

// workload makes commands that are all committed when they are executed in order: of each four, one creates a brand
// and reserves its name; three are for products, chosen at random, each created by its first command.
type workload struct {
	random    *rand.Rand
	products  []int  // commands so far, by product
	padding   string // longer than a name
	nameBytes int
	made      uint32
	run       string // makes names and IDs differ from those of other workloads
}

func newWorkload(o options, run string) *workload {
	w := &workload{random: rand.New(rand.NewPCG(o.seed, 0)), products: make([]int, o.aggregates), nameBytes: o.nameBytes, run: run}
	// Names that compress like text do, or the broker's log and the fetches would be unlike any.
	const letters = "abcdefghijklmnopqrstuvwxyz      "
	padding := make([]byte, 64<<10)
	for i := range padding {
		padding[i] = letters[w.random.IntN(len(letters))]
	}
	w.padding = string(padding)
	return w
}

// take makes the next n commands as records of the topic.
func (w *workload) take(n int, topic string) ([]*kgo.Record, error) {
	records := make([]*kgo.Record, n)
	for i := range records {
		typ, subject, body := w.next()
		r, err := w.record(topic, typ, subject, body)
		if err != nil {
			return nil, err
		}
		records[i] = r
	}
	return records, nil
}

func (w *workload) next() (typ, subject string, body any) {
	if w.made%4 == 0 {
		subject = fmt.Sprintf("brand-%s-%d", w.run, w.made)
		return "catalog.brand.create", subject, catalog.CreateBrand{Name: w.padded(subject)}
	}
	p := w.random.IntN(len(w.products))
	subject = fmt.Sprintf("product-%s-%d", w.run, p)
	version := w.products[p]
	w.products[p]++
	switch {
	case version == 0:
		return "catalog.product.create", subject, catalog.CreateProduct{
			Name: w.padded(subject), Brand: "brand-0", Category: "category-0", Price: "1.00", Stock: 1_000_000,
		}
	case version%3 == 0:
		// Another price than before, or there would be nothing to do.
		return "catalog.product.change-price", subject, catalog.ChangePrice{Price: catalog.Price(fmt.Sprintf("%d.50", version))}
	case version%3 == 1:
		return "catalog.product.add-stock", subject, catalog.AddStock{Quantity: 1 + w.random.Int64N(99)}
	}
	return "catalog.product.take-stock", subject, catalog.TakeStock{Quantity: 1 + w.random.Int64N(9)}
}

// hot makes n commands for one product: it is created, and then only added to.
func (w *workload) hot(n int, topic string) ([]*kgo.Record, error) {
	records := make([]*kgo.Record, n)
	for i := range records {
		typ, body := "catalog.product.add-stock", any(catalog.AddStock{Quantity: 1 + w.random.Int64N(99)})
		if i == 0 {
			typ, body = "catalog.product.create", catalog.CreateProduct{Name: "Hot", Price: "1.00"}
		}
		r, err := w.record(topic, typ, "product-"+w.run, body)
		if err != nil {
			return nil, err
		}
		records[i] = r
	}
	return records, nil
}

// padded lengthens a name to its size. It ends with no space, which would be trimmed from the key.
func (w *workload) padded(name string) string {
	at := w.random.IntN(len(w.padding) - w.nameBytes)
	return name + w.padding[at:at+w.nameBytes-len(name)-1] + "."
}

func (w *workload) record(topic, typ, subject string, body any) (*kgo.Record, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	// The last of its random bits count instead, as RFC 9562 allows: whoever reads a reply finds the command by them.
	binary.BigEndian.PutUint32(id[12:], w.made)
	w.made++
	c, err := command.New(typ, "bench").ID(id.String()).Subject(subject).JSON(body).Build()
	if err != nil {
		return nil, err
	}
	var r command.Record
	c.Record(&r)
	headers := make([]kgo.RecordHeader, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = kgo.RecordHeader{Key: h.Key, Value: h.Value}
	}
	return &kgo.Record{Topic: topic, Key: r.Key, Value: r.Value, Headers: headers}, nil
}

// numberOf is the number of the command with this request ID, in the order in which its workload made them.
func numberOf(requestID []byte) (uint32, bool) {
	var n [4]byte
	if len(requestID) != 36 {
		return 0, false
	}
	if _, err := hex.Decode(n[:], requestID[28:]); err != nil {
		return 0, false
	}
	return binary.BigEndian.Uint32(n[:]), true
}
