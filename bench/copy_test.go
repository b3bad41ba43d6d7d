package main

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// copyData is COPY's binary format of n rows: a number, and a null.
func copyData(n int) []byte {
	data := append([]byte("PGCOPY\n\xff\r\n\x00"), make([]byte, 8)...)
	for i := range n {
		data = append(data, 0, 2, 0, 0, 0, 4)
		data = binary.BigEndian.AppendUint32(data, uint32(i))
		data = append(data, 0xff, 0xff, 0xff, 0xff)
	}
	return append(data, copyTrailer...)
}

func TestBatchesHoldEveryRowOnceAndInOrder(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, copyBatch - 1, copyBatch, copyBatch + 1, 3*copyBatch + 7} {
		data := copyData(n)
		batches, rows, err := split(data)
		if err != nil {
			t.Fatalf("%d rows: %v", n, err)
		}
		if want := (n + copyBatch - 1) / copyBatch; rows != n || len(batches) != want {
			t.Errorf("%d rows: got %d in %d batches, want %d batches", n, rows, len(batches), want)
		}
		joined := bytes.Clone(data[:copyHeaderSize])
		for i, b := range batches {
			if !bytes.HasPrefix(b, data[:copyHeaderSize]) || !bytes.HasSuffix(b, []byte(copyTrailer)) {
				t.Fatalf("%d rows: batch %d cannot be copied by itself", n, i)
			}
			joined = append(joined, b[copyHeaderSize:len(b)-len(copyTrailer)]...)
		}
		if joined = append(joined, copyTrailer...); !bytes.Equal(joined, data) {
			t.Errorf("%d rows: the batches are not the rows", n)
		}
	}
}

func TestRowsThatAreCutOffAreRefused(t *testing.T) {
	t.Parallel()
	data := copyData(2)
	for n := range len(data) {
		if _, _, err := split(data[:n]); err == nil {
			t.Errorf("%d of %d bytes were taken for all", n, len(data))
		}
	}
}
