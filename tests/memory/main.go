// Command memory shows how much memory a processor takes at its worst: it runs one with its defaults beside a broker and
// a database in processes of their own, brings a million aggregates, a backlog of a million commands and then bodies as
// large as they may be upon it, and prints the peak of each phase. It exits 1 if one is above the limit.
//
// It MUST NOT be built with the race detector, which takes a multiple of the memory. It reads /proc and runs on Linux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/seed54173720/writ/internal/embedded/broker"
)

func main() {
	broker.RunChild()
	runProcessor()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	aggregates := flag.Int("aggregates", 1_000_000, "aggregates to touch once")
	backlog := flag.Int("backlog", 1_000_000, "commands that wait when the processor comes to them")
	large := flag.Int("large", 2_000, "commands with bodies of 900 kB")
	limit := flag.Int("limit", 1024, "MiB that the processor may take")
	flag.Parse()

	s, err := start(ctx)
	if err != nil {
		return err
	}
	defer s.stop()
	worst := 0
	for _, phase := range []struct {
		name string
		load func() error
	}{
		{"at rest", func() error { return nil }},
		{fmt.Sprintf("%d aggregates touched once", *aggregates), func() error {
			return s.produce(ctx, *aggregates, create)
		}},
		{fmt.Sprintf("a backlog of %d commands", *backlog), func() error {
			resume, err := s.suspend()
			if err != nil {
				return err
			}
			return errors.Join(s.produce(ctx, *backlog, func(i int) message { return rename(i, max(*aggregates, 1)) }), resume())
		}},
		{fmt.Sprintf("%d bodies of 900 kB", *large), func() error {
			return s.produce(ctx, *large, huge)
		}},
	} {
		if err := s.forgetPeak(); err != nil {
			return err
		}
		began := time.Now()
		if err := phase.load(); err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
		if err := s.awaitFinished(ctx); err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
		peak, err := s.peak()
		if err != nil {
			return err
		}
		worst = max(worst, peak)
		fmt.Printf("%-40s peak %5d MiB  %6.1f s\n", phase.name, peak, time.Since(began).Seconds())
	}
	fmt.Printf("peak resident %d MiB of %d allowed\n", worst, *limit)
	if worst > *limit {
		return fmt.Errorf("the processor took %d MiB, more than %d", worst, *limit)
	}
	return nil
}
