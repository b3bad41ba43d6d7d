package command

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

type line struct {
	Quantity int `json:"quantity"`
}

type product struct {
	Name  string         `json:"name"`
	Stock int32          `json:"stock"`
	Price jsontext.Value `json:"price"`
	Lines []line         `json:"lines"`
	Extra any            `json:"extra"`
	Note  *string        `json:"note"`
}

func TestDecodedNumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	const body = `{"name":"a","stock":3,"price":12345678901234567890.10,"lines":[{"quantity":9}],"extra":{"n":0.10,"m":[12345678901234567890123]}}`
	p := product{Note: new(string)}
	if err := Decode([]byte(body), &p); err != nil {
		t.Fatal(err)
	}
	if string(p.Price) != "12345678901234567890.10" || p.Stock != 3 || p.Note != nil {
		t.Errorf("got %+v", p)
	}
	extra, err := json.Marshal(p.Extra, json.Deterministic(true))
	if err != nil || string(extra) != `{"m":[12345678901234567890123],"n":0.10}` {
		t.Errorf("extra: got %s, %v", extra, err)
	}
}

func TestDecodeRefusesWhatIsNotExactly(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`[`, 64) + strings.Repeat(`]`, 64)
	for _, tt := range []struct{ name, body, field, says string }{
		{"unknown member", `{"nam":"a"}`, "nam", "not a member"},
		{"another case", `{"Name":"a"}`, "Name", "not a member"},
		{"unknown member below", `{"lines":[{"quantity":1},{"count":1}]}`, "lines/1/count", "not a member"},
		{"duplicate member", `{"name":"a","name":"a"}`, "", "twice"},
		{"trailing text", `{"name":"a"}x`, "", "after the value"},
		{"trailing comma", `{"name":"a",}`, "", "member name"},
		{"empty", ``, "", "too early"},
		{"null", ` null `, "", "an object"},
		{"array", `[]`, "", "an object"},
		{"string for number", `{"stock":"3"}`, "stock", "a whole number of 32 bits, not a string"},
		{"fraction for whole number", `{"stock":3.0}`, "stock", "not 3.0"},
		{"number out of range", `{"stock":3000000000}`, "stock", "not 3000000000"},
		{"number for string", `{"name":3}`, "name", "a string, not a number"},
		{"NUL", `{"name":"a\u0000"}`, "", "NUL"},
		{"invalid UTF-8", "{\"name\":\"\xff\"}", "", "UTF-8"},
		{"lone surrogate", `{"name":"\ud800"}`, "", "surrogate"},
		{"too deep", `{"extra":` + deep + `}`, "", "too deep"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var p product
			err := Decode([]byte(tt.body), &p)
			if err == nil {
				t.Fatalf("accepted as %+v", p)
			}
			if err.Code != CodeInvalidBody || !strings.Contains(err.Message, tt.says) {
				t.Errorf("got %v, want %s with %q", err, CodeInvalidBody, tt.says)
			}
			if _, ok := err.Fields[tt.field]; tt.field != "" && !ok {
				t.Errorf("fields: got %v, want one for %q", err.Fields, tt.field)
			}
		})
	}
}

func TestEscapedBackslashIsNoNUL(t *testing.T) {
	t.Parallel()
	var p product
	if err := Decode([]byte(`{"name":"\\u0000"}`), &p); err != nil || p.Name != `\u0000` {
		t.Errorf("got %q, %v", p.Name, err)
	}
	if err := Decode([]byte(`{"extra":`+strings.Repeat("[", 63)+strings.Repeat("]", 63)+`}`), &p); err != nil {
		t.Errorf("64 levels: %v", err)
	}
}

// FuzzDecode looks for texts about which the two parsers disagree: what our
// grammar refuses, Decode must not let through, whatever it decodes into.
func FuzzDecode(f *testing.F) {
	for _, in := range canonicalInputs {
		f.Add([]byte(in.json))
	}
	f.Add([]byte(`{"name":"a","stock":3,"price":1.10,"lines":[{"quantity":9}],"extra":{"n":0.10}}`))
	f.Add([]byte(`{"name":"\u0000"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var v jsontext.Value
		var p product
		check := CheckJSON(body)
		if err := Decode(body, &v); err == nil && check != nil {
			t.Errorf("%q: decoded, but %v", body, check)
		} else if err != nil && check == nil && v.Kind() != 'n' {
			t.Errorf("%q: is fine, but %v", body, err)
		}
		if err := Decode(body, &p); err == nil && check != nil {
			t.Errorf("%q: decoded, but %v", body, check)
		}
	})
}
