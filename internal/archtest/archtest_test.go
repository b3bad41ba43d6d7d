package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/seed54173720/writ"

// packageRules say what of ours a package may import, beside what stands below itself. The rule
// with the longest prefix of a package's path counts. Read from the top, everything points down.
var packageRules = []struct {
	prefix string
	may    []string
	reason string
}{
	{"bench", anything, "a program: nothing depends on it"},
	{"tests", anything, "programs: nothing depends on them"},
	{"cmd", []string{"pkg/processor", "pkg/submit", "examples"}, "an application's main is one line"},
	{"pkg/processor", []string{"internal", "topics", "pkg/client", "pkg/kernel", "pkg/store", "pkg/keys", "pkg/dedupe", "pkg/command"}, "wires everything below; no wire leads back up"},
	{"pkg/submit", []string{"internal", "topics", "pkg/client", "pkg/kernel", "pkg/store", "pkg/keys", "pkg/dedupe", "pkg/command"}, "wires everything below; no wire leads back up"},
	{"internal", []string{"topics", "pkg/client", "pkg/kernel", "pkg/store", "pkg/keys", "pkg/dedupe", "pkg/command"}, "the Kafka side brings commands to the kernel"},
	{"internal/embedded", nil, "servers to run on know nothing of what runs on them"},
	{"pkg/client", []string{"topics", "pkg/command"}, "a sender needs neither kernel nor store"},
	{"topics", []string{"pkg/command"}, "a declaration, read by both ends"},
	{"examples", []string{"pkg/kernel", "pkg/keys", "pkg/command"}, "what people copy holds no plumbing"},
	{"pkg/kernel", []string{"pkg/store", "pkg/keys", "pkg/dedupe", "pkg/command"}, "decides without knowing who brought the command"},
	{"pkg/store", []string{"pkg/keys", "pkg/dedupe", "pkg/command"}, "keeps what was decided, and decides nothing"},
	{"pkg/keys", []string{"pkg/command"}, "values and rules, no I/O"},
	{"pkg/dedupe", []string{"pkg/command"}, "values and rules, no I/O"},
	{"pkg/command", nil, "what both ends of the wire share depends on nothing of ours"},
}

var anything = []string{"bench", "tests", "cmd", "pkg", "internal", "topics", "examples"}

// libraries may be imported directly in these packages only, and below them.
var libraries = []struct {
	name     string
	prefixes []string
	allowed  []string
	reason   string
}{
	{
		"Kafka client",
		[]string{"github.com/twmb/franz-go"},
		[]string{"internal/engine", "internal/kafka", "internal/kafkatest", "internal/embedded/broker", "pkg/client", "topics", "bench", "tests"},
		"the kernel and the stores run without Kafka",
	},
	{
		"Postgres client",
		[]string{"github.com/jackc/pgx"},
		[]string{"pkg/store/postgres", "internal/embedded/postgres", "internal/pgtest", "bench", "tests"},
		"SQL stands in one place",
	},
	{
		"Prometheus",
		[]string{"github.com/prometheus", "github.com/twmb/franz-go/plugin/kprom"},
		[]string{"internal/metrics"},
		"names and labels of metrics stand in one place",
	},
}

func TestImportsPointDownwards(t *testing.T) {
	t.Parallel()
	for pkg, imports := range packages(t) {
		row := ruleOf(pkg)
		if row < 0 {
			t.Errorf("no rule for %s: add it to packageRules", pkg)
			continue
		}
		rule := packageRules[row]
		for _, imported := range imports {
			ours, ok := strings.CutPrefix(imported, module+"/")
			if ok && ruleOf(ours) != row && longest(ours, rule.may) == 0 && longest(ours, []string{rule.prefix}) == 0 {
				t.Errorf("%s imports %s; it may import %s: %s", pkg, ours, orNothing(rule.may), rule.reason)
			}
		}
	}
}

func TestLibrariesStayInTheirPlace(t *testing.T) {
	t.Parallel()
	for pkg, imports := range packages(t) {
		for _, imported := range imports {
			// The most particular row decides: kprom is Prometheus's before it is Kafka's.
			row, length := -1, 0
			for i, lib := range libraries {
				if n := longest(imported, lib.prefixes); n > length {
					row, length = i, n
				}
			}
			if row >= 0 && longest(pkg, libraries[row].allowed) == 0 {
				t.Errorf("%s imports %s (%s), which belongs in %s: %s", pkg, imported,
					libraries[row].name, strings.Join(libraries[row].allowed, ", "), libraries[row].reason)
			}
		}
	}
}

// ruleOf is the row of packageRules for a package, -1 for none.
func ruleOf(pkg string) int {
	row, length := -1, 0
	for i, rule := range packageRules {
		if n := longest(pkg, []string{rule.prefix}); n > length {
			row, length = i, n
		}
	}
	return row
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "nothing of ours"
	}
	return strings.Join(names, ", ")
}

// longest is the length of the longest of prefixes, in whole elements, that path begins with.
func longest(path string, prefixes []string) int {
	length := 0
	for _, prefix := range prefixes {
		if path == prefix || strings.HasPrefix(path, prefix+"/") {
			length = max(length, len(prefix))
		}
	}
	return length
}

// packages reads what each package of the module imports, whatever its build constraints.
// Tests may look anywhere and are left out.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	root := filepath.Join("..", "..")
	found := make(map[string]map[string]bool)
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := name != "." && strings.HasPrefix(entry.Name(), ".")
		if entry.IsDir() && (hidden || entry.Name() == "testdata" || name == "bin" || name == "data") {
			return fs.SkipDir
		}
		if entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := path.Dir(name)
		if found[pkg] == nil {
			found[pkg] = make(map[string]bool)
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			found[pkg][imported] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("no packages found")
	}
	imports := make(map[string][]string, len(found))
	for pkg, set := range found {
		imports[pkg] = slices.Sorted(maps.Keys(set))
	}
	return imports
}
