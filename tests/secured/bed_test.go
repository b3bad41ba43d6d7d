package secured

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/internal/config"
	"github.com/seed54173720/writ/internal/embedded/postgres"
	"github.com/seed54173720/writ/internal/kafka"
	"github.com/seed54173720/writ/internal/kafkatest"
	"github.com/seed54173720/writ/internal/pgtest"
	"github.com/seed54173720/writ/pkg/client"
	"github.com/seed54173720/writ/pkg/processor"
)

// patience bounds what may take long on a busy machine: a group that forms again, a Java machine that starts.
const patience = 90 * time.Second

// canary is in every secret of this test, and must be in nothing that anybody gets to see.
const canary = "canary"

func secretOf(user string) string { return canary + "-" + strings.ReplaceAll(user, "-", "") }

// Users of Kafka, each with the rights that deploy/kafka-acls.sh gives it.
const (
	kafkaProcessor = "catalog-processor"
	kafkaClient    = "shop"
	kafkaOperator  = "operator"
)

// bed is what the test runs on: servers that let nobody in without TLS and a login, with topics, schema, roles and
// rights as they are made by the scripts.
type bed struct {
	*testing.T

	dir       string
	ca        string // file
	kafka     *kafkatest.Secured
	admin     *kadm.Client // may do everything
	postgres  *postgres.Server
	superuser *pgx.Conn

	secrets map[string]string // users of Kafka: password, if not the first one
	said    *said             // by everything that ran
}

// said is all that programs have printed.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// tail is the last of what was not said for debugging.
func (s *said) tail() string {
	lines := slices.DeleteFunc(strings.Split(s.String(), "\n"), func(line string) bool { return strings.Contains(line, "level=DEBUG") })
	return strings.Join(lines[max(0, len(lines)-200):], "\n")
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{T: t, dir: t.TempDir(), said: &said{}, secrets: map[string]string{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what was said, but for details:\n%s", b.said.tail())
		}
	})
	authority := newAuthority(t)
	cert, key := authority.issue(t)
	b.ca = b.file("ca.pem", string(authority.pem()))

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	users := map[string]string{}
	for _, user := range []string{kafkaProcessor, kafkaClient, kafkaOperator} {
		users[user] = secretOf(user)
	}
	var err error
	b.kafka, err = kafkatest.ApacheSecured(ctx, filepath.Join(b.dir, "kafka"), kafkatest.Security{Cert: cert, Key: key, Users: users})
	if err != nil {
		kafkatest.Unavailable(t, err)
	}
	t.Cleanup(func() {
		if err := b.kafka.Kill9(); err != nil {
			t.Error(err)
		}
	})
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.kafka.AdminAddr()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	b.admin = kadm.NewClient(cl)

	b.postgres = pgtest.Server(t, pgtest.Fast)
	pgtest.Secure(t, b.postgres, cert, key)
	if b.superuser, err = pgx.Connect(ctx, b.postgres.URL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.superuser.Close(context.Background()) })
	b.grantKafka(ctx)
	b.makeRoles(ctx)
	return b
}

// part runs a test on the same bed. Parts run one after the other.
func (b *bed) part(name string, f func(*bed)) {
	b.Helper()
	b.Run(name, func(t *testing.T) {
		inner := *b
		inner.T = t
		f(&inner)
	})
}

// file writes a file that only its user may read.
func (b *bed) file(name, text string) string {
	b.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

// grantKafka lets the operator make the topics, and the others use them.
func (b *bed) grantKafka(ctx context.Context) {
	b.Helper()
	if err := b.kafka.Tool(b.dir, "kafka-acls.sh", "org.apache.kafka.tools.AclCommand"); err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "../../deploy/kafka-acls.sh", "--bootstrap-server", b.kafka.AdminAddr(), "--context", "catalog",
		"--processor", kafkaProcessor, "--client", kafkaClient, "--operator", kafkaOperator)
	cmd.Env = append(os.Environ(), "PATH="+b.dir+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("kafka-acls.sh: %v\n%s", err, out)
	}
	b.must(append(b.login(kafkaOperator), "topics", "--create", "--events", "--topics-partitions=3", "--topics-replication=1")...)
}

