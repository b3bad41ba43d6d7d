package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/kernel/kerneltest"
	"github.com/seed54173720/writ/pkg/store"
	"github.com/seed54173720/writ/pkg/store/memory"
	"github.com/seed54173720/writ/pkg/store/storetest"
)

func TestATakenKeyHasOnlyWhatAskedForItAndWhatFollowsDecidedAgain(t *testing.T) {
	t.Parallel()
	p, l := newProbe(), log{t: t, context: "probe"}
	r := kerneltest.NewRunner(p.Context, memory.New())
	process(t, r, l.add("rival", "thing.take", "rival", take{"k"}))

	expect(t, process(t, r,
		l.add("before", "thing.add", "a", add{1}),
		l.add("free", "thing.take", "a", take{"free"}),
		l.add("taken", "thing.take", "a", take{"k"}),
		l.add("after", "thing.add", "a", add{1}),
	), "committed 1", "committed 2", "rejected taken", "committed 3")
	p.expectRuns(t, map[string]int{"before": 1, "free": 1, "taken": 2, "after": 2})
}

func TestARefusalForAnotherReasonIsDecidedAgainIfAKeyWasGuessedFree(t *testing.T) {
	t.Parallel()
	c := kernel.New("probe")
	a := kernel.Add[thing](c, "thing")
	kernel.On(a, "took", func(s thing, _ took) thing { return s })
	kernel.Handle(a, "take", kernel.Either, func(_ context.Context, s *kernel.Scope[thing], c take) (kernel.Decision, error) {
		s.Reserve("key", c.Key)
		return kernel.Events(took(c)), nil
	})
	kernel.Handle(a, "odd", kernel.Either, func(_ context.Context, s *kernel.Scope[thing], c take) (kernel.Decision, error) {
		if s.Reserve("key", c.Key) {
			return kernel.Reject("free", "it is free"), nil
		}
		return kernel.Events(took(c)), nil
	})
	l := log{t: t, context: "probe"}
	r := kerneltest.NewRunner(c, memory.New())
	process(t, r, l.add("rival", "thing.take", "rival", take{"k"}))
	expect(t, process(t, r, l.add("odd", "thing.odd", "a", take{"k"})), "committed 1")
}

func TestAKeyThatTheUnitHoldsOrGivesUpIsItsOwn(t *testing.T) {
	t.Parallel()
	p, l, s := newProbe(), log{t: t, context: "probe"}, memory.New()
	r := kerneltest.NewRunner(p.Context, s)
	expect(t, process(t, r,
		l.add("1", "thing.take", "a", take{"k"}),
		l.add("2", "thing.take", "a", take{"k"}), // held already
		l.add("3", "thing.drop", "a", drop{"k"}),
		l.add("4", "thing.drop", "a", drop{"k"}), // not held any more
		l.add("5", "thing.take", "a", take{"k"}),
		l.add("6", "thing.take", "a", take{"other"}),
		l.add("7", "thing.drop", "a", drop{"other"}),
	), "committed 1", "committed 2", "committed 3", "committed 4", "committed 5", "committed 6", "committed 7")
	want := [][2]int{{1, 0}, {0, 0}, {0, 1}, {0, 0}, {1, 0}, {1, 0}, {0, 1}} // taken, released
	for i, row := range rows(t, s, "a") {
		if got := [2]int{len(row.Taken), len(row.Released)}; got != want[i] {
			t.Errorf("row %d: took %v, released %v, want %v", i, row.Taken, row.Released, want[i])
		}
	}
	expect(t, process(t, r, l.add("8", "thing.drop", "b", drop{"k"}), l.add("9", "thing.take", "b", take{"other"})),
		"committed 1", "committed 2") // another's key: no effect, no error
	expect(t, process(t, r, l.add("10", "thing.take", "b", take{"k"})), "rejected taken")
}

