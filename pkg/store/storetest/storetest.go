// Package storetest is the conformance suite of a store: what passes Run keeps the contract of package store. It also
// has Faulty, which makes any store fail in the ways a store can, and Benchmark.
package storetest

import (
	"testing"

	"github.com/seed54173720/writ/pkg/store"
)

// Store is what the suite tests.
type Store interface {
	store.Store
	store.Reader
}

// Run tests the store that open returns. It calls open once and shares the store among parallel tests, which keep
// apart by their tenants; others may use the store meanwhile. Ending the store is for open's t.Cleanup.
//
// The random tests of the suite print how to repeat a failure (-rapid.seed); -rapid.checks says how long they go on.
// With -short the suite does less of what takes long.
func Run(t *testing.T, open func(t *testing.T) Store) {
	s := open(t)
	for _, group := range []struct {
		name  string
		cases []claim
	}{
		{"requests", requestCases},
		{"load", loadCases},
		{"keys", keyCases},
		{"commit", commitCases},
		{"replaced", replacedCases},
		{"exact", exactCases},
		{"progress", progressCases},
		{"reader", readerCases},
		{"races", raceCases},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.run(t, newWorld(t, s))
				})
			}
		})
	}
	t.Run("answers", func(t *testing.T) {
		t.Parallel()
		testAnswers(t, s)
	})
	t.Run("model", func(t *testing.T) {
		t.Parallel()
		testModel(t, s)
	})
}

// claim is one rule of the contract and the test that a store keeps it.
type claim struct {
	name string
	run  func(t *testing.T, w *world)
}
