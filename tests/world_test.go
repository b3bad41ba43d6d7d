package tests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/internal/audit"
	"github.com/seed54173720/writ/internal/embedded/postgres"
	"github.com/seed54173720/writ/internal/kafkatest"
	"github.com/seed54173720/writ/internal/pgtest"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
	pgstore "github.com/seed54173720/writ/pkg/store/postgres"
	"github.com/seed54173720/writ/tests/model"
	"github.com/seed54173720/writ/topics"
)

const (
	schema = "catalog"
	group  = "catalog.processor"
)

// patience bounds every wait for something that has to happen, with room for a busy machine.
const patience = 2 * time.Minute

// world is the whole system: a broker and a database in processes of their own, two processors, and the ledger of
// what was sent and answered.
type world struct {
	*testing.T
	ctx        context.Context
	partitions int32
	broker     *kafkatest.Proc
	database   *postgres.Server
	admin      *kadm.Client
	ledger     *ledger
	processors [2]*processor
	cuts       []model.Cut
}

// newWorld starts all of it: topics with so many partitions, a database with the settings, processors configured by cfg,
// whose addresses it fills in.
func newWorld(t *testing.T, broker *kafkatest.Proc, partitions int32, cfg processorConfig, settings pgtest.Settings) *world {
	t.Helper()
	w := &world{T: t, ctx: t.Context(), partitions: partitions, broker: broker, database: pgtest.Server(t, settings)}
	if err := pgstore.Migrate(w.ctx, pgstore.Config{URL: w.database.URL(), Schema: schema}); err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker.Addr()), kgo.AlwaysRetryEOF())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	w.admin = kadm.NewClient(cl)
	declared, err := topics.Declare("catalog", topics.Options{Partitions: partitions, Replication: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := topics.Create(w.ctx, w.admin, declared); err != nil {
		t.Fatal(err)
	}
	w.ledger = newLedger(t, "catalog", broker.Addr())
	t.Cleanup(w.ledger.close)
	dir, err := os.MkdirTemp("", "writ-tests-")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Broker, cfg.Database = broker.Addr(), w.database.URL()
	for i := range w.processors {
		w.processors[i] = &processor{name: string(rune('a' + i)), dir: dir, cfg: cfg}
		w.processors[i].start(t)
	}
	t.Cleanup(func() {
		for _, p := range w.processors {
			if t.Failed() {
				_ = p.cmd.Process.Signal(syscall.SIGQUIT) // its log then says where its goroutines are
				select {
				case <-p.done:
				case <-time.After(10 * time.Second):
				}
			}
			_ = p.cmd.Process.Kill() // or it has ended
			<-p.done
			if t.Failed() {
				t.Logf("processor %s, more in %s:\n%s", p.name, p.log(), tail(p.log()))
			}
		}
		if !t.Failed() {
			_ = os.RemoveAll(dir) // else somebody will want to read it
		}
	})
	return w
}

// tail returns the last lines of a log that are worth a look.
func tail(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	before, _, _ := strings.Cut(string(text), "SIGQUIT: quit")
	lines := slices.DeleteFunc(strings.Split(before, "\n"), func(line string) bool { return strings.Contains(line, "level=INFO") })
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// poll waits until holds says so, looking every few milliseconds at what no signal comes from.
func (w *world) poll(what string, holds func() bool) {
	w.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			w.Fatalf("after %v: no %s", patience, what)
		}
	}
}

// awaitShared waits until the group is whole: every partition has a processor, and each processor has at least that
// many.
func (w *world) awaitShared(least float64) {
	w.Helper()
	w.poll("share of the partitions for each processor", func() bool {
		sum := 0.0
		for _, p := range w.processors {
			n := p.counters()["writ_assigned_partitions{}"]
			if n < least {
				return false
			}
			sum += n
		}
		return sum == float64(w.partitions)
	})
}

// cut takes down how far the command topic is said to be finished, and then how far the replies reach.
func (w *world) cut(name string) model.Cut {
	w.Helper()
	c := model.Cut{Name: name, Finished: w.finished()}
	c.Replies = w.ends("catalog.replies")
	w.cuts = append(w.cuts, c)
	return c
}

func (w *world) finished() map[int32]int64 {
	w.Helper()
	offsets, err := w.admin.FetchOffsets(w.ctx, group)
	if err != nil {
		w.Fatal(err)
	}
	finished := map[int32]int64{}
	offsets.Each(func(o kadm.OffsetResponse) { finished[o.Partition] = o.At })
	return finished
}

func (w *world) ends(topic string) map[int32]int64 {
	w.Helper()
	listed, err := w.admin.ListEndOffsets(w.ctx, topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		w.Fatal(err)
	}
	ends := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
	return ends
}

