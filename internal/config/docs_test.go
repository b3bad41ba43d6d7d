package config

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

const preface = `# Configuration

<!-- Made from the comments in internal/config/config.go by: go test ./internal/config -update -->

Every setting has one name: ` + "`kafka-brokers`" + ` in the file, ` + "`--kafka-brokers`" + ` as a flag and
` + "`WRIT_KAFKA_BROKERS`" + ` in the environment. A flag wins over the environment, the environment over the file
(YAML, named by ` + "`--config`" + ` or ` + "`WRIT_CONFIG`" + `), the file over the default. An empty variable counts as
unset. A name that nobody knows is an error, in the file as in the environment.

` + "`processor --print-config`" + ` prints what is in effect, without secrets, in the form of the file. All that is wrong
is told at once, before anything starts; the exit code is then 2.

Where no brokers or no database are configured, the processor runs its own in the data directory, for trying out and for
work on one machine. Nothing else has to be configured then.

Not settings of the processor: ` + "`WRIT_TEST_…`" + ` and what ` + "`submit`" + ` reads; they may stand in the same
environment.

| Setting | What it is |
| --- | --- |
`

func TestDocumentTellsOfEverySetting(t *testing.T) {
	t.Parallel()
	var want bytes.Buffer
	want.WriteString(preface)
	for _, s := range Settings() {
		fmt.Fprintf(&want, "| `%s` | %s |\n", s.Name, s.Help)
	}
	path := filepath.Join("..", "..", "docs", "configuration.md")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("docs/configuration.md is not what the comments say: go test ./internal/config -update")
	}
}

func TestCommentsNameTheTrueDefaults(t *testing.T) {
	t.Parallel()
	defaults := Default()
	for _, s := range Settings() {
		want := "Default: " + s.text(&defaults)
		if s.text(&defaults) == "" {
			want = "Default: none"
		}
		_, stated, ok := strings.Cut(s.Help, "Default: ")
		if end := strings.TrimPrefix("Default: "+stated, want); !ok || end == "Default: "+stated || !strings.ContainsAny(end[:1], ".,;") {
			t.Errorf("the comment of %s ends in %q, want %q", s.Name, "Default: "+stated, want)
		}
	}
}
