package postgres

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// This file holds the JSON of the text columns. It is written by hand, since every committed row passes here. What the
// application wrote (the data of events, results) stands verbatim as the last member of its object, so that it comes
// back to the byte, white space around it included; the rest is read by encoding/json. An absent member is the zero
// value; nothing at all is null.

const dataMember = `,"data":`

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
			dst = append(dst, dataMember...)
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
		if c.has(dataMember) {
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

// keyText is one key in the columns keys_taken and keys_released.
type keyText struct {
	System    bool   `json:"system"`
	Tenant    string `json:"tenant"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
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
		dst = appendMember(dst, ',', "tenant", k.Tenant)
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
	var parsed []keyText
	if err := json.Unmarshal(text, &parsed); err != nil {
		return nil, err
	}
	ks := make([]keys.Key, len(parsed))
	for i, k := range parsed {
		ks[i] = keys.Key(k)
	}
	return ks, nil
}

// errorText is the member error of the column answer.
type errorText struct {
	Code    command.Code      `json:"code"`
	Message string            `json:"message"`
	Fields  map[string]string `json:"fields"`
}

func appendAnswer(dst []byte, e *command.Error, result []byte) []byte {
	if e == nil && len(result) == 0 {
		return dst
	}
	dst = append(dst, '{')
	if e != nil {
		dst = append(dst, `"error":{"code":`...)
		dst = appendQuoted(dst, string(e.Code))
		dst = appendMember(dst, ',', "message", e.Message)
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
		dst = append(dst, '}')
	}
	if len(result) > 0 {
		if e != nil {
			dst = append(dst, ',')
		}
		dst = append(dst, `"result":`...)
		dst = append(dst, result...)
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
		var parsed errorText
		if err := json.Unmarshal(c.value(), &parsed); err != nil {
			return nil, nil, err
		}
		e = &command.Error{Code: parsed.Code, Message: parsed.Message, Fields: parsed.Fields}
		c.has(`,`)
	}
	if c.has(`"result":`) {
		result = slices.Clone(c.value())
	}
	c.must(`}`)
	return e, result, c.end()
}

// metaText is the column meta.
type metaText struct {
	CorrelationID  string `json:"correlationId"`
	CausationID    string `json:"causationId"`
	TraceParent    string `json:"traceParent"`
	ReplyTo        string `json:"replyTo"`
	ReplyPartition *int32 `json:"replyPartition"` // absent: by key
	Stage          string `json:"stage"`
}

func appendMeta(dst []byte, m *store.Meta) []byte {
	if *m == (store.Meta{ReplyPartition: m.ReplyPartition}) {
		return dst
	}
	at := len(dst)
	dst = appendMember(dst, ',', "correlationId", m.CorrelationID)
	dst = appendMember(dst, ',', "causationId", m.CausationID)
	dst = appendMember(dst, ',', "traceParent", m.TraceParent)
	if m.ReplyTo != "" {
		dst = appendMember(dst, ',', "replyTo", m.ReplyTo)
		if m.ReplyPartition != -1 {
			dst = append(dst, `,"replyPartition":`...)
			dst = strconv.AppendInt(dst, int64(m.ReplyPartition), 10)
		}
	}
	if m.Stage != command.StageCommitted {
		dst = appendMember(dst, ',', "stage", m.Stage.String())
	}
	dst[at] = '{'
	return append(dst, '}')
}

func parseMeta(text []byte) (store.Meta, error) {
	if text == nil {
		return store.Meta{}, nil
	}
	var parsed metaText
	if err := json.Unmarshal(text, &parsed); err != nil {
		return store.Meta{}, err
	}
	m := store.Meta{
		CorrelationID: parsed.CorrelationID,
		CausationID:   parsed.CausationID,
		TraceParent:   parsed.TraceParent,
		ReplyTo:       parsed.ReplyTo,
	}
	if parsed.ReplyPartition != nil {
		m.ReplyPartition = *parsed.ReplyPartition
	} else if m.ReplyTo != "" {
		m.ReplyPartition = -1
	}
	if parsed.Stage == "" {
		return m, nil
	}
	var err error
	m.Stage, err = command.ParseStage(parsed.Stage)
	return m, err
}

// appendMember appends separator, name and value where there is a value.
func appendMember(dst []byte, separator byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(dst, separator, '"')
	dst = append(dst, name...)
	dst = append(dst, `":`...)
	return appendQuoted(dst, value)
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
