package storetest

import (
	"fmt"
	"testing"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// Benchmark measures the store that open returns: Commit by the number of units, a row each and a key in every fourth,
// and each read at 1,000 names a call. It reports rows (or names) per second.
func Benchmark(b *testing.B, open func(b *testing.B) Store) {
	s := open(b)
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("commit/%d", n), func(b *testing.B) {
			w := newWorld(b, s)
			round := 0
			for b.Loop() {
				b.StopTimer()
				units := w.benchUnits(round, n)
				round++
				b.StartTimer()
				w.do(units...)
			}
			perSecond(b, n)
		})
	}

	const n = 1000
	w := newWorld(b, s)
	units := w.benchUnits(0, n)
	w.do(units...)
	hits, misses := make([]store.Lookup, n), make([]store.Lookup, n)
	asked, streams, names := make([]store.Asked, n), make([]command.Digest, n), make([]keys.Key, n)
	for i := range units {
		hits[i] = of(units[i].Rows[0])
		misses[i] = store.Lookup{Request: w.request(fmt.Sprint("new ", i)), FromRecord: true, Position: w.position()}
		asked[i], streams[i] = store.Asked{Stream: units[i].Stream, Revision: 1}, units[i].Stream
		names[i] = w.key(fmt.Sprintf("0 %d", i))
	}
	for _, read := range []struct {
		name string
		call func()
	}{
		{"requests/new", func() { w.find(misses...) }},
		{"requests/recorded", func() { w.find(hits...) }},
		{"load", func() { w.loadAll(asked...) }},
		{"heads", func() { w.heads(streams...) }},
		{"holders", func() { w.holders(names...) }},
	} {
		b.Run(read.name, func(b *testing.B) {
			for b.Loop() {
				read.call()
			}
			perSecond(b, n)
		})
	}
}

func perSecond(b *testing.B, n int) {
	b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds(), "rows/s")
}

// benchUnits builds a unit for each of n new aggregates, with an event of about 250 bytes.
func (w *world) benchUnits(round, n int) []store.Unit {
	units := make([]store.Unit, n)
	for i := range units {
		name := fmt.Sprintf("%d %d", round, i)
		row := w.committed(w.aggregate(name), name, 1)
		row.Events[0].Data = fmt.Appendf(nil, `{"name":"%-230s"}`, name)
		if i%4 == 0 {
			row = taking(row, w.key(name))
		}
		units[i] = unit(row)
	}
	return units
}
