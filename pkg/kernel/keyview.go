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

	// What the unit's commands did to it, in finish.
	held     bool // by this aggregate, now
	claimed  bool // it was taken before it was ever released
	released bool
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

// begin makes the view follow the unit's commands from what the store holds. All keys have been read.
func (v *keyView) begin() {
	for i := range v.entries {
		e := &v.entries[i]
		e.held, e.claimed, e.released = e.holder.By(v.stream), false, false
	}
}

// apply returns the keys that one command's operations take and release. Reserve wins over Release of the same key
// in one decision, in whatever order they came.
func (v *keyView) apply(ops []keyOp) (taken, released []keys.Key) {
	for i := range ops {
		op := &ops[i]
		e := v.find(op.id)
		want := !op.release || reserves(ops, op.id)
		if e.held == want {
			continue
		}
		if e.held = want; want {
			taken = append(taken, op.key)
			e.claimed = e.claimed || !e.released
		} else {
			released = append(released, op.key)
			e.released = true
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

// total returns what the unit takes and releases in all. A key that was taken and given up again is in both: others
// must not have held it meanwhile.
func (v *keyView) total() (take, release []keys.Key) {
	for i := range v.entries {
		e := &v.entries[i]
		if e.claimed {
			take = append(take, e.key)
		}
		if e.released && !e.held {
			release = append(release, e.key)
		}
	}
	return take, release
}
