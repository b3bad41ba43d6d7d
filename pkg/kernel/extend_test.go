package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/kernel/kerneltest"
	"github.com/seed54173720/writ/pkg/store/memory"
)

// hooked is a context whose things have these hooks.
func hooked(hooks ...func(*kernel.Scope[thing], thing, []any) kernel.Decision) *kernel.Context {
	c := kernel.New("probe")
	a := kernel.Add[thing](c, "thing")
	kernel.On(a, "added", func(s thing, e added) thing { s.N += e.N; return s })
	kernel.On(a, "took", func(s thing, _ took) thing { return s })
	kernel.Handle(a, "add", kernel.Either, func(_ context.Context, _ *kernel.Scope[thing], c add) (kernel.Decision, error) {
		if c.N == 0 {
			return kernel.Nothing(), nil
		}
		return kernel.Events(added(c)).With("added"), nil
	})
	for _, hook := range hooks {
		kernel.After(a, hook)
	}
	return c
}

func TestAHookRefusesWhateverLeadsWhereItMustNot(t *testing.T) {
	t.Parallel()
	c := hooked(func(s *kernel.Scope[thing], next thing, _ []any) kernel.Decision {
		if next.N > 10 {
			return kernel.Reject("too-many", "%d and then %d", s.State().N, next.N)
		}
		return kernel.Nothing()
	})
	kerneltest.For(t, c).
		When("probe.thing.add", "a", add{7}).Then(added{7}).
		When("probe.thing.add", "a", add{7}).ThenRejected("too-many").
		When("probe.thing.add", "a", add{3}).Then(added{3})
}

func TestHooksAddEventsAndSeeWhatThoseBeforeThemAdded(t *testing.T) {
	t.Parallel()
	var seen []string
	round := func(_ *kernel.Scope[thing], next thing, events []any) kernel.Decision {
		seen = append(seen, fmt.Sprint("round ", next.N, events))
		if odd := next.N % 2; odd != 0 {
			return kernel.Events(added{odd}).With("rounded")
		}
		return kernel.Nothing()
	}
	look := func(s *kernel.Scope[thing], next thing, events []any) kernel.Decision {
		seen = append(seen, fmt.Sprint("look ", s.State().N, next.N, events))
		return kernel.Nothing()
	}
	story := kerneltest.For(t, hooked(round, look))
	first := story.When("probe.thing.add", "a", add{3})
	first.Then(added{3}, added{1})
	second := story.When("probe.thing.add", "a", add{2})
	second.Then(added{2})
	story.When("probe.thing.add", "a", add{0}).ThenNothing() // no events: no hooks
	story.When("probe.thing.delete", "a", nil).Then(kernel.Deleted{})
	want := "[round 3 [{3}] look 0 4 [{3} {1}] round 6 [{2}] look 4 6 [{2}] round 6 [{}] look 6 6 [{}]]"
	if got := fmt.Sprint(seen); got != want {
		t.Errorf("hooks saw\n%s, want\n%s", got, want)
	}
	if got := string(first.Reply.Result) + string(second.Reply.Result); got != `"rounded""added"` {
		t.Errorf("results %s", got)
	}
}

func TestAHooksKeysAndFaultsAreItsCommands(t *testing.T) {
	t.Parallel()
	c := hooked(func(s *kernel.Scope[thing], next thing, _ []any) kernel.Decision {
		switch {
		case next.N == 13:
			panic("unlucky")
		case next.N == 14:
			return kernel.Events(stranger{})
		case !s.Reserve("number", fmt.Sprint(next.N)):
			return kernel.Reject("taken", "another counts %d", next.N)
		}
		return kernel.Nothing()
	})
	kerneltest.For(t, c).
		When("probe.thing.add", "a", add{1}).Then(added{1}).
		When("probe.thing.add", "b", add{1}).ThenRejected("taken").
		When("probe.thing.add", "b", add{2}).Then(added{2}).
		When("probe.thing.add", "b", add{11}).ThenFailed(command.CodeDecisionPanicked).
		When("probe.thing.add", "b", add{12}).ThenFailed(command.CodeDecisionFailed).
		When("probe.thing.add", "b", add{1}).Then(added{1})
}

