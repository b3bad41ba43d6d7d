package kafkatest

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// KafkaVersion is the Apache Kafka that the tests run on.
const KafkaVersion = "4.4.0"

// ErrNotAvailable says that this machine can't run Apache Kafka; the error around
// it says why.
var ErrNotAvailable = errors.New("apache kafka is not available")

//go:embed testdata/pom.xml
var pom []byte

// Jars returns the directory that holds Apache Kafka's jars, after Maven has
// fetched them if it is missing: $WRIT_CACHE/kafka-VERSION-tools, by default below the
// user's cache directory. It is safe against other processes that do the same.
func Jars(ctx context.Context) (string, error) {
	dir, err := jarsDir()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("kafkatest: %w", err)
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", fmt.Errorf("kafkatest: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("kafkatest: lock %s: %w", lock.Name(), err)
	}
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	return dir, fetch(ctx, dir)
}

// fetch fills dir in one step, so that a directory that is there is complete.
func fetch(ctx context.Context, dir string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return fmt.Errorf("kafkatest: %w: no jars in %s, and Maven to fetch them: %w", ErrNotAvailable, dir, err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "fetch-")
	if err != nil {
		return fmt.Errorf("kafkatest: %w", err)
	}
	defer os.RemoveAll(tmp)
	if err := os.WriteFile(filepath.Join(tmp, "pom.xml"), pom, 0o644); err != nil {
		return fmt.Errorf("kafkatest: %w", err)
	}
	cmd := exec.CommandContext(ctx, mvn, "--batch-mode", "--quiet", "dependency:copy-dependencies",
		"-Dkafka.version="+KafkaVersion, "-DincludeScope=runtime", "-DoutputDirectory="+filepath.Join(tmp, "jars"))
	cmd.Dir = tmp
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kafkatest: %w: fetch the jars: %w\n%s", ErrNotAvailable, err, out)
	}
	if err := os.Rename(filepath.Join(tmp, "jars"), dir); err != nil {
		return fmt.Errorf("kafkatest: %w", err)
	}
	return nil
}

func jarsDir() (string, error) {
	cache := os.Getenv("WRIT_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("kafkatest: no cache directory, set WRIT_CACHE: %w", err)
		}
		cache = filepath.Join(user, "writ")
	}
	dir, err := filepath.Abs(filepath.Join(cache, "kafka-"+KafkaVersion+"-tools"))
	if err != nil {
		return "", fmt.Errorf("kafkatest: WRIT_CACHE: %w", err)
	}
	return dir, nil
}

// JavaVersion returns the first line with which the Java machine names itself.
func JavaVersion(ctx context.Context) (string, error) {
	java, err := javaBinary()
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, java, "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kafkatest: %w: %s -version: %w\n%s", ErrNotAvailable, java, err, out)
	}
	line, _, _ := bytes.Cut(out, []byte("\n"))
	return strings.TrimSpace(string(line)), nil
}

func javaBinary() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		return filepath.Join(home, "bin", "java"), nil
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return "", fmt.Errorf("kafkatest: %w: Java 17 or later: %w", ErrNotAvailable, err)
	}
	return java, nil
}
