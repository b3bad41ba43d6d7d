package kafkatest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

// Security is what a broker asks of those who connect.
type Security struct {
	Cert, Key []byte            // PEM, the key in PKCS#8; for 127.0.0.1
	Users     map[string]string // passwords by name, for PLAIN and both kinds of SCRAM
}

// Secured is an Apache Kafka whose clients connect by TLS, log in, and may do what their rights say and nothing else.
// Its tokens of OAUTHBEARER are unsigned ones.
type Secured struct {
	*Proc
	// Addr is the listener for TLS and logins. That of the Proc takes anybody on this machine, and gives them every
	// right: it is how tests administer the broker.
	Addr string

	node *node
}

// ApacheSecured is [Apache] with an authoriser that denies what no rule allows.
func ApacheSecured(ctx context.Context, dir string, security Security) (*Secured, error) {
	n, p, err := apache(ctx, dir, &security)
	if err != nil {
		return nil, err
	}
	return &Secured{Proc: p, Addr: fmt.Sprintf("127.0.0.1:%d", n.securePort), node: n}, nil
}

// AdminAddr is the listener at which everybody may do everything.
func (s *Secured) AdminAddr() string { return s.Proc.Addr() }

// Tool writes an executable file of that name into dir which runs one of Kafka's command lines, by its Java class, as
// the file of the same name in Kafka's bin directory does.
func (s *Secured) Tool(dir, name, class string) error {
	cmd := s.node.command(context.Background(), class)
	cmd.Args = slices.DeleteFunc(cmd.Args, func(arg string) bool { return strings.HasPrefix(arg, "-Xm") })
	var script bytes.Buffer
	script.WriteString("#!/bin/sh\nexec")
	for _, arg := range append(cmd.Args[:1:1], append([]string{"-XX:TieredStopAtLevel=1"}, cmd.Args[1:]...)...) {
		fmt.Fprintf(&script, " '%s'", arg)
	}
	script.WriteString(" \"$@\"\n")
	if err := os.WriteFile(filepath.Join(dir, name), script.Bytes(), 0o755); err != nil {
		return fmt.Errorf("kafkatest: %w", err)
	}
	return nil
}

// listeners are those beside the plain ones.
func (n *node) listeners() string {
	if n.security == nil {
		return ""
	}
	return fmt.Sprintf(",SECURED://127.0.0.1:%d", n.securePort)
}

// secure adds to the configuration what belongs to TLS, logins and rights.
func (n *node) secure(config *bytes.Buffer) error {
	keystore := filepath.Join(n.dir, "keystore.pem")
	if err := os.WriteFile(keystore, slices.Concat(n.security.Key, n.security.Cert), 0o600); err != nil { // the key first
		return err
	}
	return template.Must(template.ParseFS(properties, "testdata/secured.properties")).Execute(config, map[string]any{
		"Port": n.port, "SecurePort": n.securePort, "Keystore": keystore, "Users": n.security.Users,
	})
}

// scramUsers are the arguments that lay down the users when the storage is formatted.
func (n *node) scramUsers() (args []string) {
	if n.security == nil {
		return nil
	}
	for _, user := range slices.Sorted(maps.Keys(n.security.Users)) {
		for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
			args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", mechanism, user, n.security.Users[user]))
		}
	}
	return args
}
