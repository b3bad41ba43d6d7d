package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
)

const (
	commands = "catalog.commands"
	group    = "catalog.processor"
)

// Document is an aggregate whose state and events are as large as its commands: the worst that an application can keep.
type Document struct {
	Text string `json:"text"`
}

// WriteDocument is the body of document.write.
type WriteDocument struct {
	Text string `json:"text"`
}

// DocumentWritten is its event.
type DocumentWritten struct {
	Text string `json:"text"`
}

// contextUnderTest is the catalogue with documents.
func contextUnderTest() *kernel.Context {
	c := catalog.Context()
	document := kernel.Add[Document](c, "document")
	kernel.On(document, "written", func(_ Document, e DocumentWritten) Document { return Document(e) })
	kernel.Handle(document, "write", kernel.Either, func(_ context.Context, _ *kernel.Scope[Document], w WriteDocument) (kernel.Decision, error) {
		return kernel.Events(DocumentWritten(w)), nil
	})
	return c
}

// message is a command and how it is built.
type message = *command.Builder

func create(i int) message {
	return command.New("catalog.brand.create", "memory").Subject(brand(i)).JSON(catalog.CreateBrand{Name: fmt.Sprint("Brand ", i)})
}

// rename gives another of n brands a new name: neither its state nor its keys are at hand.
func rename(i, n int) message {
	return command.New("catalog.brand.rename", "memory").Subject(brand((i * 7919) % n)).JSON(catalog.RenameBrand{Name: fmt.Sprint("Renamed ", i)})
}

func brand(i int) string { return fmt.Sprint("brand-", i) }

// body is as large as a body may be.
const body = 900_000

// huge makes commands that are kept in full, commands that are refused and kept as dead letters, and commands that are
// large without need.
func huge(i int) message {
	switch text := noise(body - 100); i % 3 {
	case 0:
		return command.New("catalog.document.write", "memory").Subject(fmt.Sprint("document-", i)).Body(fmt.Appendf(nil, `{"text":"%s"}`, text))
	case 1:
		return command.New("catalog.brand.create", "memory").Subject(fmt.Sprint("huge-", i)).Body(fmt.Appendf(nil, `{"name":"%s"}`, text))
	default:
		return command.New("catalog.brand.create", "memory").Subject(fmt.Sprint("padded-", i)).
			Body(fmt.Appendf(nil, `{"name":%s"Padded %d"}`, bytes.Repeat([]byte(" "), body-100), i))
	}
}

// noise is text that does not compress well.
func noise(n int) []byte {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	b := make([]byte, n)
	for i := 0; i < n; {
		for bits, left := rand.Uint64(), 0; left < 10 && i < n; i, left, bits = i+1, left+1, bits>>6 {
			b[i] = letters[bits&63]
		}
	}
	return b
}

// produce sends n commands, by key, and waits until all are acknowledged.
func (s *system) produce(ctx context.Context, n int, build func(i int) message) error {
	var mu sync.Mutex
	var fault error
	for i := range n {
		c, err := build(i).Build()
		if err != nil {
			return err
		}
		var r command.Record
		c.Record(&r)
		record := &kgo.Record{Topic: commands, Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		s.client.Produce(ctx, record, func(_ *kgo.Record, err error) {
			if err != nil {
				mu.Lock()
				fault = errors.Join(fault, err)
				mu.Unlock()
			}
		})
	}
	if err := s.client.Flush(ctx); err != nil {
		return err
	}
	return fault
}
