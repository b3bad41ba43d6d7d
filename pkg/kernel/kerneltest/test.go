package kerneltest

import (
	"context"
	"reflect"
	"slices"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/store"
	"github.com/seed54173720/writ/pkg/store/memory"
)

// TB is what a test needs of a *testing.T; a *rapid.T has it too.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Test is a story of commands to one context, told as given, when, then:
//
//	kerneltest.For(t, catalog.Context()).
//		Given("catalog.brand.create", "1", catalog.CreateBrand{Name: "Acme"}).
//		When("catalog.brand.rename", "1", catalog.RenameBrand{Name: "Apex"}).
//		Then(catalog.BrandRenamed{Name: "Apex"})
//
// Each command is a new request, executed by the real kernel over a memory store. A story belongs to one goroutine.
type Test struct {
	t      TB
	runner *Runner
	store  *memory.Store
	offset int64
}

// For begins a story with nothing in it.
func For(t TB, c *kernel.Context) *Test {
	s := memory.New()
	return &Test{t: t, runner: NewRunner(c, s), store: s}
}

// Kernel returns the story's kernel, to set its clock or its authoriser before the first command.
func (t *Test) Kernel() *kernel.Kernel { return t.runner.Kernel }

// Given executes a command that the story needs as its past; the test fails unless it commits. typ is the full
// command type, subject the aggregate's ID; body is marshalled to JSON, a []byte is sent as it is, nil is {}.
func (t *Test) Given(typ, subject string, body any) *Test {
	t.t.Helper()
	if a := t.When(typ, subject, body); a.Reply.Outcome != command.Committed {
		t.t.Fatalf("given %s of %s: got %s, want it committed", typ, subject, a)
	}
	return t
}

// When executes the command that the story is about; see Given for its arguments.
func (t *Test) When(typ, subject string, body any) *Answer {
	t.t.Helper()
	b := command.New(typ, "kerneltest").Subject(subject)
	switch body := body.(type) {
	case nil:
	case []byte:
		b.Body(body)
	default:
		b.JSON(body)
	}
	c, err := b.Build()
	if err != nil {
		t.t.Fatalf("when %s of %s: %v", typ, subject, err)
	}
	return t.WhenSent(c)
}

// WhenSent is When for a command with more facts than a body: a tenant, a caller, an expected version, a request ID
// that was used before.
func (t *Test) WhenSent(c *command.Command) *Answer {
	t.t.Helper()
	position := command.Position{TopicID: [16]byte{1}, Offset: t.offset}
	t.offset++
	replies, err := t.runner.Process(context.Background(), Record{Command: c, Position: position})
	if err != nil {
		t.t.Fatalf("when %s of %s: %v", c.Type(), c.Aggregate(), err)
	}
	return &Answer{Reply: replies[0], test: t, cmd: c, at: position}
}

// Answer is what came of a command.
type Answer struct {
	Reply command.Reply

	test *Test
	cmd  *command.Command
	at   command.Position
}

// String says in one line what came of the command.
func (a *Answer) String() string {
	if a.Reply.Error != nil {
		return a.Reply.Outcome.String() + ", " + a.Reply.Error.Error()
	}
	return a.Reply.Outcome.String()
}

// Events returns what the command recorded, as the Go values that were registered. It is none for a duplicate.
func (a *Answer) Events() []any {
	a.test.t.Helper()
	var events []any
	err := a.test.store.History(context.Background(), a.cmd.Stream(), func(row *store.Row) error {
		if !row.Of(a.at) {
			return nil
		}
		for _, e := range row.Events {
			event, err := a.test.runner.Kernel.Context.DecodeEvent(row.Aggregate.Type, e)
			if err != nil {
				return err
			}
			events = append(events, event)
		}
		return nil
	})
	if err != nil {
		a.test.t.Fatalf("read what %s of %s recorded: %v", a.cmd.Type(), a.cmd.Aggregate(), err)
	}
	return events
}

// Then asserts that the command committed exactly these events, in this order.
func (a *Answer) Then(events ...any) *Test {
	a.test.t.Helper()
	if a.Reply.Outcome != command.Committed {
		a.fail("committed %+v", events)
	}
	if got := a.Events(); !slices.EqualFunc(got, events, func(x, y any) bool { return reflect.DeepEqual(x, y) }) {
		a.test.t.Fatalf("%s of %s: got events %+v, want %+v", a.cmd.Type(), a.cmd.Aggregate(), got, events)
	}
	return a.test
}

// ThenNothing asserts that there was nothing to do.
func (a *Answer) ThenNothing() *Test {
	a.test.t.Helper()
	if a.Reply.Outcome != command.Nothing {
		a.fail("nothing to do")
	}
	return a.test
}

// ThenRejected asserts that the command was refused with this code.
func (a *Answer) ThenRejected(code command.Code) *Test {
	a.test.t.Helper()
	if a.Reply.Outcome != command.Rejected || a.Reply.Error.Code != code {
		a.fail("rejected, %s", code)
	}
	return a.test
}

// ThenFailed asserts that the command failed with this code, after all its tries.
func (a *Answer) ThenFailed(code command.Code) *Test {
	a.test.t.Helper()
	if a.Reply.Outcome != command.Failed || a.Reply.Error.Code != code {
		a.fail("failed, %s", code)
	}
	return a.test
}

func (a *Answer) fail(want string, args ...any) {
	a.test.t.Helper()
	a.test.t.Fatalf("%s of %s: got %s, want "+want, append([]any{a.cmd.Type(), a.cmd.Aggregate(), a}, args...)...)
}
