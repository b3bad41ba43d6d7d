package postgres

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// endWithParent has the kernel send an immediate shutdown to the process when we die.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }

// processesOn returns the server processes that work on a cluster: each has its directory as
// working directory. Sessions can outlive their server for a moment, and are found too.
func processesOn(data string) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		// Unreadable: it has ended, or is another user's and so cannot be on our cluster.
		cwd, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		if err != nil || cwd != data {
			continue
		}
		exe, err := os.Readlink(filepath.Join("/proc", e.Name(), "exe"))
		if err == nil && strings.HasPrefix(filepath.Base(exe), "postgres") {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// removeStalePid removes the lock file of a server that is gone. PostgreSQL does so itself
// unless the number in it is by now some other process's, as in containers it often is. No
// process works on the cluster any more when this is called.
func (d directory) removeStalePid() error {
	if err := os.Remove(d.pidFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// memoryMB is what the machine has, or what the control group grants if that is less.
func memoryMB() int {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return 4096
	}
	total := uint64(info.Totalram) * uint64(info.Unit) //nolint:unconvert // 32 bits on some systems
	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
			total = min(total, limit)
		}
	}
	return int(total >> 20)
}
