package tests

import (
	"os"
	"testing"

	"github.com/seed54173720/writ/internal/kafkatest"
)

func TestMain(m *testing.M) {
	runProcessor()
	os.Exit(kafkatest.Run(m))
}