func TestARefusalOnStaleStateIsDecidedAgain(t *testing.T) {
	t.Parallel()
	p, l, s := newProbe(), log{t: t, context: "probe"}, memory.New()
	stale, other := kerneltest.NewRunner(p.Context, s), kerneltest.NewRunner(p.Context, s)
	expect(t, process(t, stale, l.add("1", "thing.add", "a", add{1})), "committed 1")
	expect(t, process(t, other, l.add("2", "thing.add", "a", add{1})), "committed 2")

	expect(t, process(t, stale, l.add("no", "thing.want", "a", want{2})), "nothing")
	expect(t, process(t, other, l.add("3", "thing.add", "a", add{1})), "committed 3")
	expect(t, process(t, stale, l.add("nothing", "thing.want", "a", want{2})), "rejected differs")
	p.expectRuns(t, map[string]int{"no": 2, "nothing": 2})
}

func TestACommitOnStaleStateLosesAndIsDecidedAgain(t *testing.T) {
	t.Parallel()
	p, l, s := newProbe(), log{t: t, context: "probe"}, memory.New()
	stale, other := kerneltest.NewRunner(p.Context, s), kerneltest.NewRunner(p.Context, s)
	process(t, stale, l.add("1", "thing.add", "a", add{1}))
	process(t, other, l.add("2", "thing.add", "a", add{1}))
	replies := process(t, stale, l.add("3", "thing.want", "a", want{2}), l.add("4", "thing.add", "a", add{1}))
	expect(t, replies, "nothing", "committed 3")
	if got := string(replies[1].Result); got != `{"was":2}` {
		t.Errorf("result of the commit: got %s, want it decided on the other's state", got)
	}
}

func TestARecordIsAnsweredOnceForEver(t *testing.T) {
	t.Parallel()
	p, l, s := newProbe(), log{t: t, context: "probe"}, memory.New()
	r := kerneltest.NewRunner(p.Context, s)
	no := l.add("request", "thing.want", "a", want{1})
	other := l.add("other", "thing.add", "a", add{1})
	yes := l.add("request", "thing.want", "a", want{1})
	log := []kerneltest.Record{no, other, yes, l.add("request", "thing.want", "a", want{1}), l.add("request", "thing.want", "a", want{2})}

	answers := []string{"rejected differs", "committed 1", "nothing", "duplicate nothing", "rejected request-id-reused"}
	first := process(t, r, log...)
	expect(t, first, answers...)
	runs := len(p.runs)
	fresh := kerneltest.NewRunner(p.Context, s)
	if again := process(t, fresh, log...); !reflect.DeepEqual(again, first) {
		t.Errorf("delivered again: got %+v, want what was answered before, %+v", again, first)
	}
	if len(p.runs) != runs {
		t.Errorf("delivered again, these were decided again: %v", p.runs[runs:])
	}
}

func TestWhatIsStoredIsAnsweredBeforeAnythingThatMayHaveChanged(t *testing.T) {
	t.Parallel()
	p, l, s := newProbe(), log{t: t, context: "probe"}, memory.New()
	r := kerneltest.NewRunner(p.Context, s)
	first := l.add("1", "thing.add", "a", add{1})
	process(t, r, first)
	r.Kernel.Authorise = func(context.Context, *command.Command) error { return errors.New("nobody may") }
	r.Kernel.Context = kernel.New("probe") // which knows no thing any more
	expect(t, process(t, r, first, l.add("1", "thing.add", "a", add{1}), l.add("2", "thing.add", "a", add{1})),
		"committed 1", "duplicate committed 1", "rejected unknown-type")
}

func TestARequestHasOneOutcomeOverAggregates(t *testing.T) {
	t.Parallel()
	p, l, s := newProbe(), log{t: t, context: "probe"}, memory.New()
	r := kerneltest.NewRunner(p.Context, s)
	expect(t, process(t, r, l.add("1", "thing.add", "a", add{1}), l.add("1", "thing.add", "b", add{1})),
		"committed 1", "rejected request-id-reused")
	// A refused request is simply corrected, on another aggregate even.
	expect(t, process(t, r, l.add("2", "thing.increase", "c", add{1}), l.add("2", "thing.increase", "a", add{1})),
		"rejected not-found", "committed 2")
}

