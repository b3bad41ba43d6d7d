package command

import "bytes"

// readStructured takes the attributes and the body of a value in structured
// mode. Only the envelope is read by the grammar here: the bytes of data are
// found by their brackets and quotes and judged later, like a body in binary
// mode, so that a fault in them is a fault of an identified command.
func (e *envelope) readStructured(value []byte) (fault string) {
	s := scanner{src: value}
	headers := *e
	*e = envelope{}
	if fault := e.members(&s); fault != "" {
		return fault
	}
	for a := range attributes {
		if headers.value[a] == nil {
			continue
		}
		if headers.twice.has(a) || !bytes.Equal(headers.value[a], e.value[a]) {
			e.twice.add(a)
		}
	}
	return ""
}

func (e *envelope) members(s *scanner) (fault string) {
	const notObject = "is not one JSON object"
	s.space()
	if !s.skip('{') {
		return notObject
	}
	for first := true; ; first = false {
		s.space()
		if first && s.skip('}') {
			break
		}
		name, ok := s.string()
		if !ok {
			return "has no proper member name where one must begin"
		}
		s.space()
		if !s.skip(':') {
			return "has no ':' after a member name"
		}
		s.space()
		switch a, known := attributeOf(string(name)); {
		case known:
			if fault := e.member(a, s); fault != "" {
				return fault
			}
		case string(name) == "data":
			data, ok := s.raw()
			if !ok {
				return "ends within its data"
			}
			if e.body != nil && !bytes.Equal(data, e.body) {
				e.bodyFault, e.doubt = Errorf(CodeContradiction, "data is stated with two values"), true
				break
			}
			e.body = data
		case string(name) == "data_base64":
			if _, ok := s.raw(); !ok {
				return "ends within a member"
			}
			e.bodyFault = Errorf(CodeInvalidBody, "body must be JSON in data; data_base64 is not understood")
		case string(name) == "datacontenttype":
			v, ok := s.raw()
			if !ok {
				return "ends within a member"
			}
			if string(v) != "null" && (v[0] != '"' || !isJSONMedia(v[1:len(v)-1])) {
				e.bodyFault = Errorf(CodeInvalidBody, "body must have the datacontenttype %s", contentTypeJSON)
			}
		default:
			if _, ok := s.raw(); !ok {
				return "ends within a member"
			}
		}
		s.space()
		if s.skip(',') {
			continue
		}
		if s.skip('}') {
			break
		}
		return "has neither ',' nor '}' after a member"
	}
	if s.space(); s.at != len(s.src) {
		return "has something after the object"
	}
	if e.body == nil {
		e.body = s.src[:0:0]
		if e.bodyFault == nil {
			e.bodyFault = Errorf(CodeInvalidBody, "body is missing: the event has no data")
		}
	}
	return ""
}

// member takes the value of an attribute.
func (e *envelope) member(a attribute, s *scanner) (fault string) {
	if s.peek() == '"' {
		v, ok := s.string()
		if !ok {
			return "has a string that is not JSON as value of " + a.String()
		}
		e.put(a, v)
		return ""
	}
	v, ok := s.raw()
	switch {
	case !ok:
		return "ends within a member"
	case string(v) == "null": // unset, by the CloudEvents JSON format
	case (a == attrExpectedVersion || a == attrReplyPartition) && len(v) > 0 && (isDigit(v[0]) || v[0] == '-'):
		e.put(a, v)
	default:
		e.odd.add(a)
	}
	return ""
}

// scanner walks over the members of an object.
type scanner struct {
	src []byte
	at  int
}

func (s *scanner) space() {
	for s.at < len(s.src) && isSpace(s.src[s.at]) {
		s.at++
	}
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

func (s *scanner) peek() byte {
	if s.at == len(s.src) {
		return 0
	}
	return s.src[s.at]
}

func (s *scanner) skip(b byte) bool {
	if s.peek() != b || s.at == len(s.src) {
		return false
	}
	s.at++
	return true
}

// string reads a string and returns what it stands for.
func (s *scanner) string() ([]byte, bool) {
	if s.peek() != '"' {
		return nil, false
	}
	end := s.at + 1
	for end < len(s.src) && plain[s.src[end]] {
		end++
	}
	if end < len(s.src) && s.src[end] == '"' {
		v := s.src[s.at+1 : end]
		s.at = end + 1
		return v, true
	}
	c := canonicaliser{src: s.src, at: s.at}
	if !c.string() {
		return nil, false
	}
	s.at = c.at
	inside := c.out[1 : len(c.out)-1]
	decoded := inside[:0]
	for len(inside) > 0 {
		b, n := decodeByte(inside)
		decoded, inside = append(decoded, b), inside[n:]
	}
	return decoded, true
}

// raw finds the end of a value by its brackets and quotes alone. It fails only
// where the text ends first.
func (s *scanner) raw() ([]byte, bool) {
	begin, open := s.at, 0
	for s.at < len(s.src) {
		switch b := s.src[s.at]; b {
		case '"':
			if !s.quoted() {
				return nil, false
			}
			if open == 0 {
				return s.src[begin:s.at], true
			}
			continue
		case '{', '[':
			open++
		case '}', ']':
			if open == 0 {
				return s.src[begin:s.at], s.at > begin
			}
			if open--; open == 0 {
				s.at++
				return s.src[begin:s.at], true
			}
		default:
			if open == 0 && (b == ',' || isSpace(b)) {
				return s.src[begin:s.at], s.at > begin
			}
		}
		s.at++
	}
	return nil, false
}

// quoted skips a string, whatever stands in it.
func (s *scanner) quoted() bool {
	for s.at++; s.at < len(s.src); s.at++ {
		switch s.src[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return true
		}
	}
	s.at = len(s.src)
	return false
}