func TestABodyIsTransformedOnceHoweverOftenItIsDecided(t *testing.T) {
	t.Parallel()
	c := kernel.New("probe")
	a := kernel.Add[thing](c, "thing")
	kernel.On(a, "took", func(s thing, _ took) thing { return s })
	transformed, decided, away := 0, 0, 2
	kernel.Handle(a, "take", kernel.Either,
		func(_ context.Context, s *kernel.Scope[thing], c take) (kernel.Decision, error) {
			decided++
			if !s.Reserve("key", c.Key) {
				return kernel.Reject("taken", "%s", c.Key), nil
			}
			return kernel.Events(took(c)), nil
		},
		kernel.Transform(func(_ context.Context, c *command.Command, body take) (take, error) {
			switch {
			case body.Key == "no":
				return body, command.Errorf("no", "not this one")
			case body.Key == "away" && away > 0:
				away--
				return body, errors.New("the directory is away")
			case body.Key == "panic":
				panic("out of luck")
			}
			transformed++
			return take{body.Key + "+" + c.Caller()}, nil
		}),
		kernel.Transform(func(_ context.Context, _ *command.Command, body take) (take, error) { return take{body.Key + "!"}, nil }),
	)
	story := kerneltest.For(t, c)
	story.When("probe.thing.take", "a", take{"k"}).Then(took{"k+kerneltest!"})
	story.When("probe.thing.take", "b", take{"k"}).ThenRejected("taken")
	if transformed != 2 || decided != 3 {
		t.Errorf("transformed %d times, decided %d, want 2 and 3: the second command twice, for a key was guessed free", transformed, decided)
	}
	story.When("probe.thing.take", "a", take{"no"}).ThenRejected("no").
		When("probe.thing.take", "a", take{"away"}).Then(took{"away+kerneltest!"}).
		When("probe.thing.take", "a", take{"panic"}).ThenFailed(command.CodeDecisionPanicked)
}

// The forms that an event had in the course of time.
type (
	named1 struct{ Name string }
	named2 struct{ First, Last string }
	named3 struct {
		First, Last string
		Titles      []string
	}
)

// naming registers the event as the build of its time did, with a command that is the event.
func naming[E any](options ...kernel.EventOption) *kernel.Context {
	c := kernel.New("probe")
	a := kernel.Add[E](c, "thing")
	kernel.On(a, "named", func(_ E, e E) E { return e }, options...)
	kernel.Handle(a, "name", kernel.Either, func(_ context.Context, _ *kernel.Scope[E], c E) (kernel.Decision, error) {
		return kernel.Events(c), nil
	})
	kernel.Handle(a, "look", kernel.Existing, func(context.Context, *kernel.Scope[E], none) (kernel.Decision, error) {
		return kernel.Nothing(), nil
	})
	return c
}

func split1(data []byte) ([]byte, error) {
	var e named1
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, err
	}
	if e.Name == "" {
		return nil, errors.New("there is no name")
	}
	return json.Marshal(named2{First: e.Name[:1], Last: e.Name[1:]})
}

func title2(data []byte) ([]byte, error) {
	var e named2
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, err
	}
	if e.First == "p" {
		panic("not this one")
	}
	return json.Marshal(named3{First: e.First, Last: e.Last, Titles: []string{"Dr"}})
}

