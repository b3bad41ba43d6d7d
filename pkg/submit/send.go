package submit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed54173720/writ/pkg/client"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
)

// send is one run of "submit send".
type send struct {
	types *kernel.Context

	data, requestID, source, tenant, owner, space string
	correlationID, replyTo, wait                  string
	expectVersion                                 int64
	expiresIn, timeout                            time.Duration
	headers                                       []string
}

// How far --wait waits.
const (
	waitAccepted  = "accepted"
	waitCommitted = "committed"
	waitSnapshot  = "snapshot"
)

func newSend(c *kernel.Context) *cobra.Command {
	s := &send{types: c}
	types := c.CommandTypes()
	slices.Sort(types)
	cmd := &cobra.Command{
		Use:   "send TYPE [SUBJECT]",
		Short: "Send one command, wait for its outcome and print the reply as JSON",
		Long: `Send sends one command of TYPE to the aggregate whose ID is SUBJECT, which only a command that creates may leave out.
It waits for the outcome and prints the reply on standard output, on one line. Everything else goes to standard
error, the request ID first. A request that is sent again under its ID, by the same source, is not done twice.

The body is JSON, from --data or, if that is absent and something is piped in, from standard input.

` + exitCodeHelp + `

Types: ` + strings.Join(types, ", "),
		Example: `  submit send catalog.brand.create brand-7 --data '{"name":"Acme"}'
  submit send catalog.brand.rename brand-7 --data @rename.json --request-id rename-7-1`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return fmt.Errorf("%d arguments: usage: %s", len(args), cmd.UseLine())
			}
			return nil
		},
		RunE: s.run,
	}
	f := cmd.Flags()
	f.StringVarP(&s.data, "data", "d", "", "body, as JSON; @FILE reads it from a file, @- from standard input. Default: what is piped in, else {}")
	f.StringVar(&s.requestID, "request-id", "", "ID of the request, the same when it is sent again. Default: a new UUIDv7")
	f.StringVar(&s.source, "source", "", "stable name of the caller. Default: submit/ and the user's name")
	f.StringVar(&s.tenant, "tenant", "", "tenant. Default: the default tenant")
	f.StringVar(&s.owner, "owner", "", "owner to act for. Default: none")
	f.StringVar(&s.space, "space", "", "space to act in. Default: none")
	f.Int64Var(&s.expectVersion, "expect-version", 0, "refuse unless the aggregate is at this version. Default: any version")
	f.DurationVar(&s.expiresIn, "expires-in", 0, "refuse if the command's turn comes later than this, such as 30s. Default: never")
	f.StringVar(&s.correlationID, "correlation-id", "", "ID of the conversation, which the reply repeats. Default: the request ID")
	f.StringVar(&s.replyTo, "reply-to", "", "topic for the reply, one that the processor allows. Default: the context's own")
	f.StringVar(&s.wait, "wait", waitCommitted, "how far to wait: committed, snapshot (readers of snapshots see it too) or accepted (durable, not executed yet)")
	f.DurationVar(&s.timeout, "timeout", 30*time.Second, "how long to wait for everything, more than 0")
	f.StringArrayVarP(&s.headers, "header", "H", nil, "another attribute as NAME=VALUE: causationid, time or traceparent; may be repeated")
	f.VisitAll(func(f *pflag.Flag) {
		if f.Name != "header" {
			f.Usage += " (" + envOf(f.Name) + ")"
		}
	})
	return cmd
}

func envOf(flag string) string {
	return "WRIT_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment gives the flags that were not given the values of their
// variables. An empty variable counts as unset.
func fromEnvironment(cmd *cobra.Command) error {
	var faults []error
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		value := os.Getenv(envOf(f.Name))
		if f.Changed || value == "" || f.Name == "header" || f.Name == "help" {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			faults = append(faults, fmt.Errorf("%s is %q: %w", envOf(f.Name), value, err))
		}
	})
	return errors.Join(faults...)
}

