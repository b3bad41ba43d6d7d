package postgres

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// This file holds the JSON of the text columns. It is written and read by hand, since every committed row passes here:
// one exact form, without white space, members in this order, those without a value left out. What the application
// wrote (the data of events, results) stands verbatim as the last member of its object and comes back to the byte.
// It MUST be JSON; the store does not look. Nothing at all is null.

func appendEvents(dst []byte, events []command.Event) []byte {
	if len(events) == 0 {
		return dst
	}
	separator := byte('[')
	for i := range events {
		e := &events[i]
		dst = append(dst, separator)
		dst = append(dst, `{"type":`...)
		dst = appendQuoted(dst, e.Type)
		dst = append(dst, `,"revision":`...)
		dst = strconv.AppendInt(dst, int64(e.Revision), 10)
		if len(e.Data) > 0 {
			dst = append(dst, `,"data":`...)
			dst = append(dst, e.Data...)
		}
		dst = append(dst, '}')
		separator = ','
	}
	return append(dst, ']')
}

func parseEvents(text []byte) ([]command.Event, error) {
	if text == nil {
		return nil, nil
	}
	c := cursor{rest: text}
	var events []command.Event
	c.must(`[`)
	for {
		var e command.Event
		c.must(`{"type":`)
		e.Type = c.quoted()
		c.must(`,"revision":`)
		e.Revision = c.number()
		if c.has(`,"data":`) {
			e.Data = slices.Clone(c.value())
		}
		c.must(`}`)
		events = append(events, e)
		if c.err != nil || !c.has(`,`) {
			break
		}
	}
	c.must(`]`)
	return events, c.end()
}

func appendKeys(dst []byte, ks []keys.Key) []byte {
	if len(ks) == 0 {
		return dst
	}
	separator := byte('[')
	for i := range ks {
		k := &ks[i]
		dst = append(dst, separator)
		dst = append(dst, `{"namespace":`...)
		dst = appendQuoted(dst, k.Namespace)
		dst = append(dst, `,"name":`...)
		dst = appendQuoted(dst, k.Name)
		dst = appendMember(dst, `,"tenant":`, k.Tenant)
		if k.System {
			dst = append(dst, `,"system":true`...)
		}
		dst = append(dst, '}')
		separator = ','
	}
	return append(dst, ']')
}

func parseKeys(text []byte) ([]keys.Key, error) {
	if text == nil {
		return nil, nil
	}
	c := cursor{rest: text}
	var ks []keys.Key
	c.must(`[`)
	for {
		var k keys.Key
		c.must(`{"namespace":`)
		k.Namespace = c.quoted()
		c.must(`,"name":`)
		k.Name = c.quoted()
		if c.has(`,"tenant":`) {
			k.Tenant = c.quoted()
		}
		k.System = c.has(`,"system":true`)
		c.must(`}`)
		ks = append(ks, k)
		if c.err != nil || !c.has(`,`) {
			break
		}
	}
	c.must(`]`)
	return ks, c.end()
}

func appendAnswer(dst []byte, e *command.Error, result []byte) []byte {
	switch {
	case e == nil && len(result) == 0:
		return dst
	case len(result) == 0:
		dst = appendError(append(dst, `{"error":`...), e)
	case e == nil:
		dst = append(append(dst, `{"result":`...), result...)
	default:
		dst = appendError(append(dst, `{"error":`...), e)
		dst = append(append(dst, `,"result":`...), result...)
	}
	return append(dst, '}')
}

func parseAnswer(text []byte) (e *command.Error, result []byte, err error) {
	if text == nil {
		return nil, nil, nil
	}
	c := cursor{rest: text}
	c.must(`{`)
	if c.has(`"error":`) {
		e = c.error()
		c.has(`,`)
	}
	if c.has(`"result":`) {
		result = slices.Clone(c.value())
	}
	c.must(`}`)
	return e, result, c.end()
}

func appendError(dst []byte, e *command.Error) []byte {
	dst = append(dst, `{"code":`...)
	dst = appendQuoted(dst, string(e.Code))
	dst = append(dst, `,"message":`...)
	dst = appendQuoted(dst, e.Message)
	if len(e.Fields) > 0 {
		dst = append(dst, `,"fields":`...)
		separator := byte('{')
		for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
			dst = append(dst, separator)
			dst = appendQuoted(dst, name)
			dst = append(dst, ':')
			dst = appendQuoted(dst, e.Fields[name])
			separator = ','
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func (c *cursor) error() *command.Error {
	e := &command.Error{}
	c.must(`{"code":`)
	e.Code = command.Code(c.quoted())
	c.must(`,"message":`)
	e.Message = c.quoted()
	if c.has(`,"fields":{`) {
		e.Fields = make(map[string]string)
		for {
			name := c.quoted()
			c.must(`:`)
			e.Fields[name] = c.quoted()
			if c.err != nil || !c.has(`,`) {
				break
			}
		}
		c.must(`}`)
	}
	c.must(`}`)
	return e
}

func appendMeta(dst []byte, m *store.Meta) []byte {
	if *m == (store.Meta{ReplyPartition: m.ReplyPartition}) {
		return dst
	}
	at := len(dst)
	dst = appendMember(dst, `,"correlationId":`, m.CorrelationID)
	dst = appendMember(dst, `,"causationId":`, m.CausationID)
	dst = appendMember(dst, `,"traceParent":`, m.TraceParent)
	dst = appendMember(dst, `,"replyTo":`, m.ReplyTo)
	if m.ReplyTo != "" && m.ReplyPartition != -1 {
		dst = append(dst, `,"replyPartition":`...)
		dst = strconv.AppendInt(dst, int64(m.ReplyPartition), 10)
	}
	if m.Stage != command.StageCommitted {
		dst = appendMember(dst, `,"stage":`, m.Stage.String())
	}
	dst[at] = '{'
	return append(dst, '}')
}

func parseMeta(text []byte) (m store.Meta, err error) {
	if text == nil {
		return m, nil
	}
	c := cursor{rest: text}
	c.must(`{`)
	m.CorrelationID = c.member(`"correlationId":`)
	m.CausationID = c.member(`"causationId":`)
	m.TraceParent = c.member(`"traceParent":`)
	if m.ReplyTo = c.member(`"replyTo":`); m.ReplyTo != "" {
		m.ReplyPartition = -1
	}
	if c.has(`"replyPartition":`) {
		m.ReplyPartition = int32(c.number())
		c.has(`,`)
	}
	if stage := c.member(`"stage":`); stage != "" {
		m.Stage, err = command.ParseStage(stage)
	}
	c.must(`}`)
	return m, errors.Join(err, c.end())
}

// appendMember appends a member, named with its comma, quotes and colon, where it has a value.
func appendMember(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return appendQuoted(append(dst, name...), value)
}

// member reads a member that appendMember wrote, and the comma after it.
func (c *cursor) member(name string) string {
	if !c.has(name) {
		return ""
	}
	value := c.quoted()
	c.has(`,`)
	return value
}

// appendQuoted appends s as a JSON string. NUL and invalid UTF-8 pass as they are: the server refuses them, and the
// row is reported as bad rather than stored as something else.
func appendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	plain := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' || c == 0 {
			continue
		}
		dst = append(dst, s[plain:i]...)
		if c >= 0x20 {
			dst = append(dst, '\\', c)
		} else {
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
		plain = i + 1
	}
	dst = append(dst, s[plain:]...)
	return append(dst, '"')
}
