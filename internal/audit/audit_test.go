package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/internal/pgtest"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/kernel/kerneltest"
	"github.com/seed54173720/writ/pkg/store"
	"github.com/seed54173720/writ/pkg/store/memory"
	"github.com/seed54173720/writ/pkg/store/postgres"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.Fast) }

// fill executes commands of every outcome: acme has two versions and a snapshot, beta was refused once and then
// created under the same request ID, and lamp has many versions.
func fill(t *testing.T, s store.Store) {
	t.Helper()
	r := kerneltest.NewRunner(catalog.Context(), s)
	r.Kernel.SnapshotEvery = 2
	offset := int64(0)
	send := func(request, typ, subject, body string) {
		t.Helper()
		c, err := command.New("catalog."+typ, "test").ID(request).Subject(subject).Body([]byte(body)).Build()
		if err != nil {
			t.Fatal(err)
		}
		offset++
		record := kerneltest.Record{Command: c, Position: command.Position{TopicID: [16]byte{1}, Partition: 3, Offset: offset}}
		if _, err := r.Process(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	send("create-acme", "brand.create", "acme", `{"name":"Acme"}`)
	send("create-beta", "brand.create", "beta", `{"name":" ACME "}`)
	send("create-beta", "brand.create", "beta", `{"name":"Beta"}`)
	send("rename-acme", "brand.rename", "acme", `{"name":"Apex"}`)
	send("same-name", "brand.rename", "acme", `{"name":"Apex"}`)
	send("create-lamp", "product.create", "lamp", `{"name":"Lamp","brand":"acme","category":"","price":"1","stock":1}`)
	for n := range 5 {
		send(fmt.Sprintf("add-%d", n), "product.add-stock", "lamp", `{"quantity":1}`)
	}
	send("take-lamp", "product.take-stock", "lamp", `{"quantity":100}`)
}

var filled = Summary{
	Aggregates: 3, Rows: 12, Committed: 9, Nothing: 1, Rejected: 2, Reservations: 2, Snapshots: 2,
}

// database returns a filled store and a session that damages it.
func database(t *testing.T) (*postgres.Store, *pgx.Conn) {
	t.Helper()
	url, schema := pgtest.Schema(t)
	cfg := postgres.Config{URL: url, Schema: schema}
	if err := postgres.Migrate(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	s, err := postgres.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	fill(t, s)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return s, conn
}

func findings(t *testing.T, r store.Reader, most int) (Summary, []Finding) {
	t.Helper()
	var found []Finding
	sum, err := run(t.Context(), r, catalog.Context(), func(f Finding) { found = append(found, f) }, most)
	if err != nil {
		t.Fatal(err)
	}
	return sum, found
}

// shareSizes are how many entries fit into memory: all, or so few that there are many passes.
var shareSizes = map[string]int{"in one pass": 1_000, "in many passes": 3}

func TestWhatTheKernelWritesIsFlawless(t *testing.T) {
	t.Parallel()
	inMemory := memory.New()
	fill(t, inMemory)
	inPostgres, _ := database(t)
	for store, reader := range map[string]store.Reader{"memory": inMemory, "postgres": inPostgres} {
		for size, most := range shareSizes {
			t.Run(store+" "+size, func(t *testing.T) {
				t.Parallel()
				sum, found := findings(t, reader, most)
				if sum != filled || len(found) > 0 {
					t.Errorf("summary %+v, want %+v; findings %v", sum, filled, found)
				}
			})
		}
	}
}

func TestDamageIsFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		damage string
		want   []Code
		where  string // of one of them
	}{
		{"a version is missing", `delete from journal where request_id = 'add-1'`, []Code{VersionGap}, "product/lamp version 4"},
		{"the first version is missing", `delete from journal where request_id = 'create-lamp'`, []Code{VersionGap}, "product/lamp version 2"},
		{"a version is there twice", `drop index journal_stream_version;
			update journal set version = 2 where request_id = 'add-1'`, []Code{VersionGap, VersionGap}, "product/lamp version 2"},
		{"an event has an unknown type", `update journal set events = replace(events, 'stock-added', 'stock-lost') where request_id = 'add-1'`,
			[]Code{UnreadableEvents}, "product/lamp version 3"},
		{"an event has other data", `update journal set events = replace(events, '"quantity":1', '"quantity":"x"') where request_id = 'add-1'`,
			[]Code{UnreadableEvents}, "product/lamp version 3"},
		{"an event says something else", `update journal set events = replace(events, '"quantity":1', '"quantity":7') where request_id = 'add-1'`,
			[]Code{WrongSnapshot}, "product/lamp version 6"},
		{"a snapshot is of another state", `update snapshot set state = '{"name":"Acme"}' where aggregate_id = 'acme'`, []Code{WrongSnapshot}, "brand/acme version 2"},
		{"a snapshot is ahead", `update snapshot set version = 99 where aggregate_id = 'lamp'`, []Code{WrongSnapshot}, "product/lamp version 99"},
		{"a snapshot has no aggregate", `insert into snapshot (version, revision, stream, tenant, aggregate_type, aggregate_id, state)
			values (1, 1, 'ffffffff-ffff-ffff-ffff-ffffffffffff', '', 'brand', 'nobody', '{}'), (1, 1, '00000000-0000-0000-0000-000000000000', '', 'brand', 'nobody', '{}')`,
			[]Code{WrongSnapshot, WrongSnapshot}, "brand/nobody version 1"},
		{"an aggregate stands in another's stream", `update journal set aggregate_id = 'other' where request_id = 'add-1'`, []Code{WrongStream}, "product/other version 3"},
		{"a whole stream is another's", `update journal set aggregate_id = 'other' where aggregate_id = 'lamp'; delete from snapshot`,
			slices.Repeat([]Code{WrongStream}, 7), "product/other version 1"},
		{"a command type is of another aggregate", `update journal set type = 'catalog.brand.rename' where request_id = 'add-1'`, []Code{WrongRow}, "product/lamp version 3"},
		{"a refusal gives no reason", `update journal set answer = null where request_id = 'take-lamp'`, []Code{WrongRow}, `product/lamp request "take-lamp"`},
		{"a commit is called a refusal", `alter table journal drop constraint journal_committed;
			update journal set outcome = 'n' where request_id = 'add-4'; delete from snapshot`, []Code{WrongRow, WrongRow}, "product/lamp version 6"},
		{"a request key is of another request", `update journal set request_id = 'add-99' where request_id = 'add-1'`,
			[]Code{RequestLost, WrongRequest}, `request "add-99" of tenant "", aggregate type product`},
		{"a refusal's key is not that of its record", `update journal set request = 'ffffffff-ffff-ffff-ffff-ffffffffffff' where request_id = 'take-lamp'`,
			[]Code{RequestLost, WrongRequest}, `product/lamp request "take-lamp"`},
		{"a refusal was moved aside for nothing", `delete from journal where request_id = 'create-beta' and outcome = 'c'; delete from reservation where holder_id = 'beta'`,
			[]Code{RequestLost}, `request "create-beta" of tenant "", aggregate type brand`},
		{"a request is committed twice", `drop index journal_request;
			insert into journal (version, decided_at, "offset", partition, outcome, stream, request, fingerprint, topic_id, type, tenant, aggregate_type, aggregate_id, request_id, caller, events)
			select 7, decided_at, 77, partition, outcome, stream, request, fingerprint, topic_id, type, tenant, aggregate_type, aggregate_id, request_id, caller, events
			from journal where request_id = 'add-1'`, []Code{RequestTwice}, `request "add-1" of tenant "", aggregate type product`},
		{"a record has two rows", `update journal set "offset" = 1 where request_id = 'add-1'`, []Code{RecordTwice}, "record AQAAAAAAAAAAAAAAAAAAAA/3/1"},
		{"a key is not reserved", `delete from reservation where name = 'apex'`, []Code{KeyNotReserved}, "key :brand-name/apex"},
		{"a key is reserved for another", `update reservation set (holder, holder_id) = (select holder, holder_id from reservation where name = 'beta') where name = 'apex'`,
			[]Code{KeyNotInJournal, KeyNotReserved}, "key :brand-name/apex"},
		{"a key is reserved by an application", `update reservation set holder = null, holder_tenant = null, holder_type = null, holder_id = null, application = 'import' where name = 'apex'`,
			[]Code{KeyNotReserved}, "key :brand-name/apex"},
		{"a released key is still reserved", `update journal set keys_released = null where request_id = 'rename-acme'`, []Code{KeyNotReserved}, "key :brand-name/acme"},
		{"a key was never taken", `update journal set keys_taken = null where request_id = 'create-acme'`, []Code{WrongKeys}, "brand/acme version 2"},
		{"a key is taken twice by one", `update journal set keys_taken = (select keys_taken from journal where request_id = 'create-acme') where request_id = 'rename-acme'`,
			[]Code{KeyNotInJournal, WrongKeys}, "brand/acme version 2"},
		{"a key is held by two", `update journal set keys_taken = (select keys_taken from journal where request_id = 'rename-acme') where request_id = 'create-beta' and outcome = 'c'`,
			[]Code{KeyNotInJournal, KeyNotReserved, KeyTwice}, "key :brand-name/apex"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, conn := database(t)
			if _, err := conn.Exec(t.Context(), test.damage, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
			for size, most := range shareSizes {
				sum, found := findings(t, s, most)
				var codes []Code
				where := map[string]bool{}
				for _, f := range found {
					codes = append(codes, f.Code)
					where[f.Where] = true
					if f.What == "" || f.Look == "" || f.Mend == "" {
						t.Errorf("a finding leaves questions: %+v", f)
					}
				}
				slices.Sort(codes)
				if !slices.Equal(codes, test.want) || !where[test.where] {
					t.Errorf("%s: found %v at %q, want %v, one at %q:\n%v", size, codes, slices.Sorted(maps.Keys(where)), test.want, test.where, found)
				}
				if sum.Findings != int64(len(found)) {
					t.Errorf("%s: the summary counts %d findings, %d were reported", size, sum.Findings, len(found))
				}
			}
		})
	}
}

func TestLooksShowWhatWasFound(t *testing.T) {
	t.Parallel()
	s, conn := database(t)
	damage := `delete from reservation where name = 'apex'; update journal set "offset" = 1 where request_id = 'add-1'; drop index journal_request;
		update snapshot set state = '{"name":"it''s"}' where aggregate_id = 'acme'`
	if _, err := conn.Exec(t.Context(), damage, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	_, found := findings(t, s, 1_000)
	if len(found) != 3 {
		t.Fatalf("%d findings, want 3: %v", len(found), found)
	}
	for _, f := range found {
		if sql, ok := strings.CutPrefix(f.Look, "select"); ok {
			if _, err := conn.Exec(t.Context(), "select"+sql); err != nil {
				t.Errorf("%s: %q: %v", f.Code, f.Look, err)
			}
		}
	}
}

func TestUnregisteredTypesAreFound(t *testing.T) {
	t.Parallel()
	s := memory.New()
	fill(t, s)
	empty := kernel.New("catalog")
	kernel.Add[struct{}](empty, "product")
	var codes []Code
	if _, err := Run(t.Context(), s, empty, func(f Finding) { codes = append(codes, f.Code) }); err != nil {
		t.Fatal(err)
	}
	if want := slices.Repeat([]Code{UnreadableEvents}, 3); !slices.Equal(codes, want) { // two brands without type, a product without events
		t.Errorf("found %v, want %v", codes, want)
	}
}

func TestBrokenReadIsAnError(t *testing.T) {
	t.Parallel()
	s := memory.New()
	fill(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, s, catalog.Context(), func(f Finding) { t.Error(f) }); err == nil {
		t.Error("no error, though nothing could be read")
	}
}
