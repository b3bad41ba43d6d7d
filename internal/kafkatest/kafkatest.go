// Package kafkatest gives tests the brokers they need: the embedded one in a child
// process that can be killed ([Child]), and Apache Kafka on a Java machine
// ([Apache], [Shared]).
//
// The environment steers it: WRIT_TEST_KAFKA_BROKERS (seed addresses, separated by
// commas) makes Shared use that cluster; CI=true or WRIT_TEST_REQUIRE=1 makes a
// test fail where it would be skipped for want of a broker; WRIT_CACHE is where
// Kafka's jars are kept.
package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed54173720/writ/internal/embedded/broker"
)

// startWithin allows for the first fetch of the jars on a slow line.
const startWithin = 5 * time.Minute

var shared struct {
	sync.Mutex
	started bool
	proc    *Proc
	dir     string
	err     error
}

// Shared returns the seed addresses of a real Kafka: the cluster named by
// WRIT_TEST_KAFKA_BROKERS, else one Apache Kafka for the whole test binary, which
// the first call starts and [Main] stops. Without either the test is skipped, or
// fails where real servers are required.
//
// Tests share it: each MUST use topics and groups of its own, and none may stop it.
func Shared(tb testing.TB) []string {
	tb.Helper()
	if seeds := os.Getenv("WRIT_TEST_KAFKA_BROKERS"); seeds != "" {
		return strings.Split(seeds, ",")
	}
	shared.Lock()
	defer shared.Unlock()
	if !shared.started {
		shared.started = true
		shared.err = startShared()
	}
	if shared.err != nil {
		Unavailable(tb, shared.err)
	}
	return []string{shared.proc.Addr()}
}

func startShared() error {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	dir, err := os.MkdirTemp("", "writ-kafka-")
	if err != nil {
		return fmt.Errorf("kafkatest: %w", err)
	}
	shared.dir = dir
	shared.proc, err = Apache(ctx, dir)
	if err != nil {
		return err
	}
	java, err := JavaVersion(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "kafkatest: %s on %s (%s)\n", shared.proc.Version(), shared.proc.Addr(), java)
	return nil
}

// Close stops what Shared has started and removes its data.
func Close() {
	shared.Lock()
	defer shared.Unlock()
	if shared.proc != nil {
		_ = shared.proc.Kill9() // nobody reads this data again
	}
	if shared.dir != "" {
		_ = os.RemoveAll(shared.dir)
	}
}

// Main is the TestMain of a package that uses this one.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run runs the tests and returns the exit code, for a TestMain that has more to
// clean up than Main does. It MUST come first there: in a child of the test binary
// it never returns.
func Run(m interface{ Run() int }) int {
	broker.RunChild()
	defer Close()
	return m.Run()
}

// Unavailable ends a test that lacks a server because of err: it is skipped if the
// server can't be had on this machine and need not be, else it fails.
func Unavailable(tb testing.TB, err error) {
	tb.Helper()
	if !errors.Is(err, ErrNotAvailable) || Required() {
		tb.Fatal(err)
		return
	}
	tb.Skip(err)
}

// Required says whether tests must find the real servers they want.
func Required() bool {
	return os.Getenv("CI") == "true" || os.Getenv("WRIT_TEST_REQUIRE") == "1"
}
