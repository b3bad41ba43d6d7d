// Package client sends commands to a context's processors through Kafka and waits
// for their answers.
//
// A client reads one partition of the reply topic, from the end that it had before
// the first command was sent, and asks for its answers there. Every method says of
// every command, by an error or its absence, which of three things is the case: its
// outcome is known; it is surely not in the topic ([ErrNotSent]); or its outcome is
// unknown ([ErrUnknownOutcome]), and sending the same request ID again tells it
// without anything being done twice.
package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kslog"
	"golang.org/x/sync/semaphore"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/topics"
)

// Config says where a client sends to. Brokers and Context are required; every
// other zero value is a default.
type Config struct {
	// Brokers are the seed addresses, host:port.
	Brokers []string

	// Context is the context whose commands are sent.
	Context string

	// Types are the commands that the context knows, usually its *kernel.Context:
	// a command that its processor would refuse for its type or its body is then
	// refused here. Default: the processor alone decides.
	Types command.Types

	// Authorise is asked about every command before it is sent. Default: nobody.
	Authorise command.Authoriser

	// ReplyTopic is where answers are asked for; the processor MUST allow it.
	// Default: the context's own reply topic.
	ReplyTopic string

	// MaxBuffered bounds the bytes of commands that the brokers have not
	// acknowledged; more commands wait, within their context's time. Default: 64 MiB.
	MaxBuffered int64

	// Linger is how long a command may wait for others to share its batch; a
	// negative one is none. Default: 1ms.
	Linger time.Duration

	// Options are laid over the client's own: TLS, SASL, a client ID. Those that
	// choose partitions, acknowledgements or retries belong to the promises of
	// this package and SHOULD be left alone. Default: none.
	Options []kgo.Opt

	// Logger receives what no method returns. Default: nobody.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Types == nil {
		c.Types = anyType{}
	}
	if c.ReplyTopic == "" {
		c.ReplyTopic = topics.Replies.Of(c.Context)
	}
	if c.MaxBuffered == 0 {
		c.MaxBuffered = 64 << 20
	}
	if c.Linger == 0 {
		c.Linger = time.Millisecond
	}
	c.Linger = max(c.Linger, 0)
	return c
}

// Validate reports all that is wrong with c.
func (c Config) Validate() error {
	var faults []error
	if len(c.Brokers) == 0 {
		faults = append(faults, errors.New("client: Brokers is empty: at least one host:port is needed"))
	}
	if c.Context == "" {
		faults = append(faults, errors.New(`client: Context "" is empty`))
	}
	if c.MaxBuffered < 0 {
		faults = append(faults, fmt.Errorf("client: MaxBuffered %d is negative", c.MaxBuffered))
	}
	return errors.Join(faults...)
}

// anyType leaves commands' types and bodies to the processor.
type anyType struct{}

func (anyType) CommandType(string) (command.TypeInfo, bool) {
	return command.TypeInfo{Creates: true}, true
}

// Client sends commands of one context. Its methods are safe for concurrent use.
type Client struct {
	cfg       Config
	admission command.Admission
	kafka     *kgo.Client
	topic     string   // the command topic
	topicID   [16]byte // all zero where the brokers have none
	partition int32    // of the reply topic
	room      *semaphore.Weighted
	waits     *waits

	lost atomic.Int64 // connections that ended, and so perhaps acknowledgements

	cancel context.CancelFunc // stops the reader of replies
	done   chan struct{}      // closed when it has
}

// New connects to the brokers and begins to read replies; ctx bounds that alone.
// The client runs until Close.
func New(ctx context.Context, cfg Config) (_ *Client, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	c := &Client{
		cfg:       cfg,
		admission: command.Admission{Context: cfg.Context, Types: cfg.Types, Authorise: cfg.Authorise},
		topic:     topics.Commands.Of(cfg.Context),
		room:      semaphore.NewWeighted(cfg.MaxBuffered),
		waits:     newWaits(),
		done:      make(chan struct{}),
	}
	if c.kafka, err = kgo.NewClient(c.options()...); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	defer func() {
		if err != nil {
			c.kafka.Close()
		}
	}()
	if err := c.kafka.Ping(ctx); err != nil {
		return nil, fmt.Errorf("client: reach the brokers %q: %w", cfg.Brokers, err)
	}
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	go c.readReplies(running)
	return c, nil
}

