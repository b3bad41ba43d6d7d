package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// directory is where a server lives; its path is absolute and free of links.
type directory struct{ path string }

func (d directory) data() string         { return filepath.Join(d.path, "data") }
func (d directory) passwordFile() string { return filepath.Join(d.path, "password") }
func (d directory) portFile() string     { return filepath.Join(d.path, "port") }
func (d directory) logFile() string      { return filepath.Join(d.path, "postgres.log") }
func (d directory) lockFile() string     { return d.path + ".lock" }
func (d directory) pidFile() string      { return filepath.Join(d.data(), "postmaster.pid") }

func openDirectory(path string) (directory, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return directory{}, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return directory{}, err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return directory{}, err
	}
	path, err = filepath.EvalSymlinks(path)
	return directory{path}, err
}

// major is the version that made the cluster, 0 if there is none yet.
func (d directory) major() int {
	text, err := os.ReadFile(filepath.Join(d.data(), "PG_VERSION"))
	if err != nil {
		return 0
	}
	major, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return major
}

// ensureCluster makes the cluster where there is none. It is made under another name and moved
// into place when complete, so that a crash half-way leaves no half cluster.
func (d directory) ensureCluster(ctx context.Context, b binaries, a *account) error {
	if d.major() != 0 {
		return nil
	}
	if entries, err := os.ReadDir(d.data()); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s holds files but no PostgreSQL cluster: move it away", d.data())
	}
	if err := writeFile(d.passwordFile(), rand.Text(), a); err != nil {
		return fmt.Errorf("write the password: %w", err)
	}
	fresh := d.data() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return err
	}
	if err := a.own(fresh); err != nil {
		return err
	}
	// Locale C: text compares byte for byte, the same on every system and in every version.
	cmd := a.command(d.path, b.initdb(), "-D", fresh, "--username="+role, "--pwfile="+d.passwordFile(),
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale=C")
	if out, err := runUntil(ctx, cmd); err != nil {
		return fmt.Errorf("create a cluster by %s: %w: %s", b.initdb(), err, lastLines(out, 8))
	}
	_ = os.Remove(d.data()) // an empty one; else the rename says what is wrong
	if err := os.Rename(fresh, d.data()); err != nil {
		return err
	}
	return syncDir(d.path)
}

func (d directory) readPassword() (string, error) {
	text, err := os.ReadFile(d.passwordFile())
	if err != nil {
		return "", fmt.Errorf("read the password of role %s: %w", role, err)
	}
	return string(bytes.TrimSpace(text)), nil
}

// rememberedPort is the port of the last start, 0 if there was none.
func (d directory) rememberedPort() int {
	text, err := os.ReadFile(d.portFile())
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || port < 1 || port > 65535 {
		return 0
	}
	return port
}

func (d directory) rememberPort(port int) error {
	if d.rememberedPort() == port {
		return nil
	}
	if err := writeFile(d.portFile(), strconv.Itoa(port)+"\n", nil); err != nil {
		return fmt.Errorf("remember port %d: %w", port, err)
	}
	return nil
}

// endOrphans ends what still runs on the cluster. We hold the lock, so it was left by a process
// that was killed; what it committed is in its write-ahead log.
func (d directory) endOrphans(logger *slog.Logger) error {
	orphans, err := processesOn(d.data())
	if err != nil {
		return fmt.Errorf("look for servers left running: %w", err)
	}
	if len(orphans) > 0 {
		logger.Warn("ending a postgres that a killed process left running", "dir", d.path, "pids", orphans)
		if err := endProcesses(d.data(), syscall.SIGQUIT, killGrace); err != nil {
			return err
		}
	}
	return d.removeStalePid()
}

// freePort picks a port that nobody listens on. It stays below the range from which systems
// take the local ports of outgoing connections, so that the port is still free at a restart.
func freePort() (int, error) {
	const low, high = 15000, 32000
	var err error
	for range 100 {
		n, _ := rand.Int(rand.Reader, big.NewInt(high-low))
		port := low + int(n.Int64())
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find a free port in %d to %d: %w", low, high, err)
}

// writeFile replaces a file that only the account (nil: this process) may read.
func writeFile(path, text string, a *account) error {
	fresh := path + ".new"
	if err := os.WriteFile(fresh, []byte(text), 0o600); err != nil {
		return err
	}
	if err := a.own(fresh); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
