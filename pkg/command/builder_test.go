package command

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestBuiltCommandIsReadBackEqual(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]*Builder{
		"full":    full(),
		"least":   New("catalog.brand.delete", "shop").Subject("7"),
		"derived": New("catalog.brand.create", "shop").Tenant("acme").JSON(map[string]any{"b": 1, "a": "\u2028<&>"}),
	} {
		built := mustBuild(t, b)
		var binary, structured Record
		built.Record(&binary)
		built.StructuredRecord(&structured)
		for mode, r := range map[string]*Record{"binary": &binary, "structured": &structured} {
			var got Command
			if refusal := Read(&got, "catalog", r); refusal != nil {
				t.Errorf("%s, %s: refused: %v", name, mode, refusal)
			} else if !reflect.DeepEqual(got, *built) {
				t.Errorf("%s, %s: got  %+v\nwant %+v", name, mode, got, *built)
			}
		}
	}
}

func TestBuiltCommandSaysWhatItWasTold(t *testing.T) {
	t.Parallel()
	c := mustBuild(t, full())
	for _, tt := range []struct {
		name      string
		got, want any
	}{
		{"request ID", c.RequestID(), someRequest},
		{"type", c.Type(), "catalog.brand.rename"},
		{"context", c.Context(), "catalog"},
		{"aggregate type", c.AggregateType(), "brand"},
		{"name", c.Name(), "rename"},
		{"aggregate", c.Aggregate(), Aggregate{Tenant: "acme", Type: "brand", ID: "süd/7"}},
		{"tenant", c.Tenant(), "acme"},
		{"owner", c.Owner(), "owner-1"},
		{"space", c.Space(), "space 2"},
		{"caller", c.Caller(), "shop/import"},
		{"time", c.Time(), someTime},
		{"expires", c.Expires(), someTime.Add(time.Minute)},
		{"correlation", c.CorrelationID(), "order-9"},
		{"causation", c.CausationID(), "event-8"},
		{"trace", c.TraceParent(), someTrace},
		{"reply topic", c.ReplyTo(), "catalog.replies.shop"},
		{"stage", c.WaitFor(), StageSnapshot},
		{"body", string(c.Body()), `{"name":"Ünïted"}`},
		{"derived", c.Derived(), false},
		{"request", c.Request(), RequestDigest("brand", "acme", someRequest)},
		{"stream", c.Stream(), Aggregate{Tenant: "acme", Type: "brand", ID: "süd/7"}.Stream()},
		{"fingerprint", c.Fingerprint(), Fingerprint(c.Type(), c.Aggregate(), c.Owner(), c.Space(), c.Caller(), c.Body())},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, tt.got, tt.want)
		}
	}
	if v, ok := c.ExpectedVersion(); v != 41 || !ok {
		t.Errorf("expected version: got %d, %v", v, ok)
	}
	if p, ok := c.ReplyPartition(); p != 2 || !ok {
		t.Errorf("reply partition: got %d, %v", p, ok)
	}
}

func TestBuildNamesEveryFault(t *testing.T) {
	t.Parallel()
	_, err := New("brand", "").ID("\n").Subject("").Tenant("\x00").Owner(strings.Repeat("x", 256)).Space("\xff").
		Body([]byte(`{`)).ExpectVersion(-1).ReplyPartition(-1).WaitFor(9).ReplyTo("a b").Correlation("").Causation("").
		TraceParent("x").Expires(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)).Build()
	if err == nil {
		t.Fatal("built")
	}
	for _, name := range []string{
		"type", "source", "id", "subject", "tenant", "owner", "space", "body", "expectedversion", "replypartition",
		"waitfor", "replyto", "correlationid", "causationid", "traceparent", "expirytime",
	} {
		if !strings.Contains(err.Error(), name+" ") {
			t.Errorf("%s is not named in: %v", name, err)
		}
	}
	if _, err := New("catalog.brand.create", "shop").JSON(func() {}).Build(); err == nil || !strings.Contains(err.Error(), "body: ") {
		t.Errorf("a body that is no JSON: got %v", err)
	}
	if _, err := New("catalog.brand.create", "shop").Body(make([]byte, MaxBody+1)).Build(); err == nil || !strings.Contains(err.Error(), "900001") {
		t.Errorf("a large body: got %v", err)
	}
}

func TestBuilderMakesAFreshRequestIDEachTime(t *testing.T) {
	t.Parallel()
	b := New("catalog.brand.create", "shop")
	first, second := mustBuild(t, b), mustBuild(t, b)
	if first.RequestID() == second.RequestID() {
		t.Error("two commands have one request ID")
	}
	if first.Aggregate() == second.Aggregate() || !first.Derived() {
		t.Error("two creates without subject have one aggregate")
	}
	if id, err := uuid.Parse(first.RequestID()); err != nil || id.Version() != 7 {
		t.Errorf("request ID %s is no UUIDv7: %v", first.RequestID(), err)
	}
}

func TestEqualValuesMakeEqualBodies(t *testing.T) {
	t.Parallel()
	value := map[string]int{}
	for _, name := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		value[name] = len(name)
	}
	b := New("catalog.brand.create", "shop").ID("r-1")
	want := string(mustBuild(t, b.JSON(value)).Body())
	for range 20 {
		if got := string(mustBuild(t, b.JSON(value)).Body()); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}
