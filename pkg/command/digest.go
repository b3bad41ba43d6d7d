package command

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/google/uuid"
)

// Digest is a compact key: 16 bytes of SHA-256 over framed parts. It stands in
// indexes and maps for identities of any length; the text is kept beside it in
// the journal and compared on a hit.
//
// The framing is frozen: every part, the domain label first, is its length as an
// unsigned varint followed by its bytes, so that no two lists of parts share a
// frame.
type Digest [16]byte

// String returns d in lower-case hex.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// The labels keep digests of different kinds apart. They are frozen: each
// stands in every journal.
const (
	labelStream    = "writ.stream.v1"
	labelRequest   = "writ.request.v1"
	labelAside     = "writ.aside.v1"
	labelDerivedID = "writ.derived-id.v1"
	labelJSON      = "writ.fingerprint.json.v1"
	labelBytes     = "writ.fingerprint.bytes.v1"
	labelRefused   = "writ.fingerprint.refused.v1"
)

// frameSize is enough for a label and four identifiers of full length, so that
// framing them stays on the stack.
const frameSize = 4*(MaxID+2) + 64

func appendPart[T string | []byte](frame []byte, part T) []byte {
	frame = binary.AppendUvarint(frame, uint64(len(part)))
	return append(frame, part...)
}

func digest(frame []byte) Digest {
	sum := sha256.Sum256(frame)
	return Digest(sum[:])
}

// RequestDigest is the key of a request within its context. Where the request ID
// is a UUIDv7 in its text form, of either case, the digest begins with the
// UUID's 48 time bits, which keeps the index of a growing journal dense.
func RequestDigest(aggregateType, tenant, requestID string) Digest {
	var stack [frameSize]byte
	frame := appendPart(stack[:0], labelRequest)
	frame = appendPart(frame, aggregateType)
	frame = appendPart(frame, tenant)
	frame = appendPart(frame, requestID)
	d := digest(frame)
	if at, ok := timeBits(requestID); ok {
		copy(d[6:], d[:10])
		copy(d[:6], at[:])
	}
	return d
}

// AsideDigest is the key under which the row of a replaced refusal stays
// findable for its own record, the one at p.
func AsideDigest(request Digest, p Position) Digest {
	var partition [4]byte
	var offset [8]byte
	binary.BigEndian.PutUint32(partition[:], uint32(p.Partition))
	binary.BigEndian.PutUint64(offset[:], uint64(p.Offset))
	var stack [128]byte
	frame := appendPart(stack[:0], labelAside)
	frame = appendPart(frame, request[:])
	frame = appendPart(frame, p.TopicID[:])
	frame = appendPart(frame, partition[:])
	frame = appendPart(frame, offset[:])
	return digest(frame)
}

// DeriveID returns the aggregate ID of a create that names none: a UUIDv8 made
// of its context, aggregate type, tenant, caller and request ID. A retry by the
// same caller names the same aggregate, and nothing has to be looked up.
func DeriveID(context, aggregateType, tenant, caller, requestID string) string {
	id := derivedID(context, aggregateType, tenant, caller, requestID)
	return string(id[:])
}

func derivedID(context, aggregateType, tenant, caller, requestID string) (text [36]byte) {
	var stack [frameSize + MaxTypePart]byte
	frame := appendPart(stack[:0], labelDerivedID)
	frame = appendPart(frame, context)
	frame = appendPart(frame, aggregateType)
	frame = appendPart(frame, tenant)
	frame = appendPart(frame, caller)
	frame = appendPart(frame, requestID)
	id := uuid.UUID(digest(frame))
	id[6] = id[6]&0x0f | 0x80 // version 8
	id[8] = id[8]&0x3f | 0x80 // variant RFC 9562
	hex.Encode(text[0:8], id[0:4])
	hex.Encode(text[9:13], id[4:6])
	hex.Encode(text[14:18], id[6:8])
	hex.Encode(text[19:23], id[8:10])
	hex.Encode(text[24:36], id[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return text
}

// timeBits returns the 48 time bits of a UUIDv7 in its canonical text form.
func timeBits(s string) (bits [6]byte, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[14] != '7' || s[18] != '-' || s[23] != '-' {
		return bits, false
	}
	switch s[19] {
	case '8', '9', 'a', 'b', 'A', 'B':
	default:
		return bits, false
	}
	nibbles := 0
	for i := 0; i < len(s); i++ {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			continue
		}
		v := fromHex(s[i])
		if v < 0 {
			return bits, false
		}
		if nibbles < 12 {
			bits[nibbles/2] = bits[nibbles/2]<<4 | byte(v)
		}
		nibbles++
	}
	return bits, true
}

// fromHex returns the value of a hex digit of either case, or -1.
func fromHex(b byte) int {
	switch {
	case b >= '0' && b <= '9':
		return int(b - '0')
	case b >= 'a' && b <= 'f':
		return int(b-'a') + 10
	case b >= 'A' && b <= 'F':
		return int(b-'A') + 10
	}
	return -1
}
