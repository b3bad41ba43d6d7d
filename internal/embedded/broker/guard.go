package broker

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// maxRequest is far above the largest batch and far below what the text of
	// another protocol reads as when it is taken for a size ("GET " is 1.2 GB).
	maxRequest = 32 << 20

	// minRequest is a header without client ID: key, version, correlation ID.
	minRequest = 8
)

// guardedListener lets only requests through that kfake survives: it trusts a
// request's size and dereferences nil for an unknown API key.
type guardedListener struct {
	net.Listener
	logger *slog.Logger
}

func (l guardedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &guardedConn{Conn: conn, logger: l.logger}, nil
}

// guardedConn checks each request's size and key before it hands out the first
// byte of it. It has one reader, as every Kafka connection does.
type guardedConn struct {
	net.Conn
	logger *slog.Logger

	head   [6]byte // size and API key of the request under way
	unread []byte  // what the reader has not had of head
	body   int     // bytes of the request that follow head
}

func (c *guardedConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(c.unread) == 0 && c.body == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	if len(c.unread) > 0 {
		n := copy(p, c.unread)
		c.unread = c.unread[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p[:min(len(p), c.body)])
	c.body -= n
	return n, err
}

// next reads the head of the next request, or closes the connection.
func (c *guardedConn) next() error {
	if _, err := io.ReadFull(c.Conn, c.head[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(c.head[:4])
	key := int16(binary.BigEndian.Uint16(c.head[4:]))
	var err error
	switch {
	case size < minRequest || size > maxRequest:
		err = fmt.Errorf("broker: request of %d bytes is not of %d to %d: not a Kafka client?", size, minRequest, maxRequest)
	case kmsg.RequestForKey(key) == nil:
		err = fmt.Errorf("broker: request with unknown API key %d", key)
	}
	if err != nil {
		c.logger.Warn("connection closed", "client", c.RemoteAddr().String(), "error", err)
		c.Close()
		return err
	}
	c.unread, c.body = c.head[:], int(size)-2
	return nil
}
