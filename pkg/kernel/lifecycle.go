package kernel

import (
	"context"
	"fmt"

	"github.com/seed54173720/writ/pkg/command"
)

// The built-in events, which all aggregates have. The built-in commands decide them; so may others.
type (
	// Deleted, "deleted": from now on all commands but delete and recover are refused. The aggregate keeps its state
	// and its unique keys.
	Deleted struct{}
	// Recovered, "recovered": the aggregate is as it was before it was deleted.
	Recovered struct{}
	// OwnerTransferred, "owner-transferred": the aggregate belongs to another owner, "" for none.
	OwnerTransferred struct {
		Owner string `json:"owner"`
	}
	// SpaceTransferred, "space-transferred": the aggregate belongs to another space, "" for none.
	SpaceTransferred struct {
		Space string `json:"space"`
	}
)

// life is what the kernel itself keeps of an aggregate, beside the application's state. Like that it is replaced,
// never changed.
type life struct {
	deleted      bool
	owner, space string
}

var newborn = &life{}

// lifeOf is never nil.
func (s *State) lifeOf() *life {
	if s.life == nil {
		return newborn
	}
	return s.life
}

// Deleted reports whether the aggregate is deleted. It exists all the same: it has its state, its version and its keys.
func (s *State) Deleted() bool { return s.lifeOf().deleted }

// Owner returns whom the aggregate belongs to, "" for nobody: the owner that its first command named, or whom it was
// transferred to since.
func (s *State) Owner() string { return s.lifeOf().owner }

// Space returns the space that the aggregate belongs to, "" for none: as Owner.
func (s *State) Space() string { return s.lifeOf().space }

// setLife replaces the life; most aggregates never have one of their own.
func (s *State) setLife(l life) {
	was := s.lifeOf()
	s.size += int64(len(l.owner) + len(l.space) - len(was.owner) - len(was.space))
	if s.life = nil; l != *newborn {
		s.life = &l
	}
}

// begin makes the aggregate belong to whom its first commit names.
func (s *State) begin(owner, space string) {
	if owner != "" || space != "" {
		s.setLife(life{owner: owner, space: space})
	}
}

// live applies a built-in event.
func (s *State) live(t *eventType, event any) error {
	next, err := t.live(*s.lifeOf(), event)
	if err == nil {
		s.setLife(next)
	}
	return err
}

// The bodies of the built-in commands. Who is missing is told from who is "".
type (
	empty         struct{}
	transferOwner struct {
		Owner *string `json:"owner"`
	}
	transferSpace struct {
		Space *string `json:"space"`
	}
)

// Validate implements Validator.
func (c transferOwner) Validate() error { return checkTransfer("owner", c.Owner) }

// Validate implements Validator.
func (c transferSpace) Validate() error { return checkTransfer("space", c.Space) }

func checkTransfer(member string, to *string) error {
	if to == nil {
		const missing = "is missing; \"\" stands for none"
		return &command.Error{Code: command.CodeInvalidBody, Message: member + " " + missing, Fields: map[string]string{member: missing}}
	}
	if err := command.CheckOptionalID(member, *to); err != nil {
		return err
	}
	return nil
}

// addBuiltIn registers the events and commands that every aggregate has.
func (a *aggregate) addBuiltIn() {
	onBuiltIn(a, "deleted", func(l life, _ Deleted) (life, error) { l.deleted = true; return l, nil })
	onBuiltIn(a, "recovered", func(l life, _ Recovered) (life, error) { l.deleted = false; return l, nil })
	onBuiltIn(a, "owner-transferred", func(l life, e OwnerTransferred) (life, error) {
		l.owner = e.Owner
		return l, checkTransfer("owner", &e.Owner)
	})
	onBuiltIn(a, "space-transferred", func(l life, e SpaceTransferred) (life, error) {
		l.space = e.Space
		return l, checkTransfer("space", &e.Space)
	})

	handlers := map[string]*handler{
		"delete":  builtIn(func(l *life, _ empty) (happened any, differs bool) { return Deleted{}, !l.deleted }),
		"recover": builtIn(func(l *life, _ empty) (happened any, differs bool) { return Recovered{}, l.deleted }),
		"transfer-owner": builtIn(func(l *life, c transferOwner) (happened any, differs bool) {
			return OwnerTransferred{Owner: *c.Owner}, l.owner != *c.Owner
		}),
		"transfer-space": builtIn(func(l *life, c transferSpace) (happened any, differs bool) {
			return SpaceTransferred{Space: *c.Space}, l.space != *c.Space
		}),
	}
	handlers["delete"].anyway, handlers["recover"].anyway = true, true
	for _, name := range a.without {
		if handlers[name] == nil {
			panic(fmt.Sprintf("kernel: aggregate %s: no built-in command %q to be without", a.name, name))
		}
		delete(handlers, name)
	}
	for name, h := range handlers {
		a.handle(name, h)
	}
}

func onBuiltIn[E any](a *aggregate, name string, evolve func(life, E) (life, error)) {
	t := newEvent[E](name)
	t.live = func(l life, event any) (life, error) { return evolve(l, event.(E)) }
	addEvent[E](a, t)
}

// builtIn makes a handler of a wish and whether it differs from what is.
func builtIn[C any](wish func(*life, C) (happened any, differs bool)) *handler {
	return &handler{
		existence: Existing,
		decode:    decodeBody[C],
		decide: func(_ context.Context, s *scope, cmd any) (Decision, error) {
			if happened, differs := wish(s.base.lifeOf(), *cmd.(*C)); differs {
				return Events(happened), nil
			}
			return Nothing(), nil
		},
	}
}
