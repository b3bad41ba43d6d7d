package processor

import (
	"context"
	"time"

	"github.com/seed54173720/writ/internal/embedded/postgres"
)

// keepPostgres starts the embedded Postgres again whenever it ends by itself, until ctx ends. Commands wait meanwhile.
func (a *app) keepPostgres(ctx context.Context, s *postgres.Server) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.Done():
		}
		if ctx.Err() != nil {
			return
		}
		a.log.Error("the embedded postgres has ended; it is started again", "log", s.Log())
		for ctx.Err() == nil {
			err := s.Restart(ctx)
			if err == nil {
				break
			}
			a.log.Error("the embedded postgres does not start", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Second):
			}
		}
	}
}
