package command

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf8"
)

// canonicalVector is one line of testdata/vectors/canonical.json. Canonical is
// null where the text is not JSON by the frozen grammar.
type canonicalVector struct {
	Name       string  `json:"name"`
	JSON       string  `json:"json,omitempty"`
	JSONBase64 string  `json:"jsonBase64,omitempty"` // instead of json where it is not UTF-8
	Canonical  *string `json:"canonical"`
}

var canonicalInputs = []struct{ name, json string }{
	{"members are sorted", `{"b":1,"a":2}`},
	{"white space goes", " {\t\"a\" : [ 1 , 2 ] ,\r\n\"b\" : { } } "},
	{"order is that of bytes, not of UTF-16", "{\"\U0001F600\":1,\"\uFB01\":2,\"\u00e9\":3,\"z\":4}"},
	{"order is that of decoded names", `{"\u0061\u0062":1,"aa":2}`},
	{"a quote in a name sorts by its byte", `{"\\":1,"[":2,"\"":3,"#":4,"!":5}`},
	{"a control character in a name sorts by its byte", `{"\u001f":1,"\n":2," ":3}`},
	{"prefix sorts first", `{"ab":1,"a":2,"":3}`},
	{"nested objects are sorted", `{"b":{"d":1,"c":[{"f":1,"e":2}]},"a":null}`},
	{"number literals stay", `[1,1.0,1e0,1E+2,-0,0.10,12345678901234567890123]`},
	{"escapes are minimal", `["\u0041\/\"\\\b\f\n\r\t\u000b\u0000\u001F\u007f"]`},
	{"escaped characters are written out", `["\u00fc\u20ac\ud83d\ude00\u2028"]`},
	{"literals", `[true,false,null]`},
	{"scalar", `"a"`},
	{"empty object", ` { } `},
	{"64 arrays", strings.Repeat("[", 64) + strings.Repeat("]", 64)},
	{"65 arrays", strings.Repeat("[", 65) + strings.Repeat("]", 65)},
	{"65 objects", strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65)},
	{"nothing", ""},
	{"duplicate member", `{"a":1,"b":2,"a":1}`},
	{"duplicate member, differently escaped", `{"a":1,"\u0061":1}`},
	{"lone surrogate", `["\ud800"]`},
	{"lone second surrogate", `["\udc00"]`},
	{"last second surrogate", `["\udfff"]`},
	{"first surrogate twice", `["\ud83d\ud83d"]`},
	{"surrogate before a character", `["\ud83d\u0041"]`},
	{"first and last pairs", `["\ud800\udc00\udbff\udfff"]`},
	{"neighbours of the surrogates", `["\ud7ff\ue000\uffff"]`},
	{"surrogates in the wrong order", `["\ude00\ud83d"]`},
	{"invalid UTF-8", "[\"\xff\"]"},
	{"overlong UTF-8", "[\"\xc0\x80\"]"},
	{"surrogate in UTF-8", "[\"\xed\xa0\x80\"]"},
	{"byte order mark", "\uFEFF{}"},
	{"control character", "[\"\n\"]"},
	{"trailing comma", `[1,]`},
	{"trailing text", `{} {}`},
	{"leading zero", `[01]`},
	{"plus sign", `[+1]`},
	{"bare fraction", `[.5]`},
	{"empty exponent", `[1e]`},
	{"word", `[True]`},
	{"single quotes", `['a']`},
	{"comment", `[1/**/]`},
	{"unknown escape", `["\x41"]`},
}

func TestVectorsCanonical(t *testing.T) {
	t.Parallel()
	var vectors []canonicalVector
	for _, in := range canonicalInputs {
		v := canonicalVector{Name: in.name, JSON: in.json}
		if !utf8.ValidString(in.json) {
			v.JSON, v.JSONBase64 = "", base64.StdEncoding.EncodeToString([]byte(in.json))
		}
		if out, ok := Canonical(nil, []byte(in.json)); ok {
			s := string(out)
			v.Canonical = &s
		}
		vectors = append(vectors, v)
	}
	golden(t, "vectors/canonical.json", vectors)
}

