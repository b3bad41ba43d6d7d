package command

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"time"
)

// Refusal says why a record is not taken as a command.
type Refusal struct {
	Err Error
	// Identified means that the command was filled in and the refusal is
	// recorded, as rejected, under its request. Otherwise there is no request to
	// record it under; it depends on the record's bytes alone and is answered as
	// far as the next three fields go.
	Identified     bool
	RequestID      string // "" if it cannot be read
	ReplyTo        string // "" if there is none or it cannot be read
	ReplyPartition int32  // -1 if there is none or it cannot be read
}

// Error returns the refusal's code and message.
func (r *Refusal) Error() string { return r.Err.Error() }

// Read takes the command of a record, in binary or structured mode, as
// docs/wire.md describes, into dst, which it overwrites. context is the context
// whose topic the record stands on.
//
// dst keeps r.Value (its body is part of it) and nothing else of r. After a
// refusal that is not Identified dst is undefined. The result is a function of
// context and the record's bytes.
func Read(dst *Command, context string, r *Record) *Refusal {
	*dst = Command{}
	var e envelope
	if err := e.read(r); err != nil {
		return e.refuse(err)
	}
	if err := e.identify(dst, context); err != nil {
		return e.refuse(err)
	}
	err := e.rest(dst)
	e.keep(dst)
	doubt := err != nil && e.doubt
	if err == nil {
		err = e.whole(dst, r)
	}
	dst.seal(doubt)
	if err == nil {
		return nil
	}
	refusal := e.refuse(err)
	refusal.Identified = true
	return refusal
}

// envelope is what a record says, before it is judged. Values alias the record
// unless an escape had to be decoded.
type envelope struct {
	value     [attributes][]byte // nil if absent
	twice     set                // stated with two values
	odd       set                // of a JSON kind that the attribute does not have
	body      []byte
	bodyFault *Error // why the body cannot be taken, or nil
	doubt     bool   // the fault concerns what the fingerprint covers
}

// set is a set of attributes.
type set uint32

func (s *set) add(a attribute)     { *s |= 1 << a }
func (s set) has(a attribute) bool { return s&(1<<a) != 0 }

// read finds the mode of r and takes its attributes.
func (e *envelope) read(r *Record) *Error {
	var media []byte
	marked := false
	for i := range r.Headers {
		h := &r.Headers[i]
		if len(h.Key) > len(prefix) && h.Key[:len(prefix)] == prefix {
			marked = true
			if a, ok := attributeOf(h.Key[len(prefix):]); ok && h.Value != nil {
				e.put(a, h.Value)
			}
		} else if h.Key == contentType && h.Value != nil {
			if media != nil && !bytes.Equal(media, h.Value) {
				return fieldError(CodeContradiction, contentType, "is stated with two values")
			}
			media = h.Value
		}
	}
	if r.Value == nil {
		return Errorf(CodeUnreadable, "record has no value")
	}
	switch {
	case string(media) == contentTypeJSON, media == nil && marked:
	case media == nil, isMedia(media, contentTypeStructured):
		if fault := e.readStructured(r.Value); fault != "" {
			return Errorf(CodeUnreadable, "record is no CloudEvent in JSON: it %s", fault)
		}
		return nil
	case hasPrefixFold(media, "application/cloudevents"):
		return Errorf(CodeUnreadable, "record has content type %q, which is not understood", cut(media))
	case !isJSONMedia(media):
		e.bodyFault = Errorf(CodeInvalidBody, "body has content type %q; it must be %s", cut(media), contentTypeJSON)
	}
	e.body = r.Value
	return nil
}

func (e *envelope) put(a attribute, value []byte) {
	if e.value[a] == nil {
		e.value[a] = value
	} else if !bytes.Equal(e.value[a], value) {
		e.twice.add(a)
	}
}

