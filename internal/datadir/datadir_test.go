package datadir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestDefaultFollowsTheEnvironment(t *testing.T) {
	for _, test := range []struct{ name, writ, xdg, home, want string }{
		{"named", "/a", "/b", "/c", "/a"},
		{"XDG", "", "/b", "/c", "/b/writ"},
		{"home", "", "", "/c", "/c/.local/share/writ"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("WRIT_DATA_DIR", test.writ)
			t.Setenv("XDG_DATA_HOME", test.xdg)
			t.Setenv("HOME", test.home)
			if got := Default(); got != test.want {
				t.Errorf("Default() = %q, want %q", got, test.want)
			}
		})
	}
}

func TestEndpointsAreWhatWasWrittenLast(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read before anything was written: %v", err)
	}
	for _, want := range []Endpoints{{Kafka: "a:1,b:2", HTTP: "c:3", Database: "postgres://u:p@h/d", PID: 7}, {Kafka: "d:4", PID: 8}} {
		if err := Write(dir, want); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(dir); err != nil || got != want {
			t.Errorf("read %+v, %v, want %+v", got, err, want)
		}
	}
	if info, err := os.Stat(File(dir)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a file with passwords has mode %v, %v", info.Mode(), err)
	}
}

func TestOnlyTheirOwnerRemovesEndpoints(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Write(dir, Endpoints{PID: 7}); err != nil {
		t.Fatal(err)
	}
	if err := Remove(dir, 8); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err != nil {
		t.Errorf("another process's endpoints are gone: %v", err)
	}
	if err := Remove(dir, 7); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed endpoints are still there: %v", err)
	}
}
