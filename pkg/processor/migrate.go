package processor

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed54173720/writ/pkg/store/postgres"
)

func (a *app) migrateCommand() *cobra.Command {
	return &cobra.Command{
		Use:         "migrate",
		Short:       "Create the database schema, or bring it to this build's version",
		Args:        exactly(0),
		Annotations: quietly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			migrate := func(url string) error {
				cfg := a.storeConfig(url)
				if err := postgres.Migrate(cmd.Context(), cfg); err != nil {
					return err
				}
				fmt.Fprintf(a.stdout, "schema %s is at this build's version\n", cfg.Schema)
				return nil
			}
			if !a.cfg.EmbeddedDatabase() {
				return migrate(a.cfg.DatabaseURL)
			}
			return a.withDatabase(cmd.Context(), migrate)
		},
	}
}
