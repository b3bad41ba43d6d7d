package engine

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/store"
)

// task is one record on its way from the fetch to its acknowledged reply.
type task struct {
	item      kernel.Item
	cmd       command.Command
	partition *partition
	record    *kgo.Record
	seq       int64            // in the partition's window
	size      int64            // bytes it counts for
	fetched   time.Time        // of its poll
	owed      int              // acknowledgements before it is finished; set before any can come, then under e.mu
	refusal   *command.Refusal // without identity: answered without a row
}

// size of a record beside its key and value: headers and what the client keeps about it.
const recordOverhead = 256

func recordSize(r *kgo.Record) int64 { return int64(len(r.Key)+len(r.Value)) + recordOverhead }

// unit is a lane's tasks that are decided and committed together.
type unit struct {
	kernel.Unit
	lane   *lane
	tasks  []*task // aligned with Items
	rest   []*task // taken out: decided in a later unit
	bytes  int64
	commit store.Unit // what is to be written
	alone  [1]*kernel.Item
}

// fit aligns the tasks with what the kernel left in the unit.
func (u *unit) fit() {
	n := len(u.Items)
	u.rest = append(u.tasks[n:len(u.tasks):len(u.tasks)], u.rest...)
	u.tasks = u.tasks[:n:n]
}
