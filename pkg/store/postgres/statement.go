package postgres

import (
	"context"
	"encoding/binary"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed54173720/writ/pkg/command"
)

// statement is prepared once per connection, under its name.
// A name MUST differ from its text, which pgx takes for no name.
type statement struct{ name, sql string }

// query runs s with binary parameters and calls f for each row of the answer with its columns, binary too and valid
// until f returns.
func query(ctx context.Context, conn *pgx.Conn, s statement, f func(columns [][]byte) error, params ...[]byte) error {
	if _, err := conn.Prepare(ctx, s.name, s.sql); err != nil {
		return err
	}
	result := conn.PgConn().ExecPrepared(ctx, s.name, params, binaryFormat, binaryFormat)
	var fault error
	for fault == nil && result.NextRow() {
		fault = f(result.Values())
	}
	if _, err := result.Close(); err != nil {
		return err
	}
	return fault
}

// array encodes a one-dimensional array parameter of n elements; element appends the i-th with its length.
func array(oid uint32, n int, element func(dst []byte, i int) []byte) []byte {
	b := make([]byte, 0, 20+n*20)
	dimensions := uint32(1)
	if n == 0 {
		dimensions = 0
	}
	b = binary.BigEndian.AppendUint32(b, dimensions)
	b = binary.BigEndian.AppendUint32(b, 1) // may hold nulls
	b = binary.BigEndian.AppendUint32(b, oid)
	if n == 0 {
		return b
	}
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	b = binary.BigEndian.AppendUint32(b, 1) // lower bound
	for i := range n {
		b = element(b, i)
	}
	return b
}

func digests(n int, digest func(i int) command.Digest) []byte {
	return array(pgtype.UUIDOID, n, func(dst []byte, i int) []byte { return appendUUID(dst, digest(i)) })
}

func texts(n int, text func(i int) string) []byte {
	return array(pgtype.TextOID, n, func(dst []byte, i int) []byte { return appendText(dst, text(i)) })
}

// positions encodes the three arrays of record positions, null where there is no record.
func positions(n int, position func(i int) (p command.Position, ok bool)) (topics, partitions, offsets []byte) {
	topics = array(pgtype.UUIDOID, n, func(dst []byte, i int) []byte {
		if p, ok := position(i); ok {
			return appendUUID(dst, p.TopicID)
		}
		return appendNull(dst)
	})
	partitions = array(pgtype.Int4OID, n, func(dst []byte, i int) []byte {
		if p, ok := position(i); ok {
			return appendInt32(dst, p.Partition)
		}
		return appendNull(dst)
	})
	offsets = array(pgtype.Int8OID, n, func(dst []byte, i int) []byte {
		if p, ok := position(i); ok {
			return appendInt64(dst, p.Offset)
		}
		return appendNull(dst)
	})
	return topics, partitions, offsets
}
