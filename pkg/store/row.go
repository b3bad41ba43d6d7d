package store

import (
	"time"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/dedupe"
	"github.com/seed54173720/writ/pkg/keys"
)

// Row is one journal row: the outcome of one decided command.
type Row struct {
	dedupe.Recorded
	Request   command.Digest // the request's key, or, moved aside, command.AsideDigest of it and the record
	Stream    command.Digest
	Version   int64 // the aggregate's version with this commit, from 1; 0 unless committed
	Time      time.Time
	Type      string // full command type
	Aggregate command.Aggregate
	Owner     string
	Space     string
	RequestID string
	Caller    string
	Events    []command.Event // of a commit, at least one
	Taken     []keys.Key      // keys that the aggregate holds since this command
	Released  []keys.Key      // keys that it no longer holds since this command
	Error     *command.Error  // of a refusal or failure
	Result    []byte          // JSON, nil: none
	Meta      Meta
}

// Meta is what came with the command and matters to nobody's decision.
type Meta struct {
	CorrelationID  string
	CausationID    string
	TraceParent    string
	ReplyTo        string
	ReplyPartition int32 // meaningful where ReplyTo is set; -1: by key
	Stage          command.Stage
}

// Names reports whether the row is of this very request; keys are hashes, and a hit is compared in full.
func (r *Row) Names(c *command.Command) bool {
	a := c.Aggregate()
	return r.RequestID == c.RequestID() && r.Aggregate.Tenant == a.Tenant && r.Aggregate.Type == a.Type
}
