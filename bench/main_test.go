package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/seed54173720/writ/internal/embedded/broker"
	"github.com/seed54173720/writ/internal/embedded/postgres"
	"github.com/seed54173720/writ/internal/kafkatest"
	"github.com/seed54173720/writ/internal/pgtest"
)

func TestMain(m *testing.M) {
	broker.RunChild()
	runWorker()
	pgtest.Main(m, pgtest.Fast)
}

func TestTheLastLineHasEveryFigureThatWasMeasured(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := run(t.Context(), []string{"-rounds=2", "-commands=1500", "-loop-commands=300", "-hot-commands=700", "-aggregates=50",
		"-only=a,b,c,e", "-profile=" + t.TempDir()}, &out)
	if errors.Is(err, postgres.ErrNotInstalled) && !kafkatest.Required() {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var got map[string]*float64
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	want := []string{"copy_per_s", "hot_ratio", "kafka_ratio", "loop_p99_ms", "loop_per_s", "p50_ms", "p99_ms",
		"part_load_cpu_ratio", "ratio_to_copy", "ratio_to_loop", "rss_mb", "writ_per_s"}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("names are %q, want %q", names, want)
	}
	for _, name := range []string{"copy_per_s", "writ_per_s", "ratio_to_copy", "loop_per_s", "ratio_to_loop", "hot_ratio", "rss_mb"} {
		if v := got[name]; v == nil || *v <= 0 {
			t.Errorf("%s was measured, and is %v", name, v)
		}
	}
	for _, name := range []string{"kafka_ratio", "p50_ms", "p99_ms", "loop_p99_ms", "part_load_cpu_ratio"} {
		if v := got[name]; v != nil {
			t.Errorf("%s was not measured, and is %v", name, *v)
		}
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, arg, want string }{
		{"no rounds", "-rounds=0", "rounds is 0"},
		{"no commands", "-commands=0", "must be above 0"},
		{"unknown part", "-only=b,x", "letters of a to f"},
		{"copy of nothing", "-only=a", "measured against b"},
		{"a name that is too long", "-name-bytes=501", "name-bytes is 501"},
		{"a load too short", "-seconds=10ms", "at least 1s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if _, err := parse([]string{row.arg}, os.Stderr); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("parse(%s) = %v, want an error that says %q", row.arg, err, row.want)
			}
		})
	}
}
