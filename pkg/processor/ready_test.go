package processor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestReadyTellsWhatTheProcessorAnswers(t *testing.T) {
	t.Parallel()
	var status int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintln(w, r.URL.Path, "says the processor")
	}))
	t.Cleanup(server.Close)
	addr := strings.TrimPrefix(server.URL, "http://")
	_, port, _ := strings.Cut(addr, ":")

	status = http.StatusOK
	for _, addr := range []string{addr, "0.0.0.0:" + port, ":" + port} {
		if out := must(t, "ready", "--http-addr", addr); out != "/readyz says the processor\n" {
			t.Errorf("%s: printed %q", addr, out)
		}
	}
	status = http.StatusServiceUnavailable
	if code, _, stderr := runOnce(t, "ready", "--http-addr", addr); code != exitFailure || !strings.Contains(stderr, "not ready: /readyz says the processor") {
		t.Errorf("not ready: exit code %d, %s", code, stderr)
	}
	if code, _, stderr := runOnce(t, "ready", "--http-addr=127.0.0.1:1"); code != exitFailure || !strings.Contains(stderr, "ask the processor") {
		t.Errorf("nobody there: exit code %d, %s", code, stderr)
	}
	if code, _, _ := runOnce(t, "ready", "--http-addr=off"); code != exitUsage {
		t.Errorf("off: exit code %d, want %d", code, exitUsage)
	}
}
