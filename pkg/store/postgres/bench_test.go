package postgres

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed54173720/writ/internal/pgtest"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/dedupe"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

const (
	benchStreams   = 2     // writers, and connections that copy
	benchGroup     = 1_000 // rows a transaction
	benchRound     = 20    // groups a stream, before the other kind has its turn
	benchAggregate = 5_000 // of each stream
)

// BenchmarkCommit measures the commit path alone against raw COPY of the same kind of rows, encoded beforehand, into
// the same table, in turns: the machine's other load falls on both. An iteration is a row of each.
func BenchmarkCommit(b *testing.B) {
	url, schema := pgtest.Schema(b)
	cfg := Config{URL: url, Schema: schema, Writers: benchStreams}
	if err := Migrate(b.Context(), cfg); err != nil {
		b.Fatal(err)
	}
	s, err := Open(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)

	var committing, copying time.Duration
	var rows int
	makers := make([]*maker, 2*benchStreams)
	conns := make([]*pgx.Conn, benchStreams)
	for i := range makers {
		makers[i] = &maker{name: fmt.Sprint("stream ", i), versions: make([]int64, benchAggregate)}
	}
	for i := range conns {
		if conns[i], err = pgx.ConnectConfig(b.Context(), s.postgres); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { conns[i].Close(context.Background()) })
	}
	for round := 0; rows < b.N || round < 2; round++ {
		groups := make([][][]store.Unit, 2*benchStreams)
		for i := range groups {
			for range benchRound {
				groups[i] = append(groups[i], makers[i].group())
			}
		}
		encoded := make([][][]byte, benchStreams)
		for i := range encoded {
			for _, units := range groups[i] {
				encoded[i] = append(encoded[i], encodeCopy(units))
			}
		}
		copyAll := func() time.Duration {
			return together(func(i int) error {
				for _, data := range encoded[i] {
					if _, err := conns[i].PgConn().CopyFrom(b.Context(), bytes.NewReader(data), copyRows.sql); err != nil {
						return err
					}
				}
				return nil
			})
		}
		commitAll := func() time.Duration {
			return together(func(i int) error {
				for _, units := range groups[benchStreams+i] {
					fates, err := s.Commit(b.Context(), units)
					if err != nil {
						return err
					}
					for _, fate := range fates {
						if fate.Verdict != store.Done {
							return fmt.Errorf("fate %v", fate)
						}
					}
				}
				return nil
			})
		}
		var copied, committed time.Duration
		if round%2 == 0 {
			copied, committed = copyAll(), commitAll()
		} else {
			committed, copied = commitAll(), copyAll()
		}
		if round == 0 {
			continue // warm up
		}
		rows += benchStreams * benchRound * benchGroup
		copying += copied
		committing += committed
	}
	b.ReportMetric(float64(rows)/copying.Seconds(), "copied/s")
	b.ReportMetric(float64(rows)/committing.Seconds(), "committed/s")
	b.ReportMetric(copying.Seconds()/committing.Seconds(), "of-copy")
	b.ReportMetric(0, "ns/op")
}

// together runs f for each stream at once and returns how long the last took.
func together(f func(i int) error) time.Duration {
	var streams sync.WaitGroup
	start := time.Now()
	for i := range benchStreams {
		streams.Go(func() {
			if err := f(i); err != nil {
				panic(err)
			}
		})
	}
	streams.Wait()
	return time.Since(start)
}

func encodeCopy(units []store.Unit) []byte {
	b := []byte(copyHeader)
	for i := range units {
		for j := range units[i].Rows {
			b = appendRow(b, &units[i].Rows[j])
		}
	}
	return append(b, 0xff, 0xff)
}

// maker makes groups of units of one row each: a quarter create an aggregate and take its name, the others change
// one of those.
type maker struct {
	name     string
	versions []int64
	made     int
	created  int
}

