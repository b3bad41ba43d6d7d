package kafka

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/seed54173720/writ/internal/config"
)

func TestUnusableCredentialsAreNamed(t *testing.T) {
	t.Parallel()
	noPEM := filepath.Join(t.TempDir(), "no.pem")
	if err := os.WriteFile(noPEM, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		cfg  config.Config
		want string
	}{
		{"no CA file", config.Config{KafkaCAFile: "/does/not/exist"}, "kafka-ca-file"},
		{"a CA file without certificates", config.Config{KafkaCAFile: noPEM}, "holds no PEM certificate"},
		{"no certificate", config.Config{KafkaCertFile: noPEM, KafkaKeyFile: noPEM}, "kafka-cert-file and kafka-key-file"},
		{"an unknown login", config.Config{KafkaSASL: "kerberos"}, `kafka-sasl is "kerberos"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if _, err := Options(&test.cfg, []string{"127.0.0.1:1"}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that says %q", err, test.want)
			}
		})
	}
}

func TestEveryLoginIsOffered(t *testing.T) {
	t.Parallel()
	for sasl, want := range map[string]string{"plain": "PLAIN", "scram-sha-256": "SCRAM-SHA-256", "scram-sha-512": "SCRAM-SHA-512", "oauthbearer": "OAUTHBEARER"} {
		cfg := config.Config{KafkaSASL: sasl, KafkaUser: "u", KafkaPassword: "p", KafkaToken: "t", KafkaTLS: true}
		mechanism, err := login(&cfg)
		if err != nil || mechanism.Name() != want {
			t.Errorf("%s: %v, %v, want %s", sasl, mechanism, err, want)
			continue
		}
		if _, _, err := mechanism.Authenticate(t.Context(), "host:1"); err != nil {
			t.Errorf("%s: %v", sasl, err)
		}
		opts, err := Options(&cfg, []string{"127.0.0.1:1"}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if err := kgo.ValidateOpts(opts...); err != nil {
			t.Errorf("%s: %v", sasl, err)
		}
	}
}

// said returns what a login begins with: plain shows the password, oauthbearer the token.
func said(t *testing.T, cfg *config.Config) (string, error) {
	t.Helper()
	mechanism, err := login(cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, first, err := mechanism.Authenticate(t.Context(), "host:1")
	return string(first), err
}

func TestSecretInAFileIsReadAtEveryLogin(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	for name, cfg := range map[string]config.Config{
		"password": {KafkaSASL: "plain", KafkaUser: "u", KafkaPasswordFile: file},
		"token":    {KafkaSASL: "oauthbearer", KafkaTokenFile: file},
		"command":  {KafkaSASL: "oauthbearer", KafkaTokenCommand: "cat " + file},
	} {
		for _, secret := range []string{"first", "second"} {
			if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := said(t, &cfg); err != nil || !strings.Contains(got, secret) {
				t.Errorf("%s: said %q, %v, want %q in it", name, got, err, secret)
			}
		}
	}
}

func TestSecretThatCannotBeHadIsNamedAndNotTold(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		cfg  config.Config
		want string
	}{
		{"no password file", config.Config{KafkaSASL: "scram-sha-512", KafkaUser: "u", KafkaPasswordFile: "/does/not/exist"}, "kafka-password-file"},
		{"an empty password file", config.Config{KafkaSASL: "plain", KafkaUser: "u", KafkaPasswordFile: empty}, "the file is empty"},
		{"no token file", config.Config{KafkaSASL: "oauthbearer", KafkaTokenFile: "/does/not/exist"}, "kafka-token-file"},
		{"no such program", config.Config{KafkaSASL: "oauthbearer", KafkaTokenCommand: "/does/not/exist canary"}, "kafka-token-command"},
		{"a program that fails", config.Config{KafkaSASL: "oauthbearer", KafkaTokenCommand: "cat /does/not/exist/canary"}, "exit status 1"},
		{"a program that prints nothing", config.Config{KafkaSASL: "oauthbearer", KafkaTokenCommand: "true canary"}, "printed no token"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if _, err := said(t, &test.cfg); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that says %q", err, test.want)
			}
		})
	}
}

func TestBrokersThatDoNotAnswerAreNamed(t *testing.T) {
	t.Parallel()
	brokers := []string{"127.0.0.1:1"}
	opts, err := Options(&config.Config{}, brokers, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := Connect(ctx, opts, brokers); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("error %v, want one that names the broker", err)
	}
}
