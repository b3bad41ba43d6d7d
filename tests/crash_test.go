package tests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed54173720/writ/internal/embedded/broker"
	"github.com/seed54173720/writ/internal/kafkatest"
	"github.com/seed54173720/writ/tests/model"
)

// The load of a crash test: so many records are kept unanswered while there are any to send. It is far above the 100
// that a kill must find, for part of them is answered while the kill is under way.
const (
	unanswered = 1_200
	atKill     = 100
)

func TestCrash(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		start func(t *testing.T) *kafkatest.Proc
	}{
		{"embedded broker", childBroker},
		{"Apache Kafka", apacheKafka},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			crash(t, row.start(t))
		})
	}
}

func childBroker(t *testing.T) *kafkatest.Proc {
	p, err := kafkatest.Child(t.Context(), broker.Config{Dir: t.TempDir() + "/broker", TrimEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill9() }) // nobody reads its data again
	return p
}

func apacheKafka(t *testing.T) *kafkatest.Proc {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	p, err := kafkatest.Apache(ctx, t.TempDir())
	if err != nil {
		kafkatest.Unavailable(t, err)
	}
	t.Cleanup(func() { _ = p.Kill9() }) // nobody reads its data again
	return p
}

// crash runs the script of crashes under load and judges what is left.
func crash(t *testing.T, b *kafkatest.Proc) {
	commands := 5_000
	if text := os.Getenv("WRIT_PROVE"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("WRIT_PROVE %q is not a number of commands", text)
		}
		commands = n
	}
	seed := rand.Uint64()
	t.Logf("%s, %d commands, seed %d", b.Version(), commands, seed)
	// Small groups give a kill more places to strike. With the linger after them they bound the rate at about 1,000 a
	// second and processor, whatever the machine: few are answered between the decision to kill and the kill.
	w := newWorld(t, b, 8, processorConfig{Group: 30, InFlight: 300, Linger: 60 * time.Millisecond}, nil)
	c := &crasher{world: w, rnd: rand.New(rand.NewPCG(seed, 1))}
	load := &workload{t: t, rnd: rand.New(rand.NewPCG(seed, 2)), partitions: w.partitions}

	stop := c.pace(load)
	defer stop()
	script := []func(){
		func() { c.kill(0) },
		func() { c.kill(1) },
		c.killDatabase,
		func() { c.kill(0, 1) },
		func() { c.kill(0) },
		c.killBroker,
		func() { c.kill(1) },
		func() { c.kill(1, 0) },
	}
	for i, step := range script {
		w.awaitShared(2)
		c.allow(commands * (i + 1) / (len(script) + 1))
		step()
	}
	for range 20 { // a database that is killed in mid-commit leaves the processor not knowing
		if w.total("writ_unknown_commits_total", "") > 0 {
			break
		}
		c.killDatabase()
	}
	c.allow(commands)
	w.ledger.await("end of the load", patience, func() bool { return len(w.ledger.sent) >= commands })
	stop()

	h := w.history()
	times := map[model.Place]int{}
	for _, a := range h.Answers {
		times[model.Place{Partition: a.Reply.Position.Partition, Offset: a.Reply.Position.Offset}]++
	}
	repeated := 0
	for _, n := range times {
		if n > 1 {
			repeated++
		}
	}
	redelivered := w.total("writ_redelivered_total", "")
	conflicts, unknown := w.total("writ_conflicts_total", "group"), w.total("writ_unknown_commits_total", "")
	t.Logf("%d records (%d repeats), %d kills with %v unanswered; %d answers, %d records answered more than once; %v redelivered, %v database conflicts, %v unknown commits, %v store faults",
		len(h.Records), load.repeats, len(c.found), c.found, len(h.Answers), repeated, redelivered, conflicts, unknown, w.total("writ_store_faults_total", ""))
	w.judge(h)
	for i, n := range c.found {
		if n < atKill {
			t.Errorf("kill %d found %d commands unanswered, want at least %d", i+1, n, atKill)
		}
	}
	for name, n := range map[string]float64{"redeliveries": redelivered, "records answered more than once": float64(repeated), "database conflicts": conflicts, "unknown commits": unknown} {
		if n == 0 {
			t.Errorf("no %s: the test shows less than it claims", name)
		}
	}
	if len(c.found) < 8 {
		t.Errorf("%d kills, want at least 8", len(c.found))
	}
}

