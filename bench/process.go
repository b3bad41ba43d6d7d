package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// process is a worker as its parent sees it.
type process struct {
	cmd        *exec.Cmd
	stdin      io.Closer // whose end ends it
	milestones chan milestone
	ended      chan error
	log        string
}

func (b *bed) startWorker(cfg workerConfig) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	p := &process{
		cmd: exec.Command(self), milestones: make(chan milestone, 2), ended: make(chan error, 1),
		log: filepath.Join(b.dir, cfg.Schema+".log"),
	}
	p.cmd.Env = append(os.Environ(), workerEnv+"="+string(text))
	if b.procs > 0 {
		p.cmd.Env = append(p.cmd.Env, "GOMAXPROCS="+strconv.Itoa(b.procs))
	}
	// An interrupt at the terminal is the parent's.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd.Stderr = log
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		lines := json.NewDecoder(stdout)
		for {
			var m milestone
			if lines.Decode(&m) != nil {
				break
			}
			p.milestones <- m
		}
		p.ended <- p.cmd.Wait()
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// await returns when the worker reports the milestone.
func (p *process) await(ctx context.Context, name string) (milestone, error) {
	select {
	case m := <-p.milestones:
		if m.Name != name {
			return m, fmt.Errorf("the worker reported %q, expected %q", m.Name, name)
		}
		return m, nil
	case err := <-p.ended:
		p.ended <- err
		return milestone{}, p.failed(fmt.Errorf("the worker ended before its %s: %w", name, err))
	case <-ctx.Done():
		return milestone{}, p.failed(fmt.Errorf("no %s: %w", name, ctx.Err()))
	}
}

// stop ends the worker in good order.
func (p *process) stop() error {
	p.stdin.Close()
	select {
	case err := <-p.ended:
		p.ended <- err
		if err != nil {
			return p.failed(fmt.Errorf("the worker ended: %w", err))
		}
		return nil
	case <-time.After(30 * time.Second):
		return p.failed(errors.Join(errors.New("the worker does not stop"), p.cmd.Process.Kill()))
	}
}

// failed adds what the worker said.
func (p *process) failed(err error) error {
	text, _ := os.ReadFile(p.log)
	return fmt.Errorf("%w\n%s", err, text[max(0, len(text)-4096):])
}
