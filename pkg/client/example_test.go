package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed54173720/writ/pkg/client"
	"github.com/seed54173720/writ/pkg/command"
)

// An order service names brands. The request ID is the order's, so that whoever
// tries again, even after a crash, repeats the same request.
func ExampleClient_Send() {
	nameBrand := func(ctx context.Context, c *client.Client, orderID, name string) error {
		cmd, err := command.New("catalog.brand.create", "orders").ID(orderID).JSON(map[string]string{"name": name}).Build()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		reply, err := c.Send(ctx, cmd)
		switch {
		case errors.Is(err, client.ErrUnknownOutcome):
			return fmt.Errorf("try order %s again later: %w", orderID, err)
		case err != nil: // not sent
			return err
		case !reply.Outcome.Final():
			return reply.Error // the brand's own rules refused it
		}
		return nil
	}
	_ = nameBrand
}
