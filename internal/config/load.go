package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/seed54173720/writ/internal/datadir"
)

const (
	envPrefix = "WRIT_"
	fileEnv   = envPrefix + "CONFIG"
	fileFlag  = "config"
)

// foreign are variables of this prefix that are not the processor's: those of submit, so that both can share an
// environment, of tests, and of child processes. A name that ends in "_" stands for all that begin with it.
var foreign = []string{
	fileEnv, "WRIT_TEST_", "WRIT_TESTS_", "WRIT_CACHE", "WRIT_CACHE_", "WRIT_PROVE", "WRIT_BENCH_", "WRIT_BROKER_CHILD",
	"WRIT_SOURCE", "WRIT_TENANT", "WRIT_OWNER", "WRIT_SPACE", "WRIT_TIMEOUT", "WRIT_WAIT", "WRIT_DATA", "WRIT_REQUEST_ID",
	"WRIT_EXPECT_VERSION", "WRIT_EXPIRES_IN", "WRIT_CORRELATION_ID", "WRIT_REPLY_TO", "WRIT_BROKERS",
}

// Bind adds a flag for every setting, and --config for the file.
func Bind(flags *pflag.FlagSet) {
	flags.String(fileFlag, "", "YAML file with settings, under the names of the flags (or "+fileEnv+")")
	defaults := Default()
	for _, s := range Settings() {
		usage := s.Help + " (" + s.Env + ")"
		switch v := s.value(&defaults).(type) {
		case bool:
			flags.Bool(s.Name, v, usage)
		default:
			flags.String(s.Name, s.text(&defaults), usage)
		}
		// The default stands in the comment.
		flags.Lookup(s.Name).DefValue = ""
		if _, ok := s.value(&defaults).(bool); ok {
			flags.Lookup(s.Name).DefValue = "false"
		}
	}
}

// Load returns the settings: defaults, over them the file, over it the environment (as os.Environ has it), over that
// the flags that were given. All that is wrong with them is in one error; a setting that nobody knows is wrong too.
func Load(flags *pflag.FlagSet, environ []string) (*Config, error) {
	l := loader{merged: koanf.New("."), from: map[string]string{}}
	env, path := l.environment(environ)
	if given := flags.Lookup(fileFlag); given != nil && given.Changed {
		path = given.Value.String()
	}
	l.readFile(path)
	l.layer(env, func(s *Setting) string { return s.Env })
	l.layer(changed(flags), func(s *Setting) string { return "--" + s.Name })

	c := Default()
	c.explicit = map[string]bool{}
	for _, s := range Settings() {
		if !l.merged.Exists(s.Name) {
			continue
		}
		c.explicit[s.Name] = true
		value := l.merged.Get(s.Name)
		if err := s.set(&c, value); err != nil {
			shown := fmt.Sprint(value)
			if secret[s.Name] != nil {
				shown = redacted // of another shape than its own: nobody knows where in it the secret is
			}
			l.fault("%s is %q (%s): %w", s.Name, shown, l.from[s.Name], err)
		}
	}
	l.readURL(&c)
	if c.DataDir == "" {
		c.DataDir = datadir.Default()
	}
	if len(l.faults) == 0 { // else the rules would judge defaults that were not asked for
		l.faults = c.faults()
	}
	if len(l.faults) > 0 {
		return nil, &Error{Faults: l.faults}
	}
	return &c, nil
}

// Error holds all that is wrong with a configuration.
type Error struct{ Faults []error }

// Error returns the faults, a line each.
func (e *Error) Error() string { return "config: " + errors.Join(e.Faults...).Error() }

// Unwrap returns the faults.
func (e *Error) Unwrap() []error { return e.Faults }

type loader struct {
	merged *koanf.Koanf
	from   map[string]string // name: where its value comes from
	faults []error
}

func (l *loader) fault(format string, args ...any) {
	l.faults = append(l.faults, fmt.Errorf(format, args...))
}

func (l *loader) readFile(path string) {
	if path == "" {
		return
	}
	k := koanf.New(".")
	if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
		l.fault("config is %q: read the file: %w", path, err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(k.Raw())) {
		if find(name) == nil {
			l.fault("%s: setting %q is not known%s", path, name, suggest(name, names()))
		}
	}
	l.layer(k.Raw(), func(*Setting) string { return path })
}

// readURL reads the database's URL where it stands in a file of its own.
func (l *loader) readURL(c *Config) {
	if c.DatabaseURLFile == "" {
		return
	}
	if c.DatabaseURL != "" {
		l.fault("database-url-file is %q: cannot stand beside database-url: leave one of them out", c.DatabaseURLFile)
		return
	}
	text, err := os.ReadFile(c.DatabaseURLFile)
	if err == nil && strings.TrimSpace(string(text)) == "" {
		err = errors.New("the file is empty")
	}
	if err != nil {
		l.fault("database-url-file is %q: read the URL: %w", c.DatabaseURLFile, err)
		return
	}
	c.DatabaseURL = strings.TrimSpace(string(text))
}

// environment returns the variables that are settings, by the setting's name, and the one that names the file. An
// empty variable counts as unset.
func (l *loader) environment(environ []string) (values map[string]any, path string) {
	values = map[string]any{}
	byEnv := map[string]string{}
	for _, s := range Settings() {
		byEnv[s.Env] = s.Name
	}
	for _, entry := range environ {
		variable, value, _ := strings.Cut(entry, "=")
		switch {
		case !strings.HasPrefix(variable, envPrefix):
		case variable == fileEnv:
			path = value
		case byEnv[variable] != "":
			if value != "" {
				values[byEnv[variable]] = value
			}
		case !slices.ContainsFunc(foreign, func(f string) bool {
			return variable == f || strings.HasSuffix(f, "_") && strings.HasPrefix(variable, f)
		}):
			l.fault("variable %s is not known%s", variable, suggest(variable, slices.Collect(maps.Keys(byEnv))))
		}
	}
	return values, path
}

func changed(flags *pflag.FlagSet) map[string]any {
	values := map[string]any{}
	flags.Visit(func(f *pflag.Flag) {
		if find(f.Name) != nil {
			values[f.Name] = f.Value.String()
		}
	})
	return values
}

// layer lays values over what was loaded before.
func (l *loader) layer(values map[string]any, from func(*Setting) string) {
	if err := l.merged.Load(provider(values), nil); err != nil {
		l.faults = append(l.faults, err)
	}
	for name := range values {
		if s := find(name); s != nil {
			l.from[name] = from(s)
		}
	}
}

// provider is a koanf.Provider of values that are there already.
type provider map[string]any

func (p provider) Read() (map[string]any, error) { return p, nil }
func (p provider) ReadBytes() ([]byte, error)    { return nil, errors.New("a map has no bytes") }

func find(name string) *Setting {
	for _, s := range Settings() {
		if s.Name == name {
			return &s
		}
	}
	return nil
}

func names() (all []string) {
	for _, s := range Settings() {
		all = append(all, s.Name)
	}
	return all
}
