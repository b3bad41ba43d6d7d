package pgtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed54173720/writ/internal/embedded/postgres"
)

// Secure makes a server of the test's own take connections by TLS only, with a certificate and its key in PEM, and logins
// by SCRAM only. The server's own role stays free of TLS: it is how tests administer the server.
func Secure(tb testing.TB, s *postgres.Server, cert, key []byte) {
	tb.Helper()
	if err := secure(tb.Context(), s, cert, key); err != nil {
		tb.Fatalf("pgtest: secure the server: %v", err)
	}
}

func secure(ctx context.Context, s *postgres.Server, cert, key []byte) error {
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var data, rules, admin string
	if err := conn.QueryRow(ctx, `select current_setting('data_directory'), current_setting('hba_file'), current_user`).Scan(&data, &rules, &admin); err != nil {
		return err
	}
	hba := fmt.Sprintf("hostnossl all %q 127.0.0.1/32 scram-sha-256\nhostssl all all 127.0.0.1/32 scram-sha-256\n", admin)
	certFile, keyFile := filepath.Join(data, "tls.crt"), filepath.Join(data, "tls.key")
	for path, text := range map[string][]byte{certFile: cert, keyFile: key, rules: []byte(hba)} {
		if err := writeAs(data, path, text); err != nil {
			return err
		}
	}
	for _, set := range []string{
		`alter system set ssl_cert_file = ` + quote(certFile), `alter system set ssl_key_file = ` + quote(keyFile),
		`alter system set password_encryption = 'scram-sha-256'`, `alter system set ssl = on`,
	} {
		if _, err := conn.Exec(ctx, set); err != nil {
			return fmt.Errorf("%s: %w", set, err)
		}
	}
	_, err = conn.Exec(ctx, `select pg_reload_conf()`)
	return err
}

// writeAs writes a file that belongs, like the directory, to the server's user and to nobody else.
func writeAs(dir, path string, text []byte) error {
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	return os.Chown(path, int(owner.Uid), int(owner.Gid))
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
