package main

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed54173720/writ/internal/pgtest"
)

// The loop is a fair opponent only if it keeps its promises: each row is a command, one after the other.
func TestTheLoopAnswersRepeatsAndRefusesWhatItMust(t *testing.T) {
	t.Parallel()
	url, _ := pgtest.Schema(t)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), loopTables); err != nil {
		t.Fatal(err)
	}
	l := &loop{pool: pool}
	caches := map[string]map[string]state{"": {}}
	ids := map[string]string{}
	for _, row := range []struct {
		name, request, cache, typ, aggregate, body string
		want                                       answer
	}{
		{"a brand", "1", "", "brand.create", "brand/1", `{"name":"Acme"}`, answer{Outcome: "committed", Version: 1}},
		{"its repeat", "1", "", "brand.create", "brand/1", `{"name":"Acme"}`, answer{Outcome: "committed", Version: 1, Duplicate: true}},
		{"its repeat after a restart", "1", "new", "brand.create", "brand/1", `{"name":"Acme"}`, answer{Outcome: "committed", Version: 1, Duplicate: true}},
		{"a taken name", "2", "", "brand.create", "brand/2", `{"name":"Acme"}`, answer{Outcome: "rejected", Code: "name-taken"}},
		{"the brand again", "3", "another", "brand.create", "brand/1", `{"name":"Apex"}`, answer{Outcome: "rejected", Code: "already-exists", Version: 1}},
		{"a product", "4", "", "product.create", "product/1", `{"name":"Saw","price":"1","stock":5}`, answer{Outcome: "committed", Version: 1}},
		{"more of it", "5", "", "product.add-stock", "product/1", `{"quantity":2}`, answer{Outcome: "committed", Version: 2}},
		{"all of it after a restart", "6", "third", "product.take-stock", "product/1", `{"quantity":7}`, answer{Outcome: "committed", Version: 3}},
		{"too much, by one who knows an old state", "7", "", "product.take-stock", "product/1", `{"quantity":1}`, answer{Outcome: "rejected", Code: "out-of-stock", Version: 3}},
		{"the repeat of what is not possible now", "6", "", "product.take-stock", "product/1", `{"quantity":7}`, answer{Outcome: "committed", Version: 3, Duplicate: true}},
		{"nothing there", "8", "", "product.add-stock", "product/2", `{"quantity":1}`, answer{Outcome: "rejected", Code: "not-found"}},
	} {
		if ids[row.request] == "" {
			ids[row.request] = uuid.NewString()
		}
		if caches[row.cache] == nil {
			caches[row.cache] = map[string]state{}
		}
		c := request{id: ids[row.request], typ: "catalog." + row.typ, aggregate: row.aggregate, body: []byte(row.body)}
		got, err := l.execute(t.Context(), caches[row.cache], c)
		for tries := 0; err != nil && tries < 3; tries++ {
			if !strings.Contains(err.Error(), "event_version") {
				t.Fatalf("%s: %v", row.name, err)
			}
			got, err = l.execute(t.Context(), caches[row.cache], c)
		}
		row.want.RequestID, row.want.Aggregate = c.id, c.aggregate
		if err != nil || got != row.want {
			t.Errorf("%s: got %+v, %v; want %+v", row.name, got, err, row.want)
		}
	}
}