type fingerprintVector struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Tenant      string `json:"tenant"`
	Aggregate   string `json:"aggregateType"`
	ID          string `json:"id"`
	Owner       string `json:"owner"`
	Space       string `json:"space"`
	Caller      string `json:"caller"`
	Body        string `json:"body"`
	Fingerprint string `json:"fingerprint"`
}

func fingerprintVectors() []fingerprintVector {
	vectors := []fingerprintVector{
		{Name: "plain", Type: "catalog.brand.create", Aggregate: "brand", ID: "7", Caller: "shop", Body: `{"name":"Acme"}`},
		{Name: "the same, written differently", Type: "catalog.brand.create", Aggregate: "brand", ID: "7", Caller: "shop", Body: ` { "n\u0061me" : "Acme" } `},
		{Name: "not JSON", Type: "catalog.brand.create", Aggregate: "brand", ID: "7", Caller: "shop", Body: `{"name":"Acme"`},
		{Name: "everything", Type: "catalog.brand.rename", Tenant: "acme", Aggregate: "brand", ID: "süd/7", Owner: "owner-1", Space: "space 2", Caller: "shop/import", Body: `{"name":"Ünïted"}`},
	}
	for i := range vectors {
		v := &vectors[i]
		a := Aggregate{Tenant: v.Tenant, Type: v.Aggregate, ID: v.ID}
		v.Fingerprint = Fingerprint(v.Type, a, v.Owner, v.Space, v.Caller, []byte(v.Body)).String()
	}
	return vectors
}

func TestVectorsFingerprint(t *testing.T) {
	t.Parallel()
	vectors := fingerprintVectors()
	golden(t, "vectors/fingerprint.json", vectors)

	for _, v := range vectors {
		label, body := "writ.fingerprint.json.v1", v.Body
		if out, ok := Canonical(nil, []byte(v.Body)); ok {
			body = string(out)
		} else {
			label = "writ.fingerprint.bytes.v1"
		}
		want := slowDigest(label, v.Type, v.Tenant, v.Aggregate, v.ID, v.Owner, v.Space, v.Caller, body)
		if v.Fingerprint != want {
			t.Errorf("fingerprint of %q: got %s, want %s", v.Name, v.Fingerprint, want)
		}
	}
}

// slowDigest is the framed hash, written again as plainly as possible.
func slowDigest(parts ...string) string {
	var frame []byte
	for _, part := range parts {
		frame = append(binary.AppendUvarint(frame, uint64(len(part))), part...)
	}
	sum := sha256.Sum256(frame)
	return hex.EncodeToString(sum[:16])
}

type digestVectors struct {
	Stream  []streamVector  `json:"stream"`
	Request []requestVector `json:"request"`
	Aside   []asideVector   `json:"aside"`
}

type streamVector struct {
	Tenant string `json:"tenant"`
	Type   string `json:"type"`
	ID     string `json:"id"`
	Digest string `json:"digest"`
}

type requestVector struct {
	AggregateType string `json:"aggregateType"`
	Tenant        string `json:"tenant"`
	RequestID     string `json:"requestId"`
	Digest        string `json:"digest"`
}