// identify judges what names the request and its aggregate.
func (e *envelope) identify(c *Command, context string) *Error {
	for _, a := range [...]attribute{attrSpecVersion, attrID, attrSource, attrType} {
		if e.value[a] == nil && !e.odd.has(a) {
			return fieldError(CodeUnreadable, a.String(), "is missing")
		}
	}
	for _, a := range [...]attribute{attrSpecVersion, attrID, attrSource, attrType, attrSubject, attrTenant} {
		if e.twice.has(a) {
			return fieldError(CodeContradiction, a.String(), "is stated with two values")
		}
		if e.odd.has(a) {
			return fieldError(CodeInvalidID, a.String(), "must be a string")
		}
	}
	if v := e.value[attrSpecVersion]; string(v) != specVersion {
		return fieldError(CodeUnreadable, attrSpecVersion.String(), fmt.Sprintf("is %q; it must be %s", cut(v), specVersion))
	}
	for _, a := range [...]attribute{attrID, attrSource, attrSubject} {
		if a == attrSubject && e.value[a] == nil {
			continue
		}
		if fault := checkID(e.value[a]); fault != "" {
			return fieldError(CodeInvalidID, a.String(), fault)
		}
	}
	if fault := checkOptionalID(e.value[attrTenant]); fault != "" {
		return fieldError(CodeInvalidID, attrTenant.String(), fault)
	}
	dot1, dot2, fault := splitType(e.value[attrType])
	if fault != "" {
		return fieldError(CodeInvalidID, attrType.String(), fault)
	}
	if string(e.value[attrType][:dot1]) != context {
		return fieldError(CodeUnknownType, attrType.String(), fmt.Sprintf("is of context %q; this topic is for %q", e.value[attrType][:dot1], context))
	}
	c.dot1, c.dot2 = uint8(dot1), uint8(dot2)
	return nil
}

// rest judges all other attributes and returns the first fault. What is at fault
// is left out of the command.
func (e *envelope) rest(c *Command) (first *Error) {
	for a := attrOwner; a < attributes; a++ {
		if a == attrSpecVersion {
			continue
		}
		v := e.value[a]
		code, fault := CodeInvalidID, ""
		switch {
		case e.twice.has(a):
			code, fault = CodeContradiction, "is stated with two values"
		case e.odd.has(a):
			fault = "is of the wrong JSON kind"
		case v == nil:
			continue
		default:
			fault = c.take(a, v)
		}
		if fault == "" {
			continue
		}
		if a == attrTraceParent { // not the sender's own doing, and it changes nothing
			e.value[a] = nil
			continue
		}
		if first == nil {
			first = fieldError(code, a.String(), fault)
		}
		e.doubt = e.doubt || a == attrOwner || a == attrSpace
		e.value[a] = nil
	}
	return first
}

// take checks the value of an attribute that is no part of the identity and
// keeps it where it is not text.
func (c *Command) take(a attribute, v []byte) (fault string) {
	switch a {
	case attrOwner, attrSpace:
		return checkOptionalID(v)
	case attrCorrelationID, attrCausationID:
		return checkID(v)
	case attrReplyTo:
		return checkTopic(v)
	case attrTraceParent:
		if !validTrace(v) {
			return "is no W3C trace context"
		}
	case attrTime:
		c.time, fault = readTime(v)
	case attrExpiryTime:
		c.expires, fault = readTime(v)
	case attrExpectedVersion:
		c.expected, fault = readInt(v, math.MaxInt64)
		c.hasExpected = fault == ""
	case attrReplyPartition:
		var n int64
		n, fault = readInt(v, math.MaxInt32)
		c.replyPartition, c.hasPartition = int32(n), fault == ""
	case attrWaitFor:
		stage, err := ParseStage(string(v))
		if err != nil {
			return fmt.Sprintf("is %q; it must be committed or snapshot", cut(v))
		}
		c.waitFor = stage
	}
	return fault
}

// keep copies the texts into one string of the command's own and derives the
// aggregate's ID where there is none.
func (e *envelope) keep(c *Command) {
	var stack [768]byte
	var end [texts]int
	arena := stack[:0]
	for a := range texts {
		arena = append(arena, e.value[a]...)
		end[a] = len(arena)
	}
	if e.value[attrSubject] == nil {
		typ := string(e.value[attrType])
		id := derivedID(typ[:c.dot1], typ[c.dot1+1:c.dot2], string(e.value[attrTenant]), string(e.value[attrSource]), string(e.value[attrID]))
		arena = append(arena, id[:]...)
		c.derived = true
	}
	all, begin := string(arena), 0
	for a, end := range end {
		c.text[a] = all[begin:end]
		begin = end
	}
	if c.derived {
		c.text[attrSubject] = all[begin:]
	}
	c.body = e.body
}

