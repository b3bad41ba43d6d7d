package config

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"time"

	yamlv3 "go.yaml.in/yaml/v3"
)

const redacted = "xxxxx"

// secret says of each setting that may hold a password how to show it without.
var secret = map[string]func(string) string{
	"kafka-password": redact,
	"kafka-token":    redact,
	"database-url":   RedactURL,
}

func redact(s string) string {
	if s == "" {
		return ""
	}
	return redacted
}

// shown returns a value of the setting as it may be shown to anybody.
func (s *Setting) shown(value string) string {
	if show := secret[s.Name]; show != nil {
		return show(value)
	}
	return value
}

var passwordParameter = regexp.MustCompile(`(?i)\b((?:ssl)?password)\s*=\s*('(?:[^'\\]|\\.)*'|[^\s&]*)`)

// RedactURL returns a database URL, or keywords and values, without the password.
func RedactURL(s string) string {
	if u, err := url.Parse(s); err == nil && u.User != nil {
		s = u.Redacted()
	} else if err != nil && bytes.Contains([]byte(s), []byte("://")) {
		return redacted // not readable: nobody knows which part of it is the password
	}
	return passwordParameter.ReplaceAllString(s, "${1}="+redacted)
}

// YAML returns the settings as a configuration file, without secrets.
func (c *Config) YAML() ([]byte, error) {
	var out bytes.Buffer
	for _, s := range Settings() {
		value := s.value(c)
		if d, ok := value.(time.Duration); ok {
			value = d.String()
		}
		if secret[s.Name] != nil {
			value = s.shown(s.text(c))
		}
		if s.Name == "database-url" && c.DatabaseURLFile != "" {
			value = "" // it stands in that file, and only one of them may be given
		}
		line, err := yamlv3.Marshal(map[string]any{s.Name: value})
		if err != nil {
			return nil, fmt.Errorf("config: print %s: %w", s.Name, err)
		}
		out.Write(line)
	}
	return out.Bytes(), nil
}
