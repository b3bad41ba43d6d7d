package command

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Fingerprint tells whether two commands under one request ID are the same
// command. It covers the registered type, the aggregate, owner, space, caller
// and the canonical form of the body as sent; a body that is not JSON counts by
// its bytes, under another label. Expected version, deadline, reply address,
// stage and tracing are left out: a repeat may change them.
func Fingerprint(typ string, a Aggregate, owner, space, caller string, body []byte) Digest {
	c := canonicalisers.Get().(*canonicaliser)
	defer c.release()
	parts := [...]string{typ, a.Tenant, a.Type, a.ID, owner, space, caller}
	return c.fingerprint(parts[:], body)
}

// fingerprint canonicalises body behind room for the parts and then writes these
// right in front of it, so that one stretch of scratch space is hashed and
// nothing is copied.
func (c *canonicaliser) fingerprint(parts []string, body []byte) Digest {
	label := labelJSON
	room := roomFor(parts)
	c.out = slices.Grow(c.out[:0], room+len(body))[:room]
	// No larger body is ever decided on, so its form does not matter.
	if len(body) > MaxBody || !c.text(body) {
		label = labelBytes
		c.out = append(c.out[:room], body...)
	}
	return c.frame(label, parts, room)
}

// refusedFingerprint is the fingerprint of a command whose own facts are in
// doubt. It equals no other command's, so that a final outcome never answers it.
func (c *canonicaliser) refusedFingerprint(parts []string, body []byte) Digest {
	room := roomFor(parts)
	c.out = append(slices.Grow(c.out[:0], room+len(body))[:room], body...)
	return c.frame(labelRefused, parts, room)
}

// roomFor returns what a label, the parts and the length of a body take at most.
func roomFor(parts []string) int {
	room := len(labelRefused) + 2*binary.MaxVarintLen64
	for _, part := range parts {
		room += len(part) + binary.MaxVarintLen64
	}
	return room
}

// frame hashes label and parts, and what stands in c.out from room on as last
// part.
func (c *canonicaliser) frame(label string, parts []string, room int) Digest {
	var stack [frameSize]byte
	head := appendPart(stack[:0], label)
	for _, part := range parts {
		head = appendPart(head, part)
	}
	head = binary.AppendUvarint(head, uint64(len(c.out)-room))
	begin := room - len(head)
	copy(c.out[begin:], head)
	sum := sha256.Sum256(c.out[begin:])
	return Digest(sum[:])
}
