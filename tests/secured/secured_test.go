package secured

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/internal/kafkatest"
	"github.com/seed54173720/writ/pkg/client"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/submit"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

// The parts share servers that take half a minute to set up, and take rights and passwords away from whoever uses them:
// they run one after the other.
func TestLeastRightsAreEnoughAndEachIsMissed(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	login := append(b.login(kafkaProcessor), "--database-url-file", b.database("catalog_processor"))
	c := b.client()
	s := b.serve(login...)
	s.awaitReady()

	b.part("commands get their outcomes", func(b *bed) { outcomes(b, c) })
	b.part("submit sends by every kind of login", logins)
	b.part("a role can do nothing beside its work", roles)
	b.part("a right that is taken away is named, and work goes on when it is back", func(b *bed) { denials(s.on(b), c) })
	b.part("a sender learns what it may not do", senders)
	b.part("a changed password is missed, and the new one is found", func(b *bed) { renewal(s.on(b), c) })
	if code := s.stop(); code != 0 {
		t.Errorf("the processor ended with %d", code)
	}
	b.part("a refused login is told within seconds", refusals)

	b.must("--print-config", "--database-url=postgres://u:"+canary+"@h/db", "--kafka-brokers=k:1", "--kafka-sasl=plain", "--kafka-user=u", "--kafka-password="+canary)
	if text := b.said.String(); strings.Contains(text, canary) {
		at := strings.Index(text, canary)
		t.Errorf("a secret was told: …%s…", text[max(0, at-300):min(len(text), at+100)])
	}
	if !strings.Contains(b.said.String(), "level=DEBUG") || !strings.Contains(b.said.String(), "kafka-password: xxxxx") {
		t.Error("logs or configuration were not looked at")
	}
}

// build makes a command.
func (b *bed) build(requestID, typ, subject, body string) *command.Command {
	b.Helper()
	cmd, err := command.New(typ, kafkaClient).ID(requestID).Subject(subject).Body([]byte(body)).Build()
	if err != nil {
		b.Fatal(err)
	}
	return cmd
}

func (b *bed) send(c *client.Client, requestID, typ, subject, body string) command.Reply {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 3*patience)
	defer cancel()
	reply, err := c.Send(ctx, b.build(requestID, typ, subject, body))
	if err != nil {
		b.Fatal(err)
	}
	return reply
}

// count returns the one number of a query that may see everything.
func (b *bed) count(query string, args ...any) (n int) {
	b.Helper()
	if err := b.superuser.QueryRow(b.Context(), query, args...).Scan(&n); err != nil {
		b.Fatalf("%s: %v", query, err)
	}
	return n
}

// outcomes sends what makes the processor use every right that it has.
func outcomes(b *bed, c *client.Client) {
	const create, rename, release = "catalog.brand.create", "catalog.brand.rename", "catalog.brand.release-name"
	for _, step := range []struct {
		request, typ, subject, body string
		want                        command.Outcome
		code                        command.Code
		duplicate                   bool
	}{
		{"r1", create, "b1", `{"name":"Acme"}`, command.Committed, "", false},
		{"r1", create, "b1", `{"name":"Acme"}`, command.Committed, "", true},
		{"r2", create, "b2", `{"name":"acme"}`, command.Rejected, "name-taken", false},
		{"r3", rename, "b1", `{"name":"Acme"}`, command.Nothing, "", false},
		{"r4", release, "b1", `{}`, command.Committed, "", false},
		{"r2", create, "b2", `{"name":"acme"}`, command.Committed, "", false}, // the refusal makes way
		{"r5", create, "b3", `{"nmae":"Acme"}`, command.Rejected, command.CodeInvalidBody, false},
	} {
		reply := b.send(c, step.request, step.typ, step.subject, step.body)
		var code command.Code
		if reply.Error != nil {
			code = reply.Error.Code
		}
		if reply.Outcome != step.want || code != step.code || reply.Duplicate != step.duplicate {
			b.Errorf("%s %s: %v %q, duplicate %t; want %v %q, %t", step.request, step.typ, reply.Outcome, code, reply.Duplicate, step.want, step.code, step.duplicate)
		}
	}
	if ends, err := b.admin.ListEndOffsets(b.Context(), "catalog.dead-letters"); err != nil {
		b.Error(err)
	} else {
		letters := int64(0)
		for _, end := range ends["catalog.dead-letters"] {
			letters += end.Offset
		}
		if letters != 1 {
			b.Errorf("%d dead letters, want that of the invalid body", letters)
		}
	}

	b.send(c, "p", "catalog.product.create", "p", `{"name":"Rope","brand":"b2","category":"c","price":1.50,"stock":0}`)
	add := func(yield func(*command.Command) bool) {
		for i := range 300 { // a snapshot each hundred commits: one is made, and replaced
			if !yield(b.build(fmt.Sprintf("add-%d", i), "catalog.product.add-stock", "p", `{"quantity":1}`)) {
				return
			}
		}
	}
	ctx, cancel := context.WithTimeout(b.Context(), 3*patience)
	defer cancel()
	if err := c.SendAll(ctx, add, 100, func(r client.Result) {
		if r.Err != nil || r.Reply.Outcome != command.Committed {
			b.Errorf("%v, %v", r.Reply.Outcome, r.Err)
		}
	}); err != nil {
		b.Error(err)
	}
	if n := b.count(`select coalesce(max(version), 0) from catalog.snapshot where aggregate_id = 'p'`); n < 200 {
		b.Errorf("the product's snapshot is at version %d, want 200 or more", n)
	}
	b.until("progress is saved", func() bool { return b.count(`select count(*) from catalog.progress`) > 0 })
}

