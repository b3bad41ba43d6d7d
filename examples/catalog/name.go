package catalog

import (
	"fmt"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/keys"
)

// maxName bounds a name, in bytes.
const maxName = 500

// checkName is asked by the Validate method of every body with a name. A body is validated wherever it comes in, at
// the sender too, so that a bad one costs nobody a decision.
func checkName(name string) error {
	folded := keys.Fold(name)
	switch {
	case folded == "":
		return &command.Error{
			Code: CodeBlankName, Message: "the name is blank", Fields: map[string]string{"name": "is blank"},
		}
	case len(name) > maxName || len(folded) > keys.MaxName: // folding may lengthen a name
		return fmt.Errorf("name has %d bytes, %d when folded; %d and %d are allowed", len(name), len(folded), maxName, keys.MaxName)
	}
	return nil
}

func nameTaken(what, name string) kernel.Decision {
	return kernel.Reject(CodeNameTaken, "another %s is named %q", what, name)
}
