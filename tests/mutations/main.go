// Command mutations shows that the tests notice when a promise is broken. It copies the module, and for each patch
// beside it applies the patch, runs the tests that the patch names, and wants them to fail. It exits 1 if a mutant
// survives. Run it from anywhere inside the module.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	all, err := mutants(filepath.Join(root, "tests", "mutations"))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "writ-mutations-")
	if err != nil {
		return fmt.Errorf("mutations: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := copyTree(dir, root); err != nil {
		return fmt.Errorf("mutations: copy %s: %w", root, err)
	}

	sound := map[string]bool{} // tests that pass on what is not mutated; else a failure would show nothing
	survived := 0
	const row = "%-32s %-7s %-75s %s\n" // printed as it is known: each takes a while
	fmt.Printf(row, "mutant", "after", "found by", "what it breaks")
	for _, m := range all {
		if tests := m.pkg + " " + m.run; !sound[tests] {
			if out, err := goTest(dir, m); err != nil {
				return fmt.Errorf("mutations: the tests that should find %s fail without it: %w\n%s", m.name, err, out)
			}
			sound[tests] = true
		}
		began := time.Now()
		found, err := hunt(dir, m)
		if err != nil {
			return fmt.Errorf("mutations: %s: %w", m.name, err)
		}
		if found == "" {
			survived++
			found = "NOBODY"
		}
		fmt.Printf(row, m.name, time.Since(began).Round(100*time.Millisecond), found, m.story)
	}
	if survived > 0 {
		return fmt.Errorf("mutations: %d of %d mutants survived", survived, len(all))
	}
	return nil
}

// hunt applies the mutant to the copy in dir, runs the tests and takes it back. It returns the test that failed, "" if
// none did.
func hunt(dir string, m mutant) (found string, err error) {
	if err := apply(dir, m.file); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, apply(dir, m.file, "--reverse")) }()
	out, failure := goTest(dir, m)
	if failure == nil {
		return "", nil
	}
	return firstFailure(out)
}

// failed is how go test names a test that failed. The innermost comes last.
var failed = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)

func firstFailure(out []byte) (string, error) {
	deepest := ""
	for _, m := range failed.FindAllSubmatch(out, -1) {
		if name := string(m[1]); strings.HasPrefix(name, deepest) {
			deepest = name
		} else {
			break
		}
	}
	switch {
	case deepest != "":
		return deepest, nil
	case regexp.MustCompile(`(?m)^panic: `).Match(out):
		return "a panic", nil
	}
	return "", fmt.Errorf("the tests did not run:\n%s", out)
}

func goTest(dir string, m mutant) ([]byte, error) {
	cmd := exec.Command("go", "test", "-count=1", "-timeout=10m", "-run", m.run, m.pkg)
	cmd.Dir = dir
	return cmd.CombinedOutput()
}

func apply(dir, patch string, more ...string) error {
	cmd := exec.Command("git", append([]string{"apply"}, append(more, patch)...)...)
	cmd.Dir = dir
	// Outside of any repository: git apply would look for the paths in the one around it.
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git apply %s: %w\n%s", filepath.Base(patch), err, out)
	}
	return nil
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	file := strings.TrimSpace(string(out))
	if err == nil && (file == "" || file == os.DevNull) {
		err = errors.New("not inside a module")
	}
	if err != nil {
		return "", fmt.Errorf("mutations: find the module: %w", err)
	}
	return filepath.Dir(file), nil
}

// copyTree copies what builds and tests need: not history, and not what was built.
func copyTree(dst, src string) error {
	return filepath.WalkDir(src, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name == "bin" || name == "data" || name == ".git" {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(dst, name), 0o755)
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dst, name), text, 0o644)
	})
}
