package engine

import (
	"math"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
)

// cache holds the states of a partition's aggregates, the least recently used going first. It is bounded by the
// estimated bytes of the states. Guarded by the engine's mutex.
type cache struct {
	lru   *simplelru.LRU[command.Digest, *kernel.State]
	bytes int64
	most  int64
}

// entryOverhead is what an entry costs beside the state's own size, about.
const entryOverhead = 400

func newCache(most int64) *cache {
	c := &cache{most: most}
	c.lru, _ = simplelru.NewLRU(math.MaxInt32, func(_ command.Digest, s *kernel.State) { c.bytes -= s.Size() + entryOverhead })
	return c
}

func (c *cache) get(stream command.Digest) *kernel.State {
	s, _ := c.lru.Get(stream)
	return s
}

func (c *cache) put(stream command.Digest, s *kernel.State) {
	c.lru.Remove(stream)
	if s == nil || s.Size()+entryOverhead > c.most {
		return
	}
	c.lru.Add(stream, s)
	for c.bytes += s.Size() + entryOverhead; c.bytes > c.most; {
		c.lru.RemoveOldest()
	}
}

func (c *cache) drop(stream command.Digest) { c.lru.Remove(stream) }
