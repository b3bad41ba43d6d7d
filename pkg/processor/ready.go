package processor

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) readyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ready",
		Short: "Ask the processor that listens on http-addr whether it is ready; exit code 1 if not, and why",
		Long: `Ready asks the processor of this machine, at the address that http-addr names, and prints what it answers. It is a
health check where there is nothing else to ask with, as in a container that holds this program alone.`,
		Args:        exactly(0),
		Annotations: quietly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.askReady(cmd.Context())
		},
	}
}

// askFor bounds the question.
const askFor = 5 * time.Second

func (a *app) askReady(ctx context.Context) error {
	if a.cfg.HTTPAddr == "off" {
		return &usageError{fmt.Errorf("http-addr is off: nobody can be asked")}
	}
	host, port, err := net.SplitHostPort(a.cfg.HTTPAddr)
	if err != nil {
		return &usageError{err}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // it listens on all addresses, this one among them
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask the processor: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return fmt.Errorf("ask the processor: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", strings.TrimSpace(string(text)))
	}
	_, err = a.stdout.Write(text)
	return err
}
