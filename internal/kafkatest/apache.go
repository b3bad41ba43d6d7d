package kafkatest

import (
	"bytes"
	"context"
	"crypto/rand"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"text/template"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

//go:embed testdata/*.properties
var properties embed.FS

// Apache starts one node of Apache Kafka with its data in dir, which MUST be empty
// or missing, and waits until it answers. It fails with [ErrNotAvailable] on a
// machine without Java, or without Maven where the jars are not there yet.
func Apache(ctx context.Context, dir string) (*Proc, error) {
	_, p, err := apache(ctx, dir, nil)
	return p, err
}

func apache(ctx context.Context, dir string, security *Security) (*node, *Proc, error) {
	java, err := javaBinary()
	if err != nil {
		return nil, nil, err
	}
	jars, err := Jars(ctx)
	if err != nil {
		return nil, nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, nil, fmt.Errorf("kafkatest: %w", err)
	}
	n := node{dir: dir, java: java, jars: jars, clusterID: newClusterID(), security: security}
	if err := n.format(ctx); err != nil {
		return nil, nil, fmt.Errorf("kafkatest: format the data of Apache Kafka: %w", err)
	}
	p := &Proc{
		addr:    fmt.Sprintf("127.0.0.1:%d", n.port),
		version: "Apache Kafka " + KafkaVersion,
		log:     filepath.Join(dir, "kafka.log"),
		ready:   n.ready,
		command: func() (*exec.Cmd, error) {
			// It outlives ctx, which bounds the start.
			return n.command(context.Background(), "kafka.Kafka", n.config()), nil
		},
	}
	if err := p.start(ctx); err != nil {
		return nil, nil, err
	}
	return &n, p, nil
}

// node is what one installation of Apache Kafka keeps over its lives.
type node struct {
	dir, java, jars string
	clusterID       string
	port            int
	security        *Security // nil: none
	securePort      int
}

func (n *node) config() string { return filepath.Join(n.dir, "server.properties") }

// format picks the ports, writes the configuration and lays out the storage.
func (n *node) format(ctx context.Context) error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	n.port, n.securePort = ports[0], ports[2]
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return err
	}
	var config bytes.Buffer
	if err := template.Must(template.ParseFS(properties, "testdata/server.properties")).Execute(&config, map[string]any{
		"Port":           n.port,
		"ControllerPort": ports[1],
		"Data":           filepath.Join(n.dir, "data"),
		"Listeners":      n.listeners(),
	}); err != nil {
		return err
	}
	if n.security != nil {
		if err := n.secure(&config); err != nil {
			return err
		}
	}
	if err := os.WriteFile(n.config(), config.Bytes(), 0o644); err != nil {
		return err
	}
	logging, err := properties.ReadFile("testdata/log4j2.properties")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(n.dir, "log4j2.properties"), logging, 0o644); err != nil {
		return err
	}
	cmd := n.command(ctx, "kafka.tools.StorageTool", append([]string{"format", "--standalone", "-t", n.clusterID, "-c", n.config()}, n.scramUsers()...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

func (n *node) command(ctx context.Context, class string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, n.java, append([]string{
		"-Xms512m", "-Xmx512m", "-XX:+UseSerialGC",
		"-Dlog4j2.configurationFile=" + filepath.Join(n.dir, "log4j2.properties"),
		"-cp", filepath.Join(n.jars, "*"), class,
	}, args...)...)
	cmd.Dir = n.dir
	return cmd
}

// ready waits for an answer that names our own cluster: whoever else may have
// taken the port is not mistaken for it. A node that is alive can take a while
// until it leads its partitions again, so the answer must also be free of holes.
func (n *node) ready(ctx context.Context, r *running) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(fmt.Sprintf("127.0.0.1:%d", n.port)))
	if err != nil {
		return err
	}
	defer client.Close()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		last := n.answers(ctx, client)
		if last == nil {
			return nil
		}
		select {
		case <-poll.C:
		case <-r.done:
			return errors.New("the process ended")
		case <-ctx.Done():
			return fmt.Errorf("%w; the last try: %w", ctx.Err(), last)
		}
	}
}

func (n *node) answers(ctx context.Context, client *kgo.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	meta, err := kadm.NewClient(client).Metadata(ctx)
	if err != nil {
		return err
	}
	if meta.Cluster != n.clusterID {
		return fmt.Errorf("port %d is that of cluster %q, not of %q", n.port, meta.Cluster, n.clusterID)
	}
	if len(meta.Brokers) == 0 {
		return errors.New("the broker is not registered yet")
	}
	for _, topic := range meta.Topics {
		for _, p := range topic.Partitions {
			if p.Leader < 0 || p.Err != nil {
				return fmt.Errorf("%s/%d has no leader yet", topic.Topic, p.Partition)
			}
		}
	}
	return nil
}

// newClusterID makes 16 bytes of base64 that can't be taken for a flag.
func newClusterID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	id[0] &= 0x7f           // not '-', which is 62 of 64
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// freePorts picks ports of the loopback interface that nobody listens on. They
// lie below those that the system hands to outgoing connections, so that nobody
// is given one of them while the broker is away.
func freePorts(n int) ([]int, error) {
	const low, high = 20_000, 32_000
	var ports []int
	var err error
	for range 100 {
		if len(ports) == n {
			return ports, nil
		}
		var ln net.Listener
		if ln, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", low+mathrand.IntN(high-low))); err != nil {
			continue
		}
		defer ln.Close() // held, so that the next one differs
		ports = append(ports, ln.Addr().(*net.TCPAddr).Port)
	}
	return nil, fmt.Errorf("no free port: %w", err)
}
