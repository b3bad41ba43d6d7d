package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// oldest is the first major version whose behaviour is relied on: 13 vacuums tables that are
// only inserted into, as the journal is.
const oldest = 13

// ErrNotInstalled says that the system has no PostgreSQL server that can be used.
var ErrNotInstalled = errors.New("no usable PostgreSQL server is installed")

// installed lists where distributions put the server's binaries, beside PATH.
var installed = []string{
	"/usr/lib/postgresql/*/bin", // Debian, Ubuntu
	"/usr/pgsql-*/bin",          // packages of postgresql.org for Red Hat
	"/usr/libexec/postgresql*",  // Alpine
	"/usr/local/pgsql/bin",      // built from source
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// binaries is a directory with the server's programs and their major version.
type binaries struct {
	dir   string
	major int
	text  string // as "postgres --version" says it
}

func (b binaries) initdb() string   { return filepath.Join(b.dir, "initdb") }
func (b binaries) postgres() string { return filepath.Join(b.dir, "postgres") }

// Installed says which server Start would use for a new directory, as "postgres --version"
// prints it and with its directory. The error is [ErrNotInstalled] where there is none.
func Installed() (string, error) {
	b, err := findBinaries(0)
	if err != nil {
		return "", fmt.Errorf("postgres: %w", err)
	}
	return fmt.Sprintf("%s in %s", b.text, b.dir), nil
}

// findBinaries returns the newest server of the given major version, which an existing cluster
// demands, or of any that is new enough (major 0).
func findBinaries(major int) (binaries, error) {
	var best binaries
	var seen []string
	for _, dir := range binaryDirs() {
		b, ok := inspect(dir)
		if !ok {
			continue
		}
		seen = append(seen, fmt.Sprintf("%s (%d)", b.dir, b.major))
		if (major == 0 || b.major == major) && b.major > best.major {
			best = b
		}
	}
	found := "none found"
	if len(seen) > 0 {
		found = "found " + strings.Join(seen, ", ")
	}
	switch {
	case major != 0 && best.major == 0:
		return best, fmt.Errorf("%w: the cluster was made by version %d, %s: install that version (Debian, Ubuntu: postgresql-%d) or move the data with pg_dump",
			ErrNotInstalled, major, found, major)
	case best.major < oldest:
		return best, fmt.Errorf("%w: need version %d or newer, %s: install the package postgresql (Debian, Ubuntu, Alpine, Homebrew) or postgresql-server (Red Hat), or configure a database URL",
			ErrNotInstalled, oldest, found)
	}
	return best, nil
}

func binaryDirs() []string {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	for _, pattern := range installed {
		matches, _ := filepath.Glob(pattern) // the patterns are well formed
		dirs = append(dirs, matches...)
	}
	return dirs
}

// inspect tells whether dir holds a server and the program that makes clusters for it.
func inspect(dir string) (binaries, bool) {
	path, err := filepath.EvalSymlinks(filepath.Join(dir, "initdb"))
	if err != nil {
		return binaries{}, false
	}
	b := binaries{dir: filepath.Dir(path)} // of PATH's link the target: the rest stands beside it
	out, err := exec.Command(b.postgres(), "--version").Output()
	if err != nil {
		return b, false
	}
	b.text = strings.TrimSpace(string(out)) // postgres (PostgreSQL) 15.18 (Debian …)
	fields := strings.Fields(b.text)
	if len(fields) < 3 {
		return b, false
	}
	digits := strings.IndexFunc(fields[2], func(r rune) bool { return r < '0' || r > '9' })
	if digits < 0 {
		digits = len(fields[2])
	}
	b.major, err = strconv.Atoi(fields[2][:digits]) // 17.2, 18beta1
	return b, err == nil
}
