package secured

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/pkg/processor"
)

// server is a processor that runs in this process.
type server struct {
	*bed
	http string
	stop func() int // returns the exit code
}

// serve starts a processor, which need not become ready.
func (b *bed) serve(args ...string) *server {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := &server{bed: b, http: l.Addr().String()}
	l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int, 1)
	go func() {
		args := append([]string{
			"serve", "--events", "--http-addr", s.http, "--log-level=debug", "--session-timeout=6s", "--heartbeat=500ms", "--rebalance-timeout=10s", "--drain=4s",
		}, args...)
		code <- processor.Run(ctx, args, nil, b.said, b.said, catalog.Context())
	}()
	s.stop = sync.OnceValue(func() int {
		cancel()
		return <-code
	})
	b.Cleanup(func() { s.stop() })
	return s
}

// on is the same processor in another part of the test.
func (s *server) on(b *bed) *server { return &server{bed: b, http: s.http, stop: s.stop} }

// get returns what the processor answers, 0 where it does not.
func (s *server) get(path string) (status int, body string) {
	r, err := http.Get("http://" + s.http + path)
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, err.Error()
	}
	_, _ = s.said.Write(text)
	return r.StatusCode, string(text)
}

func (s *server) awaitReady() {
	s.Helper()
	s.await("the processor is ready", http.StatusOK, nil)
}

// awaitUnready waits until the processor says that it is not ready, and why.
func (s *server) awaitUnready(reasons ...string) {
	s.Helper()
	s.await("the processor is not ready: "+strings.Join(reasons, "; "), http.StatusServiceUnavailable, reasons)
}

func (s *server) await(what string, want int, words []string) {
	s.Helper()
	var status int
	var body string
	defer func() {
		if s.Failed() {
			s.Logf("/readyz: %d %s", status, body)
		}
	}()
	s.until(what, func() bool {
		status, body = s.get("/readyz")
		for _, word := range words {
			if !strings.Contains(body, word) {
				return false
			}
		}
		return status == want
	})
}
