package client

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/seed54173720/writ/pkg/command"
)

// Accepted says where the record of a command stands on its topic. It is the zero
// value where the brokers did not acknowledge the record.
type Accepted struct {
	Topic    string
	Position command.Position
}

// Result is what became of one command.
type Result struct {
	Command *command.Command
	Accepted
	Reply command.Reply // if Err is nil
	Err   error         // matches ErrNotSent or ErrUnknownOutcome
}

// Send sends the command and waits for its outcome, whatever that is: a rejection
// is a reply, not an error. ctx bounds both, and SHOULD have a deadline; its end
// takes nothing back. Several Sends of one request at once are answered each.
//
// The error is an [*Error] that matches [ErrNotSent] or [ErrUnknownOutcome].
func (c *Client) Send(ctx context.Context, cmd *command.Command) (command.Reply, error) {
	r := c.one(ctx, &wait{cmd: cmd})
	return r.Reply, r.Err
}

// Post sends the command and waits only until the brokers have acknowledged it:
// from then on it will be executed. Its reply goes where the command says, by
// default to the context's reply topic.
func (c *Client) Post(ctx context.Context, cmd *command.Command) (Accepted, error) {
	r := c.one(ctx, &wait{cmd: cmd, post: true})
	return r.Accepted, r.Err
}

func (c *Client) one(ctx context.Context, w *wait) Result {
	out := make(chan *wait, 1)
	w.out = out
	c.start(ctx, w)
	<-out
	return w.result
}

// start sends w's command and sees to it that w ends.
func (c *Client) start(ctx context.Context, w *wait) {
	w.result.Command = w.cmd
	if err := c.admit(ctx, w); err != nil {
		c.waits.end(w, fault(ErrNotSent, w.cmd, err))
		return
	}
	r, size := c.record(w)
	if err := c.room.Acquire(ctx, size); err != nil {
		c.waits.end(w, fault(ErrNotSent, w.cmd, fmt.Errorf("wait for the brokers to take %d bytes of earlier commands: %w", c.cfg.MaxBuffered, context.Cause(ctx))))
		return
	}
	if err := c.waits.add(ctx, w); err != nil {
		c.room.Release(size)
		c.waits.end(w, fault(ErrNotSent, w.cmd, err))
		return
	}
	c.produce(r, size, w)
}

// admit refuses what would be refused later, or could not be answered to us.
func (c *Client) admit(ctx context.Context, w *wait) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	partition, chosen := w.cmd.ReplyPartition()
	if !w.post && (w.cmd.ReplyTo() != "" || chosen) && (w.cmd.ReplyTo() != c.cfg.ReplyTopic || !chosen || partition != c.partition) {
		return errors.New("the command asks for its reply elsewhere, where this client does not read: use Post, or leave the reply address to the client")
	}
	return c.admission.Admit(ctx, w.cmd)
}

// SendAll sends the commands of seq, up to window of them under way at once, and
// calls done with the result of each, in the order in which they end and one at a
// time. Commands of one aggregate stand on the topic in the order of seq.
//
// When ctx ends, no more commands are taken from seq, those under way end with
// [ErrUnknownOutcome], and SendAll returns the cause. Else it returns nil once all
// commands have their results, good or bad.
//
// seq runs in a goroutine of its own, so that results do not wait for it; SendAll
// returns after it has. A window below 1 is 1,000.
func (c *Client) SendAll(ctx context.Context, seq iter.Seq[*command.Command], window int, done func(Result)) error {
	if window < 1 {
		window = 1000
	}
	slots := make(chan struct{}, window) // taken by those under way
	out := make(chan *wait, window)
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		for cmd := range seq {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			c.start(ctx, &wait{cmd: cmd, out: out})
		}
	}()
	for fed != nil || len(slots) > 0 {
		select {
		case w := <-out:
			<-slots
			done(w.result)
		case <-fed:
			fed = nil
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("client: send all: %w", context.Cause(ctx))
	}
	return nil
}