// logins sends a command by each mechanism that brokers offer.
func logins(b *bed) {
	secret := secretOf(kafkaClient)
	token := unsigned(fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d}`, kafkaClient, time.Now().Unix(), time.Now().Add(time.Hour).Unix()))
	for sasl, args := range map[string][]string{
		"plain":         {"--kafka-user", kafkaClient, "--kafka-password", secret},
		"scram-sha-256": {"--kafka-user", kafkaClient, "--kafka-password", secret},
		"scram-sha-512": {"--kafka-user", kafkaClient, "--kafka-password-file", b.file("pw", secret+"\n")},
		"oauthbearer":   {"--kafka-token-file", b.file("token", token)},
	} {
		code, out := b.submit(append(args, "--kafka-sasl", sasl, "--kafka-ca-file", b.ca)...)
		if code != submit.ExitDone || !strings.Contains(out, `"outcome":"committed"`) {
			b.Errorf("%s: exit code %d: %s", sasl, code, out)
		}
	}
}

// unsigned is a token that vouches for itself, as brokers take it that are set up for tests.
func unsigned(claims string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + "."
}

// submit sends a command that creates a brand, and returns all that the program says.
func (b *bed) submit(args ...string) (code int, out string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 3*patience)
	defer cancel()
	id := strings.ToLower(fmt.Sprintf("s%d", time.Now().UnixNano()))
	var text bytes.Buffer
	code = submit.Run(ctx, slices.Concat([]string{
		"send", "catalog.brand.create", id, "--data", fmt.Sprintf(`{"name":%q}`, id), "--kafka-brokers", b.kafka.Addr,
	}, args), strings.NewReader(""), &text, &text, catalog.Context())
	_, _ = b.said.Write(text.Bytes())
	return code, text.String()
}

// roles tries what each role must not do.
func roles(b *bed) {
	b.sql(`create schema if not exists other; create table if not exists other.secrets (n int)`)
	for role, forbidden := range map[string][]string{
		"catalog_processor": {
			`delete from catalog.journal`, `truncate catalog.journal`, `update catalog.journal set events = null`,
			`drop table catalog.snapshot`, `create table catalog.more (n int)`, `delete from catalog.progress`, `select * from other.secrets`,
			`insert into catalog.goose_db_version (version_id, is_applied) values (99, true)`,
		},
		"catalog_reader": {
			`insert into catalog.progress values (1)`, `delete from catalog.reservation`, `update catalog.journal set request = stream`,
			`create table catalog.more (n int)`, `select * from other.secrets`,
		},
		"catalog_owner": {`create schema more`, `create role more`, `select * from other.secrets`},
	} {
		conn := b.connect(role)
		for _, statement := range forbidden {
			_, err := conn.Exec(b.Context(), statement)
			var refused *pgconn.PgError
			if !errors.As(err, &refused) || refused.Code != "42501" {
				b.Errorf("%s: %s: %v, want it denied", role, statement, err)
			}
		}
	}
	reader := []string{"--database-url-file", b.database("catalog_reader")}
	if out := b.must(append(reader, "show", "brand/b2")...); !strings.Contains(out, "brand/b2 at version 1") {
		b.Errorf("show says %s", out)
	}
	if out := b.must(append(reader, "audit")...); !strings.Contains(out, "0 findings") {
		b.Errorf("audit says %s", out)
	}

	conn := b.connect("catalog_reader")
	var tls bool
	if err := conn.QueryRow(b.Context(), `select ssl from pg_stat_ssl where pid = pg_backend_pid()`).Scan(&tls); err != nil || !tls {
		b.Errorf("TLS: %t, %v", tls, err)
	}
	cfg := conn.Config().Copy()
	cfg.TLSConfig, cfg.Fallbacks = nil, nil
	if conn, err := pgx.ConnectConfig(b.Context(), cfg); err == nil {
		conn.Close(b.Context())
		b.Error("the database takes a connection without TLS")
	}
}

func (b *bed) connect(role string) *pgx.Conn {
	b.Helper()
	cfg, err := pgx.ParseConfig(b.url(role))
	if err != nil {
		b.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// senders takes from the client what it has.
func senders(b *bed) {
	args := append(b.login(kafkaClient), "--timeout=20s")
	b.without(topicRight(kafkaClient, "catalog.commands", write), func() {
		code, out := b.submit(args...)
		if code != submit.ExitNotSent || !strings.Contains(out, "catalog.commands") || !strings.Contains(out, "TOPIC_AUTHORIZATION_FAILED") {
			b.Errorf("without write: exit code %d: %s", code, out)
		}
	})
	b.without(topicRight(kafkaClient, "catalog.replies", read), func() {
		code, out := b.submit(args...)
		if code != submit.ExitNotSent || !strings.Contains(out, "catalog.replies") || !strings.Contains(out, "TOPIC_AUTHORIZATION_FAILED") {
			b.Errorf("without read: exit code %d: %s", code, out)
		}
	})
	code, out := b.submit(b.login(kafkaOperator)...)
	if code != submit.ExitNotSent || !strings.Contains(out, "catalog.replies") {
		b.Errorf("the operator, who may not read replies: exit code %d: %s", code, out)
	}
}

// refusals starts programs with a wrong password, and without what the servers ask for.
func refusals(b *bed) {
	wrong := b.file("wrong", canary+"-wrong")
	other := b.file("other.pem", string(newAuthority(b.T).pem()))
	plain := []string{"--kafka-user", kafkaClient, "--kafka-password-file", wrong, "--timeout=20s"}
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"scram", append(plain, "--kafka-ca-file", b.ca, "--kafka-sasl=scram-sha-512"), "the login was refused"},
		{"plain", append(plain, "--kafka-ca-file", b.ca, "--kafka-sasl=plain"), "the login was refused"},
		{"token", []string{"--kafka-ca-file", b.ca, "--kafka-sasl=oauthbearer", "--kafka-token", unsigned(`{"sub":"` + canary + `"}`)}, "the login was refused"},
		{"another authority", append(plain, "--kafka-ca-file", other, "--kafka-sasl=plain"), "unknown authority"},
		{"no login", []string{"--kafka-ca-file", b.ca, "--timeout=20s"}, "check kafka-"},
		{"no TLS", []string{"--timeout=20s"}, "reach the brokers"},
	} {
		began := time.Now()
		code, out := b.submit(test.args...)
		if took := time.Since(began); code != submit.ExitNotSent || !strings.Contains(out, test.want) || took > 10*time.Second {
			b.Errorf("%s: exit code %d after %v, want %d within seconds and %q: %s", test.name, code, took, submit.ExitNotSent, test.want, out)
		}
	}

	password := b.file("processor.password", canary+"-wrong")
	b.sql(`alter role catalog_processor password '` + canary + `-changed'`)
	s := b.serve("--kafka-brokers", b.kafka.Addr, "--kafka-ca-file", b.ca, "--kafka-sasl=scram-sha-512", "--kafka-user", kafkaProcessor,
		"--kafka-password-file", password, "--database-url-file", b.database("catalog_processor"))
	s.awaitUnready("the brokers cannot be reached", "the login was refused", "SASL_AUTHENTICATION_FAILED")
	b.file("processor.password", b.secret(kafkaProcessor))
	s.awaitUnready("the database cannot be reached", "28P01")
	b.sql(`alter role catalog_processor password '` + secretOf("catalog_processor") + `'`)
	s.awaitReady()
	if status, body := s.get("/metrics"); status != 200 || !strings.Contains(body, "writ_") {
		b.Errorf("/metrics: %d", status)
	}
	if code := s.stop(); code != 0 {
		b.Errorf("the processor ended with %d", code)
	}
}
