package broker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// InUseError says that another broker runs on the directory.
type InUseError struct {
	Dir string // the data directory
	PID int    // the other process; 0 if it did not say
}

func (e *InUseError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("broker: directory %s is in use by another process", e.Dir)
	}
	return fmt.Sprintf("broker: directory %s is in use by process %d", e.Dir, e.PID)
}

// dirLock keeps other brokers off a directory. The system drops it with the
// process, however that ends.
type dirLock struct{ f *os.File }

// lockDir locks a file beside dir: beside, so that it stays what it is when
// somebody empties the directory.
func lockDir(dir string) (*dirLock, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("broker: lock directory %s: %w", dir, err)
	}
	f, err := os.OpenFile(abs+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("broker: lock directory %s: %w", dir, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("broker: lock directory %s: %w", dir, err)
		}
		text, _ := os.ReadFile(f.Name())
		pid, _ := strconv.Atoi(string(bytes.TrimSpace(text)))
		return nil, &InUseError{Dir: dir, PID: pid}
	}
	// Who holds it is a courtesy to the next one's error message.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &dirLock{f}, nil
}

func (l *dirLock) release() error {
	if err := l.f.Close(); err != nil {
		return fmt.Errorf("broker: release the directory: %w", err)
	}
	return nil
}
