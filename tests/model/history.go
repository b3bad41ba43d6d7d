// Package model is the oracle of the tests that break things. It is told what stands on the topics and in the
// database when all is over, and says in a sentence each promise that this breaks, and by which records.
//
// It is plain on purpose: no clocks, no I/O, nothing of the code under test but the words of the wire and the rows of
// the journal.
package model

import (
	"fmt"
	"time"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// Place is where a record stands on a topic.
type Place struct {
	Partition int32
	Offset    int64
}

func (p Place) String() string { return fmt.Sprintf("%d/%d", p.Partition, p.Offset) }

// Less orders places by partition and offset.
func (p Place) Less(q Place) bool {
	return p.Partition < q.Partition || p.Partition == q.Partition && p.Offset < q.Offset
}

// Record is one record of the command topic. What it asks is what its sender knows; nothing is parsed.
type Record struct {
	Place     Place
	Sent      time.Time         // before it was produced
	RequestID string            // "" where the record cannot be read
	Tenant    string            // of the request
	Aggregate command.Aggregate // that the request is of
	Asked     string            // equal for the repeats of a request, another one for a request that reuses its ID
	WaitFor   command.Stage     // how far its answer waits
	Wants     *keys.Key         // the key that it asks for, if that is known beforehand
	Bytes     string            // key, value and headers, see [Bytes]
}

// Answer is one record of the reply topic.
type Answer struct {
	Place Place     // on the reply topic
	Seen  time.Time // by the reader of the replies
	Reply command.Reply
	Bytes string
}

// Letter is one record of the dead-letter topic.
type Letter struct {
	Place Place  // of the command
	Bytes string // of the original record
}

// Held is one row of the reservations.
type Held struct {
	Key    keys.Key
	Holder store.Holder
}

// Cut is what could be read at one moment while the system ran, in this order: how far the command topic was said to be
// finished, and then how far the replies reached.
type Cut struct {
	Name     string
	Finished map[int32]int64 // partition → next offset to be read
	Replies  map[int32]int64 // reply partition → its end
}

// History is all that is known when a test is over.
type History struct {
	TopicID  [16]byte
	Records  []Record // all of the command topic
	Answers  []Answer // all of the reply topic
	Letters  []Letter
	Rows     []store.Row
	Held     []Held
	Cuts     []Cut
	Finished map[int32]int64 // at the end
}

// Bytes frames a record so that two records are equal if their bytes are.
func Bytes(key, value []byte, headers []command.Header) string {
	s := fmt.Sprintf("%q %q", key, value)
	for _, h := range headers {
		s += fmt.Sprintf(" %q=%q", h.Key, h.Value)
	}
	return s
}
