package main

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// probe tells when a worker's clients hand out the first record of a poll, and when the last reply is acknowledged.
// It is a set of client hooks, so what is measured is the product as it is.
type probe struct {
	replies string // topic
	expect  int64  // replies; 0: there is no last one

	once    sync.Once
	first   chan time.Time
	last    chan time.Time
	replied atomic.Int64
}

var (
	_ kgo.HookFetchRecordUnbuffered   = (*probe)(nil)
	_ kgo.HookProduceRecordUnbuffered = (*probe)(nil)
)

func newProbe(replies string, expect int64) *probe {
	return &probe{replies: replies, expect: expect, first: make(chan time.Time, 1), last: make(chan time.Time, 1)}
}

// OnFetchRecordUnbuffered implements kgo.HookFetchRecordUnbuffered.
func (p *probe) OnFetchRecordUnbuffered(_ *kgo.Record, polled bool) {
	if polled {
		p.once.Do(func() { p.first <- time.Now() })
	}
}

// OnProduceRecordUnbuffered implements kgo.HookProduceRecordUnbuffered.
func (p *probe) OnProduceRecordUnbuffered(r *kgo.Record, err error) {
	if err == nil && r.Topic == p.replies && p.replied.Add(1) == p.expect {
		p.last <- time.Now()
	}
}
