package command

import (
	"fmt"
	"strings"
	"testing"
)

// benchCommand is as large as the catalogue's creates in the benchmark.
func benchCommand(b *testing.B) *Command {
	body := fmt.Appendf(nil, `{"name":"Brand %s","category":"%s","price":12.50,"stock":7,"brand":"acme"}`, strings.Repeat("x", 150), strings.Repeat("y", 20))
	return mustBuild(b, New("catalog.product.create", "shop/import").ID(someRequest).Subject("p-0001234").Body(body).ReplyTo("catalog.replies.shop"))
}

func BenchmarkRead(b *testing.B) {
	c := benchCommand(b)
	var binary, structured Record
	c.Record(&binary)
	c.StructuredRecord(&structured)
	for name, r := range map[string]*Record{"binary": &binary, "structured": &structured} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var dst Command
			for b.Loop() {
				if refusal := Read(&dst, "catalog", r); refusal != nil {
					b.Fatal(refusal)
				}
			}
		})
	}
}

func BenchmarkFingerprint(b *testing.B) {
	c := benchCommand(b)
	b.ReportAllocs()
	for b.Loop() {
		Fingerprint(c.Type(), c.Aggregate(), "", "", c.Caller(), c.Body())
	}
}

func BenchmarkCanonical(b *testing.B) {
	body := benchCommand(b).Body()
	var dst []byte
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = Canonical(dst[:0], body)
	}
}

func BenchmarkDecode(b *testing.B) {
	body := benchCommand(b).Body()
	b.ReportAllocs()
	for b.Loop() {
		var into struct {
			Name     string  `json:"name"`
			Category string  `json:"category"`
			Brand    string  `json:"brand"`
			Price    float64 `json:"price"`
			Stock    int     `json:"stock"`
		}
		if err := Decode(body, &into); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReply(b *testing.B) {
	r := someReplies()["committed"]
	b.Run("value", func(b *testing.B) {
		var dst []byte
		b.ReportAllocs()
		for b.Loop() {
			dst = r.Append(dst[:0])
		}
	})
	b.Run("headers", func(b *testing.B) {
		var dst []Header
		var text []byte
		b.ReportAllocs()
		for b.Loop() {
			dst, text = r.Headers(dst[:0], text[:0])
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	c := benchCommand(b)
	var r Record
	b.ReportAllocs()
	for b.Loop() {
		c.Record(&r)
	}
}