func (c *Client) options() []kgo.Opt {
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.cfg.Brokers...),
		kgo.ClientID("writ-client"),
		kgo.WithHooks((*lossHook)(c)),

		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), // murmur2, as every other Kafka client
		kgo.ProducerLinger(c.cfg.Linger),
		kgo.UnknownTopicRetries(4),
		kgo.MaxBufferedRecords(1 << 30), // room bounds them, and can be waited for with a context
		kgo.AlwaysRetryEOF(),

		kgo.FetchMaxWait(500 * time.Millisecond),
		kgo.FetchMaxBytes(8 << 20),
		kgo.FetchMaxPartitionBytes(4 << 20),
		// Where the position is lost (replies trimmed, a log cut short), reading too
		// much costs time, reading too little an answer.
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.KeepRetryableFetchErrors(), // else a reply topic made anew is not noticed
	}
	if c.cfg.Logger != nil {
		opts = append(opts, kgo.WithLogger(kslog.New(c.cfg.Logger)))
	}
	return append(opts, c.cfg.Options...)
}

// begin looks up the topics and takes the reading position. A processor cannot
// answer a command of ours below that position, since none has been sent yet.
func (c *Client) begin(ctx context.Context) error {
	admin := kadm.NewClient(c.kafka)
	commands, fault := c.lookUp(ctx, admin, c.topic, kadm.OpWrite)
	replies, otherFault := c.lookUp(ctx, admin, c.cfg.ReplyTopic, kadm.OpRead)
	if err := errors.Join(fault, otherFault); err != nil {
		return err
	}
	c.topicID = commands.ID
	c.partition = rand.Int32N(int32(len(replies.Partitions)))
	ends, err := admin.ListEndOffsets(ctx, c.cfg.ReplyTopic)
	if err != nil {
		return fmt.Errorf("client: read the end of %s: %w", c.cfg.ReplyTopic, err)
	}
	end, ok := ends.Lookup(c.cfg.ReplyTopic, c.partition)
	if !ok || end.Err != nil {
		return fmt.Errorf("client: read the end of %s/%d: %w", c.cfg.ReplyTopic, c.partition, missing(end.Err))
	}
	c.readFrom(kgo.NewOffset().At(end.Offset))
	return nil
}

// lookUp returns a topic on which the operation is allowed. Each is asked for alone: of several the brokers do not say
// which one may not be seen. Brokers that do not say what is allowed are taken at their deeds.
func (c *Client) lookUp(ctx context.Context, admin *kadm.Client, name string, op kadm.ACLOperation) (kadm.TopicDetail, error) {
	topics, err := admin.ListTopics(kadm.WithAuthorizedOps(ctx), name)
	topic := topics[name]
	switch {
	case err != nil:
		return topic, fmt.Errorf("client: look up topic %s of context %q: %w", name, c.cfg.Context, err)
	case !topics.Has(name) || topic.Err != nil:
		return topic, fmt.Errorf("client: topic %s of context %q cannot be used: %w: create it, or let the processor do it (processor topics, or serve --topics)",
			name, c.cfg.Context, missing(topic.Err))
	case len(topic.AuthorizedOperations) > 0 && !slices.Contains(topic.AuthorizedOperations, op):
		return topic, fmt.Errorf("client: %s of topic %s is not allowed: %w", op, name, kerr.TopicAuthorizationFailed)
	}
	return topic, nil
}

func missing(err error) error {
	if err == nil {
		return errors.New("the brokers do not know it")
	}
	return err
}

func (c *Client) readFrom(offset kgo.Offset) {
	c.kafka.AddConsumePartitions(map[string]map[int32]kgo.Offset{c.cfg.ReplyTopic: {c.partition: offset}})
}

// Close ends the client. Commands that are still waited for end with
// [ErrUnknownOutcome]; nothing waits for their acknowledgements. Close may be
// called more than once.
func (c *Client) Close() {
	c.waits.close()
	c.cancel()
	<-c.done
	c.kafka.Close()
}