func TestEveryExecutionInProcessIsNew(t *testing.T) {
	t.Parallel()
	p, l, s := newProbe(), log{t: t, context: "probe"}, memory.New()
	r := kerneltest.NewRunner(p.Context, s)
	for range 3 {
		c := l.add("1", "thing.want", "a", want{1})
		c.InProc = true
		expect(t, process(t, r, c), "rejected differs")
	}
	p.expectRuns(t, map[string]int{"1": 3})
	process(t, r, l.add("2", "thing.add", "a", add{1}))
	for _, answer := range []string{"nothing", "duplicate nothing"} {
		c := l.add("1", "thing.want", "a", want{1})
		c.InProc = true
		expect(t, process(t, r, c), answer)
	}
}

func TestAFaultOfACommandIsTriedAndThenRecorded(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		how  string
		want command.Code
	}{
		{"err", command.CodeDecisionFailed},
		{"panic", command.CodeDecisionPanicked},
		{"unfit", command.CodeDecisionPanicked},
		{"stranger", command.CodeDecisionFailed},
		{"key", command.CodeDecisionFailed},
		{"result", command.CodeDecisionFailed},
	} {
		t.Run(row.how, func(t *testing.T) {
			t.Parallel()
			p, l, s := newProbe(), log{t: t, context: "probe"}, memory.New()
			r := kerneltest.NewRunner(p.Context, s)
			expect(t, process(t, r,
				l.add("before", "thing.add", "a", add{1}),
				l.add("bad", "thing.fault", "a", fault{row.how}),
				l.add("after", "thing.want", "a", want{1}),
				l.add("neighbour", "thing.add", "b", add{1}),
			), "committed 1", "failed "+string(row.want), "nothing", "committed 1")
			p.expectRuns(t, map[string]int{"before": 1, "bad": kernel.DefaultAttempts, "after": 1, "neighbour": 1})
			expect(t, process(t, r, l.add("key", "thing.take", "b", take{"never"})), "committed 2")
		})
	}
}

func TestAnEventThatTheStateCannotTakeFailsItsCommandAndLeavesNothing(t *testing.T) {
	t.Parallel()
	p, l, s := newProbe(), log{t: t, context: "probe"}, memory.New()
	p.evolving = func(n int64) {
		if n == 13 {
			panic("unlucky")
		}
	}
	r := kerneltest.NewRunner(p.Context, s)
	expect(t, process(t, r,
		l.add("1", "thing.add", "a", add{1}), l.add("bad", "thing.add", "a", add{13}), l.add("2", "thing.want", "a", want{1}),
	), "committed 1", "failed decision-failed", "nothing")
}