// crasher keeps a system under load and kills parts of it.
type crasher struct {
	*world
	rnd   *rand.Rand
	limit int   // records that may have been sent; guarded by the ledger's mutex
	ended bool  // likewise
	found []int // commands that each kill of a processor found unanswered
}

// pace starts the load: it keeps so many records unanswered, as far as the limit allows. The function that it returns
// ends it and waits for it.
func (c *crasher) pace(load *workload) (stop func()) {
	l := c.ledger
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			l.mu.Lock()
			for !c.ended && (len(l.sent) >= c.limit || l.open+l.unacked >= unanswered) {
				l.changed.Wait()
			}
			ended := c.ended
			l.mu.Unlock()
			if ended {
				return
			}
			l.send(load.next()...)
		}
	})
	return func() {
		l.mu.Lock()
		c.ended = true
		l.mu.Unlock()
		l.changed.Broadcast()
		wg.Wait()
	}
}

// allow lets the load go on to so many records in all.
func (c *crasher) allow(total int) {
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	c.limit = max(c.limit, total)
	c.ledger.changed.Broadcast()
}

func (c *crasher) more(n int) {
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	c.limit = max(c.limit, len(c.ledger.sent)+n)
	c.ledger.changed.Broadcast()
}

// awaitLoad halts the processors until much has piled up, has them go on, and waits for a random number of answers: the
// next blow falls anywhere between a fetch and its last answer, and finds work however slow the machine is.
func (c *crasher) awaitLoad() {
	c.Helper()
	l := c.ledger
	for _, p := range c.processors {
		p.signal(c.T, syscall.SIGSTOP)
	}
	c.more(unanswered)
	l.await("load", patience, func() bool { return l.open >= unanswered*3/4 })
	l.mu.Lock()
	until := len(l.answers) + c.rnd.IntN(unanswered/16)
	l.mu.Unlock()
	for _, p := range c.processors {
		p.signal(c.T, syscall.SIGCONT)
	}
	l.await("answers under load", patience, func() bool { return len(l.answers) >= until })
}

// kill ends processors by SIGKILL under load, counts what they leave unanswered, and has others take their place.
func (c *crasher) kill(which ...int) {
	c.Helper()
	c.awaitLoad()
	for _, i := range which {
		then := time.Now()
		c.processors[i].kill9(c.T)
		cut := c.cut(fmt.Sprintf("after kill %d", len(c.found)+1))
		c.found = append(c.found, -1)
		defer func(n int) { c.found[n] = c.leftBy(then, cut.Replies) }(len(c.found) - 1)
	}
	for _, i := range which {
		c.processors[i].start(c.T)
	}
}

// leftBy counts the records that had no answer when a processor was killed, once the ledger has read all replies of
// that time.
func (c *crasher) leftBy(then time.Time, ends map[int32]int64) int {
	l := c.ledger
	before := 0
	for _, end := range ends {
		before += int(end)
	}
	l.await("replies before the kill", patience, func() bool {
		n := 0
		for i := range l.answers {
			if a := &l.answers[i]; a.Place.Offset < ends[a.Place.Partition] {
				n++
			}
		}
		return n >= before
	})
	return l.unansweredAt(then, ends)
}

// killDatabase ends the database as a crash would, under load, and brings it back.
func (c *crasher) killDatabase() {
	c.Helper()
	c.awaitLoad()
	if err := c.database.Kill(); err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	if err := c.database.Restart(ctx); err != nil {
		c.Fatal(err)
	}
}

// killBroker does the same to the broker.
func (c *crasher) killBroker() {
	c.Helper()
	c.awaitLoad()
	if err := c.broker.Kill9(); err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	if err := c.broker.Restart(ctx); err != nil {
		c.Fatal(err)
	}
	c.cut("after the broker came back")
}
