package engine

import (
	"context"
	"sync"
	"testing"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/pkg/store"
	"github.com/seed54173720/writ/pkg/store/memory"
	"github.com/seed54173720/writ/pkg/store/storetest"
)

// stalled is a store that is asked for progress by a session which ends before it answers.
type stalled struct {
	storetest.Store
	once  sync.Once
	asked chan struct{}
}

func (s *stalled) Progress(ctx context.Context, topic string) (progress []store.Progress, err error) {
	s.once.Do(func() {
		close(s.asked)
		<-ctx.Done()
		err = ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	return s.Store.Progress(ctx, topic)
}

// A processor whose group was rebalanced while it looked its offsets up asked again for ever, by a context that had
// ended: it never came back to its group, and never stopped.
func TestRebalanceWhileOffsetsAreLookedUpIsSurvived(t *testing.T) {
	t.Parallel()
	s := &stalled{Store: memory.New(), asked: make(chan struct{})}
	r := newRig(t, catalog.Context(), 2, s, nil)
	<-s.asked
	r.start(nil) // another member: the group is rebalanced
	r.await(r.send(create(t, "1", "Acme"))...)
	r.stop() // the other one; what follows is the first one's to answer
	r.await(r.send(create(t, "2", "Bolt"), create(t, "3", "Coil"), create(t, "4", "Dent"))...)
}
