package command

import (
	"strconv"
	"time"
)

// Header is a header of a record. A nil value is Kafka's null.
type Header struct {
	Key   string
	Value []byte
}

// Record is a Kafka record as far as this package knows one. Methods that write
// one overwrite all of it and use the space of Headers again; the bytes that they
// put there may be shared, and the caller MUST NOT change them.
type Record struct {
	Key     []byte
	Value   []byte
	Headers []Header
}

// reset empties r and keeps its space for headers.
func (r *Record) reset() {
	clear(r.Headers)
	r.Key, r.Value, r.Headers = nil, nil, r.Headers[:0]
}

const (
	contentType           = "content-type"
	contentTypeJSON       = "application/json"
	contentTypeStructured = "application/cloudevents+json"
	prefix                = "ce_"
	specVersion           = "1.0"
)

// Record writes c to dst as a CloudEvent in binary mode: the key is the
// aggregate's address, the value c's body. Reading it back gives an equal
// command.
func (c *Command) Record(dst *Record) {
	dst.reset()
	arena := make([]byte, 0, 512)
	take := func() []byte { // what was appended since the last call
		v := arena[:len(arena):len(arena)]
		arena = arena[len(arena):]
		return v
	}
	arena = c.Aggregate().appendAddress(arena)
	dst.Key, dst.Value = take(), c.body
	dst.Headers = append(dst.Headers, Header{contentType, valueJSON}, Header{headerNames[attrSpecVersion], valueSpecVersion})
	for a := range attributes {
		if v := c.appendAttribute(arena, a); len(v) > len(arena) {
			arena = v
			dst.Headers = append(dst.Headers, Header{headerNames[a], take()})
		}
	}
}

// StructuredRecord writes c to dst as a CloudEvent in structured mode. The body
// must be JSON, as that of a built command is.
func (c *Command) StructuredRecord(dst *Record) {
	dst.reset()
	dst.Key = []byte(c.Aggregate().String())
	dst.Headers = append(dst.Headers, Header{contentType, valueStructured})
	value := make([]byte, 0, 512+len(c.body))
	value = append(value, `{"specversion":"`+specVersion+`",`...)
	var scratch []byte
	for a := range attributes {
		scratch = c.appendAttribute(scratch[:0], a)
		if len(scratch) == 0 {
			continue
		}
		value = append(appendString(value, a.String()), ':')
		value = append(appendString(value, string(scratch)), ',')
	}
	value = append(value, `"datacontenttype":"`+contentTypeJSON+`","data":`...)
	value = append(value, c.body...)
	dst.Value = append(value, '}')
}

// appendAttribute appends the text of an attribute other than specversion, or
// nothing where c does not state it.
func (c *Command) appendAttribute(dst []byte, a attribute) []byte {
	switch {
	case a == attrSubject && c.derived:
	case a < texts:
		return append(dst, c.text[a]...)
	case a == attrTime && !c.time.IsZero():
		return c.time.AppendFormat(dst, time.RFC3339Nano)
	case a == attrExpiryTime && !c.expires.IsZero():
		return c.expires.AppendFormat(dst, time.RFC3339Nano)
	case a == attrExpectedVersion && c.hasExpected:
		return strconv.AppendInt(dst, c.expected, 10)
	case a == attrReplyPartition && c.hasPartition:
		return strconv.AppendInt(dst, int64(c.replyPartition), 10)
	case a == attrWaitFor && c.waitFor != StageCommitted:
		return append(dst, c.waitFor.String()...)
	}
	return dst
}
