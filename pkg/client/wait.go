package client

import (
	"context"
	"fmt"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/seed54173720/writ/pkg/command"
)

// wait is one command that was sent, until it ends with a result.
type wait struct {
	cmd  *command.Command
	post bool         // ends with the acknowledgement
	out  chan<- *wait // takes the wait when it has ended; it MUST have room

	// Guarded by waits.mu until the wait has ended.
	stop      func() bool // the watch over the caller's context
	ended     bool
	known     bool // result.Accepted is set
	doubt     error
	held      []command.Reply // that came before the acknowledgement
	contested bool            // another command goes by the same request ID
	result    Result
}

// waits are the commands under way. Its lock is held for moments only.
type waits struct {
	mu     sync.Mutex
	closed bool
	byID   map[string][]*wait // by request ID

	// unanswered remembers what was sent under requests whose outcome nobody
	// waited for: a final answer to that must not answer a different command that
	// wrongly goes by the same request ID.
	unanswered *lru.Cache[command.Digest, command.Digest]
}

func newWaits() *waits {
	unanswered, err := lru.New[command.Digest, command.Digest](4096)
	if err != nil {
		panic(err) // the size is positive
	}
	return &waits{byID: map[string][]*wait{}, unanswered: unanswered}
}

// add begins to wait for w, until ctx ends. It MUST come before the command is produced, since the
// answer can come before the acknowledgement.
func (ws *waits) add(ctx context.Context, w *wait) error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		return ErrClosed
	}
	w.stop = context.AfterFunc(ctx, func() { ws.abandon(w, context.Cause(ctx)) })
	if w.post {
		return nil
	}
	id := w.cmd.RequestID()
	for _, other := range ws.byID[id] {
		if other.cmd.Request() == w.cmd.Request() && other.cmd.Fingerprint() != w.cmd.Fingerprint() {
			w.contested, other.contested = true, true
		}
	}
	if sent, ok := ws.unanswered.Get(w.cmd.Request()); ok && sent != w.cmd.Fingerprint() {
		w.contested = true
	}
	ws.byID[id] = append(ws.byID[id], w)
	return nil
}

// accepted notes where the record stands and looks at the answers that were faster.
func (ws *waits) accepted(w *wait, at Accepted) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.ended {
		return
	}
	w.result.Accepted, w.known = at, true
	if w.post {
		ws.unanswered.Add(w.cmd.Request(), w.cmd.Fingerprint())
		ws.finish(w)
		return
	}
	ws.judgeHeld(w)
}

// unsure notes that the record may stand anywhere or nowhere: only a final outcome
// of its request can end the wait well.
func (ws *waits) unsure(w *wait, err error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.ended {
		return
	}
	w.doubt = fmt.Errorf("the brokers did not acknowledge it: %w", err)
	if w.post || ws.closed {
		ws.fail(w, nil)
		return
	}
	ws.judgeHeld(w)
}

// wanted reports whether anybody waits for the request.
func (ws *waits) wanted(requestID []byte) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.byID[string(requestID)]) > 0
}

// answer gives the reply to those whom it answers.
func (ws *waits) answer(r command.Reply) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range append([]*wait(nil), ws.byID[r.RequestID]...) {
		if !w.known && w.doubt == nil {
			w.held = append(w.held, r)
			continue
		}
		ws.judge(w, r)
	}
}

func (ws *waits) judgeHeld(w *wait) {
	held := w.held
	w.held = nil
	for _, r := range held {
		ws.judge(w, r)
	}
}

// judge ends w with r if r answers it: as the answer to its very record, or as a
// final outcome of its request, which is every later answer too. A "no" to an
// earlier record of the request is neither: this record is decided anew.
func (ws *waits) judge(w *wait, r command.Reply) {
	if w.ended {
		return
	}
	if !w.owns(r) && !w.settledBy(r) {
		return
	}
	if r.Topic == w.result.Topic && w.known {
		r.Position.TopicID = w.result.Position.TopicID
	}
	w.result.Reply = r
	ws.finish(w)
}

// owns reports whether r answers w's very record. A reply without topic ID comes
// from a processor that has none to tell.
func (w *wait) owns(r command.Reply) bool {
	own := w.result.Accepted
	if r.Position.TopicID == [16]byte{} {
		r.Position.TopicID = own.Position.TopicID
	}
	return w.known && r.Topic == own.Topic && r.Position == own.Position
}

func (w *wait) settledBy(r command.Reply) bool {
	return r.Outcome.Final() && !w.contested && r.Type == w.cmd.Type() && r.Aggregate == w.cmd.Aggregate()
}

// abandon ends w because nobody waits any longer, unless a final outcome has
// overtaken the acknowledgement.
func (ws *waits) abandon(w *wait, cause error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, r := range w.held {
		ws.judge(w, r)
	}
	ws.fail(w, cause)
}

// end ends w with an error.
func (ws *waits) end(w *wait, err error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if !w.ended {
		w.result.Err = err
		ws.finish(w)
	}
}

// close ends all waits, and refuses new ones.
func (ws *waits) close() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.closed = true
	for _, list := range ws.byID {
		for _, w := range append([]*wait(nil), list...) {
			ws.fail(w, ErrClosed)
		}
	}
}

// fail ends w with an unknown outcome, for want of an answer; cause is why nobody
// waits for one any longer, or nil where the doubt itself is all there is.
func (ws *waits) fail(w *wait, cause error) {
	if w.ended {
		return
	}
	switch {
	case w.known:
		cause = fmt.Errorf("accepted as %s/%d/%d, but not answered: %w",
			w.result.Topic, w.result.Position.Partition, w.result.Position.Offset, cause)
	case w.doubt != nil && cause != nil:
		cause = fmt.Errorf("%w; %w", w.doubt, cause)
	case w.doubt != nil:
		cause = w.doubt
	default:
		cause = fmt.Errorf("not acknowledged by the brokers: %w", cause)
	}
	w.result.Err = fault(ErrUnknownOutcome, w.cmd, cause)
	ws.unanswered.Add(w.cmd.Request(), w.cmd.Fingerprint())
	ws.finish(w)
}

// finish hands w out. It MUST be called once.
func (ws *waits) finish(w *wait) {
	w.ended, w.held = true, nil
	if w.stop != nil {
		w.stop()
	}
	id := w.cmd.RequestID()
	rest := ws.byID[id][:0]
	for _, other := range ws.byID[id] {
		if other != w {
			rest = append(rest, other)
		}
	}
	if len(rest) == 0 {
		delete(ws.byID, id)
	} else {
		ws.byID[id] = rest
	}
	w.out <- w
}
