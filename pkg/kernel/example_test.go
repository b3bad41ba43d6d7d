package kernel_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/kernel/kerneltest"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store/memory"
)

// Account is the state of an account, whose email address is unique.
type Account struct{ Email string }

// Open is the body of a command, Opened the event that comes of it.
type (
	Open   struct{ Email string }
	Opened struct{ Email string }
)

func open(_ context.Context, s *kernel.Scope[Account], c Open) (kernel.Decision, error) {
	if !s.Reserve("email", keys.Fold(c.Email)) {
		return kernel.Reject("email-taken", "another account has %s", c.Email), nil
	}
	return kernel.Events(Opened(c)), nil
}

// bank registers an aggregate, its event and its command.
func bank() *kernel.Context {
	c := kernel.New("bank")
	account := kernel.Add[Account](c, "account")
	kernel.On(account, "opened", func(_ Account, e Opened) Account { return Account(e) })
	kernel.Handle(account, "open", kernel.Creates, open)
	return c
}

func Example() {
	r := kerneltest.NewRunner(bank(), memory.New())
	for i, id := range []string{"1", "2"} {
		c, err := command.New("bank.account.open", "example").Subject(id).JSON(Open{Email: "ada@example.com"}).Build()
		if err != nil {
			panic(err)
		}
		replies, err := r.Process(context.Background(), kerneltest.Record{Command: c, Position: command.Position{Offset: int64(i)}})
		if err != nil {
			panic(err)
		}
		fmt.Println(replies[0].Aggregate, replies[0].Outcome, replies[0].Error)
	}
	// Output:
	// account/1 committed <nil>
	// account/2 rejected email-taken: another account has ada@example.com
}

func ExampleKernel_Load() {
	k := &kernel.Kernel{Context: bank(), Store: memory.New()}
	state, err := k.Load(context.Background(), command.Aggregate{Type: "account", ID: "1"})
	if err != nil {
		panic(err)
	}
	fmt.Println(state.Version, state.Value() == Account{})
	// Output: 0 true
}

func ExampleAfter() {
	c := kernel.New("bank")
	account := kernel.Add[Account](c, "account")
	kernel.On(account, "opened", func(_ Account, e Opened) Account { return Account(e) })
	kernel.Handle(account, "open", kernel.Creates, open)
	// Whichever command it was: mail reaches the account.
	kernel.After(account, func(_ *kernel.Scope[Account], next Account, _ []any) kernel.Decision {
		if !strings.Contains(next.Email, "@") {
			return kernel.Reject("bad-email", "%q is no email address", next.Email)
		}
		return kernel.Nothing()
	})

	cmd, err := command.New("bank.account.open", "example").Subject("1").JSON(Open{Email: "ada"}).Build()
	if err != nil {
		panic(err)
	}
	replies, err := kerneltest.NewRunner(c, memory.New()).Process(context.Background(), kerneltest.Record{Command: cmd})
	if err != nil {
		panic(err)
	}
	fmt.Println(replies[0].Outcome, replies[0].Error)
	// Output: rejected bad-email: "ada" is no email address
}
