// Package audit reads a context's whole store and checks that it keeps its promises: versions without gaps, one outcome
// for each request and each record, events that can be read, snapshots and reservations that are what the journal says.
// It changes nothing and may run beside processors that work.
package audit

import (
	"context"
	"fmt"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// Summary counts what was looked at.
type Summary struct {
	Aggregates   int64 `json:"aggregates"` // with at least one row
	Rows         int64 `json:"rows"`
	Committed    int64 `json:"committed"`
	Nothing      int64 `json:"nothing"`
	Rejected     int64 `json:"rejected"`
	Failed       int64 `json:"failed"`
	Reservations int64 `json:"reservations"` // of aggregates
	Snapshots    int64 `json:"snapshots"`
	OldSnapshots int64 `json:"oldSnapshots"` // of other revisions of the state type: not compared
	Findings     int64 `json:"findings"`
}

// Run audits everything that r holds by the context's registered types and calls report for each finding. An error
// means that the store could not be read to its end.
//
// Of what concerns several aggregates (requests, records, keys) the first thousand of each are reported.
//
// Memory is bounded whatever the size of the journal: what has to be compared across aggregates is compared in shares,
// one pass over the journal for each (2 million entries of each kind).
func Run(ctx context.Context, r store.Reader, c *kernel.Context, report func(Finding)) (Summary, error) {
	return run(ctx, r, c, report, 2_000_000)
}

func run(ctx context.Context, r store.Reader, c *kernel.Context, report func(Finding), most int) (Summary, error) {
	a := &audit{reader: r, context: c, report: report, shares: shares{most: most}, suspects: newSuspects()}
	if err := a.run(ctx); err != nil {
		return a.sum, fmt.Errorf("audit: %w", err)
	}
	return a.sum, nil
}

type audit struct {
	reader   store.Reader
	context  *kernel.Context
	report   func(Finding)
	sum      Summary
	shares   shares
	suspects *suspects
}

func (a *audit) run(ctx context.Context) error {
	if err := a.firstPass(ctx); err != nil {
		return err
	}
	a.shares.compare(a.suspects)
	for a.shares.next() {
		if err := a.pass(ctx, a.shares.collect, a.shares.collectHeld, a.shares.collectReserved); err != nil {
			return err
		}
		a.shares.compare(a.suspects)
	}
	return a.explain(ctx)
}

// pass reads the journal and the reservations once.
func (a *audit) pass(ctx context.Context, row func(*store.Row), end func(*holding), reserved func(keys.Key, store.Holder)) error {
	if err := eachStream(ctx, a.reader, row, end); err != nil {
		return err
	}
	return a.reader.Reservations(ctx, func(k keys.Key, h store.Holder) error {
		if h.Held && h.Name == "" { // an application's keys are not in the journal
			reserved(k, h)
		}
		return nil
	})
}

// firstPass checks what each aggregate's rows say on their own, and collects the first share of what is compared
// across aggregates.
func (a *audit) firstPass(ctx context.Context) error {
	// Snapshots are opened first: a journal that is read later holds all that they rest on.
	snapshots := openSnapshots(ctx, a.reader)
	defer snapshots.close()
	s := stream{audit: a, snapshots: snapshots}
	err := a.pass(ctx,
		func(row *store.Row) {
			a.sum.count(row)
			s.add(row)
			a.shares.collect(row)
		},
		func(h *holding) {
			s.end()
			a.shares.collectHeld(h)
		},
		func(k keys.Key, h store.Holder) {
			a.sum.Reservations++
			a.shares.collectReserved(k, h)
		})
	if err != nil {
		return err
	}
	s.orphans(nil)
	return snapshots.err
}

func (s *Summary) count(row *store.Row) {
	s.Rows++
	switch row.Outcome {
	case command.Committed:
		s.Committed++
	case command.Nothing:
		s.Nothing++
	case command.Rejected:
		s.Rejected++
	case command.Failed:
		s.Failed++
	}
}

func (a *audit) find(f Finding) {
	a.sum.Findings++
	a.report(f)
}
