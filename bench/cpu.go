package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of the kernel's CPU times: USER_HZ is 100 on every architecture that Go runs on.
const tick = 10 * time.Millisecond

// cpu is CPU time spent, user and system.
type cpu struct {
	machine  time.Duration // by everything
	postgres time.Duration // by the server and its children, those that have ended included
	broker   time.Duration
	worker   time.Duration // the processor, or the loop
	self     time.Duration // by this process: the load
}

func (c cpu) minus(d cpu) cpu {
	return cpu{c.machine - d.machine, c.postgres - d.postgres, c.broker - d.broker, c.worker - d.worker, c.self - d.self}
}

// served is the machine's time without that of the load: it stands still where the log is there already.
func (c cpu) served() time.Duration { return c.machine - c.self }

// meter reads the CPU times of the processes that it names.
type meter struct{ postgres, broker, worker int }

func (m meter) read() (c cpu, err error) {
	if c.machine, err = machineTime(); err != nil {
		return c, err
	}
	if c.postgres, err = treeTime(m.postgres); err != nil {
		return c, err
	}
	for pid, dst := range map[int]*time.Duration{m.broker: &c.broker, m.worker: &c.worker, os.Getpid(): &c.self} {
		if pid == 0 {
			continue
		}
		p, err := readStat(pid)
		if err != nil {
			return c, err
		}
		*dst = p.own
	}
	return c, nil
}

// machineTime is all but idle, waiting and stolen time since the start of the machine.
func machineTime() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	f := strings.Fields(line)
	if len(f) < 8 || f[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	var sum int64
	for _, i := range [...]int{1, 2, 3, 6, 7} { // user, nice, system, irq, softirq
		n, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		sum += n
	}
	return time.Duration(sum) * tick, nil
}

type stat struct {
	parent      int
	own, reaped time.Duration // by itself, and by its children that have ended
}

func readStat(pid int) (s stat, err error) {
	name := fmt.Sprintf("/proc/%d/stat", pid)
	text, err := os.ReadFile(name)
	if err != nil {
		return s, err
	}
	// The program's name stands in brackets and may hold anything; what follows is numbers.
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(f) < 15 {
		return s, fmt.Errorf("%s is %q", name, text)
	}
	var n [4]int64
	for i, field := range f[11:15] {
		if n[i], err = strconv.ParseInt(field, 10, 64); err != nil {
			return s, fmt.Errorf("%s: %w", name, err)
		}
	}
	s.own, s.reaped = time.Duration(n[0]+n[1])*tick, time.Duration(n[2]+n[3])*tick
	s.parent, err = strconv.Atoi(f[1])
	return s, err
}

// treeTime is the time of a process and of its children, alive or not.
func treeTime(pid int) (time.Duration, error) {
	root, err := readStat(pid)
	if err != nil {
		return 0, err
	}
	sum := root.own + root.reaped
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, dir := range dirs {
		child, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if s, err := readStat(child); err == nil && s.parent == pid { // else it has ended meanwhile
			sum += s.own
		}
	}
	return sum, nil
}

// peakMB is the most memory that a process has had in use so far, in MB of 1024 kB.
func peakMB(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
			return kb / 1024, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status does not tell VmHWM", pid)
}

// settleDisk writes out what earlier measurements left to be written, which would fall on the next one.
func settleDisk() { syscall.Sync() }
