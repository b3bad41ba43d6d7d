package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/seed54173720/writ/internal/kafka"
	"github.com/seed54173720/writ/pkg/command"
)

// probeEvery is how often the engine asks whether Kafka and the store answer: readiness tells the truth when nothing
// is under way too.
const probeEvery = 2 * time.Second

// probe keeps the health of Kafka and the store.
func (e *Engine) probe(ctx context.Context) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		reached := false
		e.ask(ctx, intakePart, func(ctx context.Context) error {
			if err := e.producer.Ping(ctx); err != nil {
				return fmt.Errorf("no broker answers: %w", kafka.Explain(err))
			}
			reached = true
			return e.recentFetchFault()
		})
		if reached {
			e.ask(ctx, rightsPart, e.rights)
		}
		e.ask(ctx, storePart, func(ctx context.Context) error {
			_, err := e.store.Heads(ctx, []command.Digest{{}})
			return err
		})
		if s, ok := e.store.(rightsTeller); ok {
			e.ask(ctx, storeRightsPart, s.Rights)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (e *Engine) ask(ctx context.Context, part string, f func(context.Context) error) {
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := f(limited)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		e.fault(part, err)
		return
	}
	if e.health.Report(part, nil) {
		e.log.Info("works again", "part", part)
	}
}

// recentFetchFault returns the last error that a fetch met, as long as it is younger than two probes.
func (e *Engine) recentFetchFault() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Since(e.fetchFaultAt) < 2*probeEvery {
		return e.fetchFaultErr
	}
	return nil
}
