package command

import (
	"encoding/base64"
	"strconv"
)

// Position is where a record stands. The topic's ID is part of it, since a topic
// that was deleted and made again begins at offset 0 under the same name.
type Position struct {
	TopicID   [16]byte
	Partition int32
	Offset    int64
}

// String returns topic ID, partition and offset with '/' between them, the ID in
// unpadded URL-safe base64, as Kafka's own tools show it.
func (p Position) String() string {
	var stack [64]byte
	return string(p.append(stack[:0]))
}

func (p Position) append(dst []byte) []byte {
	dst = appendTopicID(dst, p.TopicID)
	dst = append(dst, '/')
	dst = strconv.AppendInt(dst, int64(p.Partition), 10)
	dst = append(dst, '/')
	return strconv.AppendInt(dst, p.Offset, 10)
}

func appendTopicID(dst []byte, id [16]byte) []byte {
	return base64.RawURLEncoding.AppendEncode(dst, id[:])
}
