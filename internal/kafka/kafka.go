// Package kafka makes clients of the configured brokers: addresses, TLS and logins stand in one place.
package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"github.com/twmb/franz-go/plugin/kslog"

	"github.com/seed54173720/writ/internal/config"
)

// Options returns what every client of the brokers needs to reach them, and how it logs. brokers takes the place of the
// configured ones, which an embedded broker does not have.
func Options(cfg *config.Config, brokers []string, log *slog.Logger) ([]kgo.Opt, error) {
	opts := []kgo.Opt{kgo.SeedBrokers(brokers...), kgo.ClientID(cfg.KafkaClientID), kgo.WithLogger(logger{kslog.New(log), log})}
	if cfg.KafkaTLS || cfg.KafkaCAFile != "" || cfg.KafkaCertFile != "" {
		conf, err := transport(cfg)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.DialTLSConfig(conf))
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

func transport(cfg *config.Config) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.KafkaCAFile != "" {
		pem, err := os.ReadFile(cfg.KafkaCAFile)
		if err != nil {
			return nil, fmt.Errorf("kafka: kafka-ca-file: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("kafka: kafka-ca-file is %q: holds no PEM certificate", cfg.KafkaCAFile)
		}
	}
	if cfg.KafkaCertFile != "" {
		own, err := tls.LoadX509KeyPair(cfg.KafkaCertFile, cfg.KafkaKeyFile)
		if err != nil {
			return nil, fmt.Errorf("kafka: kafka-cert-file and kafka-key-file: %w", err)
		}
		conf.Certificates = []tls.Certificate{own}
	}
	return conf, nil
}

func login(cfg *config.Config) (sasl.Mechanism, error) {
	switch cfg.KafkaSASL {
	case "plain":
		return plain.Auth{User: cfg.KafkaUser, Pass: cfg.KafkaPassword}.AsMechanism(), nil
	case "scram-sha-256":
		return scram.Auth{User: cfg.KafkaUser, Pass: cfg.KafkaPassword}.AsSha256Mechanism(), nil
	case "scram-sha-512":
		return scram.Auth{User: cfg.KafkaUser, Pass: cfg.KafkaPassword}.AsSha512Mechanism(), nil
	case "oauthbearer":
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			token, err := os.ReadFile(cfg.KafkaTokenFile)
			if err != nil {
				return oauth.Auth{}, fmt.Errorf("kafka: kafka-token-file: %w", err)
			}
			return oauth.Auth{Token: strings.TrimSpace(string(token))}, nil
		}), nil
	}
	return nil, fmt.Errorf("kafka: kafka-sasl is %q: not known", cfg.KafkaSASL)
}

// patience is how long the brokers may take to answer at the start.
const patience = 30 * time.Second

// Admin is an administration client.
type Admin = kadm.Client

// Connect returns an administration client of brokers that have answered. Close it.
func Connect(ctx context.Context, opts []kgo.Opt, brokers []string) (*Admin, error) {
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := client.Ping(limited); err != nil {
		client.Close()
		if errors.Is(limited.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("no answer in %v (last: %w): check kafka-brokers, and kafka-sasl, kafka-user and kafka-password: a wrong password looks the same", patience, err)
		}
		return nil, fmt.Errorf("kafka: reach the brokers %q: %w", brokers, err)
	}
	return kadm.NewClient(client), nil
}
