package kernel

import "github.com/seed54173720/writ/pkg/command"

// guard checks what every command asks of the state, in the order that the codes promise: whether the aggregate exists,
// whether it is deleted, whose it is, which version it is at.
func guard(h *handler, c *command.Command, s *State) *command.Error {
	exists, l := s.Version > 0, s.lifeOf()
	switch {
	case h.existence == Existing && !exists:
		return command.Errorf(command.CodeNotFound, "%s does not exist", c.Aggregate())
	case h.existence == Creates && exists && !l.deleted:
		return command.Errorf(command.CodeAlreadyExists, "%s exists already", c.Aggregate())
	case l.deleted && !h.anyway: // a create is told so too: it would find nothing that it could work with
		return command.Errorf(command.CodeDeleted, "%s is deleted", c.Aggregate())
	case exists && c.Owner() != "" && c.Owner() != l.owner:
		return command.Errorf(command.CodeWrongOwner, "%s does not belong to owner %q", c.Aggregate(), c.Owner())
	case exists && c.Space() != "" && c.Space() != l.space:
		return command.Errorf(command.CodeWrongSpace, "%s does not belong to space %q", c.Aggregate(), c.Space())
	}
	if want, ok := c.ExpectedVersion(); ok && want != s.Version {
		return command.Errorf(command.CodeVersionMismatch, "expected version %d, %s is at %d", want, c.Aggregate(), s.Version)
	}
	return nil
}
