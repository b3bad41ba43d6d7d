package processor

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed54173720/writ/internal/datadir"
)

func (a *app) brokerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "broker",
		Short: "Run the embedded broker alone, until interrupted",
		Long: `Broker runs the embedded broker alone until it is interrupted, on the data directory and with the topics of the
context. Once it answers it prints its address. Processors reach it by --kafka-brokers.`,
		Args:        exactly(0),
		Annotations: quietly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !a.cfg.EmbeddedBroker() {
				return &usageError{fmt.Errorf("kafka-brokers is %q: the embedded broker runs where none are configured", a.cfg.KafkaBrokers)}
			}
			if err := makeDataDir(a.cfg.DataDir); err != nil {
				return err
			}
			p := &parts{}
			if err := a.startBroker(cmd.Context(), p); err != nil {
				return err
			}
			defer p.stop(a)
			if err := a.prepareKafka(cmd.Context(), p); err != nil {
				return stopped(cmd.Context(), err)
			}
			if err := datadir.Write(a.cfg.DataDir, datadir.Endpoints{Kafka: p.brokers[0], PID: os.Getpid()}); err != nil {
				return err
			}
			defer func() { _ = datadir.Remove(a.cfg.DataDir, os.Getpid()) }()
			fmt.Fprintln(a.stdout, p.brokers[0])
			<-cmd.Context().Done()
			return nil
		},
	}
}
