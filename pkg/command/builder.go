package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// Builder makes a [Command]. Its methods only take values down and return the
// builder; [Builder.Build] checks them all. It is for one goroutine.
type Builder struct {
	c      Command
	set    [texts]bool
	faults []error
}

// New begins a command of the registered type context.aggregate.command.
// source is the caller's stable name: the same after a restart and on every
// replica, never a pod's.
func New(typ, source string) *Builder {
	return new(Builder).put(attrType, typ).put(attrSource, source)
}

func (b *Builder) put(a attribute, value string) *Builder {
	b.c.text[a], b.set[a] = value, true
	return b
}

// ID sets the request ID. Whoever may have to send the request again chooses it
// and keeps it; the default is a fresh UUIDv7.
func (b *Builder) ID(requestID string) *Builder { return b.put(attrID, requestID) }

// Subject sets the aggregate's ID. The default, for creates only, is a derived
// one, see [DeriveID].
func (b *Builder) Subject(id string) *Builder { return b.put(attrSubject, id) }

// Tenant sets the tenant; the default is "".
func (b *Builder) Tenant(tenant string) *Builder { return b.put(attrTenant, tenant) }

// Owner sets the owner; the default is "".
func (b *Builder) Owner(owner string) *Builder { return b.put(attrOwner, owner) }

// Space sets the space; the default is "".
func (b *Builder) Space(space string) *Builder { return b.put(attrSpace, space) }

// JSON sets the body to v as JSON. Equal values make equal bodies, so that a
// repeat is recognised.
func (b *Builder) JSON(v any) *Builder {
	body, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		b.faults = append(b.faults, fmt.Errorf("body: %w", err))
	}
	return b.Body(body)
}

// Body sets the body, a JSON text. The caller MUST NOT change it afterwards. The
// default is {}.
func (b *Builder) Body(body []byte) *Builder {
	b.c.body = body
	return b
}

// ExpectVersion makes the command be refused unless the aggregate is at that
// version.
func (b *Builder) ExpectVersion(version int64) *Builder {
	b.c.expected, b.c.hasExpected = version, true
	return b
}

// Expires sets the deadline, kept to the microsecond: a command whose turn comes
// later is refused.
func (b *Builder) Expires(at time.Time) *Builder {
	b.c.expires = at
	return b
}

// Correlation sets the ID of the conversation, which the reply repeats.
func (b *Builder) Correlation(id string) *Builder { return b.put(attrCorrelationID, id) }

// Causation sets the ID of what caused the command.
func (b *Builder) Causation(id string) *Builder { return b.put(attrCausationID, id) }

// TraceParent sets the W3C trace context.
func (b *Builder) TraceParent(trace string) *Builder { return b.put(attrTraceParent, trace) }

// ReplyTo asks for the reply on a topic of the context's allow-list.
func (b *Builder) ReplyTo(topic string) *Builder { return b.put(attrReplyTo, topic) }

// ReplyPartition asks for the reply on one partition of its topic.
func (b *Builder) ReplyPartition(partition int32) *Builder {
	b.c.replyPartition, b.c.hasPartition = partition, true
	return b
}

// WaitFor sets how far the sender waits; the default is [StageCommitted].
func (b *Builder) WaitFor(s Stage) *Builder {
	b.c.waitFor = s
	return b
}

// Time sets when the command was made, kept to the microsecond; the default is
// now.
func (b *Builder) Time(at time.Time) *Builder {
	b.c.time = at
	return b
}

// Build returns the command, or all that is wrong with it. The builder can be
// changed and used again.
func (b *Builder) Build() (*Command, error) {
	c := b.c
	faults := b.faults[:len(b.faults):len(b.faults)]
	refuse := func(name, fault string) {
		if fault != "" {
			faults = append(faults, fmt.Errorf("%s %s", name, fault))
		}
	}
	if !b.set[attrID] {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("command: new request ID: %w", err)
		}
		c.text[attrID] = id.String()
	}
	for a := range texts {
		switch {
		case a == attrType:
			dot1, dot2, fault := splitType(c.Type())
			c.dot1, c.dot2 = uint8(dot1), uint8(dot2)
			refuse("type", fault)
		case a == attrTenant || a == attrOwner || a == attrSpace:
			refuse(a.String(), checkOptionalID(c.text[a]))
		case a == attrReplyTo && b.set[a]:
			refuse(a.String(), checkTopic(c.text[a]))
		case a == attrTraceParent && b.set[a]:
			if !validTrace(c.text[a]) {
				refuse(a.String(), "is no W3C trace context")
			}
		case b.set[a] || a == attrID:
			refuse(a.String(), checkID(c.text[a]))
		}
	}
	if c.time.IsZero() {
		c.time = time.Now()
	}
	c.time = c.time.UTC().Truncate(time.Microsecond)
	if !c.expires.IsZero() {
		c.expires = c.expires.UTC().Truncate(time.Microsecond)
	}
	refuse("time", checkTime(c.time))
	refuse("expirytime", checkTime(c.expires))
	if c.hasExpected && c.expected < 0 {
		refuse("expectedversion", "is negative")
	}
	if c.hasPartition && c.replyPartition < 0 {
		refuse("replypartition", "is negative")
	}
	if c.waitFor > StageSnapshot {
		refuse("waitfor", "is no stage")
	}
	if c.body == nil {
		c.body = []byte("{}")
	}
	if len(c.body) > MaxBody {
		refuse("body", fmt.Sprintf("has %d bytes; at most %d are allowed", len(c.body), MaxBody))
	} else if err := CheckJSON(c.body); err != nil {
		faults = append(faults, errors.New(err.Message))
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("command: build %s: %w", cut(c.Type()), errors.Join(faults...))
	}
	if !b.set[attrSubject] {
		c.derived = true
		c.text[attrSubject] = DeriveID(c.Context(), c.AggregateType(), c.Tenant(), c.Caller(), c.RequestID())
	}
	c.seal(false)
	return &c, nil
}
