package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seed54173720/writ/internal/embedded/broker"
)

// Child starts the embedded broker in a child process and waits until it answers.
// The child is the running program once more: its main, or TestMain through
// [Main], MUST call [broker.RunChild] first. What it prints goes to the file
// cfg.Dir + ".out". cfg.Logger is not passed on.
func Child(ctx context.Context, cfg broker.Config) (*Proc, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("kafkatest: find the running program: %w", err)
	}
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, fmt.Errorf("kafkatest: %w", err)
	}
	p := &Proc{version: "embedded broker", log: cfg.Dir + ".out"}
	var out *output
	p.command = func() (*exec.Cmd, error) {
		env, err := broker.ChildEnv(cfg)
		if err != nil {
			return nil, err
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), env)
		out = newOutput()
		cmd.Stdout = out
		return cmd, nil
	}
	p.ready = func(ctx context.Context, r *running) error {
		select {
		case <-out.line:
		case <-r.done:
			return errors.New("the process ended: does its main call broker.RunChild?")
		case <-ctx.Done():
			return ctx.Err()
		}
		addr, ok := strings.CutPrefix(out.firstLine(), broker.ChildReady)
		if !ok {
			return fmt.Errorf("the process printed %q first, not its address: does its main call broker.RunChild?", out.firstLine())
		}
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return err
		}
		if cfg.Port, err = strconv.Atoi(port); err != nil {
			return err
		}
		p.addr = addr
		return nil
	}
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	return p, nil
}
