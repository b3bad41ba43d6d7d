package broker

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kfake"
)

// logger passes on kfake's warnings and errors; below that it tells of every
// request.
type logger struct{ out *slog.Logger }

// Logf implements [kfake.Logger].
func (l logger) Logf(level kfake.LogLevel, format string, args ...any) {
	switch level {
	case kfake.LogLevelError:
		l.out.Log(context.Background(), slog.LevelError, "embedded broker: "+fmt.Sprintf(format, args...))
	case kfake.LogLevelWarn:
		l.out.Log(context.Background(), slog.LevelWarn, "embedded broker: "+fmt.Sprintf(format, args...))
	}
}
