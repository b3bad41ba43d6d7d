package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// maxLog is the size at which the log of earlier starts is put aside (one is kept), in bytes.
const maxLog = 16 << 20

// errPortTaken says that the server could not listen because somebody else does.
var errPortTaken = errors.New("the port is taken")

// process is a started server; state is there once done is closed.
type process struct {
	*os.Process
	done  chan struct{}
	state *os.ProcessState
	log   string // its log file …
	from  int64  // … and where its own lines begin
}

// launch starts the server on port and waits until it takes connections.
func (s *Server) launch(ctx context.Context, port int, settings []string) error {
	args := append([]string{"-D", s.dir.data(), "-p", strconv.Itoa(port)}, settings...)
	p, err := startProcess(s.account.command(s.dir.path, s.binaries.postgres(), args...), s.dir.logFile())
	if err != nil {
		return err
	}
	s.proc = p
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	slow := time.After(5 * time.Second)
	for !s.dir.ready(p.Pid) {
		select {
		case <-tick.C:
		case <-slow:
			s.cfg.Logger.Info("postgres is recovering", "dir", s.cfg.Dir, "log", s.dir.logFile())
		case <-p.done:
			return p.err()
		case <-ctx.Done():
			p.end()
			return fmt.Errorf("not ready in time: %w: %s", context.Cause(ctx), p.tail())
		}
	}
	return nil
}

// ready tells whether the server with this process ID says in its lock file that it takes
// connections, as pg_ctl does it.
func (d directory) ready(pid int) bool {
	text, err := os.ReadFile(d.pidFile())
	if err != nil {
		return false
	}
	lines := strings.Split(string(text), "\n")
	return len(lines) > 7 && lines[0] == strconv.Itoa(pid) && strings.TrimSpace(lines[7]) == "ready"
}

// startProcess runs cmd with its output appended to the log file. The goroutine behind it lives
// as long as the process, and done tells of its end.
func startProcess(cmd *exec.Cmd, logFile string) (*process, error) {
	if info, err := os.Stat(logFile); err == nil && info.Size() > maxLog {
		_ = os.Rename(logFile, logFile+".1") // else it grows on
	}
	log, err := os.OpenFile(logFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own copy
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = log, log
	endWithParent(cmd.SysProcAttr)

	p := &process{done: make(chan struct{}), log: logFile, from: from}
	started := make(chan error)
	go func() {
		// Linux takes the end of the starting thread for the end of the parent, so this thread
		// has to stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.Process = cmd.Process
		}
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // the state has all of it
		p.state = cmd.ProcessState
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// end stops the process at once (immediate shutdown), by force if need be, and waits for it.
func (p *process) end() {
	_ = p.Signal(syscall.SIGQUIT)
	select {
	case <-p.done:
	case <-time.After(killGrace):
		_ = p.Signal(syscall.SIGKILL)
		<-p.done
	}
}

// err says how the process ended and what it wrote last.
func (p *process) err() error {
	tail := p.tail()
	if strings.Contains(tail, "could not create any TCP/IP sockets") {
		return fmt.Errorf("%w: %s", errPortTaken, tail)
	}
	return fmt.Errorf("the server ended (%s), its log says: %s", p.state, tail)
}

// tail is the last lines that the process wrote to its log.
func (p *process) tail() string {
	f, err := os.Open(p.log)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	from := max(p.from, info.Size()-4096)
	text := make([]byte, max(info.Size()-from, 0))
	n, _ := f.ReadAt(text, from)
	return lastLines(text[:n], 12)
}

// lastLines joins the last n lines of text, for an error.
func lastLines(text []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(len(lines)-n, 0):], " | ")
}

// endProcesses sends all processes on a cluster the signal, and SIGKILL to those still there
// after grace. It returns when all are gone.
func endProcesses(data string, signal syscall.Signal, grace time.Duration) error {
	deadline := time.Now().Add(grace)
	signalled := make(map[int]bool)
	for {
		pids, err := processesOn(data)
		if err != nil || len(pids) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			if signal == syscall.SIGKILL {
				return fmt.Errorf("processes %v on %s do not end", pids, data)
			}
			return endProcesses(data, syscall.SIGKILL, grace)
		}
		for _, pid := range pids {
			if !signalled[pid] {
				signalled[pid] = true
				_ = syscall.Kill(pid, signal) // ESRCH: gone meanwhile
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// runUntil runs a short-lived program, ends it with ctx, and returns all it wrote.
func runUntil(ctx context.Context, cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	// Its whole group: initdb runs servers of its own.
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer stop()
	err := cmd.Wait()
	return out.Bytes(), err
}
