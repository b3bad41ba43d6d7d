package kernel

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
)

// Scope is what a decision knows: the aggregate's state, the command's facts, and the unique keys. It belongs to one
// run of one decision and MUST NOT be kept or shared with other goroutines.
type Scope[S any] struct {
	*scope
	state S
}

// State returns the aggregate's state that the command is decided on. Treat what it refers to as read-only.
func (s *Scope[S]) State() S { return s.state }

type scope struct {
	cmd   *command.Command
	now   time.Time
	base  *State // what the command is decided on
	keys  *keyView
	ops   []keyOp
	fault error // a key out of bounds: fails the command
}

// Now is the command's time: one per command, the same in every run of its decision, in whole microseconds, UTC.
func (s *scope) Now() time.Time { return s.now }

// Aggregate returns the aggregate that the command is for.
func (s *scope) Aggregate() command.Aggregate { return s.cmd.Aggregate() }

// Version is the aggregate's version that the command is decided on; 0: it does not exist yet.
func (s *scope) Version() int64 { return s.base.Version }

// Owner returns whom the aggregate belongs to, "" for nobody; of one that does not exist yet, whom it will belong to:
// the owner that the command names.
func (s *scope) Owner() string {
	if s.base.Version == 0 {
		return s.cmd.Owner()
	}
	return s.base.Owner()
}

// Space returns the space that the aggregate belongs to, "" for none: as Owner.
func (s *scope) Space() string {
	if s.base.Version == 0 {
		return s.cmd.Space()
	}
	return s.base.Space()
}

// RequestID names the sender's request.
func (s *scope) RequestID() string { return s.cmd.RequestID() }

// Caller is who says to have sent the command: a claim, unless the command topic's access rules make it more.
func (s *scope) Caller() string { return s.cmd.Caller() }

// Tenant is the aggregate's tenant, "" for the default one.
func (s *scope) Tenant() string { return s.cmd.Tenant() }

// NewID returns a fresh UUIDv7 as text. Another run of the same decision gets another.
func (s *scope) NewID() string { return uuid.Must(uuid.NewV7()).String() }

// Reserve takes a unique key of the tenant for this aggregate and reports whether it has it: true if the key was free
// or is already held by this aggregate, false if another holds it. It takes effect with the commit only.
//
// It makes no round trip. Where nobody knows yet who holds the key, the decision first runs as if the key were free,
// and runs again if that was wrong: a decision MUST NOT do anything outside of itself that depends on the answer.
func (s *scope) Reserve(namespace, name string) bool {
	return s.reserve(keys.Key{Tenant: s.Tenant(), Namespace: namespace, Name: name})
}

// Release gives up a unique key of the tenant, with the commit only. It has no effect on a key that this aggregate
// does not hold. A key that is reserved and released in one decision is held.
func (s *scope) Release(namespace, name string) {
	s.release(keys.Key{Tenant: s.Tenant(), Namespace: namespace, Name: name})
}

// ReserveSystem is Reserve for a key that is unique across all tenants of the context; a space of its own.
func (s *scope) ReserveSystem(namespace, name string) bool {
	return s.reserve(keys.Key{System: true, Namespace: namespace, Name: name})
}

// ReleaseSystem is Release for a key that is unique across all tenants of the context.
func (s *scope) ReleaseSystem(namespace, name string) {
	s.release(keys.Key{System: true, Namespace: namespace, Name: name})
}

func (s *scope) reserve(k keys.Key) bool {
	id, ok := s.check(k)
	if !ok {
		return false
	}
	if s.keys.heldByAnother(id, k) {
		return false
	}
	s.ops = append(s.ops, keyOp{id: id, key: k})
	return true
}

func (s *scope) release(k keys.Key) {
	if id, ok := s.check(k); ok {
		s.keys.ask(id, k)
		s.ops = append(s.ops, keyOp{id: id, key: k, release: true})
	}
}

func (s *scope) check(k keys.Key) (command.Digest, bool) {
	if err := k.Check(); err != nil {
		s.fault = fmt.Errorf("reserve: %w", err)
		return command.Digest{}, false
	}
	return k.Digest(), true
}
