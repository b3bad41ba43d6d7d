package postgres

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store"
)

// columns reads the binary columns of a row from left to right. The first fault sticks.
type columns struct {
	values [][]byte
	err    error
}

func (c *columns) next(size int) []byte {
	v := c.values[0]
	c.values = c.values[1:]
	if v != nil && size > 0 && len(v) != size && c.err == nil {
		c.err = fmt.Errorf("a column of %d bytes where %d were expected", len(v), size)
		return nil
	}
	return v
}

// int64 returns 0 for null, as the other kinds do.
func (c *columns) int64() int64 {
	v := c.next(8)
	if v == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(v))
}

func (c *columns) int32() int32 {
	v := c.next(4)
	if v == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(v))
}

func (c *columns) bool() bool {
	v := c.next(1)
	return v != nil && v[0] != 0
}

func (c *columns) time() time.Time {
	return time.UnixMicro(c.int64() + epoch).UTC()
}

func (c *columns) digest() (d command.Digest) {
	copy(d[:], c.next(16))
	return d
}

func (c *columns) text() string { return string(c.next(0)) }

// texts reads n columns of text into one string, of which the function it returns gives one after the other: a row is
// one allocation instead of n.
func (c *columns) texts(n int) func() string {
	var all strings.Builder
	parts := c.values[:n]
	c.values = c.values[n:]
	size := 0
	for _, v := range parts {
		size += len(v)
	}
	all.Grow(size)
	for _, v := range parts {
		all.Write(v)
	}
	rest := all.String()
	return func() string {
		size := len(parts[0])
		text := rest[:size]
		rest, parts = rest[size:], parts[1:]
		return text
	}
}

func (c *columns) outcome() command.Outcome {
	v := c.next(1)
	for o, letter := range outcomes {
		if v != nil && letter != 0 && letter == v[0] {
			return command.Outcome(o)
		}
	}
	c.fail("outcome", fmt.Errorf("no such letter: %q", v))
	return 0
}

func (c *columns) fail(column string, err error) {
	if c.err == nil && err != nil {
		c.err = fmt.Errorf("column %s: %w", column, err)
	}
}

// row reads the columns rowColumns into r, which keeps nothing of the read buffer.
func (c *columns) row(r *store.Row) {
	r.Version = c.int64()
	r.Time = c.time()
	r.Position.Offset = c.int64()
	r.Position.Partition = c.int32()
	r.Outcome = c.outcome()
	r.Stream = c.digest()
	r.Request = c.digest()
	r.Fingerprint = c.digest()
	r.FromRecord = c.values[0] != nil
	r.Position.TopicID = c.digest()
	text := c.texts(8)
	r.Type = text()
	r.Aggregate.Tenant = text()
	r.Aggregate.Type = text()
	r.Aggregate.ID = text()
	r.Owner = text()
	r.Space = text()
	r.RequestID = text()
	r.Caller = text()

	var err error
	r.Events, err = parseEvents(c.next(0))
	c.fail("events", err)
	r.Taken, err = parseKeys(c.next(0))
	c.fail("keys_taken", err)
	r.Released, err = parseKeys(c.next(0))
	c.fail("keys_released", err)
	r.Error, r.Result, err = parseAnswer(c.next(0))
	c.fail("answer", err)
	r.Meta, err = parseMeta(c.next(0))
	c.fail("meta", err)
}
