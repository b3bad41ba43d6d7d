package kafka

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// issue makes a certificate of that name, signed by itself.
func issue(t *testing.T, name string) (certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// A client that kept what it read at its start was shut out when the old certificate expired.
func TestRenewedCertificateIsShownByTheNextConnection(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	serverCert, serverKey := issue(t, "broker")
	pair, err := tls.X509KeyPair(serverCert, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	shown := make(chan string)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			secured := conn.(*tls.Conn)
			if err := secured.HandshakeContext(t.Context()); err != nil {
				shown <- err.Error()
			} else {
				shown <- secured.ConnectionState().PeerCertificates[0].Subject.CommonName
			}
			conn.Close()
		}
	}()

	client := transport{ca: write("ca.pem", serverCert), cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	for _, name := range []string{"old", "new"} {
		cert, key := issue(t, name)
		write("cert.pem", cert)
		write("key.pem", key)
		conn, err := client.dial(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if got := <-shown; got != name {
			t.Errorf("the broker was shown %q, want the certificate of the files, %q", got, name)
		}
		conn.Close()
	}

	other, _ := issue(t, "another authority")
	write("ca.pem", other)
	if conn, err := client.dial(t.Context(), "tcp", l.Addr().String()); err == nil {
		conn.Close()
		t.Error("a broker that the renewed authorities do not vouch for was trusted")
	}
	<-shown
}
