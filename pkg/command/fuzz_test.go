package command

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

// FuzzRead feeds whole records: headers as lines "name: value".
func FuzzRead(f *testing.F) {
	for _, b := range []*Builder{full(), New("catalog.brand.create", "shop").ID("r-1").Time(someTime)} {
		var r Record
		c := mustBuild(f, b)
		for _, write := range []func(*Record){c.Record, c.StructuredRecord} {
			write(&r)
			var lines []string
			for _, h := range r.Headers {
				lines = append(lines, h.Key+": "+string(h.Value))
			}
			f.Add(r.Key, r.Value, strings.Join(lines, "\n"))
		}
	}
	f.Add([]byte(nil), event(`,"data":{"a":[1,"}"]},"x":null,"expectedversion":1`), "")
	f.Add([]byte(nil), event(`,"data":{`), "ce_id: r-1")
	f.Fuzz(func(t *testing.T, key, value []byte, lines string) {
		r := Record{Key: key, Value: value}
		if lines != "" {
			r.Headers = headers(strings.Split(lines, "\n")...)
		}
		var c, again Command
		refusal, second := Read(&c, "catalog", &r), Read(&again, "catalog", &r)
		if !reflect.DeepEqual(refusal, second) || (refusal == nil || refusal.Identified) && !reflect.DeepEqual(c, again) {
			t.Fatalf("read twice: %+v and %+v", c, again)
		}
		if refusal != nil {
			if _, ok := refusal.Err.Code.Info(); !ok {
				t.Errorf("refused with unknown code: %v", refusal)
			}
			if refusal.Identified && (checkID(c.RequestID()) != "" || checkID(c.Aggregate().ID) != "" || c.Context() != "catalog") {
				t.Errorf("identified as %+v", c)
			}
			return
		}
		parsed, err := ParseAddress(c.Aggregate().String())
		if err != nil || parsed != c.Aggregate() {
			t.Errorf("address %q: got %v, %v", c.Aggregate(), parsed, err)
		}
		var out Record
		c.Record(&out)
		if refusal := Read(&again, "catalog", &out); refusal != nil {
			t.Fatalf("written and read again: %v", refusal)
		}
		if !reflect.DeepEqual(c, again) {
			t.Errorf("written and read again: %+v, was %+v", again, c)
		}
		if CheckJSON(c.Body()) != nil || !bytes.Equal(bytes.TrimSpace(c.Body()), c.Body()) {
			return
		}
		c.StructuredRecord(&out)
		if refusal := Read(&again, "catalog", &out); refusal != nil || !reflect.DeepEqual(c, again) {
			t.Errorf("written as structured and read again: %+v, was %+v, %v", again, c, refusal)
		}
	})
}

func FuzzParseAddress(f *testing.F) {
	for _, v := range addressVectors() {
		f.Add(v.Address)
	}
	f.Add("brand/%2f")
	f.Add("a//7")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAddress(s)
		if err == nil && a.String() != s {
			t.Errorf("%q is %+v, whose address is %q", s, a, a)
		}
	})
}

func FuzzParseReply(f *testing.F) {
	for _, r := range someReplies() {
		f.Add(r.Append(nil))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		r, err := ParseReply(value)
		if err != nil {
			return
		}
		again, err := ParseReply(r.Append(nil))
		if err != nil {
			t.Fatalf("%q: written and read again: %v", value, err)
		}
		if !bytes.Equal(again.Append(nil), r.Append(nil)) {
			t.Errorf("%q: written and read again: %q, was %q", value, again.Append(nil), r.Append(nil))
		}
	})
}
