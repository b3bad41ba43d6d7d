// Package config holds the settings of the processor, and reads them from a file, the environment and flags.
package config

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Setting describes one field of Config.
type Setting struct {
	Name string // in the file, and with -- before it as a flag
	Env  string // in the environment
	Help string // the field's comment, of which the last sentence names the default

	field int
	kind  kind
}

type kind struct {
	name  string // what a value is, for messages and documents
	parse func(string) (any, error)
}

// kinds are the types that a setting may have. All sources are read through them: a flag, a variable and a line of
// the file mean the same.
var kinds = map[reflect.Type]kind{
	reflect.TypeFor[string]():   {"text", func(s string) (any, error) { return s, nil }},
	reflect.TypeFor[[]string](): {"list, with commas", func(s string) (any, error) { return list(s), nil }},
	reflect.TypeFor[bool]():     {"true or false", func(s string) (any, error) { return strconv.ParseBool(s) }},
	reflect.TypeFor[int]():      {"whole number", func(s string) (any, error) { return strconv.Atoi(s) }},
	reflect.TypeFor[int64]():    {"whole number", func(s string) (any, error) { return strconv.ParseInt(s, 10, 64) }},
	reflect.TypeFor[time.Duration](): {"time, such as 500ms or 8s", func(s string) (any, error) {
		return time.ParseDuration(s)
	}},
}

func list(s string) (items []string) {
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// Settings lists all settings in the order of Config's fields.
var Settings = sync.OnceValue(func() []Setting {
	help := comments()
	var all []Setting
	for i := range reflect.TypeFor[Config]().NumField() {
		f := reflect.TypeFor[Config]().Field(i)
		name := f.Tag.Get("koanf")
		if name == "" {
			continue
		}
		k, ok := kinds[f.Type]
		if !ok {
			panic(fmt.Sprintf("config: field %s has type %v, which no setting can have", f.Name, f.Type))
		}
		all = append(all, Setting{
			Name: name, Env: envPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_")), Help: help[f.Name],
			field: i, kind: k,
		})
	}
	return all
})

// comments returns the comment of each field of Config, on one line and without the field's name and the verb "is".
func comments() map[string]string {
	file, err := parser.ParseFile(token.NewFileSet(), "config.go", source, parser.ParseComments)
	if err != nil {
		panic(err) // the compiler has read the same file
	}
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok && f.Doc != nil && len(f.Names) == 1 {
			text := strings.Join(strings.Fields(f.Doc.Text()), " ")
			text = strings.TrimPrefix(text, f.Names[0].Name+" ")
			text = strings.TrimPrefix(strings.TrimPrefix(text, "is "), "are ")
			found[f.Names[0].Name] = text
		}
		return true
	})
	return found
}

// set gives the setting a value, which may be a string or what the file's parser made of it.
func (s *Setting) set(c *Config, value any) error {
	var text string
	switch v := value.(type) {
	case []any:
		items := make([]string, len(v))
		for i := range v {
			items[i] = fmt.Sprint(v[i])
		}
		text = strings.Join(items, ",")
	case map[string]any, nil:
		return fmt.Errorf("must be a %s", s.kind.name)
	default:
		text = fmt.Sprint(v)
	}
	parsed, err := s.kind.parse(text)
	if err != nil {
		return fmt.Errorf("must be a %s", s.kind.name)
	}
	reflect.ValueOf(c).Elem().Field(s.field).Set(reflect.ValueOf(parsed))
	return nil
}

// value returns the setting's value in c.
func (s *Setting) value(c *Config) any { return reflect.ValueOf(c).Elem().Field(s.field).Interface() }

// text returns the setting's value in c as a source would write it.
func (s *Setting) text(c *Config) string {
	if items, ok := s.value(c).([]string); ok {
		return strings.Join(items, ",")
	}
	return fmt.Sprint(s.value(c))
}
