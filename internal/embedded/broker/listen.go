package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// listen opens the broker's guarded listener: on the configured port, else on the
// last one, else on a free one.
func listen(ctx context.Context, cfg Config, last int) (net.Listener, error) {
	ports := []int{cfg.Port}
	if cfg.Port == 0 {
		ports = freePorts()
		if last != 0 && !cfg.NewPort {
			ports = append([]int{last}, ports...)
		}
	}
	var lc net.ListenConfig
	var err error
	for _, port := range ports {
		var ln net.Listener
		ln, err = lc.Listen(ctx, "tcp", net.JoinHostPort(cfg.Host, strconv.Itoa(port)))
		if err == nil {
			if port != last && last != 0 && cfg.Port == 0 && !cfg.NewPort {
				cfg.Logger.WarnContext(ctx, "embedded broker: the port of the last start is taken", "port", last)
			}
			return guardedListener{ln, cfg.Logger}, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return nil, fmt.Errorf("broker: %w", err)
}

// freePorts are ports to try. They lie below those that the system hands to
// outgoing connections: while the broker is away, a client that dials one of
// those again and again can be given the very port it dials, connect to itself,
// and so keep the broker from coming back.
func freePorts() []int {
	const low, high = 20_000, 32_000
	ports := make([]int, 0, 17)
	for range 16 {
		ports = append(ports, low+rand.IntN(high-low))
	}
	return append(ports, 0)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
