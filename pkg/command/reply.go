package command

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ReplyType is the CloudEvents type of a reply.
const ReplyType = "writ.reply"

// Reply is the answer to one record: a function of the record and of the row
// that holds its outcome, so that every answer to the record is the same.
type Reply struct {
	RequestID string // "" where the record could not be read
	Type      string // the command's type; "" where the record could not be read
	Aggregate Aggregate
	Outcome   Outcome
	Duplicate bool   // the outcome was reached by another record
	Version   int64  // that the commit gave the aggregate; 0 unless committed
	Stage     Stage  // how far it has got; of final outcomes only
	Error     *Error // of rejected and failed only
	Result    []byte // what the decision handed back, one JSON value, or nil

	Topic    string // where the record stands; "" for a command without record
	Position Position

	CorrelationID string // the command's; travels as a header, see Headers
}

// Append appends the reply's value, a JSON object, to dst. It needs r.Result to
// be JSON.
func (r *Reply) Append(dst []byte) []byte {
	dst = append(dst, '{')
	if r.RequestID != "" {
		dst = append(dst, `"requestId":`...)
		dst = append(appendString(dst, r.RequestID), ',')
	}
	if r.Type != "" {
		dst = append(dst, `"type":`...)
		dst = append(appendString(dst, r.Type), ',')
	}
	if r.Aggregate.Type != "" {
		dst = append(dst, `"tenant":`...)
		dst = appendString(dst, r.Aggregate.Tenant)
		dst = append(dst, `,"aggregate":{"type":`...)
		dst = appendString(dst, r.Aggregate.Type)
		dst = append(dst, `,"id":`...)
		dst = append(appendString(dst, r.Aggregate.ID), '}', ',')
	}
	dst = append(dst, `"outcome":"`...)
	dst = append(dst, r.Outcome.String()...)
	dst = append(dst, `","duplicate":`...)
	dst = strconv.AppendBool(dst, r.Duplicate)
	if r.Aggregate.Type != "" {
		dst = append(dst, `,"version":`...)
		dst = strconv.AppendInt(dst, r.Version, 10)
	}
	if r.Outcome.Final() {
		dst = append(dst, `,"stage":"`...)
		dst = append(append(dst, r.Stage.String()...), '"')
	}
	if r.Error != nil {
		dst = append(dst, `,"error":`...)
		dst = r.Error.Append(dst)
	}
	if r.Result != nil {
		dst = append(dst, `,"result":`...)
		dst = append(dst, r.Result...)
	}
	if r.Topic != "" {
		dst = append(dst, `,"position":{"topic":`...)
		dst = appendString(dst, r.Topic)
		dst = append(dst, `,"partition":`...)
		dst = strconv.AppendInt(dst, int64(r.Position.Partition), 10)
		dst = append(dst, `,"offset":`...)
		dst = strconv.AppendInt(dst, r.Position.Offset, 10)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// Append appends e as it stands in a reply, a JSON object, to dst.
func (e *Error) Append(dst []byte) []byte {
	dst = append(dst, `{"code":`...)
	dst = appendString(dst, string(e.Code))
	dst = append(dst, `,"message":`...)
	dst = appendString(dst, e.Message)
	if len(e.Fields) > 0 {
		dst = append(dst, `,"fields":{`...)
		for i, name := range slices.Sorted(maps.Keys(e.Fields)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, name), ':')
			dst = appendString(dst, e.Fields[name])
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// Headers appends the headers that make the reply a CloudEvent in binary mode.
// Its CloudEvents ID is the position of the record that it answers, its source
// that record's topic. r.Topic must be set. The values are appended to text,
// which may be nil, and which the caller gets back to append more.
func (r *Reply) Headers(dst []Header, text []byte) ([]Header, []byte) {
	correlation := r.CorrelationID
	if correlation == "" {
		correlation = r.RequestID
	}
	begin := len(text)
	text = r.Position.append(text)
	id := len(text)
	text = append(text, r.Topic...)
	source := len(text)
	text = append(text, correlation...)
	dst = append(dst,
		Header{contentType, valueJSON},
		Header{"ce_specversion", valueSpecVersion},
		Header{"ce_id", text[begin:id:id]},
		Header{"ce_source", text[id:source:source]},
		Header{"ce_type", valueReplyType},
	)
	if correlation != "" {
		dst = append(dst, Header{"ce_correlationid", text[source:len(text):len(text)]})
	}
	return dst, text
}

// Header values that are the same in every record. Nobody writes to them.
var (
	valueJSON        = []byte(contentTypeJSON)
	valueStructured  = []byte(contentTypeStructured)
	valueSpecVersion = []byte(specVersion)
	valueReplyType   = []byte(ReplyType)
)

// Shortened returns the reply for a topic that cannot take all of it: without
// result and fields, and with a message that says so. It is a function of r.
func (r *Reply) Shortened() Reply {
	s := *r
	s.Result = nil
	if r.Error != nil {
		s.Error = &Error{Code: r.Error.Code, Message: shorten(r.Error.Message, MaxMessage/4) + " (shortened: the reply was too large for its topic)"}
	}
	return s
}

// replyJSON is a reply's value as [ParseReply] reads it.
type replyJSON struct {
	RequestID string `json:"requestId"`
	Type      string `json:"type"`
	Tenant    string `json:"tenant"`
	Aggregate struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	} `json:"aggregate"`
	Outcome   string         `json:"outcome"`
	Duplicate bool           `json:"duplicate"`
	Version   int64          `json:"version"`
	Stage     string         `json:"stage"`
	Error     *errorJSON     `json:"error"`
	Result    jsontext.Value `json:"result"`
	Position  struct {
		Topic     string `json:"topic"`
		Partition int32  `json:"partition"`
		Offset    int64  `json:"offset"`
	} `json:"position"`
}

type errorJSON struct {
	Code    Code              `json:"code"`
	Message string            `json:"message"`
	Fields  map[string]string `json:"fields"`
}

// ParseReply reads a reply's value. Members that it does not know are ignored,
// so that an older client reads a newer processor's replies. The topic ID of the
// position and the correlation ID are not part of the value.
func ParseReply(value []byte) (Reply, error) {
	var v replyJSON
	if err := json.Unmarshal(value, &v); err != nil {
		return Reply{}, fmt.Errorf("command: parse reply: %w", err)
	}
	r := Reply{
		RequestID: v.RequestID,
		Type:      v.Type,
		Aggregate: Aggregate{Tenant: v.Tenant, Type: v.Aggregate.Type, ID: v.Aggregate.ID},
		Duplicate: v.Duplicate,
		Version:   v.Version,
		Result:    v.Result,
		Topic:     v.Position.Topic,
		Position:  Position{Partition: v.Position.Partition, Offset: v.Position.Offset},
	}
	if v.Error != nil {
		r.Error = &Error{Code: v.Error.Code, Message: v.Error.Message, Fields: v.Error.Fields}
	}
	var faults [2]error
	r.Outcome, faults[0] = ParseOutcome(v.Outcome)
	if v.Stage != "" {
		r.Stage, faults[1] = ParseStage(v.Stage)
	}
	if err := errors.Join(faults[:]...); err != nil {
		return Reply{}, fmt.Errorf("command: parse reply: %w", err)
	}
	return r, nil
}