func TestACancelledDecisionIsNoFaultOfTheCommand(t *testing.T) {
	t.Parallel()
	p, l := newProbe(), log{t: t, context: "probe"}
	k := &kernel.Kernel{Context: p.Context, Store: memory.New()}
	record := l.add("1", "thing.fault", "a", fault{"cancelled"})
	item := &kernel.Item{Command: record.Command, FromRecord: true, Position: record.Position}
	u := &kernel.Unit{Aggregate: record.Command.Aggregate(), Stream: record.Command.Stream(), Items: []*kernel.Item{item}}
	if err := k.Read(t.Context(), []*kernel.Unit{u}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rest := k.Decide(ctx, u)
	if len(rest) != 1 || rest[0] != item || item.Attempts != 0 || item.Fault != nil {
		t.Errorf("got rest %v, %d attempts, fault %v; want the command back and unblamed", rest, item.Attempts, item.Fault)
	}
}

func TestAFailedRequestIsDecidedAnewWhenSentAgain(t *testing.T) {
	t.Parallel()
	p, l, s := newProbe(), log{t: t, context: "probe"}, memory.New()
	r := kerneltest.NewRunner(p.Context, s)
	bad := l.add("1", "thing.fault", "a", fault{"err"})
	expect(t, process(t, r, bad, l.add("1", "thing.add", "a", add{1})), "failed decision-failed", "committed 1")
	expect(t, process(t, r, bad), "failed decision-failed")
}

func TestARowThatTheStoreRefusesFailsItsCommandOnly(t *testing.T) {
	t.Parallel()
	p, l, s := newProbe(), log{t: t, context: "probe"}, memory.New()
	r := kerneltest.NewRunner(p.Context, refusing{s, "bad"})
	expect(t, process(t, r,
		l.add("1", "thing.add", "a", add{1}),
		l.add("bad", "thing.add", "a", add{1}),
		l.add("2", "thing.add", "a", add{1}),
		l.add("3", "thing.add", "b", add{1}),
	), "committed 1", "failed store-refused", "committed 2", "committed 1")
}

// refusing is a store that refuses commits of one request.
type refusing struct {
	store.Store
	requestID string
}

func (s refusing) Commit(ctx context.Context, units []store.Unit) ([]store.Fate, error) {
	fates := make([]store.Fate, len(units))
	var rest []store.Unit
	var at []int
next:
	for i, u := range units {
		for j, row := range u.Rows {
			if row.RequestID == s.requestID && row.Outcome == command.Committed {
				fates[i] = store.Fate{Verdict: store.Bad, Row: j, Err: errors.New("it is bad")}
				continue next
			}
		}
		rest, at = append(rest, u), append(at, i)
	}
	if len(rest) == 0 {
		return fates, nil
	}
	committed, err := s.Store.Commit(ctx, rest)
	for i, fate := range committed {
		fates[at[i]] = fate
	}
	return fates, err
}

func TestACommitOfUnknownFateIsLookedUp(t *testing.T) {
	t.Parallel()
	for _, kind := range []storetest.Kind{storetest.FailAfter, storetest.InDoubt} {
		p, l, s := newProbe(), log{t: t, context: "probe"}, memory.New()
		wait := make(chan struct{})
		faulty := storetest.NewFaulty(s, func(_ context.Context, c storetest.Call) storetest.Fault {
			if c.Method == "Commit" && c.N == 1 {
				return storetest.Fault{Kind: kind, Wait: wait}
			}
			return storetest.Fault{}
		})
		r := kerneltest.NewRunner(p.Context, faulty)
		expect(t, process(t, r, l.add("1", "thing.add", "a", add{1}), l.add("2", "thing.want", "a", want{0}), l.add("3", "thing.want", "b", want{1})),
			"committed 1", "rejected differs", "rejected differs")
		close(wait)
		faulty.Settle()
		if n := len(rows(t, s, "a")); n != 2 {
			t.Errorf("kind %v: %d rows of a, want 2", kind, n)
		}
	}
}

func TestASnapshotIsTakenEveryNCommitsAndPassedOverByAnotherRevision(t *testing.T) {
	t.Parallel()
	l, s := log{t: t, context: "probe"}, memory.New()
	r := kerneltest.NewRunner(newProbe().Context, s)
	r.Kernel.SnapshotEvery, r.MaxUnit = 10, 3
	for range 7 {
		var batch []kerneltest.Record
		for range 5 {
			batch = append(batch, l.add(fmt.Sprint(l.offset), "thing.add", "a", add{1}))
		}
		process(t, r, batch...)
	}
	if v := snapshot(t, s); v < 25 || v > 35 {
		t.Errorf("snapshot after 35 commits is of version %d, want one of the last 10", v)
	}
	if evolved := loads(t, newProbe(), s, 35); evolved > 10 {
		t.Errorf("a fresh kernel evolved %d events, want at most 10 behind the snapshot", evolved)
	}
	if evolved := loads(t, newProbe(kernel.StateRevision(2)), s, 35); evolved != 35 {
		t.Errorf("a kernel of another state revision evolved %d events, want all 35", evolved)
	}
}

// loads reads thing a, expects it to count want, and returns how many events were evolved.
func loads(t *testing.T, p *probe, s store.Store, want int64) (evolved int) {
	t.Helper()
	p.evolving = func(int64) { evolved++ }
	k := &kernel.Kernel{Context: p.Context, Store: s}
	state, err := k.Load(t.Context(), command.Aggregate{Type: "thing", ID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if got := state.Value().(thing).N; got != want || state.Version != want {
		t.Errorf("loaded %d at version %d, want %d", got, state.Version, want)
	}
	return evolved
}

func snapshot(t *testing.T, s store.Reader) (version int64) {
	t.Helper()
	if err := s.Snapshots(t.Context(), func(s *store.Snapshot) error { version = s.Version; return nil }); err != nil {
		t.Fatal(err)
	}
	return version
}

func TestWhoWaitsForTheSnapshotGetsItWithTheAnswer(t *testing.T) {
	t.Parallel()
	l, s := log{t: t, context: "probe"}, memory.New()
	waits := func(b *command.Builder) { b.WaitFor(command.StageSnapshot) }
	r := kerneltest.NewRunner(newProbe().Context, s)
	for _, step := range []struct {
		name   string
		record kerneltest.Record
		want   int64
	}{
		{"nobody waits", l.add("1", "thing.add", "a", add{1}), 0},
		{"nothing to do, but behind", l.add("2", "thing.want", "a", want{1}, waits), 1},
		{"committed", l.add("3", "thing.add", "a", add{1}, waits), 2},
	} {
		if got := process(t, r, step.record)[0].Stage; got != step.record.Command.WaitFor() {
			t.Errorf("%s: answered stage %v, want %v", step.name, got, step.record.Command.WaitFor())
		}
		if got := snapshot(t, s); got != step.want {
			t.Errorf("%s: snapshot of version %d, want %d", step.name, got, step.want)
		}
	}
}

func TestARepeatWhoseSnapshotIsBehindWritesItFirst(t *testing.T) {
	t.Parallel()
	p, l, s := newProbe(), log{t: t, context: "probe"}, memory.New()
	waits := func(b *command.Builder) { b.WaitFor(command.StageSnapshot) }
	r := kerneltest.NewRunner(p.Context, s)
	first := l.add("1", "thing.add", "a", add{1}, waits)
	for _, step := range []struct {
		name    string
		records []kerneltest.Record
		answers []string
		stage   command.Stage // of the first answer
		want    int64         // the snapshot's version
	}{
		{"two commits", []kerneltest.Record{first, l.add("2", "thing.add", "a", add{1})},
			[]string{"committed 1", "committed 2"}, command.StageSnapshot, 2},
		{"nobody waits", []kerneltest.Record{l.add("3", "thing.add", "a", add{1}), l.add("3", "thing.add", "a", add{1})},
			[]string{"committed 3", "duplicate committed 3"}, command.StageCommitted, 2},
		{"a refusal does not count", []kerneltest.Record{l.add("4", "thing.want", "a", want{1}, waits)},
			[]string{"rejected differs"}, command.StageSnapshot, 3},
		{"another commit", []kerneltest.Record{l.add("5", "thing.add", "a", add{1})}, []string{"committed 4"}, command.StageCommitted, 3},
		{"a repeat", []kerneltest.Record{l.add("3", "thing.add", "a", add{1}, waits)},
			[]string{"duplicate committed 3"}, command.StageSnapshot, 4},
		{"again", []kerneltest.Record{l.add("3", "thing.add", "a", add{1}, waits)},
			[]string{"duplicate committed 3"}, command.StageSnapshot, 4},
		{"a repeat and a commit", []kerneltest.Record{l.add("3", "thing.add", "a", add{1}, waits), l.add("6", "thing.add", "a", add{1})},
			[]string{"duplicate committed 3", "committed 5"}, command.StageSnapshot, 5},
		{"a commit", []kerneltest.Record{l.add("7", "thing.add", "a", add{1})}, []string{"committed 6"}, command.StageCommitted, 5},
		{"a record delivered again", []kerneltest.Record{first}, []string{"committed 1"}, command.StageSnapshot, 6},
	} {
		replies := process(t, r, step.records...)
		expect(t, replies, step.answers...)
		if got := replies[0].Stage; got != step.stage {
			t.Errorf("%s: answered stage %v, want %v", step.name, got, step.stage)
		}
		if got := snapshot(t, s); got != step.want {
			t.Errorf("%s: snapshot of version %d, want %d", step.name, got, step.want)
		}
	}
	expect(t, process(t, r, l.add("8", "thing.want", "a", want{6})), "nothing") // the state that was read is of use
}

func TestARepeatIsAnsweredWithoutTheSnapshotThatCannotBeHad(t *testing.T) {
	t.Parallel()
	waits := func(b *command.Builder) { b.WaitFor(command.StageSnapshot) }
	l, s := log{t: t, context: "probe"}, memory.New()
	process(t, kerneltest.NewRunner(newProbe().Context, s), l.add("1", "thing.add", "a", add{1}))

	older := kernel.New("probe")
	kernel.Add[thing](older, "thing") // which knows no event
	unmarshalled := kernel.New("probe")
	kernel.On(kernel.Add[func()](unmarshalled, "thing"), "added", func(s func(), _ added) func() { return s })
	for name, r := range map[string]*kerneltest.Runner{
		"it cannot be read":          kerneltest.NewRunner(older, s),
		"it does not marshal":        kerneltest.NewRunner(unmarshalled, s),
		"the store does not take it": kerneltest.NewRunner(newProbe().Context, unsnapped{s}),
		"its aggregate is not known": kerneltest.NewRunner(kernel.New("probe"), s),
	} {
		replies := process(t, r, l.add("1", "thing.add", "a", add{1}, waits))
		expect(t, replies, "duplicate committed 1")
		if replies[0].Stage != command.StageCommitted {
			t.Errorf("%s: answered stage %v, want committed", name, replies[0].Stage)
		}
	}
}

// unsnapped is a store that takes no snapshots.
type unsnapped struct{ store.Store }

func (s unsnapped) Commit(ctx context.Context, units []store.Unit) ([]store.Fate, error) {
	fates := make([]store.Fate, len(units))
	for i := range fates {
		fates[i] = store.Fate{Verdict: store.Bad, Err: errors.New("it is bad")}
	}
	return fates, nil
}

func TestAStateThatDoesNotMarshalCommitsWithoutSnapshot(t *testing.T) {
	t.Parallel()
	c := kernel.New("probe")
	a := kernel.Add[func()](c, "thing")
	kernel.On(a, "added", func(s func(), _ added) func() { return s })
	kernel.Handle(a, "add", kernel.Either, func(_ context.Context, _ *kernel.Scope[func()], c add) (kernel.Decision, error) {
		return kernel.Events(added(c)), nil
	})
	l := log{t: t, context: "probe"}
	r := kerneltest.NewRunner(c, memory.New())
	replies := process(t, r, l.add("1", "thing.add", "a", add{1}, func(b *command.Builder) { b.WaitFor(command.StageSnapshot) }))
	expect(t, replies, "committed 1")
	if replies[0].Stage != command.StageCommitted {
		t.Errorf("answered stage %v, want committed", replies[0].Stage)
	}
}

func TestWhatANewerBuildWroteNeedsANewerBuild(t *testing.T) {
	t.Parallel()
	l, s := log{t: t, context: "probe"}, memory.New()
	process(t, kerneltest.NewRunner(newProbe().Context, s), l.add("1", "thing.add", "a", add{1}))

	older := kernel.New("probe")
	a := kernel.Add[thing](older, "thing")
	kernel.Handle(a, "want", kernel.Either, func(context.Context, *kernel.Scope[thing], want) (kernel.Decision, error) {
		t.Error("decided on a state that cannot be read")
		return kernel.Nothing(), nil
	})
	expect(t, process(t, kerneltest.NewRunner(older, s), l.add("2", "thing.want", "a", want{1}), l.add("1", "thing.add", "a", add{1})),
		"failed newer-build-needed", "duplicate committed 1")

	p := newProbe()
	p.evolving = func(int64) { panic("not this one") }
	expect(t, process(t, kerneltest.NewRunner(p.Context, s), l.add("3", "thing.want", "a", want{1})), "failed newer-build-needed")
	expect(t, process(t, kerneltest.NewRunner(newProbe().Context, s), l.add("2", "thing.want", "a", want{1})), "nothing")
}

func TestADeadlineIsJudgedOnceWhenTheCommandIsFirstTaken(t *testing.T) {
	t.Parallel()
	p, l, s := newProbe(), log{t: t, context: "probe"}, memory.New()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	deadline := func(b *command.Builder) { b.Expires(now.Add(time.Minute)) }
	faulty := storetest.NewFaulty(s, func(_ context.Context, c storetest.Call) storetest.Fault {
		if c.Method == "Commit" && c.N == 1 {
			now = now.Add(time.Hour)
			return storetest.Fault{Kind: storetest.InDoubt, Wait: make(chan struct{})} // never happens
		}
		return storetest.Fault{}
	})
	r := kerneltest.NewRunner(p.Context, faulty)
	r.Kernel.Clock = func() time.Time { return now }
	in, late := l.add("in", "thing.add", "a", add{1}, deadline), l.add("late", "thing.add", "a", add{1}, deadline)
	expect(t, process(t, r, in), "committed 1")
	p.expectRuns(t, map[string]int{"in": 2})
	expect(t, process(t, r, late, in), "rejected expired", "committed 1")
	p.expectRuns(t, map[string]int{"late": 0})
}

func TestNowIsOneForACommandHoweverOftenItIsDecided(t *testing.T) {
	t.Parallel()
	c := kernel.New("probe")
	a := kernel.Add[thing](c, "thing")
	var seen []time.Time
	kernel.Handle(a, "look", kernel.Either, func(_ context.Context, s *kernel.Scope[thing], _ struct{}) (kernel.Decision, error) {
		seen = append(seen, s.Now())
		if len(seen) < 3 {
			return kernel.Decision{}, errors.New("again")
		}
		return kernel.Nothing(), nil
	})
	l, s := log{t: t, context: "probe"}, memory.New()
	expect(t, process(t, kerneltest.NewRunner(c, s), l.add("1", "thing.look", "a", struct{}{})), "nothing")
	if len(seen) != 3 || seen[0] != seen[1] || seen[1] != seen[2] || seen[0].Nanosecond()%1000 != 0 || !rows(t, s, "a")[0].Time.Equal(seen[0]) {
		t.Errorf("decisions saw %v, want one time in whole microseconds, the row's %v", seen, rows(t, s, "a")[0].Time)
	}
}

func TestACreateWithoutIDGetsTheSameOneOnEveryRetry(t *testing.T) {
	t.Parallel()
	p, l, s := newProbe(), log{t: t, context: "probe"}, memory.New()
	r := kerneltest.NewRunner(p.Context, s)
	replies := process(t, r,
		l.add("1", "thing.create", "", add{1}), l.add("1", "thing.create", "", add{1}),
		l.add("2", "thing.create", "", add{1}), l.add("3", "thing.add", "", add{1}), l.add("4", "thing.increase", "", add{1}),
	)
	expect(t, replies, "committed 1", "duplicate committed 1", "committed 1", "rejected invalid-id", "rejected invalid-id")
	if a, b, c := replies[0].Aggregate.ID, replies[1].Aggregate.ID, replies[2].Aggregate.ID; a != b || a == c {
		t.Errorf("the request's create made %s and %s, another's %s; want the first two alike", a, b, c)
	}
	if want := command.DeriveID("probe", "thing", "", "test", "1"); replies[0].Aggregate.ID != want {
		t.Errorf("got ID %s, want %s", replies[0].Aggregate.ID, want)
	}
}

func TestGuardsComeBeforeTheDecision(t *testing.T) {
	t.Parallel()
	p, l, s := newProbe(), log{t: t, context: "probe"}, memory.New()
	r := kerneltest.NewRunner(p.Context, s)
	expect(t, process(t, r,
		l.add("1", "thing.increase", "a", add{1}),
		l.add("2", "thing.create", "a", add{1}, at(0)),
		l.add("3", "thing.create", "a", add{1}),
		l.add("4", "thing.add", "a", add{1}, at(0)),
		l.add("5", "thing.add", "a", add{1}, at(1)),
		l.add("6", "thing.increase", "a", add{1}, at(1)),
		l.add("7", "thing.nonsense", "a", add{1}),
		l.add("8", "thing.add", "a", map[string]any{"N": 1, "M": 2}),
		l.add("9", "nonsense.add", "a", add{1}),
	), "rejected not-found", "committed 1", "rejected already-exists", "rejected version-mismatch", "committed 2",
		"rejected version-mismatch", "rejected unknown-type", "rejected invalid-body", "rejected unknown-type")
	p.expectRuns(t, map[string]int{"1": 0, "3": 0, "4": 0, "6": 0, "8": 0})
}

func TestARefusalAtIntakeIsRecordedLikeAnyOther(t *testing.T) {
	t.Parallel()
	p, l, s := newProbe(), log{t: t, context: "probe"}, memory.New()
	r := kerneltest.NewRunner(p.Context, s)
	refused := l.add("1", "thing.add", "a", add{1})
	refused.Refused = command.Errorf(command.CodeWrongKey, "the key is not the address")
	expect(t, process(t, r, refused), "rejected wrong-key")
	expect(t, process(t, r, refused, l.add("1", "thing.add", "a", add{1})), "rejected wrong-key", "committed 1")
	expect(t, process(t, r, refused), "rejected wrong-key")
}

func TestAnAuthoriserJudgesBeforeTheBodyIsRead(t *testing.T) {
	t.Parallel()
	p, l := newProbe(), log{t: t, context: "probe"}
	r := kerneltest.NewRunner(p.Context, memory.New())
	r.Kernel.Authorise = func(_ context.Context, c *command.Command) error {
		switch c.RequestID() {
		case "1":
			return command.Errorf(command.CodeUnauthorized, "not you")
		case "2":
			return fmt.Errorf("today: %w", command.Errorf("closed", "come back tomorrow"))
		}
		return nil
	}
	expect(t, process(t, r, l.add("1", "thing.add", "a", 1), l.add("2", "thing.add", "a", 1), l.add("3", "thing.add", "a", 1)),
		"rejected unauthorized", "rejected closed", "rejected invalid-body")
}

func TestAnAuthoriserThatFailsRefusesNobody(t *testing.T) {
	t.Parallel()
	p, l := newProbe(), log{t: t, context: "probe"}
	r := kerneltest.NewRunner(p.Context, memory.New())
	asked := 0
	r.Kernel.Authorise = func(context.Context, *command.Command) error {
		if asked++; asked < 3 {
			return errors.New("the policy server is away")
		}
		return nil
	}
	expect(t, process(t, r, l.add("1", "thing.add", "a", add{1})), "committed 1")
	r.Kernel.Authorise = func(context.Context, *command.Command) error { return errors.New("it stays away") }
	expect(t, process(t, r, l.add("2", "thing.add", "a", add{1})), "failed decision-failed")
	p.expectRuns(t, map[string]int{"1": 1, "2": 0})
}