type asideVector struct {
	Request   string `json:"request"`
	TopicID   string `json:"topicId"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Digest    string `json:"digest"`
}

func TestVectorsDigests(t *testing.T) {
	t.Parallel()
	var v digestVectors
	for _, a := range []Aggregate{{Type: "brand", ID: "7"}, {Tenant: "acme", Type: "brand", ID: "7"}, {Type: "brand", ID: "süd/7"}} {
		d := a.Stream().String()
		v.Stream = append(v.Stream, streamVector{a.Tenant, a.Type, a.ID, d})
		if want := slowDigest("writ.stream.v1", a.Tenant, a.Type, a.ID); d != want {
			t.Errorf("stream of %v: got %s, want %s", a, d, want)
		}
	}
	for _, r := range []struct {
		id   string
		time string // the first 12 hex digits, of a UUIDv7
	}{
		{"r-1", ""},
		{someRequest, "0193797e3d4a"},
		{strings.ToUpper(someRequest), "0193797e3d4a"},
		{"0193797e-3d4a-4c3b-8f2e-0123456789ab", ""}, // version 4
		{"0193797e-3d4a-7c3b-cf2e-0123456789ab", ""}, // variant of others
		{"0193797e3d4a7c3b8f2e0123456789ab", ""},     // without hyphens
	} {
		d := RequestDigest("brand", "acme", r.id).String()
		v.Request = append(v.Request, requestVector{"brand", "acme", r.id, d})
		want := slowDigest("writ.request.v1", "brand", "acme", r.id)
		if r.time != "" {
			want = r.time + want[:20]
		}
		if d != want {
			t.Errorf("request digest of %q: got %s, want %s", r.id, d, want)
		}
	}
	request := RequestDigest("brand", "acme", "r-1")
	aside := AsideDigest(request, somePosition).String()
	v.Aside = append(v.Aside, asideVector{request.String(), hex.EncodeToString(somePosition.TopicID[:]), somePosition.Partition, somePosition.Offset, aside})
	want := slowDigest("writ.aside.v1", string(request[:]), string(somePosition.TopicID[:]), "\x00\x00\x00\x03", "\x00\x00\x00\x00\x00\x00\x04\x12")
	if aside != want {
		t.Errorf("aside digest: got %s, want %s", aside, want)
	}
	golden(t, "vectors/digests.json", v)
}

type derivedVector struct {
	Context       string `json:"context"`
	AggregateType string `json:"aggregateType"`
	Tenant        string `json:"tenant"`
	Caller        string `json:"caller"`
	RequestID     string `json:"requestId"`
	ID            string `json:"id"`
	Key           string `json:"key"`
}

func derivedVectors() []derivedVector {
	vectors := []derivedVector{
		{Context: "catalog", AggregateType: "brand", Caller: "shop", RequestID: "r-1"},
		{Context: "catalog", AggregateType: "brand", Tenant: "acme", Caller: "shop", RequestID: "r-1"},
		{Context: "catalog", AggregateType: "product", Caller: "shop/import", RequestID: someRequest},
	}
	for i := range vectors {
		v := &vectors[i]
		v.ID = DeriveID(v.Context, v.AggregateType, v.Tenant, v.Caller, v.RequestID)
		v.Key = Aggregate{Tenant: v.Tenant, Type: v.AggregateType, ID: v.ID}.String()
	}
	return vectors
}

func TestVectorsDerivedID(t *testing.T) {
	t.Parallel()
	vectors := derivedVectors()
	golden(t, "vectors/derived-id.json", vectors)
	for _, v := range vectors {
		h := slowDigest("writ.derived-id.v1", v.Context, v.AggregateType, v.Tenant, v.Caller, v.RequestID)
		if got := strings.ReplaceAll(v.ID, "-", ""); got[12] != '8' || !strings.ContainsRune("89ab", rune(got[16])) ||
			got[:12] != h[:12] || got[13:16] != h[13:16] || got[17:] != h[17:] {
			t.Errorf("derived ID %s is not the UUIDv8 of %s", v.ID, h)
		}
	}
}

type addressVector struct {
	Tenant  string `json:"tenant"`
	Type    string `json:"type"`
	ID      string `json:"id"`
	Address string `json:"address"`
}

func addressVectors() []addressVector {
	vectors := []addressVector{
		{Type: "brand", ID: "7"},
		{Tenant: "acme", Type: "brand", ID: "7"},
		{Type: "brand", ID: "a/b%c d~!"},
		{Tenant: "tenant/1", Type: "brand", ID: "süd"},
		{Type: "brand", ID: "a.b:c@d?e#f[g]\"h\\i|"},
	}
	for i := range vectors {
		v := &vectors[i]
		v.Address = Aggregate{Tenant: v.Tenant, Type: v.Type, ID: v.ID}.String()
	}
	return vectors
}

func TestVectorsAddress(t *testing.T) {
	t.Parallel()
	golden(t, "vectors/address.json", addressVectors())
}
