package kernel

// hook is an after-hook without its Go types.
type hook func(s *scope, next any, events []any) Decision

// After registers a hook that runs behind every command of the aggregate, built-in ones included, that decided events:
// for what has to hold, or to follow, whichever command it was. It is given what the command was decided on, the state
// that the events lead to, and the events. It may add events (Events), refuse the command (Reject), or leave it as it is
// (Nothing); a result that it carries replaces the command's. It may reserve and release unique keys as a decision may.
//
// A hook MUST NOT do I/O or keep anything: it runs as often as the decision does. Hooks run in the order in which they
// were registered, each once, and see what those before them added. A panic is a fault, as in the decision.
func After[S any](a Aggregate[S], f func(s *Scope[S], next S, events []any) Decision) {
	a.hooks = append(a.hooks, func(s *scope, next any, events []any) Decision {
		return f(&Scope[S]{scope: s, state: s.base.value.(S)}, next.(S), events)
	})
}
