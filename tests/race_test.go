package tests

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed54173720/writ/internal/pgtest"
	"github.com/seed54173720/writ/pkg/command"
)

// watched is a server that says who had to wait for a lock for longer than a second.
var watched = pgtest.Settings{"log_lock_waits": "on", "deadlock_timeout": "1s"}

func rounds() int {
	if testing.Short() {
		return 10
	}
	return 100
}

func TestConcurrentCopiesOfARequestCommitOnce(t *testing.T) {
	t.Parallel()
	const copies = 32
	w := newWorld(t, childBroker(t), 2, processorConfig{}, watched)
	w.awaitShared(1) // so each copy has a rival in the other process
	for round := range rounds() {
		one := createBrand(t, fmt.Sprintf("request-%d", round), fmt.Sprintf("brand-%d", round), fmt.Sprintf("Brand %d", round))
		drafts := make([]draft, copies)
		for i := range drafts {
			drafts[i] = one.on(int32(i % 2))
		}
		w.race(drafts)
	}
	h := w.history()
	w.judge(h)
	outcomes := map[string]int{}
	for _, a := range h.Answers {
		outcomes[fmt.Sprintf("%s, duplicate %v", a.Reply.Outcome, a.Reply.Duplicate)]++
	}
	want := map[string]int{"committed, duplicate false": rounds(), "committed, duplicate true": rounds() * (copies - 1)}
	if fmt.Sprint(outcomes) != fmt.Sprint(want) {
		t.Errorf("answers: %v, want %v", outcomes, want)
	}
	w.judgeContention()
}

func TestAggregatesThatRaceForAKeyLeaveOneHolder(t *testing.T) {
	t.Parallel()
	const rivals = 64
	w := newWorld(t, childBroker(t), 2, processorConfig{}, watched)
	w.awaitShared(1)
	for round := range rounds() {
		drafts := make([]draft, rivals)
		for i := range drafts {
			id := fmt.Sprintf("brand-%d-%d", round, i)
			drafts[i] = createBrand(t, "request-"+id, id, fmt.Sprintf("Name %d", round)).on(int32(i % 2))
		}
		w.race(drafts)
	}
	h := w.history()
	w.judge(h)
	holders := map[string]int{}
	refused := 0
	for _, a := range h.Answers {
		round := strings.Split(a.Reply.Aggregate.ID, "-")[1]
		switch {
		case a.Reply.Outcome == command.Committed:
			holders[round]++
		case a.Reply.Error.Code == "name-taken":
			refused++
		default:
			t.Errorf("answer %s, want committed or name-taken", a.Bytes)
		}
	}
	if len(holders) != rounds() || refused != rounds()*(rivals-1) || len(h.Held) != rounds() {
		t.Errorf("%d keys won, %d refusals, %d keys held; want %d, %d, %d", len(holders), refused, len(h.Held), rounds(), rounds()*(rivals-1), rounds())
	}
	w.judgeContention()
}

// race sends the drafts at once and waits for all answers.
func (w *world) race(drafts []draft) {
	w.Helper()
	w.ledger.send(drafts...)
	w.ledger.await("answers of the round", patience, func() bool { return w.ledger.unacked == 0 && w.ledger.open == 0 })
}

// judgeContention wants races to have met in the database, and nobody to have waited there for long.
func (w *world) judgeContention() {
	w.Helper()
	conflicts := w.total("writ_conflicts_total", "group")
	conn, err := pgx.Connect(w.ctx, w.database.URL())
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close(w.ctx)
	var deadlocks int64
	if err := conn.QueryRow(w.ctx, `select deadlocks from pg_stat_database where datname = current_database()`).Scan(&deadlocks); err != nil {
		w.Fatal(err)
	}
	w.Logf("%v database conflicts, %d deadlocks", conflicts, deadlocks)
	if conflicts == 0 {
		w.Error("no conflict in the database: nobody raced")
	}
	if deadlocks != 0 {
		w.Errorf("%d deadlocks, want none", deadlocks)
	}
	log, err := os.ReadFile(w.database.Log())
	if err != nil {
		w.Fatal(err)
	}
	if i := strings.Index(string(log), "still waiting for"); i >= 0 {
		w.Errorf("somebody waited for a lock for a second: %s", log[max(0, i-200):min(len(log), i+500)])
	}
}
