package postgres

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// ErrInUse says that another process serves the directory.
var ErrInUse = errors.New("another process serves this directory")

// lock is the right to serve a directory. The kernel takes it back when the process dies.
type lock struct{ file *os.File }

func lockDirectory(d directory) (*lock, error) {
	f, err := os.OpenFile(d.lockFile(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, _ := io.ReadAll(io.LimitReader(f, 32))
		f.Close()
		return nil, fmt.Errorf("%w: process %s holds %s", ErrInUse, strings.TrimSpace(string(holder)), d.lockFile())
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", d.lockFile(), err)
	}
	// Who holds it is for people; the lock itself is what counts.
	if err := f.Truncate(0); err == nil {
		_, _ = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	return &lock{f}, nil
}

// release gives the directory free. The file stays: removing it would let two processes lock
// two files of the same name.
func (l *lock) release() {
	if l != nil {
		l.file.Close()
	}
}
