//go:build unix && !linux

package postgres

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// endWithParent does nothing here: a server that outlives us is ended by the next start.
func endWithParent(*syscall.SysProcAttr) {}

// processesOn returns the server that the cluster's lock file names, if it still runs.
func processesOn(data string) ([]int, error) {
	text, err := os.ReadFile(directory{strings.TrimSuffix(data, "/data")}.pidFile())
	if err != nil {
		return nil, nil
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return nil, nil
	}
	command, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil || !strings.Contains(string(command), data) {
		return nil, nil
	}
	return []int{pid}, nil
}

// removeStalePid leaves the lock file to PostgreSQL, which also looks for sessions that
// outlived their server; here we cannot.
func (d directory) removeStalePid() error { return nil }

// memoryMB is a guess that fits most machines people try things on.
func memoryMB() int { return 4096 }
