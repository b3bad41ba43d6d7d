package kernel

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store"
)

// Defaults and bounds of the kernel.
const (
	DefaultSnapshotEvery = 100       // commits of an aggregate between two snapshots
	DefaultAttempts      = 5         // tries of a command that fails, before it is recorded as failed
	MaxEvents            = 1_000     // events of one command
	MaxEventBytes        = 1_000_000 // encoded events of one command, bytes
)

// Kernel takes units of commands from "seen before?" to what is to be committed. Its steps are Read, Decide, Settle,
// and again from Decide or Read for what Settle returns. All methods may be called concurrently on different units.
type Kernel struct {
	Context *Context
	Store   store.Store
	// Authorise judges a command's claimed caller before each of its decisions. An error that is no refusal is a
	// fault, as of a decision. Default: everybody may.
	Authorise command.Authoriser
	// SnapshotEvery is the number of commits between two snapshots of an aggregate. Default: DefaultSnapshotEvery.
	SnapshotEvery int64
	// Attempts is how often a command may fail before it is recorded as failed. Default: DefaultAttempts.
	Attempts int
	// BuildPatience is how long a command waits in its lane, beyond its tries, for a build that reads its aggregate's
	// events, and for one that knows its type where this one knows its aggregate; then it is recorded as failed, or
	// rejected. Default: none.
	BuildPatience time.Duration
	// Clock tells the time. Default: time.Now.
	Clock func() time.Time

	doubts atomic.Int64 // creates to be loaded before the next guess
}

// Load returns the aggregate's state and version: the zero state at version 0 where it does not exist.
func (k *Kernel) Load(ctx context.Context, a command.Aggregate) (*State, error) {
	typ := k.Context.aggregates[a.Type]
	if typ == nil {
		return nil, fmt.Errorf("kernel: load %s: context %s has no aggregate type %q", a, k.Context.name, a.Type)
	}
	streams, err := k.Store.Load(ctx, []store.Asked{{Stream: a.Stream(), Revision: typ.snapshotRevision()}})
	if err != nil {
		return nil, fmt.Errorf("kernel: load %s: %w", a, err)
	}
	return typ.fold(a, &streams[0])
}

func (k *Kernel) snapshotEvery() int64 {
	if k.SnapshotEvery == 0 {
		return DefaultSnapshotEvery
	}
	return k.SnapshotEvery
}

func (k *Kernel) now() time.Time {
	if k.Clock == nil {
		return time.Now()
	}
	return k.Clock()
}
