package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// pipeline is the messages of one round trip, encoded into one buffer that is used again. The server answers them at
// the closing sync; after an error it skips the rest up to there, copied rows included, so that one path serves
// success and failure.
type pipeline struct {
	buf     []byte
	message int // where the current CopyData message begins
	claims  []claim
	order   []int
}

const (
	// copyChunk is the size from which a CopyData message is closed. The server reads a message as a whole.
	copyChunk = 64 << 10
	// keptBuffer is the largest buffer that is kept for the next group: an ordinary one of 1,000 rows is 0.5 MB.
	keptBuffer = 4 << 20
)

func (p *pipeline) reset() {
	if cap(p.buf) > keptBuffer {
		p.buf = nil
	}
	p.buf, p.claims, p.order = p.buf[:0], p.claims[:0], p.order[:0]
}

var binaryFormat = []int16{1}

// execute runs a prepared statement with binary parameters.
func (p *pipeline) execute(s statement, params ...[]byte) {
	bind := pgproto3.Bind{PreparedStatement: s.name, Parameters: params}
	if len(params) > 0 {
		bind.ParameterFormatCodes = binaryFormat
	}
	// Neither can fail: they err on counts of parameters beyond 65,535 and messages beyond 1 GiB.
	p.buf, _ = bind.Encode(p.buf)
	p.buf, _ = (&pgproto3.Execute{}).Encode(p.buf)
}

// copyHeader is the signature, the flags and the size of the extension of COPY's binary format.
const copyHeader = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

// beginCopy runs a prepared COPY. Its rows are appended to p.buf, each followed by rowEnd.
func (p *pipeline) beginCopy(s statement) {
	p.execute(s)
	p.openMessage()
	p.buf = append(p.buf, copyHeader...)
}

func (p *pipeline) openMessage() {
	p.message = len(p.buf)
	p.buf = append(p.buf, 'd', 0, 0, 0, 0)
}

func (p *pipeline) closeMessage() {
	binary.BigEndian.PutUint32(p.buf[p.message+1:], uint32(len(p.buf)-p.message-1))
}

func (p *pipeline) rowEnd() {
	if len(p.buf)-p.message >= copyChunk {
		p.closeMessage()
		p.openMessage()
	}
}

func (p *pipeline) endCopy() {
	p.buf = append(p.buf, 0xff, 0xff)
	p.closeMessage()
	p.buf, _ = (&pgproto3.CopyDone{}).Encode(p.buf)
}

func (p *pipeline) sync() { p.buf, _ = (&pgproto3.Sync{}).Encode(p.buf) }

// exchange sends p and reads until the server has answered it all. It returns the tag of the last command that was
// executed, and a *pgconn.PgError for what the server refused. After any other error, and when ctx ends meanwhile,
// the connection is closed: an abandoned session must not idle in a transaction.
func (p *pipeline) exchange(ctx context.Context, conn *pgconn.PgConn) (tag pgconn.CommandTag, err error) {
	socket := conn.Conn()
	cancelled := context.AfterFunc(ctx, func() { socket.SetDeadline(time.Unix(1, 0)) })
	idle := false
	defer func() {
		if !cancelled() || !idle {
			socket.Close()
			conn.Close(context.Background()) // marks it for the pool
		}
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}()

	if _, err := socket.Write(p.buf); err != nil {
		return tag, err
	}
	var refusal error
	for {
		message, err := conn.Frontend().Receive()
		if err != nil {
			if refusal != nil { // the server's last words
				err = refusal
			}
			return tag, err
		}
		switch m := message.(type) {
		case *pgproto3.CommandComplete:
			tag = pgconn.NewCommandTag(string(m.CommandTag))
		case *pgproto3.ErrorResponse:
			if refusal == nil {
				refusal = pgconn.ErrorResponseToPgError(m)
			}
		case *pgproto3.ReadyForQuery:
			idle = true
			return tag, refusal
		}
	}
}
