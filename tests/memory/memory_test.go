package main

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed54173720/writ/internal/embedded/postgres"
	"github.com/seed54173720/writ/internal/kafkatest"
)

// A small run of the program, built without the race detector: that it works, and that nothing is far off. The bound
// that counts is that of the full run.
func TestProcessorStaysWithinItsMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a while")
	}
	if _, err := postgres.Installed(); err != nil {
		if kafkatest.Required() {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	program := filepath.Join(t.TempDir(), "memory")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program, "-aggregates", "30000", "-backlog", "30000", "-large", "150")
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
