package processor

import (
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/internal/config"
	"github.com/seed54173720/writ/internal/engine"
	"github.com/seed54173720/writ/internal/pgtest"
	"github.com/seed54173720/writ/pkg/kernel"
)

func TestMistakesOfTheCallerExitWith2(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for _, test := range []struct {
		name string
		args string
		code int
		want string
	}{
		{"unknown command", "serv", exitUsage, `command "serv" is not known`},
		{"unknown flag", "serve --writer=3", exitUsage, "unknown flag: --writer"},
		{"argument too many", "serve now", exitUsage, "usage: processor serve"},
		{"argument missing", "show", exitUsage, "usage: processor show ADDRESS"},
		{"no address", "show brand", exitUsage, "must be type/id or tenant/type/id"},
		{"unknown aggregate type", "show shop/7", exitUsage, `no aggregate type "shop"`},
		{"setting out of bounds", "serve --writers=0", exitUsage, `writers is "0": must be 1 to 64`},
		{"missing topics file", "topics --topics-file=/does/not/exist", exitUsage, "topics-file"},
		{"broker beside brokers", "broker --kafka-brokers=a:1", exitUsage, "where none are configured"},
		{"nothing to show yet", "show brand/7 --data-dir=" + empty, exitFailure, "holds no database"},
		{"nothing to audit yet", "audit --data-dir=" + empty, exitFailure, "holds no database"},
		{"database that is not there", "audit --database-url=postgres://127.0.0.1:1/x", exitFailure, "connect"},
		{"address that is taken by others", "serve --http-addr=192.0.2.1:80", exitFailure, `http-addr is "192.0.2.1:80"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := runOnce(t, strings.Fields(test.args)...)
			if code != test.code || !strings.Contains(stderr, test.want) || stdout != "" {
				t.Errorf("ended with %d, want %d; said %q, want %q; printed %q", code, test.code, stderr, test.want, stdout)
			}
		})
	}
}

func TestWhatIsPrintedAndEnds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, args, want string }{
		{"help", "", "Available Commands"},
		{"version", "--version", "processor "},
		{"configuration", "serve --print-config --writers=3 --kafka-brokers=a:1 --kafka-sasl=plain --kafka-user=u --kafka-password=geheim", "writers: 3"},
		{"topics", "topics --topics-partitions=5", "catalog.commands      5"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if out := must(t, strings.Fields(test.args)...); !strings.Contains(out, test.want) || strings.Contains(out, "geheim") {
				t.Errorf("printed %q, want %q", out, test.want)
			}
		})
	}
}

func TestDefaultSettingsAreThoseOfEngineAndKernel(t *testing.T) {
	t.Parallel()
	defaults := config.Default()
	a := &app{kernel: catalog.Context(), cfg: &defaults, log: slog.New(slog.DiscardHandler)}
	bare := engine.Config{Kernel: a.engineConfig().Kernel, Logger: a.log}.WithDefaults()
	set := a.engineConfig().WithDefaults()
	bare.Health, set.Health, set.Kernel = nil, nil, bare.Kernel
	if !reflect.DeepEqual(set, bare) {
		t.Errorf("the settings make\n%+v, the engine's own defaults are\n%+v", set, bare)
	}
	if defaults.SnapshotEvery != kernel.DefaultSnapshotEvery || defaults.Attempts != kernel.DefaultAttempts {
		t.Errorf("snapshot-every is %d and attempts %d, the kernel's own are %d and %d",
			defaults.SnapshotEvery, defaults.Attempts, kernel.DefaultSnapshotEvery, kernel.DefaultAttempts)
	}
}

func TestThereIsNoDemoWithoutAScript(t *testing.T) {
	t.Parallel()
	var stdout, stderr output
	if code := Run(t.Context(), []string{"demo"}, nil, &stdout, &stderr, catalog.Context()); code != exitUsage {
		t.Errorf("ended with %d, want %d", code, exitUsage)
	}
}

// In a home that nobody else may enter, as root's is, though Postgres must not run as root.
func TestDemoOfACleanHomeChangesNothingTheSecondTime(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // its data directory is elsewhere
		t.Cleanup(func() { os.RemoveAll(filepath.Join("/var/lib/writ", filepath.Dir(home))) })
	}
	demo := func() string {
		cmd, out := child(t, []string{"HOME=" + home, "XDG_DATA_HOME=", "WRIT_DATA_DIR="}, "demo", "--exit")
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v:\n%s", err, out.String())
		}
		return out.String()
	}
	first, second := demo(), demo()

	outcomes := regexp.MustCompile(`(?m)^  (committed|nothing|rejected)( \(duplicate\))? .*topic catalog\.commands partition \d+ offset \d+`)
	kinds := func(text string) (all []string) {
		for _, m := range outcomes.FindAllStringSubmatch(text, -1) {
			all = append(all, m[1]+m[2])
		}
		return all
	}
	if got, want := strings.Join(kinds(first), ", "),
		"committed, rejected, nothing, committed (duplicate), committed, committed, rejected"; got != want {
		t.Errorf("the first demo shows %s, want %s:\n%s", got, want, first)
	}
	if got, want := strings.Join(kinds(second), ", "),
		"committed (duplicate), rejected, nothing (duplicate), committed (duplicate), committed (duplicate), committed (duplicate), rejected"; got != want {
		t.Errorf("the second demo shows %s, want %s:\n%s", got, want, second)
	}
	for _, want := range []string{"name-taken", "out-of-stock", "journal_plain", "kcat -b ", "psql "} {
		if !strings.Contains(first, want) {
			t.Errorf("the demo lacks %q:\n%s", want, first)
		}
	}
	audit, out := child(t, []string{"HOME=" + home, "XDG_DATA_HOME=", "WRIT_DATA_DIR="}, "audit")
	if err := audit.Run(); err != nil || !strings.Contains(out.String(), ": 3 committed, 1 nothing, ") || !strings.Contains(out.String(), "0 findings") {
		t.Errorf("after two demos the audit says (%v) %s, want 3 commits, 1 nothing, no findings", err, out.String())
	}
}

func TestDirectoryThatPostgresCannotEnterIsNamed(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root starts Postgres as another user")
	}
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := runOnce(t, "serve", "--http-addr=off", "--data-dir", filepath.Join(closed, "writ"))
	if code != exitFailure || !strings.Contains(stderr, "cannot enter directory ") || !strings.Contains(stderr, "chmod o+x") {
		t.Errorf("ended with %d: %s", code, stderr)
	}
}

func TestDataDirectoryItselfIsOpenedForPostgres(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(pgtest.Dir(t), "writ")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
}
