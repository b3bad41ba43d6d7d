package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
)

// entry is a member of a set that is compared across aggregates: what has to be unique, and who has it.
type entry struct{ id, by command.Digest }

func compareEntries(a, b entry) int {
	if c := bytes.Compare(a.id[:], b.id[:]); c != 0 {
		return c
	}
	return bytes.Compare(a.by[:], b.by[:])
}

// shares holds the entries whose IDs begin with one pattern of bits. It starts with the pattern of no bits, which is
// all; when that becomes too much it keeps half of what it has, and the passes that follow see to the rest.
type shares struct {
	most    int    // entries of each kind
	bits    uint   // length of the pattern
	pattern uint64 // this share's
	fixed   bool   // after the first pass the length stays

	requests  []entry // by: nothing for a request's latest row, the row's own key where it was moved aside
	positions []entry // of records
	held      []entry // keys, by the stream that holds them as the journal says
	reserved  []entry // keys, by the stream that holds them as the reservations say
}

func (s *shares) collect(row *store.Row) {
	request := requestOf(row)
	e := entry{id: request}
	if row.Request != request {
		e.by = row.Request
	}
	s.add(&s.requests, e)
	if row.FromRecord {
		s.add(&s.positions, entry{id: positionID(row.Position), by: row.Request})
	}
}

func (s *shares) collectHeld(h *holding) {
	for id := range h.keys {
		s.add(&s.held, entry{id, h.stream})
	}
}

func (s *shares) collectReserved(k keys.Key, h store.Holder) {
	s.add(&s.reserved, entry{k.Digest(), h.Stream})
}

// positionID is a hash of the position.
func positionID(p command.Position) command.Digest {
	var b [28]byte
	copy(b[:], p.TopicID[:])
	binary.BigEndian.PutUint32(b[16:], uint32(p.Partition))
	binary.BigEndian.PutUint64(b[20:], uint64(p.Offset))
	sum := sha256.Sum256(b[:])
	return command.Digest(sum[:16])
}

func (s *shares) add(set *[]entry, e entry) {
	if !s.mine(e) {
		return
	}
	*set = append(*set, e)
	for !s.fixed && len(*set) > s.most && s.bits < 63 {
		s.bits++
		for _, set := range s.sets() {
			*set = slices.DeleteFunc(*set, func(e entry) bool { return !s.mine(e) })
		}
	}
}

// mine reports whether the entry is of this share. The digests are hashes, except that those of requests may begin with
// a time, so the pattern is compared with their last bits, which never do.
func (s *shares) mine(e entry) bool {
	return binary.BigEndian.Uint64(e.id[8:])&(1<<s.bits-1) == s.pattern
}

func (s *shares) sets() []*[]entry {
	return []*[]entry{&s.requests, &s.positions, &s.held, &s.reserved}
}

// next turns to the next share and reports whether there is one.
func (s *shares) next() bool {
	s.fixed = true
	s.pattern++
	for _, set := range s.sets() {
		*set = (*set)[:0]
	}
	return s.pattern < 1<<s.bits
}

// compare notes as suspects what is not as it must be in this share.
func (s *shares) compare(found *suspects) {
	for _, set := range s.sets() {
		slices.SortFunc(*set, compareEntries)
	}
	runs(s.requests, func(run []entry) {
		latest := 0
		for latest < len(run) && run[latest].by == (command.Digest{}) {
			latest++
		}
		if latest != 1 {
			found.requests.add(run[0].id)
		}
	})
	runs(s.positions, func(run []entry) {
		if len(run) > 1 {
			found.positions.add(run[0].id)
		}
	})
	// Held by one, and reserved for the same: the two sets are equal, and an ID is in them once.
	held, reserved := s.held, s.reserved
	for len(held) > 0 || len(reserved) > 0 {
		switch c := order(held, reserved); {
		case c < 0:
			found.keys.add(held[0].id)
			held = held[1:]
		case c > 0:
			found.keys.add(reserved[0].id)
			reserved = reserved[1:]
		default:
			held, reserved = held[1:], reserved[1:]
		}
	}
}

// order compares the first entries of two sets; an empty set comes last.
func order(a, b []entry) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return compareEntries(a[0], b[0])
}

// runs calls f for each run of entries with one ID.
func runs(sorted []entry, f func([]entry)) {
	for len(sorted) > 0 {
		n := 1
		for n < len(sorted) && sorted[n].id == sorted[0].id {
			n++
		}
		f(sorted[:n])
		sorted = sorted[n:]
	}
}
