package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// settings are the arguments that configure the server: ours, overridden by the configuration's.
// They are given on the command line, so that a newer build's take effect on an old directory.
func (s *Server) settings(ctx context.Context) []string {
	memory := memoryMB()
	values := map[string]string{
		// Where it can be reached: by password on loopback, and nowhere else.
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": "",
		"max_connections":         "100",

		// An acknowledged commit survives a power cut. These are the defaults; they are here so
		// that an edited postgresql.conf cannot take the promise back.
		"fsync":              "on",
		"synchronous_commit": "on",
		"full_page_writes":   "on",

		// The journal is written at tens of MB a second. Checkpoints by volume would come every
		// half minute, and each makes the next write of every page a full image in the log.
		"max_wal_size":                 "8GB",
		"min_wal_size":                 "512MB",
		"checkpoint_timeout":           "15min",
		"checkpoint_completion_target": "0.9",
		"wal_buffers":                  "16MB",
		"wal_compression":              "on",

		// The processor shares the machine, and the kernel caches files anyway.
		"shared_buffers":       fmt.Sprintf("%dMB", min(max(memory/16, 128), 512)),
		"effective_cache_size": fmt.Sprintf("%dMB", max(memory/2, 256)),
		"random_page_cost":     "1.1", // solid state
		"jit":                  "off", // statements here run for less than compiling takes

		// Vacuum and statistics follow a growing table sooner than at a fifth of its size.
		"autovacuum_vacuum_scale_factor":  "0.05",
		"autovacuum_analyze_scale_factor": "0.05",

		// A lost race is everyday work here and reported to its client; its statement need not
		// be logged.
		"log_min_error_statement": "fatal",
		"log_line_prefix":         "%m [%p] ",
		"lc_messages":             "C",
		"log_timezone":            "UTC",
		"timezone":                "UTC",
	}
	// Faster than the default where the server was built with it.
	for name, value := range map[string]string{"wal_compression": "lz4", "default_toast_compression": "lz4"} {
		if s.accepts(ctx, name, value) {
			values[name] = value
		}
	}
	maps.Copy(values, s.cfg.Settings)

	var args []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		args = append(args, "-c", name+"="+values[name])
	}
	return args
}

// accepts asks the server's program whether it knows this value of a setting.
func (s *Server) accepts(ctx context.Context, name, value string) bool {
	cmd := s.account.command(s.dir.path, s.binaries.postgres(), "-D", s.dir.data(), "-c", name+"="+value, "-C", name)
	_, err := runUntil(ctx, cmd)
	return err == nil
}
