package datadir

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRootsDirectoryIsOneThatOthersCanEnter(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("not root: the home is as good as any")
	}
	home := t.TempDir() // of mode 0755 below a directory of mode 0700
	t.Setenv("HOME", home)
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("WRIT_DATA_DIR", "")
	want := filepath.Join(home, ".local", "share", "writ")
	if os.Geteuid() == 0 && !reachable(want) {
		want = filepath.Join(rootDir, want)
	}
	if got := Default(); got != want {
		t.Errorf("Default() = %q, want %q", got, want)
	}
	t.Setenv("WRIT_DATA_DIR", "/named")
	if got := Default(); got != "/named" {
		t.Errorf("Default() = %q, want the one that was named", got)
	}
}
