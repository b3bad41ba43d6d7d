package catalog

import (
	"fmt"
	"strings"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/keys"
)

// maxName bounds a name, in bytes.
const maxName = 500

// checkName is asked by the Validate method of every body with a name. A body is validated wherever it comes in, at
// the sender too, so that a bad one costs nobody a decision.
func checkName(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return &command.Error{
			Code: CodeBlankName, Message: "the name is blank", Fields: map[string]string{"name": "is blank"},
		}
	case len(name) > maxName:
		return fmt.Errorf("name has %d bytes, %d are allowed", len(name), maxName)
	}
	return nil
}

// nameKey is what a name is unique by: its folded form, however it is spelled. Folding makes a few exotic characters
// up to eleven times as long; what a key has no room for does not count.
func nameKey(name string) string {
	key := keys.Fold(name)
	if len(key) > keys.MaxName {
		key = strings.ToValidUTF8(key[:keys.MaxName], "")
	}
	return key
}

func nameTaken(what, name string) kernel.Decision {
	return kernel.Reject(CodeNameTaken, "another %s is named %q", what, name)
}
