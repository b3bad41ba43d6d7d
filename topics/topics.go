// Package topics declares the topics of a context, creates those that are missing
// and checks those that exist. What they look like stands in topics.yaml, for
// people to read; an application lays a file of its own over it.
package topics

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Purpose is what a topic is for, and the last part of its name.
type Purpose string

// The purposes, in the order in which topics are listed.
const (
	Commands    Purpose = "commands"
	Replies     Purpose = "replies"
	Events      Purpose = "events"
	DeadLetters Purpose = "dead-letters"
)

var purposes = [...]Purpose{Commands, Replies, Events, DeadLetters}

// Of returns the name of the context's topic for p.
func (p Purpose) Of(context string) string { return context + "." + string(p) }

// Topic is one declared topic.
type Topic struct {
	Name        string
	Purpose     Purpose
	Partitions  int32             // at least 1
	Replication int16             // copies of each partition; -1 is the brokers' default
	MinInSync   int16             // min.insync.replicas where there are at least 3 copies; 0 leaves it to the brokers
	Configs     map[string]string // under Kafka's names
}

// Options change the declaration. The zero value is topics.yaml as it stands.
type Options struct {
	// File is an application's own topics file, laid over the default. Default: none.
	File []byte

	// Partitions replaces the number of partitions of every topic. Default 0: as
	// the files say.
	Partitions int32

	// Replication replaces the number of copies of every topic, -1 being the
	// brokers' default. Default 0: as the files say.
	Replication int16

	// Events wants the events topic even where the files do not. Default: false.
	Events bool
}

//go:embed topics.yaml
var defaults []byte

// Default returns the text of the default topics file.
func Default() []byte { return slices.Clone(defaults) }

// Declare returns the wanted topics of the context. Its error joins all faults of
// opts, each with the place in the file where it has one.
func Declare(context string, opts Options) ([]Topic, error) {
	decls, err := parse(defaults)
	if err != nil {
		return nil, fmt.Errorf("topics: topics.yaml: %w", err)
	}
	own, err := parse(opts.File)
	if err != nil {
		return nil, fmt.Errorf("topics: the application's topics file: %w", err)
	}
	var topics []Topic
	var faults []error
	if context == "" {
		faults = append(faults, errors.New(`topics: context "" is empty`))
	}
	if opts.Partitions < 0 {
		faults = append(faults, fmt.Errorf("topics: partitions %d is negative", opts.Partitions))
	}
	for _, p := range purposes {
		d := decls[p].over(own[p])
		if p == Events && opts.Events {
			d.Wanted = new(true)
		}
		if opts.Partitions > 0 {
			d.Partitions = &opts.Partitions
		}
		if opts.Replication != 0 {
			d.Replication = &opts.Replication
		}
		if !*d.Wanted {
			continue
		}
		t := d.topic(context, p)
		faults = append(faults, t.validate()...)
		topics = append(topics, t)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return topics, nil
}

// declaration is a topic as a file has it: what is nil is left as it was.
type declaration struct {
	Wanted      *bool              `yaml:"wanted"`
	Partitions  *int32             `yaml:"partitions"`
	Replication *int16             `yaml:"replication"`
	MinInSync   *int16             `yaml:"min-in-sync"`
	Configs     map[string]*string `yaml:"configs"`
}

// parse reads a topics file strictly: a name it does not know is an error.
func parse(text []byte) (map[Purpose]declaration, error) {
	var decls map[Purpose]declaration
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&decls); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for _, p := range slices.Sorted(maps.Keys(decls)) {
		if !slices.Contains(purposes[:], p) {
			return nil, fmt.Errorf("topic %q is none of %q", p, purposes)
		}
	}
	return decls, nil
}

// over returns d with what own names in its place.
func (d declaration) over(own declaration) declaration {
	pick(&d.Wanted, own.Wanted)
	pick(&d.Partitions, own.Partitions)
	pick(&d.Replication, own.Replication)
	pick(&d.MinInSync, own.MinInSync)
	maps.Copy(d.Configs, own.Configs)
	return d
}

func pick[T any](dst **T, own *T) {
	if own != nil {
		*dst = own
	}
}

func (d declaration) topic(context string, p Purpose) Topic {
	t := Topic{
		Name: p.Of(context), Purpose: p,
		Partitions: *d.Partitions, Replication: *d.Replication, MinInSync: *d.MinInSync,
		Configs: map[string]string{},
	}
	for name, value := range d.Configs {
		if value != nil {
			t.Configs[name] = *value
		}
	}
	return t
}

func (t Topic) validate() (faults []error) {
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("topics: "+t.Name+": "+format, args...))
	}
	if t.Partitions < 1 {
		fault("partitions %d: at least 1 is needed", t.Partitions)
	}
	if t.Replication < 1 && t.Replication != -1 {
		fault("replication %d: at least 1, or -1 for the brokers' default", t.Replication)
	}
	if t.MinInSync < 0 {
		fault("min-in-sync %d is negative", t.MinInSync)
	}
	for _, name := range [...]string{retentionTime, retentionBytes, maxMessage} {
		value, ok := t.Configs[name]
		if _, err := strconv.ParseInt(value, 10, 64); ok && err != nil {
			fault("%s %q is not a whole number", name, value)
		}
	}
	for _, f := range t.mustBe(t.Configs) {
		fault("%s", f.Problem)
	}
	return faults
}
