package command

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// headers makes headers of "name: value" lines.
func headers(lines ...string) []Header {
	var hs []Header
	for _, line := range lines {
		key, value, _ := strings.Cut(line, ": ")
		hs = append(hs, Header{key, []byte(value)})
	}
	return hs
}

// least are the headers of the smallest command.
func least(more ...string) []Header {
	return append(headers("ce_specversion: 1.0", "ce_id: r-1", "ce_source: shop", "ce_type: catalog.brand.create", "ce_subject: 7"), headers(more...)...)
}

// without drops the header of that name.
func without(hs []Header, name string) []Header {
	var left []Header
	for _, h := range hs {
		if h.Key != name {
			left = append(left, h)
		}
	}
	return left
}

var structured = headers("content-type: application/cloudevents+json; charset=UTF-8")

func event(members string) []byte {
	return []byte(`{"specversion":"1.0","id":"r-1","source":"shop","type":"catalog.brand.create","subject":"7"` + members + `}`)
}

func TestCommandsAreReadFromAnyProducer(t *testing.T) {
	t.Parallel()
	body := `{"name":"Acme"}`
	for _, tt := range []struct {
		name   string
		record Record
		want   *Builder
	}{
		{"binary", Record{Value: []byte(body), Headers: least()}, nil},
		{"binary with key", Record{Key: []byte("brand/7"), Value: []byte(body), Headers: least()}, nil},
		{"empty key", Record{Key: []byte{}, Value: []byte(body), Headers: least()}, nil},
		{"binary with content type", Record{Value: []byte(body), Headers: least("content-type: Application/JSON; charset=utf-8")}, nil},
		{"JSON by suffix", Record{Value: []byte(body), Headers: least("content-type: application/vnd.shop+json")}, nil},
		{"unknown headers", Record{Value: []byte(body), Headers: append(least("ce_other: x", "x: y", "ce_: z"), Header{"ce_bin", []byte{0xff}}, Header{"\xff", nil})}, nil},
		{"known header twice with one value", Record{Value: []byte(body), Headers: least("ce_id: r-1", "ce_owner: ", "ce_owner: ")}, nil},
		{"null header is absent", Record{Value: []byte(body), Headers: append(least(), Header{"ce_expirytime", nil})}, nil},
		{"empty tenant is the default one", Record{Value: []byte(body), Headers: least("ce_tenant: ")}, nil},
		{"broken trace is dropped", Record{Value: []byte(body), Headers: least("ce_traceparent: 00-xyz")}, nil},
		{"structured", Record{Value: event(`,"data":` + body), Headers: structured}, nil},
		{"structured without any header", Record{Key: []byte("brand/7"), Value: event(`,"data":` + body)}, nil},
		{"structured with foreign headers", Record{Value: event(`,"data":` + body), Headers: headers("x: y")}, nil},
		{"structured with equal headers", Record{Value: event(`,"data":` + body), Headers: append(least(), structured...)}, nil},
		{"structured with white space", Record{Value: []byte(" {\n\"data\" : " + body + " , " + string(event("")[1:]) + "\n")}, nil},
		{"structured with unknown members", Record{Value: event(`,"x":{"y":["}",1]},"data":` + body + `,"z":"\"","n":-1e5,"datacontenttype":"application/json"`)}, nil},
		{"structured with nulls", Record{Value: event(`,"tenant":null,"expirytime":null,"datacontenttype":null,"data":` + body)}, nil},
		{"structured with escapes", Record{Value: bytes.ReplaceAll(event(`,"data":`+body), []byte(`"id":"r-1"`), []byte(`"\u0069d":"r\u002D1"`))}, nil},
		{"structured with repeated members", Record{Value: event(`,"id":"r-1","data":` + body + `,"data":` + body)}, nil},
		{
			"integers as strings",
			Record{Value: event(`,"expectedversion":"9223372036854775807","replypartition":"2147483647","data":` + body)},
			New("catalog.brand.create", "shop").ID("r-1").Subject("7").ExpectVersion(math.MaxInt64).ReplyPartition(math.MaxInt32),
		},
		{
			"integers as numbers",
			Record{Value: event(`,"expectedversion":0,"replypartition":7,"data":` + body)},
			New("catalog.brand.create", "shop").ID("r-1").Subject("7").ExpectVersion(0).ReplyPartition(7),
		},
		{
			"times with offset",
			Record{Value: []byte(body), Headers: least("ce_time: 2026-11-30T17:04:05.6789019+02:00", "ce_expirytime: 2026-11-30T15:04:05Z")},
			New("catalog.brand.create", "shop").ID("r-1").Subject("7").Time(someTime).Expires(someTime.Truncate(time.Second)),
		},
		{
			"derived ID",
			Record{Value: []byte(body), Headers: without(least(), "ce_subject")},
			New("catalog.brand.create", "shop").ID("r-1"),
		},
		{
			"derived ID with its address",
			Record{Key: []byte("brand/" + DeriveID("catalog", "brand", "", "shop", "r-1")), Value: []byte(body), Headers: without(least(), "ce_subject")},
			New("catalog.brand.create", "shop").ID("r-1"),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got Command
			if refusal := Read(&got, "catalog", &tt.record); refusal != nil {
				t.Fatalf("refused: %v", refusal)
			}
			b := tt.want
			if b == nil {
				b = New("catalog.brand.create", "shop").ID("r-1").Subject("7")
			}
			want := *mustBuild(t, b.Body([]byte(body)))
			if got.time.IsZero() {
				want.time = time.Time{}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestRefusedRecordsSayWhy(t *testing.T) {
	t.Parallel()
	body := []byte(`{"name":"Acme"}`)
	binary := func(hs []Header) Record { return Record{Value: body, Headers: hs} }
	long := strings.Repeat("x", MaxID+1)
	for _, tt := range []struct {
		name       string
		record     Record
		code       Code
		identified bool
		says       string
	}{
		{"no value", Record{Headers: least()}, CodeUnreadable, false, "no value"},
		{"nothing", Record{}, CodeUnreadable, false, "no value"},
		{"text", Record{Value: []byte("hello")}, CodeUnreadable, false, "not one JSON object"},
		{"array", Record{Value: []byte("[]")}, CodeUnreadable, false, "not one JSON object"},
		{"empty value without headers", Record{Value: []byte{}}, CodeUnreadable, false, "not one JSON object"},
		{"no specversion", binary(without(least(), "ce_specversion")), CodeUnreadable, false, "specversion is missing"},
		{"old specversion", binary(append(without(least(), "ce_specversion"), headers("ce_specversion: 0.3")...)), CodeUnreadable, false, `"0.3"`},
		{"no id", binary(without(least(), "ce_id")), CodeUnreadable, false, "id is missing"},
		{"no source", binary(without(least(), "ce_source")), CodeUnreadable, false, "source is missing"},
		{"no type", binary(without(least(), "ce_type")), CodeUnreadable, false, "type is missing"},
		{"JSON without attributes", Record{Value: body, Headers: headers("content-type: application/json")}, CodeUnreadable, false, "specversion is missing"},
		{"two content types", binary(least("content-type: application/json", "content-type: text/plain")), CodeContradiction, false, "content-type is stated"},
		{"batch", Record{Value: []byte("[]"), Headers: headers("content-type: application/cloudevents-batch+json")}, CodeUnreadable, false, "batch"},
		{"envelope cut short", Record{Value: event(`,"data":{`)[:100]}, CodeUnreadable, false, "ends within"},
		{"envelope with a tail", Record{Value: append(event(`,"data":{}`), '1')}, CodeUnreadable, false, "after the object"},
		{"attribute is no JSON string", Record{Value: event(`,"owner":"\x","data":{}`)}, CodeUnreadable, false, "owner"},
		{"name is no JSON string", Record{Value: event(`,"\x":1,"data":{}`)}, CodeUnreadable, false, "member name"},

		{"two ids", binary(least("ce_id: r-2")), CodeContradiction, false, "id is stated"},
		{"two subjects", binary(least("ce_subject: 8")), CodeContradiction, false, "subject is stated"},
		{"two tenants", binary(least("ce_tenant: a", "ce_tenant: b")), CodeContradiction, false, "tenant is stated"},
		{"two types", binary(least("ce_type: catalog.brand.rename")), CodeContradiction, false, "type is stated"},
		{"two sources", binary(least("ce_source: other")), CodeContradiction, false, "source is stated"},
		{"header against member", Record{Value: event(`,"data":{}`), Headers: append(headers("ce_id: r-2"), structured...)}, CodeContradiction, false, "id is stated"},
		{"header without member", Record{Value: event(`,"data":{}`), Headers: append(headers("ce_tenant: a"), structured...)}, CodeContradiction, false, "tenant is stated"},
		{"two members", Record{Value: event(`,"id":"r-2","data":{}`)}, CodeContradiction, false, "id is stated"},

		{"empty id", binary(append(without(least(), "ce_id"), headers("ce_id: ")...)), CodeInvalidID, false, "id is empty"},
		{"long id", binary(append(without(least(), "ce_id"), headers("ce_id: "+long)...)), CodeInvalidID, false, "id has 256 bytes"},
		{"id with a control character", binary(append(without(least(), "ce_id"), headers("ce_id: a\x00b")...)), CodeInvalidID, false, "U+0000"},
		{"id with DEL", binary(append(without(least(), "ce_id"), headers("ce_id: a\x7f")...)), CodeInvalidID, false, "U+007F"},
		{"id with a C1 control", binary(append(without(least(), "ce_id"), headers("ce_id: a\u0085")...)), CodeInvalidID, false, "U+0085"},
		{"id not UTF-8", binary(append(without(least(), "ce_id"), headers("ce_id: a\xff")...)), CodeInvalidID, false, "UTF-8"},
		{"id is a number", Record{Value: bytes.Replace(event(`,"data":{}`), []byte(`"r-1"`), []byte(`1`), 1)}, CodeInvalidID, false, "id must be a string"},
		{"empty subject", binary(append(without(least(), "ce_subject"), headers("ce_subject: ")...)), CodeInvalidID, false, "subject is empty"},
		{"long tenant", binary(least("ce_tenant: " + long)), CodeInvalidID, false, "tenant has 256 bytes"},
		{"type with two parts", binary(append(without(least(), "ce_type"), headers("ce_type: catalog.brand")...)), CodeInvalidID, false, "three parts"},
		{"type with four parts", binary(append(without(least(), "ce_type"), headers("ce_type: catalog.brand.create.it")...)), CodeInvalidID, false, "three parts"},
		{"type in capitals", binary(append(without(least(), "ce_type"), headers("ce_type: catalog.Brand.create")...)), CodeInvalidID, false, `part "Brand"`},
		{"another context", binary(append(without(least(), "ce_type"), headers("ce_type: orders.brand.create")...)), CodeUnknownType, false, `"orders"`},

		{"two owners", binary(least("ce_owner: a", "ce_owner: b")), CodeContradiction, true, "owner is stated"},
		{"two spaces", binary(least("ce_space: a", "ce_space: ")), CodeContradiction, true, "space is stated"},
		{"two data", Record{Value: event(`,"data":{},"data":{"a":1}`)}, CodeContradiction, true, "data is stated"},
		{"long owner", binary(least("ce_owner: " + long)), CodeInvalidID, true, "owner has 256"},
		{"space with a line feed", binary(least("ce_space: a\nb")), CodeInvalidID, true, "U+000A"},
		{"negative version", binary(least("ce_expectedversion: -1")), CodeInvalidID, true, "expectedversion"},
		{"version with zeros", binary(least("ce_expectedversion: 01")), CodeInvalidID, true, "expectedversion"},
		{"version too large", binary(least("ce_expectedversion: 9223372036854775808")), CodeInvalidID, true, "at most"},
		{"version as fraction", Record{Value: event(`,"expectedversion":1.0,"data":{}`)}, CodeInvalidID, true, "expectedversion"},
		{"version as object", Record{Value: event(`,"expectedversion":{},"data":{}`)}, CodeInvalidID, true, "JSON kind"},
		{"partition too large", binary(least("ce_replypartition: 2147483648")), CodeInvalidID, true, "replypartition"},
		{"deadline is no time", binary(least("ce_expirytime: tomorrow")), CodeInvalidID, true, "expirytime"},
		{"time with a short hour", binary(least("ce_time: 2026-11-30T5:04:05.5Z")), CodeInvalidID, true, "time"},
		{"time with a day's offset", binary(least("ce_time: 2026-11-30T05:04:05+24:00")), CodeInvalidID, true, "time"},
		{"time before the years", binary(least("ce_time: 0001-01-01T00:04:05+12:00")), CodeInvalidID, true, "years"},
		{"time with a comma", binary(least("ce_time: 2026-11-30T15:04:05,5Z")), CodeInvalidID, true, "time"},
		{"empty correlation", binary(least("ce_correlationid: ")), CodeInvalidID, true, "correlationid"},
		{"reply topic with a slash", binary(least("ce_replyto: a/b")), CodeInvalidID, true, "replyto"},
		{"unknown stage", binary(least("ce_waitfor: accepted")), CodeInvalidID, true, "waitfor"},
		{"wrong key", Record{Key: []byte("brand/8"), Value: body, Headers: least()}, CodeWrongKey, true, `"brand/7"`},
		{"key of another tenant", Record{Key: []byte("brand/7"), Value: body, Headers: least("ce_tenant: a")}, CodeWrongKey, true, `"a/brand/7"`},
		{"key of a create without subject", Record{Key: []byte("brand/7"), Value: body, Headers: without(least(), "ce_subject")}, CodeWrongKey, true, "brand/"},
		{"large body", Record{Value: bytes.Repeat([]byte(" "), MaxBody+1), Headers: least()}, CodeTooLarge, true, "900001"},
		{"text body", binary(least("content-type: text/plain")), CodeInvalidBody, true, "text/plain"},
		{"base64", Record{Value: event(`,"data_base64":"e30="`)}, CodeInvalidBody, true, "data_base64"},
		{"XML", Record{Value: event(`,"datacontenttype":"application/xml","data":"<a/>"`)}, CodeInvalidBody, true, "datacontenttype"},
		{"no data", Record{Value: event("")}, CodeInvalidBody, true, "no data"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var c Command
			refusal := Read(&c, "catalog", &tt.record)
			if refusal == nil {
				t.Fatalf("accepted as %+v", c)
			}
			if refusal.Err.Code != tt.code || refusal.Identified != tt.identified || !strings.Contains(refusal.Err.Message, tt.says) {
				t.Errorf("got %v (identified %v), want code %s with %q (identified %v)", refusal, refusal.Identified, tt.code, tt.says, tt.identified)
			}
			if tt.identified && (c.RequestID() != "r-1" || c.AggregateType() != "brand" || c.Request() != RequestDigest("brand", c.Tenant(), "r-1")) {
				t.Errorf("the command is not filled in: %+v", c)
			}
		})
	}
}

func TestRefusalSaysWhereItsAnswerGoes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		headers []Header
		value   []byte
		want    Refusal
	}{
		{"all", headers("ce_id: r-1", "ce_replyto: catalog.replies.a", "ce_replypartition: 3"), []byte("{}"), Refusal{RequestID: "r-1", ReplyTo: "catalog.replies.a", ReplyPartition: 3}},
		{"null value", headers("ce_id: r-1", "ce_replyto: catalog.replies.a"), nil, Refusal{RequestID: "r-1", ReplyTo: "catalog.replies.a", ReplyPartition: -1}},
		{"two addresses", headers("ce_id: r-1", "ce_replyto: catalog.replies.a", "ce_replyto: b"), []byte("{}"), Refusal{RequestID: "r-1", ReplyPartition: -1}},
		{"no address", headers("ce_id: \n", "ce_replyto: a/b", "ce_replypartition: 3"), []byte("{}"), Refusal{ReplyPartition: -1}},
		{"structured, cut short", structured, []byte(`{"id":"r-1","replyto":"catalog.replies.a","data":{`), Refusal{RequestID: "r-1", ReplyTo: "catalog.replies.a", ReplyPartition: -1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var c Command
			refusal := Read(&c, "catalog", &Record{Value: tt.value, Headers: tt.headers})
			if refusal == nil {
				t.Fatal("accepted")
			}
			got := *refusal
			got.Err = Error{}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// A command keeps nothing of its record but the body: fetch buffers are large,
// and a command may outlive them.
func TestCommandAliasesOnlyItsBody(t *testing.T) {
	t.Parallel()
	var r Record
	full := mustBuild(t, full())
	full.Record(&r)
	r.Key = bytes.Clone(r.Key)
	for i := range r.Headers {
		r.Headers[i].Value = bytes.Clone(r.Headers[i].Value)
	}
	var got Command
	if refusal := Read(&got, "catalog", &r); refusal != nil {
		t.Fatal(refusal)
	}
	for _, h := range r.Headers {
		clear(h.Value)
	}
	clear(r.Key)
	if !reflect.DeepEqual(got, *full) {
		t.Errorf("after the record was overwritten: got %+v, want %+v", got, *full)
	}
	if &got.Body()[0] != &r.Value[0] {
		t.Error("the body was copied")
	}
}

// A record whose owner is in doubt must not be answered by the outcome of a
// command without owner.
func TestDoubtfulCommandEqualsNoOther(t *testing.T) {
	t.Parallel()
	var good, bad, key Command
	body := []byte(`{}`)
	if refusal := Read(&good, "catalog", &Record{Value: body, Headers: least()}); refusal != nil {
		t.Fatal(refusal)
	}
	Read(&bad, "catalog", &Record{Value: body, Headers: least("ce_owner: a", "ce_owner: b")})
	Read(&key, "catalog", &Record{Key: []byte("x"), Value: body, Headers: least()})
	if bad.Request() != good.Request() || bad.Fingerprint() == good.Fingerprint() {
		t.Error("two owners: want the same request with another fingerprint")
	}
	if key.Fingerprint() != good.Fingerprint() {
		t.Error("wrong key: want the same fingerprint, since the command itself is in no doubt")
	}
}

func TestStructuredDataIsTakenAsSent(t *testing.T) {
	t.Parallel()
	for _, data := range []string{`{"b":1.0,"a":[ "}" , "\"]" ]}`, `"x\\"`, `1e5`, `null`, `{"a":}`, `[{]}`, "\"\xff\"", `{"a":1,"a":2}`} {
		var c Command
		if refusal := Read(&c, "catalog", &Record{Value: event(`,"data":` + data + `,"waitfor":"snapshot"`)}); refusal != nil {
			t.Errorf("data %s: refused: %v", data, refusal)
			continue
		}
		if string(c.Body()) != data || c.WaitFor() != StageSnapshot {
			t.Errorf("data %s: got body %s", data, c.Body())
		}
	}
}
