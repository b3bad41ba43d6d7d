package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// mutant is a patch that breaks a promise, and the tests that must notice.
type mutant struct {
	name  string
	file  string // absolute
	story string // what it breaks
	pkg   string // of the tests
	run   string // regular expression of the tests
}

// head is how a patch begins; git passes over it.
var head = regexp.MustCompile(`\AMutant: (.+)\nFound by: (\./\S+) (\S+)\n`)

// mutants reads the patches of dir, ordered by name.
func mutants(dir string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("mutations: no patches in %s", dir)
	}
	var all []mutant
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("mutations: %w", err)
		}
		m := head.FindSubmatch(text)
		if m == nil {
			return nil, fmt.Errorf("mutations: %s does not begin with %q", file, "Mutant: …\nFound by: ./package Test")
		}
		all = append(all, mutant{
			name: strings.TrimSuffix(filepath.Base(file), ".patch"), file: file,
			story: string(m[1]), pkg: string(m[2]), run: string(m[3]),
		})
	}
	return all, nil
}