// makeRoles runs the script of roles before and after the migration.
func (b *bed) makeRoles(ctx context.Context) {
	b.Helper()
	b.runRoles(ctx)
	for _, role := range []string{"catalog_owner", "catalog_processor", "catalog_reader"} {
		b.sql(fmt.Sprintf(`alter role %s password '%s'`, role, secretOf(role)))
	}
	b.must("migrate", "--database-url-file", b.database("catalog_owner"))
	b.runRoles(ctx)
}

func (b *bed) runRoles(ctx context.Context) {
	b.Helper()
	psql, err := exec.LookPath("psql")
	if err != nil {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/psql")
		if len(found) == 0 {
			b.Fatal(err)
		}
		psql = found[len(found)-1]
	}
	out, err := exec.CommandContext(ctx, psql, "-X", "-q", "-v", "context=catalog", "-f", "../../deploy/postgres-roles.sql", b.postgres.URL()).CombinedOutput()
	if err != nil {
		b.Fatalf("postgres-roles.sql: %v\n%s", err, out)
	}
}

// sql runs a statement that may do everything.
func (b *bed) sql(statement string) {
	b.Helper()
	if _, err := b.superuser.Exec(b.Context(), statement); err != nil {
		b.Fatalf("%s: %v", statement, err)
	}
}

// database returns a file with the URL by which a role connects.
func (b *bed) database(role string) string {
	b.Helper()
	return b.file(role+".url", b.url(role))
}

func (b *bed) url(role string) string {
	b.Helper()
	u, err := url.Parse(b.postgres.URL())
	if err != nil {
		b.Fatal(err)
	}
	u.User = url.UserPassword(role, secretOf(role))
	u.RawQuery = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {b.ca}}.Encode()
	return u.String()
}

// login returns the settings by which a user connects to Kafka.
func (b *bed) login(user string) []string {
	b.Helper()
	return []string{
		"--kafka-brokers", b.kafka.Addr, "--kafka-ca-file", b.ca, "--kafka-sasl=scram-sha-512",
		"--kafka-user", user, "--kafka-password-file", b.file(user+".password", b.secret(user)),
	}
}

// secret is the password of a user of Kafka.
func (b *bed) secret(user string) string {
	if s := b.secrets[user]; s != "" {
		return s
	}
	return secretOf(user)
}

// must runs a command of the processor's that ends by itself, in success.
func (b *bed) must(args ...string) string {
	b.Helper()
	code, out := b.run(args...)
	if code != 0 {
		b.Fatalf("processor %v ended with %d: %s", args, code, out)
	}
	return out
}

func (b *bed) run(args ...string) (code int, out string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	var text said
	code = processor.Run(ctx, args, strings.NewReader(""), &text, &text, catalog.Context())
	_, _ = b.said.Write([]byte(text.String()))
	return code, text.String()
}

// client connects as one who sends commands.
func (b *bed) client() *client.Client {
	b.Helper()
	opts, err := kafka.Options(&config.Config{
		KafkaClientID: "secured", KafkaCAFile: b.ca, KafkaSASL: "scram-sha-256", KafkaUser: kafkaClient, KafkaPassword: secretOf(kafkaClient),
	}, []string{b.kafka.Addr}, slog.New(slog.NewTextHandler(b.said, nil)))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	c, err := client.New(ctx, client.Config{Brokers: []string{b.kafka.Addr}, Context: "catalog", Options: opts})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	return c
}

// until polls until it is so. Its patience is counted in looks: a machine that stands still for a while takes none away.
func (b *bed) until(what string, so func() bool) {
	b.Helper()
	const every = 50 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	for range patience / every {
		if so() {
			return
		}
		<-tick.C
	}
	b.Fatalf("waited for %v in vain: %s", patience, what)
}
