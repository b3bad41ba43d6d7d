package main

import (
	"io"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel/kerneltest"
)

func smallOptions(t *testing.T) options {
	t.Helper()
	o, err := parse([]string{"-aggregates=20"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestEveryCommandOfAWorkloadIsCommitted(t *testing.T) {
	t.Parallel()
	w := newWorkload(smallOptions(t), "test")
	shop := kerneltest.For(t, catalog.Context())
	brands := 0
	for range 600 {
		typ, subject, body := w.next()
		w.made++
		if b, ok := body.(catalog.CreateBrand); ok {
			brands++
			if len(b.Name) != w.nameBytes {
				t.Errorf("name of %d bytes, want %d: %q", len(b.Name), w.nameBytes, b.Name)
			}
		}
		shop.Given(typ, subject, body) // which fails the test where it is not committed
	}
	if brands != 150 {
		t.Errorf("%d of 600 commands create a brand, want a quarter", brands)
	}
}

func TestARepliesRequestIDTellsItsCommand(t *testing.T) {
	t.Parallel()
	w := newWorkload(smallOptions(t), "test")
	records, err := w.take(300, writCommands)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range records {
		var c command.Command
		record := command.Record{Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			record.Headers = append(record.Headers, command.Header{Key: h.Key, Value: h.Value})
		}
		if refusal := command.Read(&c, "catalog", &record); refusal != nil {
			t.Fatalf("record %d: %v", i, refusal.Err.Message)
		}
		if n, ok := numberOf([]byte(c.RequestID())); !ok || int(n) != i {
			t.Errorf("request %s is number %d, %v; want %d", c.RequestID(), n, ok, i)
		}
	}
	if _, ok := numberOf([]byte("another")); ok {
		t.Error("a request ID of somebody else has a number")
	}
}

func TestHotCommandsAreForOneProduct(t *testing.T) {
	t.Parallel()
	records, err := newWorkload(smallOptions(t), "test").hot(50, writCommands)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range records {
		var body catalog.AddStock
		if string(r.Key) != "product/product-test" {
			t.Errorf("record %d is for %s", i, r.Key)
		}
		if err := json.Unmarshal(r.Value, &body); i > 0 && (err != nil || body.Quantity < 1) {
			t.Errorf("record %d adds %s: %v", i, r.Value, err)
		}
	}
}
