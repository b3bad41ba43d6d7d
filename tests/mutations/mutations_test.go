package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// wanted are the promises that must have a mutant.
var wanted = []string{
	"keys-outside-transaction", "no-unique-request", "no-unique-version", "offset-before-answer",
	"refusal-on-unchecked-state", "replaced-refusal-decided-again",
}

func TestEveryMutantAppliesAndNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	all, err := mutants(filepath.Join(root, "tests", "mutations"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed: whether the patches apply is not known")
	}
	dir := t.TempDir()
	if err := copyTree(dir, root); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range all {
		names[m.name] = true
		if err := apply(dir, m.file, "--check"); err != nil {
			t.Error(err)
		}
		if !declares(t, filepath.Join(root, m.pkg), m.run) {
			t.Errorf("%s is to be found by %s, which %s does not have", m.name, m.run, m.pkg)
		}
	}
	for _, name := range wanted {
		if !names[name] {
			t.Errorf("mutant %s is missing", name)
		}
	}
}

func declares(t *testing.T, pkg, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+test+"(") {
			return true
		}
	}
	return false
}

func TestInnermostFailureIsNamed(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, out, want string }{
		{"nested", "--- FAIL: TestA (0s)\n    --- FAIL: TestA/b (0s)\n        --- FAIL: TestA/b/c (0s)\n    --- FAIL: TestA/d (0s)\nFAIL\n", "TestA/b/c"},
		{"flat", "--- FAIL: TestA (0s)\n--- FAIL: TestB (0s)\n", "TestA"},
		{"panic", "panic: told to\n", "a panic"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got, err := firstFailure([]byte(row.out)); got != row.want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, row.want)
			}
		})
	}
	if _, err := firstFailure([]byte("FAIL x [build failed]\n")); err == nil {
		t.Error("a build that fails is no test that fails")
	}
}