// history waits until everything that stands on the command topic is answered, stops the processors, and collects all
// that there is.
func (w *world) history() *model.History {
	w.Helper()
	l := w.ledger
	l.await("acknowledgement of every record", patience, func() bool { return l.unacked == 0 })
	h := &model.History{Cuts: w.cuts}
	h.Records = w.records()
	w.Cleanup(func() { w.tellUnanswered(h.Records) })
	l.await("answer to every record", patience, func() bool {
		for i := range h.Records {
			if !l.seen[h.Records[i].Place] {
				return false
			}
		}
		return true
	})
	for _, p := range w.processors {
		p.stop(w.T)
	}
	w.awaitEnds()
	l.mu.Lock()
	h.Answers, h.Letters = l.answers, l.letters
	l.mu.Unlock()
	h.Finished = w.finished()

	meta, err := w.admin.ListTopics(w.ctx, "catalog.commands")
	if err != nil {
		w.Fatal(err)
	}
	h.TopicID = meta["catalog.commands"].ID
	s, err := pgstore.Open(w.ctx, pgstore.Config{URL: w.database.URL(), Schema: schema})
	if err != nil {
		w.Fatal(err)
	}
	defer s.Close()
	summary, err := audit.Run(w.ctx, s, catalog.Context(), func(f audit.Finding) { w.Errorf("audit: %s", f) })
	if err != nil {
		w.Fatal(err)
	}
	w.Logf("audit: %+v", summary)
	if err := errors.Join(
		s.Journal(w.ctx, func(r *store.Row) error { h.Rows = append(h.Rows, *r); return nil }),
		s.Reservations(w.ctx, func(k keys.Key, holder store.Holder) error {
			h.Held = append(h.Held, model.Held{Key: k, Holder: holder})
			return nil
		}),
	); err != nil {
		w.Fatal(err)
	}
	return h
}

// tellUnanswered says of a test that waited in vain which records have no answer, and what is recorded of them.
func (w *world) tellUnanswered(records []model.Record) {
	if !w.Failed() {
		return
	}
	s, err := pgstore.Open(context.Background(), pgstore.Config{URL: w.database.URL(), Schema: schema})
	if err != nil {
		w.Log(err)
		return
	}
	defer s.Close()
	rows := map[model.Place]string{}
	if err := s.Journal(context.Background(), func(r *store.Row) error {
		rows[model.Place{Partition: r.Position.Partition, Offset: r.Position.Offset}] = fmt.Sprintf("%s, decided at %v", r.Outcome, r.Time)
		return nil
	}); err != nil {
		w.Log(err)
	}
	n := 0
	for i := range records {
		r := &records[i]
		if w.ledger.seen[r.Place] {
			continue
		}
		if n++; n <= 20 {
			w.Logf("not answered: %s, request %q, %s, row: %s", r.Place, r.RequestID, r.Asked, rows[r.Place])
		}
	}
	w.Logf("%d records not answered", n)
}

// records reads the whole command topic: it may hold a record twice that was acknowledged once, and must hold all that
// was acknowledged.
func (w *world) records() (records []model.Record) {
	w.Helper()
	ends := w.ends("catalog.commands")
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.broker.Addr()), kgo.ConsumeTopics("catalog.commands"), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		w.Fatal(err)
	}
	defer cl.Close()
	left := 0
	for _, end := range ends {
		left += int(end)
	}
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	there := map[model.Place]*entry{}
	for left > 0 {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			w.Fatalf("read the command topic: %v", err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			left--
			e, err := w.ledger.entryOf(r)
			if err != nil {
				w.Errorf("record %d/%d: %v", r.Partition, r.Offset, err)
				return
			}
			record := e.Record
			record.Place = model.Place{Partition: r.Partition, Offset: r.Offset}
			there[record.Place] = e
			records = append(records, record)
		})
	}
	for p, e := range w.ledger.acked {
		if there[p] != e {
			w.Errorf("the broker acknowledged a record of request %q at %s and does not hold it there", e.RequestID, p)
		}
	}
	return records
}

// awaitEnds waits until the ledger has read the replies and dead letters to their ends.
func (w *world) awaitEnds() {
	w.Helper()
	l := w.ledger
	for topic, read := range map[string]func() int{
		"catalog.replies":      func() int { return len(l.answers) },
		"catalog.dead-letters": func() int { return len(l.letters) },
	} {
		n := 0
		for _, end := range w.ends(topic) {
			n += int(end)
		}
		l.await(fmt.Sprintf("end of %s (%d records)", topic, n), patience, func() bool { return read() >= n })
	}
}

// judge reports every broken promise, and what should never be in a processor's log.
func (w *world) judge(h *model.History) {
	w.Helper()
	breaches := h.Breaches()
	for i, b := range breaches {
		if i == 30 {
			w.Errorf("… and %d more", len(breaches)-i)
			break
		}
		w.Error(b)
	}
	for _, p := range w.processors {
		text, err := os.ReadFile(p.log())
		if err != nil {
			w.Error(err)
		}
		if found := forbidden.FindIndex(text); found != nil {
			w.Errorf("processor %s: %s", p.name, text[found[0]:min(len(text), found[1]+3000)])
		}
	}
}

var forbidden = regexp.MustCompile(`WARNING: DATA RACE|(?m)^panic: |^fatal error: `)

// total adds up what both processors have counted in all their lives.
func (w *world) total(name, but string) (n float64) {
	for _, p := range w.processors {
		n += p.total().sum(name, but)
	}
	return n
}
