package processor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed54173720/writ/internal/config"
	"github.com/seed54173720/writ/pkg/client"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store/postgres"
)

func (a *app) demoCommand() *cobra.Command {
	var exit bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Serve, send a few commands over Kafka and show what became of them",
		Long: `Demo serves as serve does, sends a few commands over Kafka, prints each outcome with the position of its record, and the
rows that they left in the journal. Then it serves until it is interrupted, or ends with --exit.

Run again, it repeats its requests: what was committed is answered as a duplicate, and nothing is done twice.`,
		Args:        exactly(0),
		Annotations: quietly,
	}
	cmd.Flags().BoolVar(&exit, "exit", false, "end when everything is shown")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		a.cfg.Topics, a.cfg.Migrate = true, true
		return a.serve(cmd.Context(), func(ctx context.Context, n *node) error {
			if err := a.demonstrate(ctx, n); err != nil || exit {
				return stopped(ctx, err)
			}
			fmt.Fprintln(a.stdout, "\nServing until interrupted (Ctrl-C).")
			<-ctx.Done()
			return nil
		})
	}
	return cmd
}

// demoTimeout bounds one command of the demo; the first one also waits for the processor to get its partitions.
const demoTimeout = 30 * time.Second

func (a *app) demonstrate(ctx context.Context, n *node) error {
	c, err := client.New(ctx, client.Config{Brokers: n.brokers, Context: a.kernel.Name(), Logger: a.log})
	if err != nil {
		return err
	}
	defer c.Close()

	fmt.Fprintf(a.stdout, "Commands to %s.commands on %s, and their replies:\n", a.kernel.Name(), strings.Join(n.brokers, ","))
	sent := 0
	var last *command.Command
	for about, cmd := range a.script {
		limited, cancel := context.WithTimeout(ctx, demoTimeout)
		reply, err := c.Send(limited, cmd)
		cancel()
		if err != nil {
			return err
		}
		sent, last = sent+1, cmd
		a.showReply(about, cmd, &reply)
	}
	if err := a.showJournal(ctx, n.store, sent); err != nil {
		return err
	}
	a.showNext(n, last)
	return nil
}

func (a *app) showReply(about string, cmd *command.Command, r *command.Reply) {
	outcome := r.Outcome.String()
	if r.Duplicate {
		outcome += " (duplicate)"
	}
	fmt.Fprintf(a.stdout, "\n%s\n", about)
	fmt.Fprintf(a.stdout, "  %s %s %s\n", cmd.Type(), cmd.Aggregate(), cmd.Body())
	fmt.Fprintf(a.stdout, "  %-23s request %s, topic %s partition %d offset %d", outcome, r.RequestID, r.Topic, r.Position.Partition, r.Position.Offset)
	if r.Version > 0 {
		fmt.Fprintf(a.stdout, ", version %d", r.Version)
	}
	fmt.Fprintln(a.stdout)
	if r.Error != nil {
		fmt.Fprintf(a.stdout, "  %s\n", r.Error)
	}
}

// showJournal prints the newest rows of the journal, at most as many as commands were sent.
func (a *app) showJournal(ctx context.Context, s *postgres.Store, most int) error {
	columns, rows, err := s.Plain(ctx, most)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "\nThe newest rows of the journal:\n\n%s limit %d\n\n", postgres.SelectPlain, most)
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	_, head := fmt.Fprintln(w, strings.Join(columns, "\t"))
	faults := []error{head}
	for _, row := range rows {
		_, err := fmt.Fprintln(w, strings.Join(row, "\t"))
		faults = append(faults, err)
	}
	return errors.Join(append(faults, w.Flush())...)
}

// showNext prints how to go on by hand.
func (a *app) showNext(n *node, last *command.Command) {
	name, schema := a.kernel.Name(), a.storeConfig("").Schema
	brokers := strings.Join(n.brokers, ",")
	fmt.Fprint(a.stdout, "\nGo on, in another terminal:\n\n")
	if last != nil {
		fmt.Fprintf(a.stdout, "  submit send %s %s --data '%s' --kafka-brokers %s\n", last.Type(), last.Aggregate().ID, last.Body(), brokers)
	}
	fmt.Fprintf(a.stdout, "  kcat -b %s -t %s.replies -C -e -f '%%p/%%o %%k %%s\\n'\n", brokers, name)
	database := n.database // of the embedded one, whose password is of this machine alone
	if n.postgres == nil {
		database = config.RedactURL(database)
	}
	fmt.Fprintf(a.stdout, "  psql '%s' -c 'select * from %s.journal_plain'\n", database, schema)
	if n.http != "" {
		fmt.Fprintf(a.stdout, "  curl http://%s/readyz\n", n.http)
	}
}
