package command

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// DeadLetter is a record that was not carried out and is kept where it can be
// seen and sent again, with where it came from and why it is here.
type DeadLetter struct {
	// Original is the record as it stood on its topic.
	Original Record

	Topic     string // where it stood
	Position  Position
	Timestamp time.Time // its Kafka timestamp, to the millisecond

	Code      Code
	Message   string // cut to MaxMessage bytes
	RequestID string // "" if it cannot be read
}

// MaxDeadLetterHeaders bounds, in bytes, by how much a dead letter is larger
// than its original.
const MaxDeadLetterHeaders = 2_560

const (
	letterPrefix    = "writ_"
	letterTopic     = letterPrefix + "topic"
	letterTopicID   = letterPrefix + "topic_id"
	letterPartition = letterPrefix + "partition"
	letterOffset    = letterPrefix + "offset"
	letterTimestamp = letterPrefix + "timestamp"
	letterCode      = letterPrefix + "code"
	letterMessage   = letterPrefix + "message"
	letterRequestID = letterPrefix + "request_id"
)

// Record writes d to dst: the original's key, value and headers as they are, and
// after them headers that begin with "writ_". Key and value alias the original;
// dst MUST NOT be the original or share its headers.
func (d *DeadLetter) Record(dst *Record) {
	dst.reset()
	dst.Key, dst.Value = d.Original.Key, d.Original.Value
	dst.Headers = append(dst.Headers, d.Original.Headers...)
	dst.Headers = append(dst.Headers,
		Header{letterTopic, []byte(shorten(d.Topic, MaxTopic))},
		Header{letterTopicID, appendTopicID(nil, d.Position.TopicID)},
		Header{letterPartition, strconv.AppendInt(nil, int64(d.Position.Partition), 10)},
		Header{letterOffset, strconv.AppendInt(nil, d.Position.Offset, 10)},
		Header{letterTimestamp, strconv.AppendInt(nil, d.Timestamp.UnixMilli(), 10)},
		Header{letterCode, []byte(shorten(string(d.Code), MaxID))},
		Header{letterMessage, []byte(shorten(d.Message, MaxMessage))},
	)
	if d.RequestID != "" {
		dst.Headers = append(dst.Headers, Header{letterRequestID, []byte(shorten(d.RequestID, MaxID))})
	}
}

// ReadDeadLetter is the inverse of [DeadLetter.Record]. Original aliases r.
//
// An original that was itself a dead letter has such headers of its own; the
// last run of them is the letter's.
func ReadDeadLetter(r *Record) (DeadLetter, error) {
	d := DeadLetter{Original: Record{Key: r.Key, Value: r.Value}}
	begin := -1
	for i := range r.Headers {
		if r.Headers[i].Key == letterTopic {
			begin = i
		}
	}
	if begin < 0 {
		return DeadLetter{}, fmt.Errorf("command: read dead letter: header %s is missing", letterTopic)
	}
	d.Original.Headers = r.Headers[:begin:begin]
	seen := map[string]bool{}
	for _, h := range r.Headers[begin:] {
		if !strings.HasPrefix(h.Key, letterPrefix) {
			return DeadLetter{}, fmt.Errorf("command: read dead letter: header %q stands after %s", cut(h.Key), letterTopic)
		}
		seen[h.Key] = true
		if err := d.takeHeader(h.Key, string(h.Value)); err != nil {
			return DeadLetter{}, fmt.Errorf("command: read dead letter: header %s %q: %w", h.Key, cut(h.Value), err)
		}
	}
	for _, key := range [...]string{letterTopicID, letterPartition, letterOffset, letterTimestamp, letterCode, letterMessage} {
		if !seen[key] {
			return DeadLetter{}, fmt.Errorf("command: read dead letter: header %s is missing", key)
		}
	}
	return d, nil
}

func (d *DeadLetter) takeHeader(key, value string) error {
	var err error
	switch key {
	case letterTopic:
		d.Topic = value
	case letterTopicID:
		var id []byte
		id, err = base64.RawURLEncoding.DecodeString(value)
		if err == nil && len(id) != len(d.Position.TopicID) {
			err = fmt.Errorf("has %d bytes; a topic ID has 16", len(id))
		}
		copy(d.Position.TopicID[:], id)
	case letterPartition:
		var n int64
		n, err = strconv.ParseInt(value, 10, 32)
		d.Position.Partition = int32(n)
	case letterOffset:
		d.Position.Offset, err = strconv.ParseInt(value, 10, 64)
	case letterTimestamp:
		var n int64
		n, err = strconv.ParseInt(value, 10, 64)
		d.Timestamp = time.UnixMilli(n).UTC()
	case letterCode:
		d.Code = Code(value)
	case letterMessage:
		d.Message = value
	case letterRequestID:
		d.RequestID = value
	}
	return err
}
