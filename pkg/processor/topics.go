package processor

import (
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seed54173720/writ/topics"
)

func (a *app) topicsCommand() *cobra.Command {
	var create, check bool
	cmd := &cobra.Command{
		Use:         "topics",
		Short:       "List the context's topics as declared; --create makes the missing ones, --check compares them with the brokers",
		Args:        exactly(0),
		Annotations: quietly,
	}
	cmd.Flags().BoolVar(&create, "create", false, "create the topics that are missing")
	cmd.Flags().BoolVar(&check, "check", false, "compare the topics with what the brokers have; exit code 1 if one cannot be used")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !create && !check {
			return a.listTopics()
		}
		return a.withBrokers(cmd.Context(), func(brokers []string) error {
			admin, declared, err := a.admin(cmd.Context(), brokers)
			if err != nil {
				return err
			}
			defer admin.Close()
			if create {
				created, err := topics.Create(cmd.Context(), admin, declared)
				for _, name := range created {
					fmt.Fprintf(a.stdout, "%s: created\n", name)
				}
				if err != nil {
					return err
				}
			}
			report, err := topics.Check(cmd.Context(), admin, declared)
			if err != nil {
				return err
			}
			for _, f := range report {
				fmt.Fprintln(a.stdout, f)
			}
			if report.Err() != nil {
				return errFound
			}
			if len(report) == 0 {
				fmt.Fprintf(a.stdout, "all %d topics are as declared\n", len(declared))
			}
			return nil
		})
	}
	return cmd
}

func (a *app) listTopics() error {
	declared, err := a.declaredTopics()
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	_, head := fmt.Fprintln(w, "TOPIC\tPARTITIONS\tREPLICATION\tCONFIGS")
	faults := []error{head}
	for _, t := range declared {
		_, err := fmt.Fprintf(w, "%s\t%d\t%d\t%v\n", t.Name, t.Partitions, t.Replication, t.Configs)
		faults = append(faults, err)
	}
	return errors.Join(append(faults, w.Flush())...)
}