func TestOldEventsAreReadInTheirNewForm(t *testing.T) {
	t.Parallel()
	s, l := memory.New(), log{t: t, context: "probe"}
	one, two := naming[named1](), naming[named2](kernel.Upcast(1, split1))
	three := naming[named3](kernel.Upcast(1, split1), kernel.Upcast(2, title2))
	name := func(c *kernel.Context, id, subject string, body any) {
		t.Helper()
		r := kerneltest.NewRunner(c, s)
		if got := process(t, r, l.add(id, "thing.name", subject, body))[0].Outcome; got != command.Committed {
			t.Fatalf("%s: %s", id, got)
		}
	}
	name(one, "1", "a", named1{"ab"})
	name(two, "2", "b", named2{"c", "d"})
	name(three, "3", "c", named3{First: "e"})
	name(one, "4", "nameless", named1{""})
	name(one, "5", "panics", named1{"pp"})

	for subject, want := range map[string]string{"a": "{a b [Dr]} 1", "b": "{c d [Dr]} 2", "c": "{e  []} 3"} {
		k := &kernel.Kernel{Context: three, Store: s}
		state, err := k.Load(t.Context(), command.Aggregate{Type: "thing", ID: subject})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(state.Value(), " ", rows(t, s, subject)[0].Events[0].Revision); got != want {
			t.Errorf("%s: got state and recorded revision %s, want %s", subject, got, want)
		}
	}
	for _, row := range []struct {
		name, subject string
		context       *kernel.Context
		want          string
	}{
		{"a revision from the future", "c", two, "failed newer-build-needed"},
		{"an upcaster that errs", "nameless", three, "failed newer-build-needed"},
		{"an upcaster that panics", "panics", three, "failed newer-build-needed"},
		{"the current revision", "c", three, "nothing"},
		{"an old revision", "a", three, "nothing"},
	} {
		expect(t, process(t, kerneltest.NewRunner(row.context, s), l.add(row.name, "thing.look", row.subject, none{})), row.want)
	}
}

func TestUpcastersFormAChain(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("registered with a gap, want a panic")
		}
	}()
	naming[named3](kernel.Upcast(1, split1), kernel.Upcast(3, title2))
}

func TestACommandWaitsForABuildThatKnowsItsTypeOrItsEvents(t *testing.T) {
	t.Parallel()
	s, l := memory.New(), log{t: t, context: "probe"}
	process(t, kerneltest.NewRunner(naming[named2](kernel.Upcast(1, split1)), s), l.add("past", "thing.name", "a", named2{"a", "b"}))

	now, asked := noon, 0
	r := kerneltest.NewRunner(naming[named1](), s)
	r.Kernel.BuildPatience = 30 * time.Second
	r.Kernel.Clock = func() time.Time { asked++; now = now.Add(time.Second); return now }
	for _, row := range []struct {
		name   string
		record kerneltest.Record
		want   string
		waits  bool
	}{
		{"an event of a newer revision", l.add("1", "thing.look", "a", none{}), "failed newer-build-needed", true},
		{"a type of a known aggregate", l.add("2", "thing.sing", "b", none{}), "rejected unknown-type", true},
		{"a type of no aggregate", l.add("3", "song.sing", "b", none{}), "rejected unknown-type", false},
	} {
		asked = 0
		expect(t, process(t, r, row.record), row.want)
		if waited := asked >= 30; waited != row.waits {
			t.Errorf("%s: the clock was asked %d times, a second each; want it to have waited: %v", row.name, asked, row.waits)
		}
	}

	// All that a unit takes have waited together.
	asked = 0
	expect(t, process(t, r, l.add("4", "thing.sing", "b", none{}), l.add("5", "thing.sing", "b", none{}), l.add("6", "thing.sing", "b", none{})),
		"rejected unknown-type", "rejected unknown-type", "rejected unknown-type")
	if asked > 50 {
		t.Errorf("the clock was asked %d times, a second each; want three commands to wait as long as one", asked)
	}
}

func TestWhatAwaitsABuildSaysSo(t *testing.T) {
	t.Parallel()
	l := log{t: t, context: "probe"}
	k := &kernel.Kernel{Context: newProbe().Context, Store: memory.New(), BuildPatience: time.Hour}
	for typ, want := range map[string]bool{"thing.sing": true, "thing.fault": false} {
		record := l.add(typ, typ, "a", fault{"err"})
		item := &kernel.Item{Command: record.Command, FromRecord: true, Position: record.Position}
		u := &kernel.Unit{Aggregate: record.Command.Aggregate(), Stream: record.Command.Stream(), Items: []*kernel.Item{item}}
		if err := k.Read(t.Context(), []*kernel.Unit{u}); err != nil {
			t.Fatal(err)
		}
		if rest := k.Decide(t.Context(), u); len(rest) != 1 || item.AwaitsBuild() != want {
			t.Errorf("%s: got rest %v, awaits a build %v (%v), want %v", typ, rest, item.AwaitsBuild(), item.Fault, want)
		}
	}
}
