// Package health keeps what is wrong right now, by the part it concerns, for readiness and for people.
package health

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Health is a set of present faults. The zero value is healthy. Safe for concurrent use.
type Health struct {
	mu     sync.Mutex
	faults map[string]error
}

// Report sets the part's present fault, or clears it where err is nil. It reports whether that changed from well to
// ill or back, so that the caller can log each surprise once.
func (h *Health) Report(part string, err error) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, was := h.faults[part]
	if err == nil {
		delete(h.faults, part)
		return was
	}
	if h.faults == nil {
		h.faults = map[string]error{}
	}
	h.faults[part] = err
	return !was
}

// Err joins the present faults, ordered by part; nil: well.
func (h *Health) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []error
	for _, part := range slices.Sorted(maps.Keys(h.faults)) {
		all = append(all, fmt.Errorf("%s: %w", part, h.faults[part]))
	}
	return errors.Join(all...)
}
