package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"time"
)

// transport dials brokers by TLS. Its files are read for every connection: certificates are renewed while the processor
// runs, and a client that knows the old ones only is shut out when they expire.
type transport struct{ ca, cert, key string }

const dialTimeout = 10 * time.Second

func (t transport) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conf, err := t.config()
	if err != nil {
		return nil, err
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: dialTimeout}, Config: conf} // checks the name in addr
	return dialer.DialContext(ctx, network, addr)
}

func (t transport) config() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.ca != "" {
		pem, err := os.ReadFile(t.ca)
		if err != nil {
			return nil, fmt.Errorf("kafka: kafka-ca-file: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("kafka: kafka-ca-file is %q: holds no PEM certificate", t.ca)
		}
	}
	if t.cert != "" {
		own, err := tls.LoadX509KeyPair(t.cert, t.key)
		if err != nil {
			return nil, fmt.Errorf("kafka: kafka-cert-file and kafka-key-file: %w", err)
		}
		conf.Certificates = []tls.Certificate{own}
	}
	return conf, nil
}
