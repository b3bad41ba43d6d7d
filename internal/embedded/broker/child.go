package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// childEnv holds a child's configuration as JSON.
const childEnv = "WRIT_BROKER_CHILD"

// ChildReady is what a child writes to its standard output, before its address
// and a newline, once it answers.
const ChildReady = "ready "

// RunChild turns the program into a broker and never returns, if its environment
// says so (see [ChildEnv]); else it does nothing. A program or test binary that
// starts brokers as children of its own kind calls it first thing in main or
// TestMain: the broker then outlives a crash of the processes that use it, and can
// be killed without them.
//
// The child stops on SIGTERM, on an interrupt, and when its standard input ends.
func RunChild() {
	text, ok := os.LookupEnv(childEnv)
	if !ok {
		return
	}
	if err := runChild(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// ChildEnv is the entry in a child's environment that makes RunChild run a broker
// with the configuration.
func ChildEnv(cfg Config) (string, error) {
	text, err := json.Marshal(cfg)
	if err != nil {
		return "", fmt.Errorf("broker: child's configuration: %w", err)
	}
	return childEnv + "=" + string(text), nil
}

func runChild(text string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent, even one that is killed
		cancel()
	}()

	cfg := Config{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return fmt.Errorf("broker: %s: %w", childEnv, err)
	}
	b, err := Start(ctx, cfg)
	if err != nil {
		return err
	}
	if _, err := fmt.Println(ChildReady + b.Addr()); err != nil {
		b.Close()
		return fmt.Errorf("broker: tell the parent: %w", err)
	}
	<-ctx.Done()
	return b.Close()
}
