package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

const (
	copyStreams = 2     // connections
	copyBatch   = 1_000 // rows a transaction
)

// selectRows reads the journal as it was written.
const selectRows = `copy (select * from %s.journal order by ctid) to stdout (format binary)`

// copyRows is one transaction and one round trip.
const copyRows = `begin; copy %s.journal from stdin (format binary); commit`

// rawCopy measures a: the rows of a schema's journal into a table like it in another schema, while the first is gone.
func (b *bed) rawCopy(ctx context.Context, from, to string) (r result, err error) {
	var rows bytes.Buffer
	if _, err := b.db.PgConn().CopyTo(ctx, &rows, fmt.Sprintf(selectRows, from)); err != nil {
		return r, err
	}
	batches, n, err := split(rows.Bytes())
	if err != nil {
		return r, err
	}
	r.commands = n
	if _, err := b.db.Exec(ctx, fmt.Sprintf("create schema %[2]s; create table %[2]s.journal (like %[1]s.journal including all); drop schema %[1]s cascade", from, to)); err != nil {
		return r, err
	}
	if err := b.settle(ctx); err != nil {
		return r, err
	}
	conns := make([]*pgx.Conn, copyStreams)
	for i := range conns {
		if conns[i], err = pgx.Connect(ctx, b.server.URL()); err != nil {
			return r, err
		}
		defer conns[i].Close(ctx)
	}
	m := meter{postgres: b.postgres}
	before, err := m.read()
	if err != nil {
		return r, err
	}
	start := time.Now()
	g, gctx := errgroup.WithContext(ctx)
	for i, conn := range conns {
		g.Go(func() error {
			for j := i; j < len(batches); j += copyStreams {
				tag, err := conn.PgConn().CopyFrom(gctx, bytes.NewReader(batches[j]), fmt.Sprintf(copyRows, to))
				if err != nil {
					return err
				}
				if tag.String() != "COMMIT" {
					return fmt.Errorf("copy ended with %s", tag)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return r, err
	}
	r.took = time.Since(start)
	after, err := m.read()
	if err != nil {
		return r, err
	}
	r.cpu = after.minus(before)
	if err := b.db.QueryRow(ctx, "select count(*) from "+to+".journal").Scan(&r.journal.committed); err != nil {
		return r, err
	}
	if r.journal.committed != int64(n) {
		return r, fmt.Errorf("copy: %d of %d rows", r.journal.committed, n)
	}
	return r, nil
}

// COPY's binary format is a header, rows that each begin with the number of their columns, and a number of -1.
const (
	copyHeaderSize = 19
	copyTrailer    = "\xff\xff"
)

var errCutOff = errors.New("copy: the rows are cut off")

// split makes batches that can each be copied by itself.
func split(data []byte) (batches [][]byte, rows int, err error) {
	if len(data) < copyHeaderSize {
		return nil, 0, errCutOff
	}
	header, rest := data[:copyHeaderSize], data[copyHeaderSize:]
	for {
		batch := rest
		var n int
		for n < copyBatch {
			size, err := rowSize(rest)
			if err != nil {
				return nil, 0, err
			}
			if size == 0 {
				break
			}
			rest = rest[size:]
			n++
		}
		if n > 0 {
			batches = append(batches, bytes.Join([][]byte{header, batch[:len(batch)-len(rest)], []byte(copyTrailer)}, nil))
			rows += n
		}
		if n < copyBatch {
			return batches, rows, nil
		}
	}
}

// rowSize is the size of the row that data begins with, 0 for the trailer.
func rowSize(data []byte) (int, error) {
	if len(data) < 2 {
		return 0, errCutOff
	}
	if string(data[:2]) == copyTrailer {
		return 0, nil
	}
	size := 2
	for range binary.BigEndian.Uint16(data) {
		if len(data) < size+4 {
			return 0, errCutOff
		}
		if n := int32(binary.BigEndian.Uint32(data[size:])); n > 0 { // -1 is null
			size += int(n)
		}
		size += 4
	}
	if len(data) < size {
		return 0, errCutOff
	}
	return size, nil
}
