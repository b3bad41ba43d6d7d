package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/internal/embedded/broker"
	"github.com/seed54173720/writ/internal/embedded/postgres"
	"github.com/seed54173720/writ/internal/kafkatest"
	"github.com/seed54173720/writ/pkg/processor"
)

// processorEnv makes the program a processor.
const processorEnv = "WRIT_MEMORY_PROCESSOR"

// runProcessor turns the program into a processor with its defaults and never returns, if the environment says so.
func runProcessor() {
	if os.Getenv(processorEnv) == "" {
		return
	}
	_ = os.Unsetenv(processorEnv) // it is no setting, and unknown ones are refused
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the process that measures
		os.Exit(3)
	}()
	os.Args = []string{"processor", "serve", "--topics", "--migrate", "--log-level", "warn"}
	processor.Main(contextUnderTest())
}

// system is a broker, a database and a processor, each in a process of its own.
type system struct {
	dir       string
	broker    *kafkatest.Proc
	database  *postgres.Server
	processor *exec.Cmd
	ended     chan struct{} // the processor has
	end       error         // how; read after ended
	client    *kgo.Client
	admin     *kadm.Client
}

func start(ctx context.Context) (s *system, err error) {
	s = &system{}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	if s.dir, err = os.MkdirTemp("", "writ-memory-"); err != nil {
		return nil, err
	}
	if err := os.Chmod(s.dir, 0o711); err != nil { // the database's user has to get in
		return nil, err
	}
	if s.broker, err = kafkatest.Child(ctx, broker.Config{Dir: filepath.Join(s.dir, "broker")}); err != nil {
		return nil, err
	}
	if s.database, err = postgres.Start(ctx, postgres.Config{Dir: filepath.Join(s.dir, "postgres"), Logger: slog.New(slog.DiscardHandler)}); err != nil {
		return nil, err
	}
	if s.client, err = kgo.NewClient(kgo.SeedBrokers(s.broker.Addr()), kgo.MaxBufferedBytes(64<<20), kgo.ProducerBatchMaxBytes(1_048_588), kgo.UnknownTopicRetries(-1)); err != nil {
		return nil, err
	}
	s.admin = kadm.NewClient(s.client)
	if err := s.startProcessor(); err != nil {
		return nil, err
	}
	return s, s.awaitServing(ctx)
}

func (s *system) startProcessor() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s.processor = exec.Command(self)
	s.processor.Env = append(os.Environ(), processorEnv+"=1", "WRIT_KAFKA_BROKERS="+s.broker.Addr(), "WRIT_DATABASE_URL="+s.database.URL(), "WRIT_HTTP_ADDR=off")
	s.processor.Stdout, s.processor.Stderr = os.Stderr, os.Stderr
	if _, err := s.processor.StdinPipe(); err != nil {
		return err
	}
	if err := s.processor.Start(); err != nil {
		return err
	}
	s.ended = make(chan struct{})
	go func() { // ends with the processor
		s.end = s.processor.Wait()
		close(s.ended)
	}()
	return nil
}

// stop ends everything and removes its data.
func (s *system) stop() {
	if s.ended != nil {
		_ = s.processor.Process.Kill() // or it has ended
		<-s.ended
	}
	if s.client != nil {
		s.client.Close()
	}
	if s.database != nil {
		_ = s.database.Kill() // nobody reads its data again
	}
	if s.broker != nil {
		_ = s.broker.Kill9() // likewise
	}
	_ = os.RemoveAll(s.dir)
}

// poll looks until done says that it is, and fails when the processor has ended.
func (s *system) poll(ctx context.Context, done func() (bool, error)) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-s.ended:
			return fmt.Errorf("the processor ended: %w", errors.Join(errors.New("too early"), s.end))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// awaitServing waits until the processor has made its topics and joined its group.
func (s *system) awaitServing(ctx context.Context) error {
	return s.poll(ctx, func() (bool, error) {
		groups, err := s.admin.DescribeGroups(ctx, group)
		if err != nil {
			return false, err
		}
		return len(groups[group].Members) > 0 && groups[group].State == "Stable", nil
	})
}

// awaitFinished waits until the processor's offsets stand at the end of the command topic: every command is answered.
func (s *system) awaitFinished(ctx context.Context) error {
	return s.poll(ctx, func() (bool, error) {
		ends, err := s.admin.ListEndOffsets(ctx, commands)
		if err == nil {
			err = ends.Error()
		}
		if err != nil {
			return false, err
		}
		finished, err := s.admin.FetchOffsets(ctx, group)
		if err != nil {
			return false, err
		}
		done := true
		ends.Each(func(end kadm.ListedOffset) {
			at, ok := finished.Lookup(commands, end.Partition)
			done = done && (end.Offset == 0 || ok && at.At == end.Offset)
		})
		return done, nil
	})
}

// suspend stops the processor in its tracks, for commands to pile up; resume has it go on.
func (s *system) suspend() (resume func() error, err error) {
	if err := s.processor.Process.Signal(syscall.SIGSTOP); err != nil {
		return nil, err
	}
	return func() error { return s.processor.Process.Signal(syscall.SIGCONT) }, nil
}

// forgetPeak makes the peak be that of what follows.
func (s *system) forgetPeak() error { return os.WriteFile(s.proc("clear_refs"), []byte("5"), 0) }

// peak is the largest resident size since then, in MiB.
func (s *system) peak() (int, error) {
	text, err := os.ReadFile(s.proc("status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			return kib >> 10, err
		}
	}
	return 0, fmt.Errorf("%s does not tell VmHWM", s.proc("status"))
}

func (s *system) proc(file string) string {
	return fmt.Sprintf("/proc/%d/%s", s.processor.Process.Pid, file)
}
