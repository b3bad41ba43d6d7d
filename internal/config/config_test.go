package config

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// load loads what a process with this file, environment and command line would.
func load(t *testing.T, file string, environ []string, args ...string) (*Config, error) {
	t.Helper()
	flags := pflag.NewFlagSet("processor", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	Bind(flags)
	if file != "" {
		path := filepath.Join(t.TempDir(), "writ.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return Load(flags, environ)
}

func TestLaterSourcesWin(t *testing.T) {
	t.Parallel()
	file := "writers: 3\ndeciders: 3\ngroup: from-file\ndrain: 5s\nkafka-brokers: [a:1, b:2]\n"
	env := []string{"WRIT_DECIDERS=4", "WRIT_GROUP=from-env", "WRIT_LINGER=", "HOME=/"}
	c, err := load(t, file, env, "--group=from-flag", "--migrate")
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Writers, want.Deciders, want.Group, want.Drain, want.Migrate = 3, 4, "from-flag", 5*time.Second, true
	want.KafkaBrokers, want.DataDir, want.explicit = []string{"a:1", "b:2"}, c.DataDir, c.explicit
	if !reflect.DeepEqual(*c, want) {
		t.Errorf("loaded\n%+v, want\n%+v", *c, want)
	}
	for name, want := range map[string]bool{"group": true, "writers": true, "linger": false, "http-addr": false} {
		if got := c.Explicit(name); got != want {
			t.Errorf("Explicit(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestEverySourceReadsEverySetting(t *testing.T) {
	t.Parallel()
	// Values that are allowed, with what else they need.
	values := map[string]string{
		"kafka-brokers": "a:1,b:2", "http-addr": "off", "log-format": "json", "log-level": "debug",
		"drain": "7s", "retry-min": "700ms", "session-timeout": "40s", "heartbeat": "4s", "rebalance-timeout": "50s", "group-bytes": "2000000", "in-flight-bytes": "3000000",
	}
	beside := map[string]string{
		"kafka-tls": "kafka-brokers: a:1", "kafka-ca-file": "kafka-brokers: a:1", "kafka-sasl": "kafka-brokers: a:1\nkafka-user: u\nkafka-password: p",
		"kafka-cert-file": "kafka-brokers: a:1\nkafka-key-file: k", "kafka-key-file": "kafka-brokers: a:1\nkafka-cert-file: c",
		"kafka-user": "kafka-brokers: a:1\nkafka-sasl: plain\nkafka-password: p", "kafka-password": "kafka-brokers: a:1\nkafka-sasl: plain\nkafka-user: u",
		"kafka-token-file": "kafka-brokers: a:1\nkafka-sasl: oauthbearer", "kafka-token": "kafka-brokers: a:1\nkafka-sasl: oauthbearer",
		"kafka-token-command": "kafka-brokers: a:1\nkafka-sasl: oauthbearer", "kafka-password-file": "kafka-brokers: a:1\nkafka-sasl: plain\nkafka-user: u",
	}
	values["database-url-file"] = filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(values["database-url-file"], []byte("postgres://u@h/db\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	values["kafka-sasl"] = "scram-sha-256"
	for _, s := range Settings() {
		value := values[s.Name]
		if value == "" {
			value = map[string]string{"text": "x", "true or false": "true", "whole number": "7", "time, such as 500ms or 8s": "7s"}[s.kind.name]
		}
		for name, from := range map[string]struct {
			file string
			env  []string
			args []string
		}{
			"file":        {file: s.Name + ": " + value},
			"environment": {env: []string{s.Env + "=" + value}},
			"flag":        {args: []string{"--" + s.Name + "=" + value}},
		} {
			t.Run(s.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				c, err := load(t, beside[s.Name]+"\n"+from.file, from.env, from.args...)
				if err != nil {
					t.Fatal(err)
				}
				if got := s.text(c); got != value {
					t.Errorf("%s is %q, want %q", s.Name, got, value)
				}
			})
		}
	}
}

func TestEveryFaultIsTold(t *testing.T) {
	t.Parallel()
	cluster := []string{"WRIT_KAFKA_BROKERS=k:9092"}
	for _, test := range []struct {
		name string
		file string
		env  []string
		args []string
		want []string
	}{
		{name: "bounds", args: []string{"--writers=0", "--deciders=65", "--http-addr=here"},
			want: []string{`writers is "0": must be 1 to 64`, `deciders is "65": must be 1 to 64`, `http-addr is "here": must be host:port`}},
		{name: "no number in the environment", env: []string{"WRIT_WRITERS=many"}, want: []string{`writers is "many" (WRIT_WRITERS): must be a whole number`}},
		{name: "no time in the file", file: "drain: 8", want: []string{`drain is "8"`, "writ.yaml", "must be a time, such as 500ms or 8s"}},
		{name: "a map in the file", file: "kafka:\n  brokers: x", want: []string{`setting "kafka" is not known`}},
		{name: "unknown in the file", file: "writer: 3", want: []string{`setting "writer" is not known: did you mean writers?`}},
		{name: "unknown in the environment", env: []string{"WRIT_KAFKA_BROKER=x"}, want: []string{"variable WRIT_KAFKA_BROKER is not known: did you mean WRIT_KAFKA_BROKERS?"}},
		{name: "unknown and near to nothing", env: []string{"WRIT_ZZZZZZZZZZZZZZZZZZ=x"}, want: []string{"see docs/configuration.md"}},
		{name: "no file", args: []string{"--config=/does/not/exist"}, want: []string{`config is "/does/not/exist"`}},
		{name: "no YAML", file: "a: [", want: []string{"read the file"}},
		{name: "brokers without port", args: []string{"--kafka-brokers=a:1,b"}, want: []string{`kafka-brokers is "a:1,b"`, `"b" is not`}},
		{name: "a login at the embedded broker", args: []string{"--kafka-sasl=plain", "--kafka-tls"}, want: []string{"kafka-sasl is", "kafka-tls is", "set kafka-brokers"}},
		{name: "a login without password", env: cluster, args: []string{"--kafka-sasl=plain", "--kafka-user=me"}, want: []string{"kafka-password is", "must be set"}},
		{name: "a password without login", env: append(cluster, "WRIT_KAFKA_PASSWORD=geheim"), want: []string{`kafka-password is "xxxxx"`}},
		{name: "a password twice", env: append(cluster, "WRIT_KAFKA_PASSWORD=geheim"), args: []string{"--kafka-sasl=plain", "--kafka-user=me", "--kafka-password-file=f"}, want: []string{`kafka-password is "xxxxx": must be set, or else kafka-password-file`}},
		{name: "a token without login", env: append(cluster, "WRIT_KAFKA_TOKEN=geheim"), want: []string{`kafka-token is "xxxxx": is not used`}},
		{name: "a token for a password", env: append(cluster, "WRIT_KAFKA_TOKEN=geheim"), args: []string{"--kafka-sasl=plain", "--kafka-user=me", "--kafka-password-file=f"}, want: []string{`kafka-token is "xxxxx"`, "oauthbearer alone"}},
		{name: "tokens from two sources", env: append(cluster, "WRIT_KAFKA_TOKEN=geheim"), args: []string{"--kafka-sasl=oauthbearer", "--kafka-token-command=id-token print"}, want: []string{"kafka-token-file is"}},
		{name: "a secret in the wrong shape", file: "database-url: {password: geheim}", want: []string{"database-url is", "must be a text"}},
		{name: "no file for the URL", args: []string{"--database-url-file=/does/not/exist"}, want: []string{`database-url-file is "/does/not/exist"`}},
		{name: "a URL twice", args: []string{"--database-url-file=f", "--database-url=postgres://u:geheim@h/db"}, want: []string{`database-url-file is "f": cannot stand beside database-url`}},
		{name: "an unknown login", env: cluster, args: []string{"--kafka-sasl=kerberos"}, want: []string{"kafka-sasl is", "scram-sha-512"}},
		{name: "a certificate without key", env: cluster, args: []string{"--kafka-cert-file=c"}, want: []string{"kafka-cert-file is", "kafka-key-file"}},
		{name: "a drain that outlasts the group", args: []string{"--drain=58s"}, want: []string{"drain is", "thrown out of its group"}},
		{name: "a slow heartbeat", args: []string{"--heartbeat=20s"}, want: []string{"heartbeat is", "a third of session-timeout"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, test.file, test.env, test.args...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "geheim") {
				t.Errorf("error %q tells a password", err)
			}
		})
	}
}

func TestForeignVariablesAreNobodysFault(t *testing.T) {
	t.Parallel()
	if _, err := load(t, "", []string{"WRIT_TEST_DATABASE_URL=x", "WRIT_CACHE=x", "WRIT_SOURCE=me", "WRIT_PROVE=1", "WRITERS=x", "WRIT_CONFIG="}); err != nil {
		t.Error(err)
	}
}

func TestPrintedConfigIsAFileOfTheSameSettings(t *testing.T) {
	t.Parallel()
	first, err := load(t, "kafka-brokers: [a:1]\ndrain: 5s\nwriters: 4\ndatabase-url: postgres://u@h/db", nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := first.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := load(t, string(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	first.explicit, again.explicit = nil, nil
	if !reflect.DeepEqual(first, again) {
		t.Errorf("read again:\n%+v, want\n%+v", again, first)
	}
}

func TestPrintedConfigHasNoSecrets(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://user:geheim@host/db", "postgres://host/db?user=u&password=geheim", "host=h password=geheim user=u",
		"host=h password='geh\\'eim geheim' user=u", "host=h Password = geheim", "postgres://u:gehe%im@geheim:x/db", "postgres://u@h/db?sslpassword=geheim",
	} {
		c := Default()
		c.KafkaPassword, c.KafkaToken, c.DatabaseURL = "geheim", "geheim", url
		text, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "geheim") || strings.Contains(string(text), "geh\\") {
			t.Errorf("%s: printed\n%s", url, text)
		}
	}
}

func TestURLFromAFileIsReadAndNotPrinted(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte("postgres://u:geheim@h/db\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	first, err := load(t, "", []string{"WRIT_DATABASE_URL_FILE=" + file})
	if err != nil {
		t.Fatal(err)
	}
	if first.DatabaseURL != "postgres://u:geheim@h/db" || first.EmbeddedDatabase() {
		t.Errorf("URL %q, want the file's", first.DatabaseURL)
	}
	text, err := first.YAML()
	if err != nil || strings.Contains(string(text), "geheim") {
		t.Fatalf("printed %v\n%s", err, text)
	}
	again, err := load(t, string(text), nil)
	if err != nil || again.DatabaseURL != first.DatabaseURL {
		t.Errorf("read again: %v, %v", again, err)
	}
}
