package processor

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/seed54173720/writ/internal/audit"
	"github.com/seed54173720/writ/pkg/store/postgres"
)

func (a *app) auditCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Check the whole journal, its reservations and snapshots; exit code 1 if anything is wrong",
		Long: `Audit reads the whole journal and checks that versions are without gaps, that each request and each record has one
outcome, that all events can be read, and that snapshots and reservations are what the journal says. It changes nothing
and may run beside processors that work.`,
		Args:        exactly(0),
		Annotations: quietly,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each finding, and in the end the summary, as a JSON object on a line of its own")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.withStore(cmd.Context(), func(s *postgres.Store) error {
			sum, err := audit.Run(cmd.Context(), s, a.kernel, func(f audit.Finding) {
				if asJSON {
					a.printLine(f)
					return
				}
				fmt.Fprintln(a.stdout, f)
			})
			if err != nil {
				return err
			}
			if asJSON {
				a.printLine(sum)
			} else {
				fmt.Fprintf(a.stdout, "%d aggregates, %d rows: %d committed, %d nothing, %d rejected, %d failed; %d reservations, %d snapshots (%d of older revisions)\n%d findings\n",
					sum.Aggregates, sum.Rows, sum.Committed, sum.Nothing, sum.Rejected, sum.Failed, sum.Reservations, sum.Snapshots, sum.OldSnapshots, sum.Findings)
			}
			if sum.Findings > 0 {
				return errFound
			}
			return nil
		})
	}
	return cmd
}

// printLine prints a value of plain text and numbers as JSON.
func (a *app) printLine(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it holds nothing that JSON cannot
	}
	fmt.Fprintf(a.stdout, "%s\n", text)
}
