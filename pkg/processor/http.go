package processor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/seed54173720/writ/internal/health"
)

// serveHTTP listens for those who watch the process, until stop is called. addr is "" where the setting is off.
func (a *app) serveHTTP(h *health.Health, metrics http.Handler) (addr string, stop func(), err error) {
	if a.cfg.HTTPAddr == "off" {
		return "", func() {}, nil
	}
	l, err := a.listen()
	if err != nil {
		return "", nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := h.Err(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			a.log.Error("metrics and health are not served any more", "error", err)
		}
	}()
	return l.Addr().String(), func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
		<-ended
	}, nil
}

// listen takes the configured address. On one machine several processors may be tried out: there the default is only a
// suggestion.
func (a *app) listen() (net.Listener, error) {
	l, err := net.Listen("tcp", a.cfg.HTTPAddr)
	embedded := a.cfg.EmbeddedBroker() || a.cfg.EmbeddedDatabase()
	if errors.Is(err, syscall.EADDRINUSE) && embedded && !a.cfg.Explicit("http-addr") {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("http-addr is %q: %w: choose another address, or off", a.cfg.HTTPAddr, err)
	}
	return l, nil
}
