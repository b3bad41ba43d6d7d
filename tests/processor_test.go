package tests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/internal/engine"
	"github.com/seed54173720/writ/internal/metrics"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/store/postgres"
)

// processorEnv holds the configuration of a processor as JSON; with it the test binary is one.
const processorEnv = "WRIT_TESTS_PROCESSOR"

// processorConfig is what a child needs to be a processor of the catalogue.
type processorConfig struct {
	Broker   string
	Database string
	Counters string        // file that its metrics are written to, for SIGKILL takes the process's memory along
	Group    int           // commands of one transaction; 0: the default
	InFlight int           // commands in flight; 0: the default
	Linger   time.Duration // after a small group; 0: the default
}

// runProcessor turns the test binary into a processor and never returns, if its environment says so. It ends in good
// order on SIGTERM, and at once with the process that started it.
func runProcessor() {
	text, ok := os.LookupEnv(processorEnv)
	if !ok {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	if err := beProcessor(text); err != nil {
		fmt.Fprintln(os.Stderr, "processor:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func beProcessor(text string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var cfg processorConfig
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	store, err := postgres.Open(ctx, postgres.Config{URL: cfg.Database, Schema: schema, Logger: log})
	if err != nil {
		return err
	}
	defer store.Close()
	registry := prometheus.NewRegistry()
	e, err := engine.New(engine.Config{
		Kernel: &kernel.Kernel{Context: catalog.Context(), Store: store},
		Kafka:  []kgo.Opt{kgo.SeedBrokers(cfg.Broker)},
		Logger: log, Metrics: metrics.New(registry),
		GroupCommands: cfg.Group, InFlightCommands: cfg.InFlight, Linger: cfg.Linger, OffsetInterval: 50 * time.Millisecond,
		SessionTimeout: 6 * time.Second, Heartbeat: 500 * time.Millisecond, RebalanceTimeout: 10 * time.Second, Drain: 4 * time.Second,
	})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := writeCounters(cfg.Counters, registry); err != nil {
				log.Error("counters not written", "error", err)
			}
		case err := <-ended:
			return errors.Join(err, writeCounters(cfg.Counters, registry))
		}
	}
}

// counters are counters and gauges by "name{label values}".
type counters map[string]float64

func writeCounters(file string, registry *prometheus.Registry) error {
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	c := counters{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
			name := f.GetName() + "{" + strings.Join(values, ",") + "}"
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				c[name] = m.GetCounter().GetValue()
			case dto.MetricType_GAUGE:
				c[name] = m.GetGauge().GetValue()
			}
		}
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// sum adds up the counters of a name whatever their labels, without those whose label has the value but.
func (c counters) sum(name, but string) (n float64) {
	for k, v := range c {
		if strings.HasPrefix(k, name+"{") && (but == "" || k != name+"{"+but+"}") {
			n += v
		}
	}
	return n
}

// processor is a slot in which a processor runs, is killed, and comes back.
type processor struct {
	name  string
	dir   string
	cfg   processorConfig
	lives int
	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{}
	err   error // how it ended; read after done
}

func (p *processor) log() string { return filepath.Join(p.dir, p.name+".log") }

func (p *processor) countersFile(life int) string {
	return filepath.Join(p.dir, fmt.Sprintf("%s-%d.json", p.name, life))
}

func (p *processor) start(t *testing.T) {
	t.Helper()
	p.lives++
	p.cfg.Counters = p.countersFile(p.lives)
	text, err := json.Marshal(p.cfg)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.OpenFile(p.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), processorEnv+"="+string(text))
	cmd.Stdout, cmd.Stderr = out, out
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.cmd, p.done = cmd, make(chan struct{})
	go func(done chan struct{}) { // ends with the child
		p.err = cmd.Wait()
		close(done)
	}(p.done)
}

// signal sends the process a signal that it survives.
func (p *processor) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Errorf("signal processor %s: %v", p.name, err)
	}
}

// kill9 ends the process as a crash would.
func (p *processor) kill9(t *testing.T) {
	t.Helper()
	select {
	case <-p.done:
		t.Errorf("processor %s ended by itself: %v", p.name, p.err)
	default:
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("kill processor %s: %v", p.name, err)
	}
	<-p.done
}

// stop ends the process in good order.
func (p *processor) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("stop processor %s: %v (it ended: %v)", p.name, err, p.err)
	}
	select {
	case <-p.done:
		if p.err != nil {
			t.Errorf("processor %s stopped: %v, want exit 0", p.name, p.err)
		}
	case <-time.After(time.Minute):
		t.Fatalf("processor %s did not stop within a minute", p.name)
	}
}

// counters reads what the present life has written last.
func (p *processor) counters() counters { return readCounters(p.countersFile(p.lives)) }

// total adds up the counters of all lives.
func (p *processor) total() counters {
	all := counters{}
	for life := 1; life <= p.lives; life++ {
		for name, v := range readCounters(p.countersFile(life)) {
			all[name] += v
		}
	}
	return all
}

func readCounters(file string) counters {
	c := counters{}
	if text, err := os.ReadFile(file); err == nil {
		_ = json.Unmarshal(text, &c) // it is renamed into place, and whole
	}
	return c
}
