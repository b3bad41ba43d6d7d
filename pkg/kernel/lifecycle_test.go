package kernel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/kernel/kerneltest"
	"github.com/seed54173720/writ/pkg/store"
	"github.com/seed54173720/writ/pkg/store/memory"
)

type none struct{}

func owner(name string) func(*command.Builder) {
	return func(b *command.Builder) { b.Owner(name) }
}

func space(name string) func(*command.Builder) {
	return func(b *command.Builder) { b.Space(name) }
}

func at(version int64) func(*command.Builder) {
	return func(b *command.Builder) { b.ExpectVersion(version) }
}

func TestADeletedAggregateTakesNothingButItsRecovery(t *testing.T) {
	t.Parallel()
	p, l, s := newProbe(), log{t: t, context: "probe"}, memory.New()
	r := kerneltest.NewRunner(p.Context, s)
	for _, step := range []struct {
		name, typ string
		body      any
		want      string
	}{
		{"nobody deletes what never was", "delete", none{}, "rejected not-found"},
		{"nor recovers it", "recover", none{}, "rejected not-found"},
		{"created", "create", add{3}, "committed 1"},
		{"a live one need not be recovered", "recover", none{}, "nothing"},
		{"it holds a key", "take", take{"k"}, "committed 2"},
		{"deleted", "delete", none{}, "committed 3"},
		{"twice is once", "delete", none{}, "nothing"},
		{"refused: a command of one that exists", "increase", add{1}, "rejected deleted"},
		{"refused: one of its own semantics", "add", add{1}, "rejected deleted"},
		{"refused: it cannot be made anew", "create", add{1}, "rejected deleted"},
		{"refused: it cannot be given away", "transfer-owner", map[string]string{"owner": "o"}, "rejected deleted"},
		{"recovered", "recover", none{}, "committed 4"},
		{"as it was", "want", want{3}, "nothing"},
		{"it can be deleted again", "delete", none{}, "committed 5"},
		{"and recovered again", "recover", none{}, "committed 6"},
		{"and goes on", "increase", add{1}, "committed 7"},
	} {
		t.Run(step.name, func(t *testing.T) {
			expect(t, process(t, r, l.add(step.name, "thing."+step.typ, "a", step.body)), step.want)
		})
	}
}

func TestADeletedAggregateKeepsItsKeysAndARecoveredOneStillHoldsThem(t *testing.T) {
	t.Parallel()
	p, l := newProbe(), log{t: t, context: "probe"}
	r := kerneltest.NewRunner(p.Context, memory.New())
	rival := func(id string) kerneltest.Record { return l.add(id, "thing.take", "rival", take{"k"}) }
	expect(t, process(t, r,
		l.add("1", "thing.take", "a", take{"k"}), l.add("2", "thing.delete", "a", none{}),
	), "committed 1", "committed 2")
	expect(t, process(t, r, rival("3"), l.add("4", "thing.recover", "a", none{})), "rejected taken", "committed 3")
	expect(t, process(t, r, rival("5"), l.add("6", "thing.drop", "a", drop{"k"})), "rejected taken", "committed 4")
	expect(t, process(t, r, rival("7")), "committed 1")
}

func TestAnAggregateBelongsToWhomItsFirstCommandNames(t *testing.T) {
	t.Parallel()
	l := log{t: t, context: "probe"}
	cached := kerneltest.NewRunner(newProbe().Context, memory.New())
	loaded := kerneltest.NewRunner(newProbe().Context, memory.New())
	cached.Kernel.SnapshotEvery = 2
	loaded.NoCache, loaded.Kernel.SnapshotEvery = true, 3
	for _, step := range []struct {
		name, typ, subject string
		body               any
		who                func(*command.Builder)
		want               string
	}{
		{"made for an owner", "create", "a", add{1}, owner("ann"), "committed 1"},
		{"who names it", "increase", "a", add{1}, owner("ann"), "committed 2"},
		{"another", "increase", "a", add{1}, owner("bob"), "rejected wrong-owner"},
		{"nobody asked", "increase", "a", add{1}, owner(""), "committed 3"},
		{"a space it is not in", "increase", "a", add{1}, space("s"), "rejected wrong-space"},
		{"another deletes", "delete", "a", none{}, owner("bob"), "rejected wrong-owner"},
		{"given to another", "transfer-owner", "a", map[string]any{"owner": "bob"}, owner("ann"), "committed 4"},
		{"given twice", "transfer-owner", "a", map[string]any{"owner": "bob"}, owner("bob"), "nothing"},
		{"the one before", "increase", "a", add{1}, owner("ann"), "rejected wrong-owner"},
		{"the one now", "increase", "a", add{1}, owner("bob"), "committed 5"},
		{"to whom?", "transfer-owner", "a", none{}, owner(""), "rejected invalid-body"},
		{"to a bad name", "transfer-owner", "a", map[string]any{"owner": "a\nb"}, owner(""), "rejected invalid-id"},
		{"to one too long", "transfer-space", "a", map[string]any{"space": strings.Repeat("x", 256)}, owner(""), "rejected invalid-id"},
		{"into a space", "transfer-space", "a", map[string]any{"space": "s"}, space(""), "committed 6"},
		{"in it", "increase", "a", add{1}, space("s"), "committed 7"},
		{"in another", "increase", "a", add{1}, space("t"), "rejected wrong-space"},
		{"out of it", "transfer-space", "a", map[string]any{"space": ""}, space("s"), "committed 8"},
		{"not in it", "increase", "a", add{1}, space("s"), "rejected wrong-space"},
		{"made for nobody", "add", "b", add{1}, owner(""), "committed 1"},
		{"claimed", "add", "b", add{1}, owner("ann"), "rejected wrong-owner"},
		{"made in a space by a command of its own semantics", "add", "c", add{1}, space("s"), "committed 1"},
		{"in it again", "add", "c", add{1}, space("s"), "committed 2"},
	} {
		t.Run(step.name, func(t *testing.T) {
			record := l.add(step.name, "thing."+step.typ, step.subject, step.body, step.who)
			expect(t, process(t, cached, record), step.want)
			expect(t, process(t, loaded, record), step.want)
		})
	}
}

