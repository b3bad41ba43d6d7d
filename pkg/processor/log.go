package processor

import "log/slog"

// logger writes to standard error as configured.
func (a *app) logger(quiet bool) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(a.cfg.LogLevel)) // was checked
	if quiet && !a.cfg.Explicit("log-level") {
		level = slog.LevelWarn
	}
	options := &slog.HandlerOptions{Level: level}
	if a.cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(a.stderr, options))
	}
	return slog.New(slog.NewTextHandler(a.stderr, options))
}
