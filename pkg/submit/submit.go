// Package submit is the program by which people and scripts send commands of a
// context. An application's whole program is
//
//	func main() { submit.Main(catalog.Context()) }
package submit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/seed54173720/writ/pkg/kernel"
)

// Exit codes. Scripts decide by them: they are never given another meaning.
const (
	ExitDone     = 0 // committed, or nothing to do, or accepted where that was waited for
	ExitRefused  = 1 // rejected or failed
	ExitUsage    = 2 // a mistake in the arguments, the configuration or the body
	ExitUnknown  = 3 // the command was or may have been sent; ask again with the same request ID
	ExitNotSent  = 4 // the command is surely not in the topic
	exitCodeHelp = `Exit code: 0 committed or nothing to do (with --wait accepted: accepted), 1 rejected or failed, 2 usage,
3 outcome unknown (the same command with the same --request-id asks again), 4 not sent.`
)

// Main runs the program for a context, whose commands it checks before it sends
// them, and ends the process.
func Main(c *kernel.Context) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the next signal does what it does by default
	os.Exit(Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, c))
}

// Run runs the program with these arguments and returns its exit code. It reads
// the environment. The end of ctx cuts the wait short and takes nothing back.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, c *kernel.Context) int {
	root := newRoot(c)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitDone
	}
	var exit *exitError
	if !errors.As(err, &exit) { // all that does not say otherwise comes from reading the arguments
		exit = &exitError{ExitUsage, err}
	}
	if exit.err != nil {
		fmt.Fprintln(stderr, "submit:", exit.err)
	}
	return exit.code
}

// exitError ends the program with a code, and a message unless all is said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return fmt.Sprintf("exit %d: %v", e.code, e.err) }
func (e *exitError) Unwrap() error { return e.err }

func newRoot(c *kernel.Context) *cobra.Command {
	root := &cobra.Command{
		Use:           "submit",
		Short:         "Sends commands of context " + c.Name(),
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("command %q is not known: see submit --help", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())
	})
	bindConnection(root.PersistentFlags())
	root.AddCommand(newSend(c))
	root.SetGlobalNormalizationFunc(alias)
	return root
}

// version says what this program was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "submit (devel)"
	}
	built := info.Main.Version
	if built == "" {
		built = "(devel)"
	}
	return fmt.Sprintf("submit %s, %s", built, info.GoVersion)
}
