package main

import (
	"os"
	"os/exec"
	"testing"
)

func TestATreesTimeHasThatOfItsEndedChildren(t *testing.T) {
	t.Parallel()
	before, err := treeTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	// Busy for a while, in a process that has ended when it is looked for.
	if err := exec.CommandContext(t.Context(), "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done").Run(); err != nil {
		t.Fatal(err)
	}
	after, err := treeTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	own, err := readStat(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if own.reaped < 5*tick || after-before < 5*tick {
		t.Errorf("tree time grew by %v; children that ended took %v", after-before, own.reaped)
	}
}

func TestTheMeterReadsEveryProcess(t *testing.T) {
	t.Parallel()
	c, err := meter{postgres: 1, broker: os.Getppid(), worker: os.Getpid()}.read()
	if err != nil {
		t.Fatal(err)
	}
	if c.machine == 0 || c.machine < c.self || c.served() > c.machine {
		t.Errorf("times are %+v", c)
	}
	if _, err := (meter{postgres: 1, worker: 1 << 30}).read(); err == nil {
		t.Error("a process that is not there has a time")
	}
}

func TestAPeakOfMemoryIsRead(t *testing.T) {
	t.Parallel()
	if mb, err := peakMB(os.Getpid()); err != nil || mb < 1 {
		t.Errorf("got %v MB, %v", mb, err)
	}
}
