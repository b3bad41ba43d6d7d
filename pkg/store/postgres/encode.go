package postgres

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// rowColumns are a row's columns in the order of appendRow and readRow, which is that of the table.
const (
	rowColumns = `version, decided_at, "offset", partition, outcome, stream, request, fingerprint, topic_id, type, tenant, ` +
		`aggregate_type, aggregate_id, owner, space, request_id, caller, events, keys_taken, keys_released, answer, meta`
	rowWidth = 22
)

// outcomes are the letters of the outcome column. An outcome without one violates the table's check.
var outcomes = [...]byte{command.Committed: 'c', command.Nothing: 'n', command.Rejected: 'r', command.Failed: 'f'}

// epoch is where Postgres's time begins, in microseconds of Unix time.
var epoch = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// appendRow appends r in COPY's binary format. It allocates nothing but dst's growth.
func appendRow(dst []byte, r *store.Row) []byte {
	dst = binary.BigEndian.AppendUint16(dst, rowWidth)
	if r.Version != 0 {
		dst = appendInt64(dst, r.Version)
	} else {
		dst = appendNull(dst)
	}
	dst = appendTime(dst, r.Time)
	if r.FromRecord {
		dst = appendInt64(dst, r.Position.Offset)
		dst = appendInt32(dst, r.Position.Partition)
	} else {
		dst = appendNull(appendNull(dst))
	}
	dst = binary.BigEndian.AppendUint32(dst, 1)
	dst = append(dst, outcomeLetter(r.Outcome))
	dst = appendUUID(dst, r.Stream)
	dst = appendUUID(dst, r.Request)
	dst = appendUUID(dst, r.Fingerprint)
	if r.FromRecord {
		dst = appendUUID(dst, r.Position.TopicID)
	} else {
		dst = appendNull(dst)
	}
	dst = appendText(dst, r.Type)
	dst = appendText(dst, r.Aggregate.Tenant)
	dst = appendText(dst, r.Aggregate.Type)
	dst = appendText(dst, r.Aggregate.ID)
	dst = appendTextOrNull(dst, r.Owner)
	dst = appendTextOrNull(dst, r.Space)
	dst = appendText(dst, r.RequestID)
	dst = appendText(dst, r.Caller)

	// The texts of JSON have their length filled in when they are written.
	at := len(dst)
	dst = closeField(appendEvents(openField(dst), r.Events), at)
	at = len(dst)
	dst = closeField(appendKeys(openField(dst), r.Taken), at)
	at = len(dst)
	dst = closeField(appendKeys(openField(dst), r.Released), at)
	at = len(dst)
	dst = closeField(appendAnswer(openField(dst), r.Error, r.Result), at)
	at = len(dst)
	return closeField(appendMeta(openField(dst), &r.Meta), at)
}

func outcomeLetter(o command.Outcome) byte {
	if int(o) < len(outcomes) {
		return outcomes[o]
	}
	return 0
}

// claimColumns are the columns of appendClaim. What is left out has its default or is null.
const (
	claimColumns = `id, holder, system, tenant, namespace, name, holder_tenant, holder_type, holder_id`
	claimWidth   = 9
)

// claim is a key that a unit takes.
type claim struct {
	id   command.Digest
	key  *keys.Key
	unit *store.Unit
}

func appendClaim(dst []byte, c *claim) []byte {
	dst = binary.BigEndian.AppendUint16(dst, claimWidth)
	dst = appendUUID(dst, c.id)
	dst = appendUUID(dst, c.unit.Stream)
	dst = appendBool(dst, c.key.System)
	dst = appendText(dst, c.key.Tenant)
	dst = appendText(dst, c.key.Namespace)
	dst = appendText(dst, c.key.Name)
	dst = appendText(dst, c.unit.Aggregate.Tenant)
	dst = appendText(dst, c.unit.Aggregate.Type)
	return appendText(dst, c.unit.Aggregate.ID)
}

func appendNull(dst []byte) []byte { return append(dst, 0xff, 0xff, 0xff, 0xff) }

func appendInt64(dst []byte, v int64) []byte {
	dst = append(dst, 0, 0, 0, 8)
	return binary.BigEndian.AppendUint64(dst, uint64(v))
}

func appendInt32(dst []byte, v int32) []byte {
	dst = append(dst, 0, 0, 0, 4)
	return binary.BigEndian.AppendUint32(dst, uint32(v))
}

func appendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 0, 0, 0, 1, 1)
	}
	return append(dst, 0, 0, 0, 1, 0)
}

func appendTime(dst []byte, t time.Time) []byte { return appendInt64(dst, t.UnixMicro()-epoch) }

func appendUUID[T ~[16]byte](dst []byte, v T) []byte {
	dst = append(dst, 0, 0, 0, 16)
	return append(dst, v[:]...)
}

func appendText(dst []byte, s string) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(s)))
	return append(dst, s...)
}

func appendTextOrNull(dst []byte, s string) []byte {
	if s == "" {
		return appendNull(dst)
	}
	return appendText(dst, s)
}

func openField(dst []byte) []byte { return append(dst, 0, 0, 0, 0) }

// closeField fills in the length of the field opened at, or makes it null where nothing was written.
func closeField(dst []byte, at int) []byte {
	size := len(dst) - at - 4
	if size == 0 {
		return appendNull(dst[:at])
	}
	binary.BigEndian.PutUint32(dst[at:], uint32(size))
	return dst
}

// compareDigests orders digests by their bytes.
func compareDigests(a, b command.Digest) int {
	x, y := binary.BigEndian.Uint64(a[:8]), binary.BigEndian.Uint64(b[:8])
	if x == y {
		return slices.Compare(a[8:], b[8:])
	}
	if x < y {
		return -1
	}
	return 1
}
