package engine

import (
	"fmt"
	"testing"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/store/memory"
)

// A decision that came back just as its patience ran out went on with a unit that had been taken over: it was decided
// and answered by two goroutines.
func TestUnitThatIsTakenOverIsDecidedByOne(t *testing.T) {
	t.Parallel()
	r := newRig(t, probeContext(), 1, memory.New(), nil)
	var cmds []*command.Command
	for i := range 400 {
		cmds = append(cmds, do(t, fmt.Sprint(i), probe{Sleep: 1})) // about as long as patience
	}
	places := r.send(cmds...)
	r.await(places...)
	r.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range places {
		if n := len(r.replies[p]); n != 1 {
			t.Errorf("the record at %d was answered %d times, want once", p&(1<<40-1), n)
		}
	}
}
