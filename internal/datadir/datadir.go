// Package datadir knows the processor's data directory: where it is, and the file in it that says where the parts
// listen, by which programs on the same machine find each other.
package datadir

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// rootDir is where the data directories of root are whose home others cannot enter.
const rootDir = "/var/lib/writ"

// Default returns the data directory of who has named none: $WRIT_DATA_DIR, else $XDG_DATA_HOME/writ, else
// ~/.local/share/writ. Postgres does not run as root: where root's directory would be one that other users cannot
// reach, as below a home of mode 0700, it is the same path below /var/lib/writ.
func Default() string {
	if dir := os.Getenv("WRIT_DATA_DIR"); dir != "" {
		return dir
	}
	dir := filepath.Join(os.Getenv("XDG_DATA_HOME"), "writ")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			home = "." // no HOME: beside what the process works on
		}
		dir = filepath.Join(home, ".local", "share", "writ")
	}
	if os.Geteuid() == 0 && !reachable(dir) {
		return filepath.Join(rootDir, dir)
	}
	return dir
}

// reachable reports whether every user can enter the parents of dir, as far as they exist.
func reachable(dir string) bool {
	for at := filepath.Dir(dir); ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if at == filepath.Dir(at) {
			return true
		}
	}
}

// Endpoints says where the parts of a running processor listen. A part that it does not have is empty.
type Endpoints struct {
	Kafka    string `json:"kafka"`    // brokers, host:port, with commas between them
	HTTP     string `json:"http"`     // host:port
	Database string `json:"database"` // URL, password included
	PID      int    `json:"pid"`      // of the processor
}

// File is the path of the endpoints of the directory.
func File(dir string) string { return filepath.Join(dir, "endpoints.json") }

// Read returns the endpoints of the processor that runs on the directory. The error is fs.ErrNotExist where none does.
// The file of a processor that was killed stays until the next start.
func Read(dir string) (Endpoints, error) {
	var e Endpoints
	text, err := os.ReadFile(File(dir))
	if err != nil {
		return e, fmt.Errorf("datadir: %w", err)
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return e, fmt.Errorf("datadir: read %s: %w", File(dir), err)
	}
	return e, nil
}

// Write replaces the endpoints of the directory in one step: a reader sees the old ones or the new ones. The file is
// for this user only.
func Write(dir string, e Endpoints) error {
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("datadir: %w", err)
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return fmt.Errorf("datadir: %w", err)
	}
	fresh := File(dir) + ".new"
	if err := os.WriteFile(fresh, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("datadir: %w", err)
	}
	if err := os.Rename(fresh, File(dir)); err != nil {
		return fmt.Errorf("datadir: %w", err)
	}
	return nil
}

// Remove takes the endpoints of a processor that stops out of the directory, unless they are another's by now.
func Remove(dir string, pid int) error {
	e, err := Read(dir)
	if err != nil || e.PID != pid {
		return nil
	}
	if err := os.Remove(File(dir)); err != nil {
		return fmt.Errorf("datadir: %w", err)
	}
	return nil
}
