package kernel

import (
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// keyView is what a unit knows of unique keys in the store. A key that was asked for and not read yet counts as free;
// settle reads it and has wrong guesses decided again.
type keyView struct {
	stream  command.Digest
	entries []keyEntry // few a unit; found by a walk
}

type keyEntry struct {
	id     command.Digest
	key    keys.Key
	read   bool
	holder store.Holder
}

// keyOp is one Reserve that was granted, or one Release.
type keyOp struct {
	id      command.Digest
	key     keys.Key
	release bool
}

func (v *keyView) find(id command.Digest) *keyEntry {
	for i := range v.entries {
		if v.entries[i].id == id {
			return &v.entries[i]
		}
	}
	return nil
}

// ask notes that the key's holder will have to be known.
func (v *keyView) ask(id command.Digest, k keys.Key) *keyEntry {
	if e := v.find(id); e != nil {
		return e
	}
	v.entries = append(v.entries, keyEntry{id: id, key: k})
	return &v.entries[len(v.entries)-1]
}

func (v *keyView) heldByAnother(id command.Digest, k keys.Key) bool {
	e := v.ask(id, k)
	return e.another(v.stream)
}

func (e *keyEntry) another(stream command.Digest) bool {
	return e.read && e.holder.Held && !e.holder.By(stream)
}

// net follows the granted operations of a unit's commands and says what each changes, and what they change together.
type net struct {
	view *keyView
	held map[command.Digest]bool // where it differs from the store
}

func (n *net) holds(id command.Digest) bool {
	if held, ok := n.held[id]; ok {
		return held
	}
	e := n.view.find(id)
	return e != nil && e.read && e.holder.By(n.view.stream)
}

// apply returns the keys that one command's operations take and release. Reserve wins over Release of the same key
// in one decision, in whatever order they came.
func (n *net) apply(ops []keyOp) (taken, released []keys.Key) {
	for i := range ops {
		op := &ops[i]
		want := !op.release || reserves(ops, op.id)
		if n.holds(op.id) == want {
			continue
		}
		if n.held == nil {
			n.held = map[command.Digest]bool{}
		}
		n.held[op.id] = want
		if want {
			taken = append(taken, op.key)
		} else {
			released = append(released, op.key)
		}
	}
	return taken, released
}

func reserves(ops []keyOp, id command.Digest) bool {
	for i := range ops {
		if ops[i].id == id && !ops[i].release {
			return true
		}
	}
	return false
}

// total returns what the unit takes and releases in all.
func (n *net) total() (take, release []keys.Key) {
	for id, held := range n.held {
		e := n.view.find(id)
		was := e.read && e.holder.By(n.view.stream)
		switch {
		case held && !was:
			take = append(take, e.key)
		case !held && was:
			release = append(release, e.key)
		}
	}
	return take, release
}
