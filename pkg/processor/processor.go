// Package processor is an application's main: it serves a context's commands, and has the commands that people look
// after it by. An application's whole program is
//
//	func main() { processor.Main(catalog.Context()) }
package processor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/seed54173720/writ/internal/config"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2 // of the command line or the configuration
)

// Option adds to the program.
type Option func(*app)

// WithDemo gives the program the command demo, which serves, sends these commands one after the other and shows what
// became of each. Every call of the sequence MUST yield the same request IDs, so that a demo that is run again repeats
// requests and changes nothing. The text before a command says what it is about.
func WithDemo(script iter.Seq2[string, *command.Command]) Option {
	return func(a *app) { a.script = script }
}

// WithAuthoriser makes the processor ask about the claimed caller of each command, before it decides.
func WithAuthoriser(authorise command.Authoriser) Option {
	return func(a *app) { a.authorise = authorise }
}

// Main runs the program for a context and ends the process. The first interrupt or SIGTERM stops it in order, a second
// one at once.
func Main(c *kernel.Context, options ...Option) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the next signal does what it does by default
	os.Exit(Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, c, options...))
}

// Run runs the program with these arguments until it is done or ctx ends, which stops it in order, and returns its exit
// code: 0, 1 for a failure, 2 for a mistake in the arguments or the configuration. It reads the environment.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, c *kernel.Context, options ...Option) int {
	a := &app{kernel: c, stdout: stdout, stderr: stderr}
	for _, option := range options {
		option(a)
	}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return exitCode(root.ExecuteContext(ctx), stderr)
}

func exitCode(err error, stderr io.Writer) int {
	if err == nil || errors.Is(err, errDone) {
		return exitOK
	}
	if errors.Is(err, errFound) { // what is wrong stands on stdout
		return exitFailure
	}
	fmt.Fprintln(stderr, "processor:", err)
	var usage *usageError
	var faulty *config.Error
	if errors.As(err, &usage) || errors.As(err, &faulty) {
		return exitUsage
	}
	return exitFailure
}

// app is one run of the program.
type app struct {
	kernel    *kernel.Context
	script    iter.Seq2[string, *command.Command]
	authorise command.Authoriser

	stdout, stderr io.Writer

	cfg *config.Config
	log *slog.Logger
}

// errDone ends a command that has nothing more to do, without a failure.
var errDone = errors.New("done")

// errFound ends a command that has printed what is wrong.
var errFound = errors.New("findings")

// usageError is a mistake of the caller.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "processor",
		Short:         fmt.Sprintf("Executes the commands of context %s", a.kernel.Name()),
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Errorf("command %q is not known: see processor --help", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())}
	})

	config.Bind(root.PersistentFlags())
	printConfig := root.PersistentFlags().Bool("print-config", false, "print the settings as they are in effect, without secrets, and end")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		if a.cfg, err = config.Load(cmd.Flags(), os.Environ()); err != nil {
			return err
		}
		a.log = a.logger(cmd.Annotations[quiet] != "")
		if !*printConfig {
			return nil
		}
		text, err := a.cfg.YAML()
		if err != nil {
			return err
		}
		if _, err := a.stdout.Write(text); err != nil {
			return fmt.Errorf("print the configuration: %w", err)
		}
		return errDone
	}

	// The settings are many: they are told once, by the root.
	usage := root.UsageTemplate()
	usage = strings.Replace(usage, "{{.LocalFlags.FlagUsages", "{{.LocalFlags.FlagUsagesWrapped 110", 1)
	usage = strings.Replace(usage, "{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}", "  Every setting is a flag here too: see {{.Root.Name}} --help.", 1)
	root.SetUsageTemplate(usage)

	root.AddCommand(a.serveCommand(), a.migrateCommand(), a.topicsCommand(), a.showCommand(), a.auditCommand(), a.readyCommand(), a.brokerCommand())
	if a.script != nil {
		root.AddCommand(a.demoCommand())
	}
	return root
}

// quiet marks commands whose output is on stdout: they log from warn on unless told otherwise.
const quiet = "quiet"

var quietly = map[string]string{quiet: "yes"}

// exactly refuses any other number of arguments, as a mistake of the caller.
func exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := cobra.ExactArgs(n)(cmd, args); err != nil {
			return &usageError{fmt.Errorf("%w: usage: %s", err, cmd.UseLine())}
		}
		return nil
	}
}