// whole judges the record as a whole, now that the command is there.
func (e *envelope) whole(c *Command, r *Record) *Error {
	if len(r.Key) > 0 {
		var stack [256]byte
		if address := c.Aggregate().appendAddress(stack[:0]); !bytes.Equal(address, r.Key) {
			return Errorf(CodeWrongKey, "record key %q must be absent or the aggregate's address, %q", cut(r.Key), cut(address))
		}
	}
	if len(c.body) > MaxBody {
		return Errorf(CodeTooLarge, "body has %d bytes; at most %d are allowed", len(c.body), MaxBody)
	}
	return e.bodyFault
}

// refuse makes a refusal that says where its answer can go.
func (e *envelope) refuse(err *Error) *Refusal {
	r := &Refusal{Err: *err, ReplyPartition: -1}
	single := func(a attribute) bool { return e.value[a] != nil && !e.twice.has(a) && !e.odd.has(a) }
	if v := e.value[attrID]; single(attrID) && checkID(v) == "" {
		r.RequestID = string(v)
	}
	if v := e.value[attrReplyTo]; single(attrReplyTo) && checkTopic(v) == "" {
		r.ReplyTo = string(v)
		if n, fault := readInt(e.value[attrReplyPartition], math.MaxInt32); single(attrReplyPartition) && fault == "" {
			r.ReplyPartition = int32(n)
		}
	}
	return r
}

// readInt reads a decimal without sign and leading zeros.
func readInt(v []byte, most int64) (n int64, fault string) {
	const rule = "must be a whole number, not negative, without leading zeros"
	if len(v) == 0 || len(v) > 1 && v[0] == '0' {
		return 0, rule
	}
	for _, b := range v {
		if !isDigit(b) {
			return 0, rule
		}
		digit := int64(b - '0')
		if n > (most-digit)/10 {
			return 0, fmt.Sprintf("must be at most %d", most)
		}
		n = n*10 + digit
	}
	return n, ""
}

// readTime reads an RFC 3339 time with 'T' and 'Z' in capitals. It sorts out
// what package time is lenient about: short hours, a decimal comma, and offsets
// that do not exist.
func readTime(v []byte) (at time.Time, fault string) {
	const rule = "must be a time as in RFC 3339"
	if len(v) < len("2006-01-02T15:04:05Z") || v[13] != ':' || v[19] == ',' {
		return time.Time{}, rule
	}
	if zone := v[len(v)-5:]; v[len(v)-1] != 'Z' && (string(zone[:2]) > "23" || string(zone[3:]) > "59") {
		return time.Time{}, rule
	}
	if err := at.UnmarshalText(v); err != nil {
		return time.Time{}, rule
	}
	at = at.UTC().Truncate(time.Microsecond)
	if fault := checkTime(at); fault != "" || at.IsZero() {
		return time.Time{}, yearRule
	}
	return at, ""
}

const yearRule = "is outside the years 1 to 9999"

// checkTime says what is wrong with a time, or "". RFC 3339 has no other years.
func checkTime(at time.Time) string {
	if y := at.Year(); y < 1 || y > 9999 {
		return yearRule
	}
	return ""
}

// validTrace reports whether v is a traceparent of the W3C's version 00.
func validTrace[T string | []byte](v T) bool {
	if len(v) != 55 || v[0] != '0' || v[1] != '0' || v[2] != '-' || v[35] != '-' || v[52] != '-' {
		return false
	}
	for i := 3; i < len(v); i++ {
		if b := v[i]; i != 35 && i != 52 && !isDigit(b) && (b < 'a' || b > 'f') {
			return false
		}
	}
	return true
}

// isMedia reports whether v is the media type want, parameters aside.
func isMedia(v []byte, want string) bool {
	return strings.EqualFold(string(mediaType(v)), want)
}

// isJSONMedia reports whether v is application/json or application/…+json.
func isJSONMedia(v []byte) bool {
	v = mediaType(v)
	if !hasPrefixFold(v, "application/") {
		return false
	}
	v = v[len("application/"):]
	return strings.EqualFold(string(v), "json") || len(v) > 5 && strings.EqualFold(string(v[len(v)-5:]), "+json")
}

// mediaType cuts the parameters off.
func mediaType(v []byte) []byte {
	v, _, _ = bytes.Cut(v, []byte{';'})
	return bytes.TrimSpace(v)
}

func hasPrefixFold(v []byte, want string) bool {
	return len(v) >= len(want) && strings.EqualFold(string(v[:len(want)]), want)
}