func TestWhatTheKernelKeepsSurvivesSnapshots(t *testing.T) {
	t.Parallel()
	l, s := log{t: t, context: "probe"}, memory.New()
	r := kerneltest.NewRunner(newProbe().Context, s)
	r.Kernel.SnapshotEvery, r.NoCache = 1, true
	expect(t, process(t, r, l.add("1", "thing.create", "a", add{1}, owner("ann"), space("s"))), "committed 1")
	expect(t, process(t, r, l.add("2", "thing.delete", "a", none{})), "committed 2")
	for _, evolved := range []int{0, 1} { // from the snapshot, from the events
		p := newProbe(kernel.StateRevision(1 + evolved))
		n := 0
		p.evolving = func(int64) { n++ }
		k := &kernel.Kernel{Context: p.Context, Store: s}
		state, err := k.Load(t.Context(), command.Aggregate{Type: "thing", ID: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if !state.Deleted() || state.Owner() != "ann" || state.Space() != "s" || state.Value().(thing).N != 1 || n != evolved {
			t.Errorf("after %d events: got deleted %v, owner %q, space %q, value %v", n, state.Deleted(), state.Owner(), state.Space(), state.Value())
		}
	}
	expect(t, process(t, r, l.add("3", "thing.add", "a", add{1})), "rejected deleted")
	expect(t, process(t, r, l.add("4", "thing.recover", "a", none{}, owner("bob"))), "rejected wrong-owner")
	expect(t, process(t, r, l.add("5", "thing.recover", "a", none{}, owner("ann"))), "committed 3")
	expect(t, process(t, r, l.add("6", "thing.want", "a", want{1}, owner("ann"), space("s"))), "nothing")
}

func TestASnapshotOfAnOlderFormIsPassedOver(t *testing.T) {
	t.Parallel()
	p, l, s := newProbe(), log{t: t, context: "probe"}, memory.New()
	process(t, kerneltest.NewRunner(p.Context, s), l.add("1", "thing.create", "a", add{1}, owner("ann")))
	a := command.Aggregate{Type: "thing", ID: "a"}
	bare := &store.Snapshot{Stream: a.Stream(), Aggregate: a, Version: 1, Revision: 1, State: []byte(`{"n":7}`)}
	if _, err := s.Commit(t.Context(), []store.Unit{{Stream: a.Stream(), Aggregate: a, Snapshot: bare}}); err != nil {
		t.Fatal(err)
	}
	state, err := (&kernel.Kernel{Context: p.Context, Store: s}).Load(t.Context(), a)
	if err != nil || state.Owner() != "ann" || state.Value().(thing).N != 1 {
		t.Errorf("got %+v and error %v, want what the events say", state, err)
	}
}

func TestADecisionSeesWhoseItIs(t *testing.T) {
	t.Parallel()
	c := kernel.New("probe")
	a := kernel.Add[thing](c, "thing")
	kernel.On(a, "added", func(s thing, _ added) thing { return s })
	var seen []string
	kernel.Handle(a, "look", kernel.Either, func(_ context.Context, s *kernel.Scope[thing], _ none) (kernel.Decision, error) {
		seen = append(seen, s.Owner()+" "+s.Space())
		return kernel.Events(added{}), nil
	})
	l, r := log{t: t, context: "probe"}, kerneltest.NewRunner(c, memory.New())
	process(t, r,
		l.add("1", "thing.look", "a", none{}, owner("ann"), space("s")),
		l.add("2", "thing.transfer-owner", "a", map[string]any{"owner": "bob"}),
		l.add("3", "thing.look", "a", none{}),
		l.add("4", "thing.look", "b", none{}),
	)
	if got := fmt.Sprintf("%q", seen); got != `["ann s" "bob s" " "]` {
		t.Errorf("decisions saw %s", got)
	}
}

func TestAnAggregateMayHaveCommandsOfItsOwnForWhatIsBuiltIn(t *testing.T) {
	t.Parallel()
	c := kernel.New("probe")
	a := kernel.Add[thing](c, "thing", kernel.Without("delete", "recover"))
	kernel.On(a, "added", func(s thing, e added) thing { s.N += e.N; return s })
	kernel.Handle(a, "create", kernel.Creates, func(_ context.Context, s *kernel.Scope[thing], c add) (kernel.Decision, error) {
		s.Reserve("key", "k")
		return kernel.Events(added(c)), nil
	})
	kernel.Handle(a, "delete", kernel.Existing, func(_ context.Context, s *kernel.Scope[thing], _ none) (kernel.Decision, error) {
		s.Release("key", "k")
		return kernel.Events(kernel.Deleted{}), nil
	})
	kerneltest.For(t, c).
		Given("probe.thing.create", "a", add{1}).
		When("probe.thing.delete", "a", nil).Then(kernel.Deleted{}).
		When("probe.thing.recover", "a", nil).ThenRejected(command.CodeUnknownType).
		When("probe.thing.delete", "a", nil).ThenRejected(command.CodeDeleted).
		When("probe.thing.create", "b", add{1}).Then(added{1}) // the key is free
}

func TestBuiltInNamesAreTaken(t *testing.T) {
	t.Parallel()
	for name, register := range map[string]func(kernel.Aggregate[thing]){
		"an event deleted": func(a kernel.Aggregate[thing]) {
			kernel.On(a, "deleted", func(s thing, _ added) thing { return s })
		},
		"an event owner-transferred": func(a kernel.Aggregate[thing]) {
			kernel.On(a, "owner-transferred", func(s thing, _ added) thing { return s })
		},
		"the type Deleted": func(a kernel.Aggregate[thing]) {
			kernel.On(a, "gone", func(s thing, _ kernel.Deleted) thing { return s })
		},
		"a command delete": func(a kernel.Aggregate[thing]) {
			kernel.Handle(a, "delete", kernel.Existing, func(context.Context, *kernel.Scope[thing], none) (kernel.Decision, error) {
				return kernel.Nothing(), nil
			})
		},
		"without what is not there": func(a kernel.Aggregate[thing]) {
			kernel.Add[thing](kernel.New("other"), "thing", kernel.Without("destroy"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("registered, want a panic")
				}
			}()
			register(kernel.Add[thing](kernel.New("probe"), "thing"))
		})
	}
}

// unloved is an aggregate in every state that a guard asks about.
func unloved(t *testing.T) (*probe, *log, store.Store) {
	p, l, s := newProbe(), &log{t: t, context: "probe"}, memory.New()
	expect(t, process(t, kerneltest.NewRunner(p.Context, s),
		l.add("past1", "thing.create", "live", add{1}, owner("ann"), space("s")),
		l.add("past2", "thing.create", "dead", add{1}, owner("ann"), space("s")),
		l.add("past3", "thing.delete", "dead", none{}),
	), "committed 1", "committed 1", "committed 2")
	return p, l, s
}

func TestGuardsSpeakInTheirOrderAndBeforeTheDecision(t *testing.T) {
	t.Parallel()
	wrong := []func(*command.Builder){owner("bob"), space("t"), at(99)}
	for _, row := range []struct {
		name, typ, subject string
		more               []func(*command.Builder)
		want               string
	}{
		{"does not exist", "increase", "no", wrong, "rejected not-found"},
		{"exists", "create", "live", wrong, "rejected already-exists"},
		{"a create of a deleted one", "create", "dead", wrong, "rejected deleted"},
		{"deleted", "increase", "dead", wrong, "rejected deleted"},
		{"owner", "increase", "live", wrong, "rejected wrong-owner"},
		{"space", "increase", "live", wrong[1:], "rejected wrong-space"},
		{"version", "increase", "live", wrong[2:], "rejected version-mismatch"},
		{"version of one that does not exist", "create", "no", wrong, "rejected version-mismatch"},
		{"owner of a deleted one", "delete", "dead", wrong, "rejected wrong-owner"},
		{"version of a deleted one", "recover", "dead", wrong[2:], "rejected version-mismatch"},
		{"nothing is wrong", "increase", "live", []func(*command.Builder){owner("ann"), space("s"), at(1)}, "committed 2"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p, l, s := unloved(t)
			var body any = add{1}
			if row.typ == "delete" || row.typ == "recover" {
				body = none{}
			}
			expect(t, process(t, kerneltest.NewRunner(p.Context, s), l.add("r", "thing."+row.typ, row.subject, body, row.more...)), row.want)
			runs := 0
			if strings.HasPrefix(row.want, "committed") {
				runs = 1
			}
			p.expectRuns(t, map[string]int{"r": runs})
		})
	}
}
