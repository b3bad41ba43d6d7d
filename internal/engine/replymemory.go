package engine

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/pkg/command"
)

// replyMemory holds the records of one group's replies together: they go out and are acknowledged together too, and
// one by one they would be most of what the processor allocates.
type replyMemory struct {
	records []kgo.Record
	headers []kgo.RecordHeader
	text    []byte
	scratch []command.Header
}

const (
	usualReply   = 512 // bytes that most replies stay below with key and headers
	replyHeaders = 6
)

func newReplyMemory(n int) *replyMemory {
	return &replyMemory{
		records: make([]kgo.Record, 0, n),
		headers: make([]kgo.RecordHeader, 0, n*replyHeaders),
	}
}

// record returns the reply's record, without topic and partition.
func (m *replyMemory) record(reply *command.Reply) *kgo.Record {
	if cap(m.text)-len(m.text) < usualReply {
		left := max(cap(m.records)-len(m.records), 1)
		m.text = make([]byte, 0, usualReply*min(left, 128))
	}
	begin := len(m.text)
	m.text = append(m.text, reply.RequestID...)
	key := len(m.text)
	m.text = reply.Append(m.text)
	value := len(m.text)
	m.scratch, m.text = reply.Headers(m.scratch[:0], m.text)

	first := len(m.headers)
	m.headers = kafkaHeaders(m.headers, m.scratch)
	m.records = append(m.records, kgo.Record{
		Key: m.text[begin:key:key], Value: m.text[key:value:value], Headers: m.headers[first:len(m.headers):len(m.headers)],
	})
	return &m.records[len(m.records)-1]
}

func kafkaHeaders(dst []kgo.RecordHeader, hs []command.Header) []kgo.RecordHeader {
	for _, h := range hs {
		dst = append(dst, kgo.RecordHeader(h))
	}
	return dst
}
