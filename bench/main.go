package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/seed54173720/writ/internal/embedded/broker"
)

func main() {
	broker.RunChild()
	runWorker()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options size a run. The defaults are those of the reported numbers; smaller ones are for trying something out.
type options struct {
	rounds       int
	commands     int           // of b and f
	loopCommands int           // of c
	hotCommands  int           // of e
	aggregates   int           // products
	nameBytes    int           // of a brand's name
	seconds      time.Duration // of each load in d
	only         string        // letters of what to measure
	seed         uint64
	dir          string // for servers and their data
	profile      string // directory for profiles of the processor
	procs        int    // GOMAXPROCS of the processor; 0: Go's own choice
	tuning
}

func parse(args []string, out io.Writer) (options, error) {
	var o options
	var only string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(out)
	f.IntVar(&o.rounds, "rounds", 5, "how often everything is measured")
	f.IntVar(&o.commands, "commands", 300_000, "commands of b and f")
	f.IntVar(&o.loopCommands, "loop-commands", 40_000, "commands of c")
	f.IntVar(&o.hotCommands, "hot-commands", 200_000, "commands of e")
	f.IntVar(&o.aggregates, "aggregates", 10_000, "products that commands are for")
	f.IntVar(&o.nameBytes, "name-bytes", 500, "length of a name, at most 500")
	f.DurationVar(&o.seconds, "seconds", 5*time.Second, "how long each load of d lasts, after a second to warm up")
	f.StringVar(&only, "only", "a,b,c,d,e,f", "what to measure; a and d to f need b")
	f.Uint64Var(&o.seed, "seed", 1, "of the random choice of products and commands")
	f.StringVar(&o.dir, "dir", os.TempDir(), "where the servers keep their data meanwhile")
	f.StringVar(&o.profile, "profile", "", "directory for CPU, heap and mutex profiles of the processor in b (they cost some of its rate)")
	f.IntVar(&o.procs, "procs", 0, "GOMAXPROCS of the processor (0: as it chooses itself)")
	f.IntVar(&o.Writers, "writers", 0, "of the processor, for trying out; 0 is the product's default, as with the following")
	f.IntVar(&o.Deciders, "deciders", 0, "of the processor")
	f.IntVar(&o.GroupCommands, "group-commands", 0, "of the processor")
	f.IntVar(&o.InFlightCommands, "in-flight-commands", 0, "of the processor")
	f.DurationVar(&o.Linger, "linger", 0, "of the processor")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.only = strings.ReplaceAll(only, ",", "")
	return o, o.validate()
}

func (o options) validate() error {
	var faults []error
	must := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	must(o.rounds > 0, "rounds is %d: must be above 0", o.rounds)
	must(min(o.commands, o.loopCommands, o.hotCommands, o.aggregates) > 0, "commands, loop-commands, hot-commands and aggregates must be above 0")
	must(o.nameBytes >= minName && o.nameBytes <= 500, "name-bytes is %d: must be %d to 500", o.nameBytes, minName)
	must(o.seconds >= time.Second, "seconds is %v: must be at least 1s", o.seconds)
	must(strings.Trim(o.only, "abcdef") == "", "only is %q: must be letters of a to f", o.only)
	must(o.measures('b') || strings.Trim(o.only, "c") == "", "only is %q: what is not c is measured against b", o.only)
	return errors.Join(faults...)
}

func (o options) measures(part rune) bool { return strings.ContainsRune(o.only, part) }

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	// The loads are made up beforehand and lie in this process: collecting them often would cost those that are
	// measured.
	debug.SetGCPercent(400)
	b, err := openBed(ctx, o, out)
	if err != nil {
		return err
	}
	defer b.close()

	var rounds []round
	for n := range o.rounds {
		r, err := b.round(ctx, n)
		if err != nil {
			return fmt.Errorf("round %d: %w", n+1, err)
		}
		rounds = append(rounds, r)
		fmt.Fprintf(out, "round %d of %d: %s\n", n+1, o.rounds, r.line())
	}
	return report(out, rounds)
}