func (s *send) run(cmd *cobra.Command, args []string) error {
	if err := fromEnvironment(cmd); err != nil {
		return err
	}
	if s.requestID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("new request ID: %w", err)
		}
		s.requestID = id.String()
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "request", s.requestID)
	if err := s.check(); err != nil {
		return err
	}
	conn, err := loadConnection(cmd.Flags(), cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), s.timeout, fmt.Errorf("%v have passed (--timeout): %w", s.timeout, context.DeadlineExceeded))
	defer cancel()
	c, err := s.command(ctx, cmd, args)
	if err != nil {
		return err
	}
	return s.send(ctx, cmd, conn, c)
}

// check finds what is wrong with the flags beside what the command's builder does.
func (s *send) check() error {
	var faults []error
	if s.timeout <= 0 {
		faults = append(faults, fmt.Errorf("--timeout %v must be more than 0", s.timeout))
	}
	if s.expiresIn < 0 {
		faults = append(faults, fmt.Errorf("--expires-in %v must be more than 0", s.expiresIn))
	}
	if s.wait != waitAccepted && s.wait != waitCommitted && s.wait != waitSnapshot {
		faults = append(faults, fmt.Errorf("--wait %q must be %s, %s or %s", s.wait, waitCommitted, waitSnapshot, waitAccepted))
	}
	return errors.Join(faults...)
}

func (s *send) command(ctx context.Context, cmd *cobra.Command, args []string) (*command.Command, error) {
	body, err := s.body(ctx, cmd)
	if err != nil {
		return nil, err
	}
	if s.source == "" {
		s.source = defaultSource()
	}
	b := command.New(args[0], s.source).ID(s.requestID).Tenant(s.tenant).Owner(s.owner).Space(s.space)
	if len(args) > 1 {
		b.Subject(args[1])
	}
	if len(body) > 0 {
		b.Body(body)
	}
	if cmd.Flags().Changed("expect-version") {
		b.ExpectVersion(s.expectVersion)
	}
	if cmd.Flags().Changed("expires-in") {
		b.Expires(time.Now().Add(s.expiresIn))
	}
	if s.correlationID != "" {
		b.Correlation(s.correlationID)
	}
	switch {
	case s.wait == waitSnapshot:
		b.WaitFor(command.StageSnapshot)
	case s.wait == waitAccepted && s.replyTo != "":
		b.ReplyTo(s.replyTo)
	}
	for _, header := range s.headers {
		if err := setHeader(b, header); err != nil {
			return nil, err
		}
	}
	return b.Build()
}

// setHeader sets an attribute that has no flag of its own. Those that have are
// left to it, so that no fact is stated twice.
func setHeader(b *command.Builder, header string) error {
	name, value, ok := strings.Cut(header, "=")
	if !ok {
		return fmt.Errorf("--header %q must be NAME=VALUE", header)
	}
	switch strings.TrimPrefix(name, "ce_") {
	case "causationid":
		b.Causation(value)
	case "traceparent":
		b.TraceParent(value)
	case "time":
		at, err := time.Parse(time.RFC3339Nano, value)
		if err != nil {
			return fmt.Errorf("--header %q: time must be as in 2006-01-02T15:04:05Z", header)
		}
		b.Time(at)
	default:
		return fmt.Errorf("--header %q: causationid, time and traceparent can be set so; other attributes have flags", header)
	}
	return nil
}

// defaultSource names the user and not the machine: the same request from another
// machine is the same request.
func defaultSource() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if name == "" {
		return "submit"
	}
	return "submit/" + name
}

// body reads the body from where --data says. An empty one stands for {}.
func (s *send) body(ctx context.Context, cmd *cobra.Command) ([]byte, error) {
	file, named := strings.CutPrefix(s.data, "@")
	switch {
	case named && file == "-", !cmd.Flags().Changed("data") && pipedIn(cmd.InOrStdin()):
		return readStdin(ctx, cmd.InOrStdin())
	case named:
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("--data: %w", err)
		}
		defer f.Close()
		return readBounded(f, file)
	}
	return []byte(s.data), nil
}

