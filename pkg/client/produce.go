package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/pkg/command"
)

// produce hands the record to the producer, which gives back its room and tells w
// what became of it.
//
// No caller's context goes with it. The library can only cancel a record together
// with all others of its partition, and it proves nothing about any of them.
func (c *Client) produce(r *kgo.Record, size int64, w *wait) {
	lost := c.lost.Load()
	c.kafka.Produce(context.Background(), r, func(r *kgo.Record, err error) {
		c.room.Release(size)
		switch {
		case err == nil:
			c.waits.accepted(w, Accepted{
				Topic:    r.Topic,
				Position: command.Position{TopicID: c.topicID, Partition: r.Partition, Offset: r.Offset},
			})
		case refused(err) && c.lost.Load() == lost:
			if errors.Is(err, kerr.UnknownTopicID) {
				err = fmt.Errorf("%w (the topic was deleted and made anew: make a new client)", err)
			}
			c.waits.end(w, fault(ErrNotSent, w.cmd, err))
		default:
			c.waits.unsure(w, err)
		}
	})
}

// record is the command's record, with our reply address where it has none, and
// the room that it takes until it is acknowledged.
func (c *Client) record(w *wait) (r *kgo.Record, size int64) {
	const overhead = 512 // of the record in memory, about
	var wire command.Record
	w.cmd.Record(&wire)
	size = int64(len(wire.Key)+len(wire.Value)) + overhead
	r = &kgo.Record{Topic: c.topic, Key: wire.Key, Value: wire.Value}
	r.Headers = make([]kgo.RecordHeader, 0, len(wire.Headers)+2)
	for _, h := range wire.Headers {
		size += int64(len(h.Key) + len(h.Value))
		r.Headers = append(r.Headers, kgo.RecordHeader(h))
	}
	if !w.post && w.cmd.ReplyTo() == "" {
		r.Headers = append(r.Headers,
			kgo.RecordHeader{Key: "ce_replyto", Value: []byte(c.cfg.ReplyTopic)},
			kgo.RecordHeader{Key: "ce_replypartition", Value: strconv.AppendInt(nil, int64(c.partition), 10)})
	}
	return r, min(size, c.cfg.MaxBuffered)
}

// OnBrokerDisconnect comes before the requests of the connection end.
func (h *lossHook) OnBrokerDisconnect(kgo.BrokerMetadata, net.Conn) { h.lost.Add(1) }

// OnBrokerE2E sees a request that was written, whole or in part, and not answered.
func (h *lossHook) OnBrokerE2E(_ kgo.BrokerMetadata, _ int16, e kgo.BrokerE2E) {
	if e.Err() != nil && e.BytesWritten > 0 {
		h.lost.Add(1)
	}
}
