package deploy_test

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/spf13/pflag"

	"github.com/seed54173720/writ/internal/config"
)

func project(t *testing.T) *types.Project {
	t.Helper()
	const file = "../docker-compose.yml"
	p, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: "..", ConfigFiles: []types.ConfigFile{{Filename: file}}, Environment: types.Mapping{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// pinned images name a version, down to its last number.
var pinned = regexp.MustCompile(`:\d+\.\d+(\.\d+)?(-[a-z0-9.]+)?$`)

func TestComposeFileRunsWhatASystemNeeds(t *testing.T) {
	t.Parallel()
	p := project(t)
	if names := p.ServiceNames(); !slices.Equal(slices.Sorted(slices.Values(names)), []string{"kafka", "postgres", "processor"}) {
		t.Fatalf("services %q", names)
	}
	for name, s := range p.Services {
		if s.HealthCheck == nil || s.HealthCheck.Disable || len(s.HealthCheck.Test) < 2 || s.HealthCheck.Interval == nil || s.HealthCheck.StartPeriod == nil {
			t.Errorf("%s: health check %+v", name, s.HealthCheck)
		}
		if s.Build == nil && !pinned.MatchString(s.Image) {
			t.Errorf("%s: image %q names no version", name, s.Image)
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is open to others than this machine", name, port.Published)
			}
		}
		if s.StopGracePeriod == nil {
			t.Errorf("%s: no time to stop in", name)
		}
	}
	for service, dir := range map[string]string{"kafka": "/var/lib/kafka/data", "postgres": "/var/lib/postgresql/data"} {
		if v := p.Services[service].Volumes; len(v) != 1 || v[0].Target != dir || v[0].Type != types.VolumeTypeVolume || p.Volumes[v[0].Source].Name == "" {
			t.Errorf("%s: volumes %+v, want a named one on %s", service, v, dir)
		}
		if d := p.Services["processor"].DependsOn[service]; d.Condition != types.ServiceConditionHealthy {
			t.Errorf("processor waits for %s until %q, want it healthy", service, d.Condition)
		}
	}
}

// The processor's environment goes through the very code that reads it, which refuses what it does not know.
func TestComposeFileConfiguresTheProcessor(t *testing.T) {
	t.Parallel()
	p := project(t)
	s := p.Services["processor"]
	var environ []string
	for name, value := range s.Environment {
		environ = append(environ, name+"="+*value)
	}
	flags := pflag.NewFlagSet("processor", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	config.Bind(flags)
	if err := flags.Parse(s.Command[1:]); err != nil || s.Command[0] != "serve" {
		t.Fatalf("command %q: %v", s.Command, err)
	}
	c, err := config.Load(flags, environ)
	if err != nil {
		t.Fatal(err)
	}
	if c.EmbeddedBroker() || c.EmbeddedDatabase() || !c.Topics || !c.Migrate {
		t.Errorf("settings %+v, want the other services and what they lack made", c)
	}
	kafka := p.Services["kafka"].Environment
	if !strings.Contains(*kafka["KAFKA_ADVERTISED_LISTENERS"], "://"+c.KafkaBrokers[0]) {
		t.Errorf("brokers %q, and kafka says %q", c.KafkaBrokers, *kafka["KAFKA_ADVERTISED_LISTENERS"])
	}
	postgres := p.Services["postgres"].Environment
	if want := fmt.Sprintf("postgres://%s:%s@postgres:5432/%s", *postgres["POSTGRES_USER"], *postgres["POSTGRES_PASSWORD"], *postgres["POSTGRES_DB"]); c.DatabaseURL != want {
		t.Errorf("database %q, want %q", c.DatabaseURL, want)
	}
	if _, port, _ := strings.Cut(c.HTTPAddr, ":"); port != strconv.Itoa(int(s.Ports[0].Target)) {
		t.Errorf("http-addr %q, and the published port is %d", c.HTTPAddr, s.Ports[0].Target)
	}
	if grace := s.StopGracePeriod; grace == nil || int64(*grace) < int64(c.Drain)+5e9 {
		t.Errorf("%v to stop in, want more than the drain of %v", grace, c.Drain)
	}
}

func TestImageIsPinnedAndNobodysInParticular(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var user, entry string
	stages := map[string]bool{"scratch": true}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		switch words[0] {
		case "FROM":
			user = ""
			if !stages[words[1]] && !pinned.MatchString(words[1]) {
				t.Errorf("%s names no version", words[1])
			}
			if len(words) == 4 && words[2] == "AS" {
				stages[words[3]] = true
			}
		case "COPY":
			if from, ok := strings.CutPrefix(words[1], "--from="); ok && !stages[from] {
				t.Errorf("%s: no such stage", strings.TrimSpace(line))
			}
		case "USER":
			user = words[1]
		case "ENTRYPOINT":
			entry = words[1]
		}
	}
	if !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(user) {
		t.Errorf("the last stage runs as %q, want a user and group by number, not root", user)
	}
	if entry != `["/usr/local/bin/processor"]` {
		t.Errorf("entry point %s", entry)
	}
	module, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	wants := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(module)
	if !strings.Contains(string(text), "FROM golang:"+string(wants[1])+".") {
		t.Errorf("the module wants go %s, the image is built by another", wants[1])
	}
}
