package processor

import (
	"fmt"
	"runtime/debug"
	"strings"
)

const module = "github.com/seed54173720/writ"

// version says what this program was built from: the application's module, Writ's where that is another, and Go.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "processor (devel)"
	}
	text := fmt.Sprintf("processor %s", orDevel(info.Main.Version))
	var revision, modified string
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			modified = s.Value
		}
	}
	if revision != "" && !strings.Contains(text, revision[:min(12, len(revision))]) {
		text += " " + revision
	}
	if modified == "true" && !strings.Contains(text, "dirty") {
		text += " (modified)"
	}
	for _, dep := range info.Deps {
		if dep.Path == module {
			text += ", writ " + dep.Version
		}
	}
	return text + ", " + info.GoVersion
}

func orDevel(version string) string {
	if version == "" {
		return "(devel)"
	}
	return version
}
