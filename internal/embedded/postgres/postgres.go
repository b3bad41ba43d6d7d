// Package postgres runs a PostgreSQL server out of a directory of its own, made from the
// binaries that the system has installed. It is what the processor uses when no database is
// configured, and what tests use as a real server.
//
// A directory holds the cluster (data), the password of its only role (password), the port it
// was last served on (port) and the server's log (postgres.log). Beside it stands a lock file
// (directory name + ".lock"), so that two processes never serve one directory.
//
// The server listens on loopback TCP only and asks every connection for the password. It ends
// with the process that started it: by a fast shutdown in [Server.Stop], and on Linux by an
// immediate shutdown when that process dies in any other way. What it committed is there again
// after the next start.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	role     = "writ" // superuser and the only role
	database = "writ"

	// killGrace is how long a server that was told to stop at once may take before it is killed.
	killGrace = 10 * time.Second
)

// Config says where and how a server runs. Only Dir is required.
type Config struct {
	// Dir is the server's own directory; it is made where it is missing. When the process runs as
	// root, the server runs as user postgres (or nobody), who must be able to enter Dir's parents.
	Dir string

	// Port to listen on. Default 0: the port of the last start, else a free one.
	Port int

	// Settings overrides server settings by name, as they stand in postgresql.conf.
	// Default: none beyond those of this package.
	Settings map[string]string

	// Logger tells of starts and stops. The server's own log goes to Dir/postgres.log.
	// Default slog.Default().
	Logger *slog.Logger
}

// Server is a running PostgreSQL server, or one that was stopped and can be started again.
// Its methods are safe for concurrent use.
type Server struct {
	cfg      Config
	dir      directory
	binaries binaries
	account  *account
	password string
	port     int
	version  string

	mu   sync.Mutex // one start, stop or kill at a time; guards what follows
	lock *lock      // held from start to stop
	proc *process   // nil until the first start, kept when it has ended
}

// Start serves cfg.Dir and returns once the server answers. It first creates the cluster if
// there is none and ends what an earlier, killed process left running on it. Recovery after a
// crash takes as long as it takes: bound it with ctx, whose end makes Start give up. A ctx that
// ends later does not stop the server.
//
// The error is [ErrNotInstalled] where the system has no usable binaries, [ErrInUse] where
// another process serves the directory, and otherwise holds the last lines of the server's log.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Dir == "" {
		return nil, errors.New("postgres: dir is empty: name a directory for the server")
	}
	if cfg.Port < 0 || cfg.Port > 65535 {
		return nil, fmt.Errorf("postgres: port %d is not in 0 to 65535", cfg.Port)
	}
	s := &Server{cfg: cfg}
	if err := s.start(ctx); err != nil {
		return nil, fmt.Errorf("postgres: start in %s: %w", cfg.Dir, err)
	}
	return s, nil
}

// URL is the connection string of the server's database, password included. It stays the same
// over Restart.
func (s *Server) URL() string { return s.urlOf(database) }

// Version is the server's version, such as "15.18 (Debian 15.18-0+deb12u1)".
func (s *Server) Version() string { return s.version }

// Log is the path of the server's log file.
func (s *Server) Log() string { return s.dir.logFile() }

// Done is closed when the server that now runs has ended, however it ended. After a Restart ask
// again.
func (s *Server) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.done
}

// Stop shuts the server down (fast: sessions are ended, everything is written) and gives the
// directory free. If ctx ends first the shutdown is immediate, which the next start has to
// recover from. Stopping a stopped server does nothing.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stop(ctx)
}

// Kill ends all processes of the server with SIGKILL, as a machine that fails would, and gives
// the directory free. It is meant for tests of what survives; on a stopped server it does nothing.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return nil
	}
	defer s.release()
	_ = s.proc.Signal(syscall.SIGKILL) // or it has ended by itself
	<-s.proc.done
	if err := endProcesses(s.dir.data(), syscall.SIGKILL, killGrace); err != nil {
		return fmt.Errorf("postgres: kill in %s: %w", s.cfg.Dir, err)
	}
	return nil
}