func (m *maker) group() []store.Unit {
	units := make([]store.Unit, benchGroup)
	for i := range units {
		m.made++
		if m.made%4 == 0 {
			m.created++
			units[i] = m.unit(fmt.Sprintf("new %s %d", m.name, m.created), 1)
			key := keys.Key{Namespace: "brand-name", Name: fmt.Sprintf("%s %d", m.name, m.created)}
			units[i].Take = []keys.Key{key}
			units[i].Rows[0].Taken = units[i].Take
			continue
		}
		n := m.made % benchAggregate
		m.versions[n]++
		units[i] = m.unit(fmt.Sprintf("%s %d", m.name, n), m.versions[n])
	}
	return units
}

var benchData = []byte(`{"name":"` + strings.Repeat("x", 200) + `"}`)

func (m *maker) unit(id string, version int64) store.Unit {
	a := command.Aggregate{Type: "brand", ID: id}
	requestID := uuid.Must(uuid.NewV7()).String()
	request := command.RequestDigest(a.Type, a.Tenant, requestID)
	return store.Unit{
		Stream:    a.Stream(),
		Aggregate: a,
		Rows: []store.Row{{
			Recorded: dedupe.Recorded{
				Outcome:     command.Committed,
				FromRecord:  true,
				Position:    command.Position{TopicID: [16]byte{1}, Partition: 1, Offset: int64(m.made)},
				Fingerprint: command.Digest(uuid.New()),
			},
			Request:   request,
			Stream:    a.Stream(),
			Version:   version,
			Time:      time.Now(),
			Type:      "catalog.brand.rename",
			Aggregate: a,
			RequestID: requestID,
			Caller:    "bench",
			Events:    []command.Event{{Type: "renamed", Revision: 1, Data: benchData}},
		}},
	}
}

// BenchmarkEncode shows that rows are encoded without allocating.
func BenchmarkEncode(b *testing.B) {
	units := (&maker{name: "encode", versions: make([]int64, benchAggregate)}).group()
	p := &pipeline{}
	c := &committer{pipe: p, units: units}
	all := make([]int, len(units))
	for i := range all {
		all[i] = i
	}
	c.encode(group{units: all})
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += len(units) {
		c.encode(group{units: all})
	}
	b.ReportMetric(float64(len(p.buf))/float64(len(units)), "B/row")
}

// BenchmarkLookup measures the reads of a thousand lanes at once, on a journal that holds many more.
func BenchmarkLookup(b *testing.B) {
	url, schema := pgtest.Schema(b)
	cfg := Config{URL: url, Schema: schema}
	if err := Migrate(b.Context(), cfg); err != nil {
		b.Fatal(err)
	}
	s, err := Open(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	m := &maker{name: "lookup", versions: make([]int64, benchAggregate)}
	var units []store.Unit
	for range 60 {
		units = m.group()
		if _, err := s.Commit(b.Context(), units); err != nil {
			b.Fatal(err)
		}
	}
	var known, unknown []store.Lookup
	var streams []command.Digest
	var asked []store.Asked
	var held, free []keys.Key
	for i := range units {
		row := &units[i].Rows[0]
		known = append(known, store.Lookup{Request: row.Request, FromRecord: true, Position: row.Position})
		unknown = append(unknown, store.Lookup{Request: command.Digest(uuid.New()), FromRecord: true, Position: row.Position})
		streams = append(streams, row.Stream)
		asked = append(asked, store.Asked{Stream: row.Stream, Revision: 1})
		held = append(held, units[i].Take...)
		free = append(free, keys.Key{Namespace: "brand-name", Name: row.RequestID})
	}
	for _, read := range []struct {
		name string
		size int
		run  func() error
	}{
		{"new requests", len(unknown), func() error { _, err := s.Requests(b.Context(), unknown); return err }},
		{"known requests", len(known), func() error { _, err := s.Requests(b.Context(), known); return err }},
		{"heads", len(streams), func() error { _, err := s.Heads(b.Context(), streams); return err }},
		{"free keys", len(free), func() error { _, err := s.Holders(b.Context(), free); return err }},
		{"held keys", len(held), func() error { _, err := s.Holders(b.Context(), held); return err }},
		{"aggregates", len(asked), func() error { _, err := s.Load(b.Context(), asked); return err }},
	} {
		b.Run(read.name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for ; n < b.N; n += read.size {
				if err := read.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
