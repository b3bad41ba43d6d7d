package client

import (
	"context"
	"encoding/base64"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/pkg/command"
)

// readReplies reads our partition of the reply topic until ctx ends.
func (c *Client) readReplies(ctx context.Context) {
	defer close(c.done)
	for ctx.Err() == nil {
		fetches := c.kafka.PollFetches(ctx)
		if ctx.Err() != nil || fetches.IsClientClosed() {
			return
		}
		fetches.EachRecord(c.take)
		if errs := fetches.Errors(); len(errs) > 0 {
			c.mend(ctx, errs[0].Err)
		}
	}
}

// take gives a reply to those who wait for it. Most replies of a shared topic are
// for others, which their key tells.
func (c *Client) take(r *kgo.Record) {
	if !c.waits.wanted(r.Key) {
		return
	}
	reply, err := readReply(r)
	if err != nil {
		c.warn("a reply cannot be read", err, "topic", r.Topic, "partition", r.Partition, "offset", r.Offset)
		return
	}
	c.waits.answer(reply)
}

// mend gets over an error of fetching. The library tries again by itself, but for
// a topic that was deleted and made anew: that one is read from its start, since
// all its replies are new.
func (c *Client) mend(ctx context.Context, err error) {
	c.warn("replies cannot be read", err, "topic", c.cfg.ReplyTopic, "partition", c.partition)
	if errors.Is(err, kerr.UnknownTopicID) {
		c.kafka.PurgeTopicsFromConsuming(c.cfg.ReplyTopic)
		c.readFrom(kgo.NewOffset().AtStart())
	}
	select { // an error that stays comes back at once
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done():
	}
}

func (c *Client) warn(text string, err error, args ...any) {
	if c.cfg.Logger != nil {
		c.cfg.Logger.Warn("client: "+text, append(args, "error", err)...)
	}
}

// readReply reads a reply's record. Its headers hold what its value does not: the
// correlation ID, and the topic ID at the front of the CloudEvents ID.
func readReply(r *kgo.Record) (command.Reply, error) {
	reply, err := command.ParseReply(r.Value)
	if err != nil {
		return command.Reply{}, err
	}
	if reply.RequestID == "" { // of a record that could not be read in full
		reply.RequestID = string(r.Key)
	}
	for _, h := range r.Headers {
		switch h.Key {
		case "ce_correlationid":
			reply.CorrelationID = string(h.Value)
		case "ce_id":
			const size = 22 // of 16 bytes in base64
			if len(h.Value) > size && h.Value[size] == '/' {
				_, _ = base64.RawURLEncoding.Decode(reply.Position.TopicID[:], h.Value[:size]) // of no ID: as it was
			}
		}
	}
	return reply, nil
}
