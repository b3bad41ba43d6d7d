package command

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// A row of docs/errors.md: code, retry, letter.
var errorRow = regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (\\w+) \\| (yes|no) \\| [a-z, ]+ \\| .+ \\|$")

func TestEveryCodeIsExplainedOnceAndAsItIs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	var explained []Code
	for _, row := range errorRow.FindAllStringSubmatch(string(text), -1) {
		code := Code(row[1])
		explained = append(explained, code)
		info, ok := code.Info()
		if !ok {
			t.Errorf("%s: docs/errors.md explains a code that is none of Writ's", code)
			continue
		}
		letter := map[bool]string{true: "yes", false: "no"}[info.DeadLetter]
		if row[2] != info.Retry.String() || row[3] != letter {
			t.Errorf("%s: docs/errors.md says retry %s, letter %s; got %s, %s", code, row[2], row[3], info.Retry, letter)
		}
	}
	slices.Sort(explained)
	var want []Code
	for _, info := range Codes() {
		want = append(want, info.Code)
	}
	if !slices.Equal(explained, want) {
		t.Errorf("docs/errors.md explains\n%q, want each of\n%q once", explained, want)
	}
}
