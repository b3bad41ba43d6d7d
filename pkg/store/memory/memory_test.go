package memory_test

import (
	"testing"

	"github.com/seed54173720/writ/pkg/store/memory"
	"github.com/seed54173720/writ/pkg/store/storetest"
)

func TestStoreKeepsTheContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.Store { return memory.New() })
}

func BenchmarkStore(b *testing.B) {
	storetest.Benchmark(b, func(*testing.B) storetest.Store { return memory.New() })
}
