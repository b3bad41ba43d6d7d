package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// account is whom the server runs as when this process is root, since PostgreSQL refuses to run
// as root. Nil means: as this process.
type account struct {
	name string
	cred *syscall.Credential
}

// accountFor returns the owner of an existing cluster, and for a new one user postgres, else
// nobody.
func accountFor(d directory) (*account, error) {
	owner := -1
	if info, err := os.Stat(d.data()); err == nil {
		owner = int(info.Sys().(*syscall.Stat_t).Uid)
	}
	if self := os.Geteuid(); self != 0 {
		if owner >= 0 && owner != self {
			return nil, fmt.Errorf("the cluster %s belongs to uid %d and this process runs as uid %d: run it as the cluster's owner or as root", d.data(), owner, self)
		}
		return nil, nil
	}
	if owner >= 0 {
		u, err := user.LookupId(strconv.Itoa(owner))
		if err != nil {
			return nil, fmt.Errorf("find the owner of the cluster %s: %w", d.data(), err)
		}
		return newAccount(u)
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return newAccount(u)
		}
	}
	return nil, errors.New("postgres does not run as root, and there is neither a user postgres nor a user nobody to run it as")
}

func newAccount(u *user.User) (*account, error) {
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s has uid %q: %w", u.Username, u.Uid, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s has gid %q: %w", u.Username, u.Gid, err)
	}
	return &account{u.Username, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// command prepares one of the server's programs to run in dir as the account. Its environment is
// this process's without what steers PostgreSQL (PGDATA, PGPORT …) or may be secret.
func (a *account) command(dir, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = []string{"LC_ALL=C"}
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	// A group of its own: an interrupt typed at the terminal is for us, and we end the server
	// when our work is done.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if a != nil {
		cmd.SysProcAttr.Credential = a.cred
	}
	return cmd
}

// own gives a file to the account.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Lchown(path, int(a.cred.Uid), int(a.cred.Gid))
}

// PassageError says that the server cannot get to its directory: this process is root, and the user whom the server runs
// as cannot enter one of the directory's parents.
type PassageError struct {
	User string
	Dir  string // the first that stops it
}

func (e *PassageError) Error() string {
	return fmt.Sprintf("postgres does not run as root, and user %s, whom it runs as instead, cannot enter directory %s: choose a data directory elsewhere, or allow passage with chmod o+x %s",
		e.User, e.Dir, e.Dir)
}

// mustEnter checks that the account can get to the directory, and names the parent that stops
// it. It tries rather than reads modes: ACLs and mounts have a say too.
func (a *account) mustEnter(d directory, b binaries) error {
	if a == nil {
		return nil
	}
	// The server's user passes through, but neither lists nor writes: only the cluster is its own.
	if err := os.Chmod(d.path, 0o711); err != nil {
		return err
	}
	enter := func(dir string) error { return a.command(dir, b.postgres(), "--version").Run() }
	if enter(d.path) == nil {
		return nil
	}
	if err := enter("/"); err != nil {
		return fmt.Errorf("user %s, whom the server would run as, cannot run %s: %w", a.name, b.postgres(), err)
	}
	at := "/"
	for part := range strings.SplitSeq(strings.TrimPrefix(d.path, "/"), "/") {
		at = filepath.Join(at, part)
		if err := enter(at); err != nil {
			return &PassageError{User: a.name, Dir: at}
		}
	}
	return nil
}
