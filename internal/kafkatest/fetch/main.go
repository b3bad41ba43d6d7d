// Command fetch downloads Apache Kafka for the tests, if that has not been done,
// and prints which Kafka and which Java they will run on.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/seed54173720/writ/internal/kafkatest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	jars, err := kafkatest.Jars(ctx)
	if err != nil {
		return err
	}
	java, err := kafkatest.JavaVersion(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("Apache Kafka %s in %s\n%s\n", kafkatest.KafkaVersion, jars, java)
	return nil
}
