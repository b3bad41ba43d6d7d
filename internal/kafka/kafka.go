// Package kafka makes clients of the configured brokers: addresses, TLS and logins stand in one place.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kslog"

	"github.com/seed54173720/writ/internal/config"
)

// Options returns what every client of the brokers needs to reach them, and how it logs. brokers takes the place of the
// configured ones, which an embedded broker does not have.
func Options(cfg *config.Config, brokers []string, log *slog.Logger) ([]kgo.Opt, error) {
	opts := []kgo.Opt{kgo.SeedBrokers(brokers...), kgo.ClientID(cfg.KafkaClientID), kgo.WithLogger(logger{kslog.New(log), log})}
	if cfg.KafkaTLS || cfg.KafkaCAFile != "" || cfg.KafkaCertFile != "" {
		t := transport{ca: cfg.KafkaCAFile, cert: cfg.KafkaCertFile, key: cfg.KafkaKeyFile}
		if _, err := t.config(); err != nil { // what is wrong from the beginning is told at the beginning
			return nil, err
		}
		opts = append(opts, kgo.Dialer(t.dial))
	}
	if cfg.KafkaSASL != "" {
		login, err := login(cfg)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(login))
	}
	return opts, nil
}

// logger keeps what the client tells of its daily work for those who debug.
type logger struct {
	*kslog.Logger
	log *slog.Logger
}

// Level implements kgo.Logger.
func (l logger) Level() kgo.LogLevel {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		return kgo.LogLevelDebug
	}
	return kgo.LogLevelWarn
}

// Admin is an administration client.
type Admin = kadm.Client

// ErrUnreachable is why Connect fails: no broker answers, or none lets us in.
var ErrUnreachable = errors.New("the brokers cannot be reached")

// tryFor bounds one attempt to reach the brokers.
const tryFor = 10 * time.Second

// Connect returns an administration client of brokers that have answered. Close it. It tries once: a refused login and
// an address where nobody listens are known within seconds.
func Connect(ctx context.Context, opts []kgo.Opt, brokers []string) (*Admin, error) {
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, tryFor, fmt.Errorf("no answer in %v", tryFor))
	defer cancel()
	if err := client.Ping(limited); err != nil {
		client.Close()
		if ctx.Err() == nil && limited.Err() != nil {
			err = context.Cause(limited)
		}
		return nil, fmt.Errorf("kafka: %w at %q: %w", ErrUnreachable, brokers, Explain(err))
	}
	return kadm.NewClient(client), nil
}

// Explain adds to an error of the client what to do about it, where that is not plain from its text.
func Explain(err error) error {
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err, kerr.IllegalSaslState), errors.Is(err, kerr.UnsupportedSaslMechanism):
		return fmt.Errorf("the login was refused: %w: check kafka-sasl, kafka-user and kafka-password, or the token", err)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the broker hung up: %w: check kafka-tls and kafka-sasl: it may expect one of them, or none", err)
	}
	return err
}
