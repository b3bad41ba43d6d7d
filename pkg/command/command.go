package command

import "time"

// Command is a request to one aggregate. It is made by [Builder.Build] or
// [Read], immutable from then on and safe for concurrent use. The zero value is
// no command.
type Command struct {
	text     [texts]string
	body     []byte
	time     time.Time
	expires  time.Time
	expected int64

	request     Digest
	stream      Digest
	fingerprint Digest

	replyPartition int32
	dot1, dot2     uint8 // the dots of the type
	waitFor        Stage
	hasExpected    bool
	hasPartition   bool
	derived        bool
}

// RequestID returns the ID that the caller gave the request, stable over
// retries.
func (c *Command) RequestID() string { return c.text[attrID] }

// Type returns the registered type, context.aggregate.command.
func (c *Command) Type() string { return c.text[attrType] }

// Context returns the first part of the type.
func (c *Command) Context() string { return c.text[attrType][:c.dot1] }

// AggregateType returns the second part of the type.
func (c *Command) AggregateType() string { return c.text[attrType][c.dot1+1 : c.dot2] }

// Name returns the third part of the type.
func (c *Command) Name() string { return c.text[attrType][c.dot2+1:] }

// Aggregate returns the aggregate that the command is for.
func (c *Command) Aggregate() Aggregate {
	return Aggregate{Tenant: c.text[attrTenant], Type: c.AggregateType(), ID: c.text[attrSubject]}
}

// Derived reports whether the aggregate's ID was derived, see [DeriveID]. Only a
// create may leave its ID to that; admission checks it.
func (c *Command) Derived() bool { return c.derived }

// Tenant returns the tenant; "" is the default one.
func (c *Command) Tenant() string { return c.text[attrTenant] }

// Owner returns the owner that the command claims to act for, or "".
func (c *Command) Owner() string { return c.text[attrOwner] }

// Space returns the space that the command claims to act in, or "".
func (c *Command) Space() string { return c.text[attrSpace] }

// Caller returns the stable name of the sender, the attribute source. On a
// record it is a claim; the authority is who may write to the topic.
func (c *Command) Caller() string { return c.text[attrSource] }

// Time returns when the sender says that it made the command, in UTC, or the
// zero time.
func (c *Command) Time() time.Time { return c.time }

// ExpectedVersion returns the version that the aggregate must be at, if the
// command names one.
func (c *Command) ExpectedVersion() (version int64, ok bool) { return c.expected, c.hasExpected }

// CorrelationID returns the ID of the conversation, or "".
func (c *Command) CorrelationID() string { return c.text[attrCorrelationID] }

// CausationID returns the ID of what caused the command, or "".
func (c *Command) CausationID() string { return c.text[attrCausationID] }

// TraceParent returns the W3C trace context, or "".
func (c *Command) TraceParent() string { return c.text[attrTraceParent] }

// Expires returns the deadline, in UTC, or the zero time.
func (c *Command) Expires() time.Time { return c.expires }

// ReplyTo returns the topic that the reply is asked to go to, or "".
func (c *Command) ReplyTo() string { return c.text[attrReplyTo] }

// ReplyPartition returns the partition that the reply is asked to go to, if any.
func (c *Command) ReplyPartition() (partition int32, ok bool) {
	return c.replyPartition, c.hasPartition
}

// WaitFor returns how far the sender waits.
func (c *Command) WaitFor() Stage { return c.waitFor }

// Body returns the body as sent. The caller MUST NOT change it.
func (c *Command) Body() []byte { return c.body }

// Request returns the key of the request, see [RequestDigest].
func (c *Command) Request() Digest { return c.request }

// Stream returns the key of the aggregate's stream, see [Aggregate.Stream].
func (c *Command) Stream() Digest { return c.stream }

// Fingerprint returns what tells this command from another one under the same
// request ID, see [Fingerprint].
func (c *Command) Fingerprint() Digest { return c.fingerprint }

// parts lists what the fingerprint covers beside the body.
func (c *Command) parts() [7]string {
	return [7]string{
		c.Type(), c.Tenant(), c.AggregateType(), c.text[attrSubject], c.Owner(), c.Space(), c.Caller(),
	}
}

// seal computes the digests, when all else is in place. doubt says that what the
// fingerprint covers is itself in doubt.
func (c *Command) seal(doubt bool) {
	c.request = RequestDigest(c.AggregateType(), c.Tenant(), c.RequestID())
	c.stream = c.Aggregate().Stream()
	canon := canonicalisers.Get().(*canonicaliser)
	parts := c.parts()
	if doubt {
		c.fingerprint = canon.refusedFingerprint(parts[:], c.body)
	} else {
		c.fingerprint = canon.fingerprint(parts[:], c.body)
	}
	canon.release()
}
