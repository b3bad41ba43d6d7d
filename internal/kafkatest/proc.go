package kafkatest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Proc is a broker in a process of its own, which can be killed and started again
// at the same address on the same data. Its methods are for one goroutine at a
// time; Addr and Version are for all.
//
// The process dies with the one that started it, however that ends.
type Proc struct {
	addr    string
	version string
	log     string // file that takes what the process prints

	command func() (*exec.Cmd, error)                   // a new process
	ready   func(ctx context.Context, r *running) error // waits until r answers

	run *running // nil before the first start
}

// running is one life of a Proc.
type running struct {
	cmd   *exec.Cmd
	stdin io.Closer     // its end tells the child that the parent has gone
	done  chan struct{} // closed when the process has ended
}

// Addr is where the broker listens, as host:port: the same after each Restart.
func (p *Proc) Addr() string { return p.addr }

// Version names the broker's software.
func (p *Proc) Version() string { return p.version }

// PID is the process ID, of the last process if it has ended.
func (p *Proc) PID() int { return p.run.cmd.Process.Pid }

// Log is the name of the file that holds what the processes have printed.
func (p *Proc) Log() string { return p.log }

// Restart starts a process that was killed or stopped, and waits until it
// answers.
func (p *Proc) Restart(ctx context.Context) error {
	select {
	case <-p.run.done:
		return p.start(ctx)
	default:
		return fmt.Errorf("kafkatest: %s on %s: restart of a running process", p.version, p.addr)
	}
}

// Kill9 ends the process by SIGKILL and waits until it is gone.
func (p *Proc) Kill9() error {
	if err := p.run.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kafkatest: kill %s: %w", p.version, err)
	}
	<-p.run.done
	return nil
}

// stopWithin is ample for a JVM that flushes its logs on a busy machine.
const stopWithin = 60 * time.Second

// Stop ends the process in good order, and by force if that takes too long, which
// is an error. Stopping a process that has ended does nothing.
func (p *Proc) Stop() error {
	if err := p.run.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kafkatest: stop %s: %w", p.version, err)
	}
	late := time.NewTimer(stopWithin)
	defer late.Stop()
	select {
	case <-p.run.done:
		return nil
	case <-late.C:
		return errors.Join(fmt.Errorf("kafkatest: %s did not stop within %s", p.version, stopWithin), p.Kill9())
	}
}

func (p *Proc) start(ctx context.Context) error {
	r, err := p.spawn()
	if err != nil {
		return fmt.Errorf("kafkatest: start %s: %w", p.version, err)
	}
	p.run = r
	if err := p.ready(ctx, r); err != nil {
		killErr := p.Kill9()
		return errors.Join(fmt.Errorf("kafkatest: start %s: %w\n%s", p.version, err, p.tail()), killErr)
	}
	return nil
}

// spawn starts the process and the goroutine that waits for its end.
func (p *Proc) spawn() (*running, error) {
	cmd, err := p.command()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(p.log), 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	cmd.Stdin, cmd.Stderr = in, log
	r := &running{cmd: cmd, stdin: stdin, done: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	tie(cmd)

	started := make(chan error)
	go func() {
		// The system ends the child with the thread that made it, not with the
		// process: that thread stays until the child has gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // how it ended shows in the log
		stdin.Close()
		close(r.done)
	}()
	if err := <-started; err != nil {
		stdin.Close()
		return nil, err
	}
	return r, nil
}

// tail is the end of the log, for error messages.
func (p *Proc) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-30):], []byte("\n")))
}

// output is a child's standard output up to the end of its first line.
type output struct {
	mu   sync.Mutex
	text []byte
	line chan struct{} // closed when the line is complete
}

func newOutput() *output { return &output{line: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if bytes.IndexByte(o.text, '\n') < 0 {
		if o.text = append(o.text, p...); bytes.IndexByte(o.text, '\n') >= 0 {
			close(o.line)
		}
	}
	return len(p), nil
}

func (o *output) firstLine() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	line, _, _ := bytes.Cut(o.text, []byte("\n"))
	return string(line)
}