// Restart serves the directory again on the same port: after Stop, after Kill, and after the
// server ended by itself. A running server is stopped first.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stop(ctx); err != nil {
		s.cfg.Logger.Warn("postgres did not stop cleanly", "dir", s.cfg.Dir, "error", err)
	}
	s.cfg.Port = s.port
	if err := s.start(ctx); err != nil {
		return fmt.Errorf("postgres: restart in %s: %w", s.cfg.Dir, err)
	}
	return nil
}

// start takes the directory and brings it up; on an error nothing is left running or locked.
func (s *Server) start(ctx context.Context) (err error) {
	began := time.Now()
	if s.dir, err = openDirectory(s.cfg.Dir); err != nil {
		return err
	}
	if s.lock, err = lockDirectory(s.dir); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	if err = s.prepare(ctx); err != nil {
		return err
	}
	if err = s.serve(ctx); err != nil {
		return err
	}
	s.cfg.Logger.Info("postgres started", "version", s.version, "dir", s.cfg.Dir,
		"port", s.port, "pid", s.proc.Pid, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// prepare makes sure that there is a cluster which nobody serves.
func (s *Server) prepare(ctx context.Context) (err error) {
	if s.binaries, err = findBinaries(s.dir.major()); err != nil {
		return err
	}
	if s.account, err = accountFor(s.dir); err != nil {
		return err
	}
	if err = s.account.mustEnter(s.dir, s.binaries); err != nil {
		return err
	}
	if err = s.dir.ensureCluster(ctx, s.binaries, s.account); err != nil {
		return err
	}
	if s.password, err = s.dir.readPassword(); err != nil {
		return err
	}
	return s.dir.endOrphans(s.cfg.Logger)
}

// serve launches the server. A port that was not asked for by number is only a suggestion: when
// somebody else has it by now, another one is tried.
func (s *Server) serve(ctx context.Context) error {
	settings := s.settings(ctx)
	port, tries := s.cfg.Port, 1
	if port == 0 {
		port, tries = s.dir.rememberedPort(), 5
	}
	for {
		if port == 0 {
			var err error
			if port, err = freePort(); err != nil {
				return err
			}
		}
		err := s.launch(ctx, port, settings)
		if err == nil {
			break
		}
		if tries--; tries == 0 || !errors.Is(err, errPortTaken) {
			return err
		}
		port = 0
	}
	s.port = port
	if err := s.dir.rememberPort(port); err != nil {
		s.proc.end()
		return err
	}
	if err := s.ensureDatabase(ctx); err != nil {
		s.proc.end()
		return err
	}
	return nil
}

// ensureDatabase shows that the server which answers is ours (it takes our password), and makes
// the database of a new cluster.
func (s *Server) ensureDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.urlOf("postgres"))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var exists bool
	err = conn.QueryRow(ctx,
		`select current_setting('server_version'), exists (select from pg_database where datname = $1)`,
		database).Scan(&s.version, &exists)
	if err != nil {
		return fmt.Errorf("read version and databases: %w", err)
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, `create database `+database); err != nil {
		return fmt.Errorf("create database %s: %w", database, err)
	}
	return nil
}

func (s *Server) stop(ctx context.Context) error {
	if s.lock == nil {
		return nil
	}
	defer s.release()
	if s.proc.ended() {
		return fmt.Errorf("postgres: stop in %s: it had ended before: %w", s.cfg.Dir, s.proc.err())
	}
	began := time.Now()
	_ = s.proc.Signal(syscall.SIGINT) // fast shutdown
	select {
	case <-s.proc.done:
	case <-ctx.Done():
		s.proc.end()
	}
	if s.proc.state != nil && !s.proc.state.Success() {
		return fmt.Errorf("postgres: stop in %s: %w", s.cfg.Dir, s.proc.err())
	}
	s.cfg.Logger.Info("postgres stopped", "dir", s.cfg.Dir, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

func (s *Server) release() {
	s.lock.release()
	s.lock = nil
}

func (s *Server) urlOf(db string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(role, s.password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
		Path:     db,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}
