package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/seed54173720/writ/internal/config"
)

// login returns how to log in. Secrets are asked for at every login, so that those in files may be renewed, and never
// stand in an error.
func login(cfg *config.Config) (sasl.Mechanism, error) {
	switch cfg.KafkaSASL {
	case "plain":
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			pass, err := password(cfg)
			return plain.Auth{User: cfg.KafkaUser, Pass: pass}, err
		}), nil
	case "scram-sha-256":
		return scram.Sha256(scramAuth(cfg)), nil
	case "scram-sha-512":
		return scram.Sha512(scramAuth(cfg)), nil
	case "oauthbearer":
		return oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {
			token, err := token(ctx, cfg)
			return oauth.Auth{Token: token}, err
		}), nil
	}
	return nil, fmt.Errorf("kafka: kafka-sasl is %q: not known", cfg.KafkaSASL)
}

func scramAuth(cfg *config.Config) func(context.Context) (scram.Auth, error) {
	return func(context.Context) (scram.Auth, error) {
		pass, err := password(cfg)
		return scram.Auth{User: cfg.KafkaUser, Pass: pass}, err
	}
}

func password(cfg *config.Config) (string, error) {
	if cfg.KafkaPasswordFile == "" {
		return cfg.KafkaPassword, nil
	}
	return secretFile("kafka-password-file", cfg.KafkaPasswordFile)
}

func token(ctx context.Context, cfg *config.Config) (string, error) {
	switch {
	case cfg.KafkaTokenCommand != "":
		return tokenOf(ctx, cfg.KafkaTokenCommand)
	case cfg.KafkaTokenFile != "":
		return secretFile("kafka-token-file", cfg.KafkaTokenFile)
	}
	return cfg.KafkaToken, nil
}

// secretFile returns a file's text without the white space around it, which editors leave.
func secretFile(setting, path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("kafka: %s: %w", setting, err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("kafka: %s is %q: the file is empty", setting, path)
	}
	return secret, nil
}

const tokenTimeout = 10 * time.Second

// tokenOf runs a program and returns what it prints. What it says on standard error is for people and goes into the
// error; what it prints is not.
func tokenOf(ctx context.Context, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	args := strings.Fields(command)
	if len(args) == 0 {
		return "", errors.New("kafka: kafka-token-command is blank")
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = time.Second // for children of it that keep its output open
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("kafka: kafka-token-command %q: %w: %.200s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	token := strings.TrimSpace(string(out))
	if token == "" {
		return "", fmt.Errorf("kafka: kafka-token-command %q printed no token", args[0])
	}
	return token, nil
}