// pipedIn reports whether somebody has given the program an input: a terminal and
// /dev/null are none.
func pipedIn(stdin io.Reader) bool {
	f, ok := stdin.(*os.File)
	if !ok {
		return stdin != nil
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}

// readStdin reads within ctx: whoever leaves a pipe open without writing to it must
// not hang the program.
func readStdin(ctx context.Context, stdin io.Reader) ([]byte, error) {
	type result struct {
		body []byte
		err  error
	}
	done := make(chan result, 1) // the reader ends with its input, or with the process
	go func() {
		body, err := readBounded(stdin, "standard input")
		done <- result{body, err}
	}()
	select {
	case r := <-done:
		return r.body, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("the body on standard input does not end: %w; give it with --data", context.Cause(ctx))
	}
}

func readBounded(r io.Reader, name string) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, command.MaxBody+1))
	if err != nil {
		return nil, fmt.Errorf("read the body from %s: %w", name, err)
	}
	if len(body) > command.MaxBody {
		return nil, fmt.Errorf("the body from %s is larger than %d bytes", name, command.MaxBody)
	}
	return bytes.TrimSpace(body), nil
}

func (s *send) send(ctx context.Context, cmd *cobra.Command, conn *connection, c *command.Command) error {
	replyTopic := s.replyTo
	if s.wait == waitAccepted {
		replyTopic = ""
	}
	k, err := conn.dial(ctx, s.types, replyTopic)
	if err != nil {
		return &exitError{ExitNotSent, fmt.Errorf("not sent: %w", err)}
	}
	defer k.Close()
	if s.wait == waitAccepted {
		at, err := k.Post(ctx, c)
		if err != nil {
			return s.failed(err)
		}
		return s.print(cmd, accepted(c, at), true)
	}
	reply, err := k.Send(ctx, c)
	if err != nil {
		return s.failed(err)
	}
	return s.print(cmd, reply.Append(nil), reply.Outcome.Final())
}

// failed says which of the two it was, and how to go on.
func (s *send) failed(err error) error {
	if errors.Is(err, client.ErrNotSent) {
		return &exitError{ExitNotSent, err}
	}
	return &exitError{ExitUnknown, fmt.Errorf("%w: the same command with --request-id %s", err, s.requestID)}
}

// print writes one line.
func (s *send) print(cmd *cobra.Command, value []byte, done bool) error {
	var line bytes.Buffer
	if err := json.Compact(&line, value); err != nil {
		line.Reset()
		line.Write(value)
	}
	line.WriteByte('\n')
	if _, err := cmd.OutOrStdout().Write(line.Bytes()); err != nil {
		// Known here, and nowhere else: as good as unknown.
		return &exitError{ExitUnknown, fmt.Errorf("print the reply of request %s: %w", s.requestID, err)}
	}
	if !done {
		return &exitError{code: ExitRefused}
	}
	return nil
}

// accepted is printed instead of a reply where nobody waits for one.
func accepted(c *command.Command, at client.Accepted) []byte {
	type aggregate struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	}
	type position struct {
		Topic     string `json:"topic"`
		Partition int32  `json:"partition"`
		Offset    int64  `json:"offset"`
	}
	line, err := json.Marshal(struct {
		RequestID string    `json:"requestId"`
		Type      string    `json:"type"`
		Tenant    string    `json:"tenant"`
		Aggregate aggregate `json:"aggregate"`
		Accepted  bool      `json:"accepted"`
		Position  position  `json:"position"`
	}{
		c.RequestID(), c.Type(), c.Tenant(), aggregate{c.AggregateType(), c.Aggregate().ID}, true,
		position{at.Topic, at.Position.Partition, at.Position.Offset},
	})
	if err != nil {
		panic(err) // texts and numbers only
	}
	return line
}
