package secured

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/seed54173720/writ/pkg/client"
	"github.com/seed54173720/writ/pkg/command"
)

const (
	read  = kadm.OpRead
	write = kadm.OpWrite
)

// right is one that can be taken away and given back.
type right struct{ take, give func(*bed) }

func (b *bed) without(r right, f func()) {
	b.Helper()
	r.take(b)
	defer r.give(b)
	f()
}

func topicRight(user, topic string, op kadm.ACLOperation) right {
	return kafkaRight(func() *kadm.ACLBuilder {
		return kadm.NewACLs().Topics(topic).Allow("User:" + user).AllowHosts("*").ResourcePatternType(kadm.ACLPatternLiteral).Operations(op)
	})
}

func groupRight(user, group string) right {
	return kafkaRight(func() *kadm.ACLBuilder {
		return kadm.NewACLs().Groups(group).Allow("User:" + user).AllowHosts("*").ResourcePatternType(kadm.ACLPatternLiteral).Operations(read)
	})
}

func kafkaRight(rule func() *kadm.ACLBuilder) right {
	return right{
		take: func(b *bed) {
			b.Helper()
			results, err := b.admin.DeleteACLs(context.Background(), rule())
			if err != nil || len(results) != 1 || len(results[0].Deleted) != 1 {
				b.Fatalf("take a right away: %+v, %v; want one rule to go", results, err)
			}
		},
		give: func(b *bed) {
			b.Helper()
			results, err := b.admin.CreateACLs(context.Background(), rule())
			if err != nil || len(results) != 1 || results[0].Err != nil {
				b.Fatalf("give a right back: %+v, %v", results, err)
			}
		},
	}
}

func tableRight(what, on string) right {
	return right{
		take: func(b *bed) { b.Helper(); b.sql(fmt.Sprintf(`revoke %s on %s from catalog_processor`, what, on)) },
		give: func(b *bed) { b.Helper(); b.sql(fmt.Sprintf(`grant %s on %s to catalog_processor`, what, on)) },
	}
}

// denials takes each right away while the processor works. Readiness must turn red and name resource and operation; a
// command that is sent meanwhile must get one outcome, whether before or after the right is back.
func denials(s *server, c *client.Client) {
	const create, release = "catalog.brand.create", "catalog.brand.release-name"
	for i, test := range []struct {
		name  string
		right right
		want  string
		typ   string // of the command that is sent meanwhile. Default: one that creates a brand and takes its name
		stays bool   // its answer cannot come before the right is back
	}{
		{name: "read the group", right: groupRight(kafkaProcessor, "catalog.processor"), want: "READ of group catalog.processor is not allowed"},
		{name: "read commands", right: topicRight(kafkaProcessor, "catalog.commands", read), want: "READ of topic catalog.commands is not allowed", stays: true},
		{name: "write replies", right: topicRight(kafkaProcessor, "catalog.replies", write), want: "WRITE of topic catalog.replies is not allowed", stays: true},
		{name: "write events", right: topicRight(kafkaProcessor, "catalog.events", write), want: "WRITE of topic catalog.events is not allowed"},
		{name: "write dead letters", right: topicRight(kafkaProcessor, "catalog.dead-letters", write), want: "WRITE of topic catalog.dead-letters is not allowed", typ: "invalid", stays: true},
		{name: "insert into the journal", right: tableRight("insert", "catalog.journal"), want: "insert on table catalog.journal", stays: true},
		{name: "read the journal", right: tableRight("select", "catalog.journal"), want: "select on table catalog.journal", stays: true},
		{name: "move a refusal aside", right: tableRight("update (request)", "catalog.journal"), want: "update on table catalog.journal (request)"},
		{name: "read reservations", right: tableRight("select", "catalog.reservation"), want: "select on table catalog.reservation", stays: true},
		{name: "take a key", right: tableRight("insert", "catalog.reservation"), want: "insert on table catalog.reservation", stays: true},
		{name: "release a key", right: tableRight("delete", "catalog.reservation"), want: "delete on table catalog.reservation", typ: release, stays: true},
		{name: "replace a snapshot", right: tableRight("update", "catalog.snapshot"), want: "update on table catalog.snapshot"},
		{name: "save progress", right: tableRight("update", "catalog.progress"), want: "update on table catalog.progress"},
		{name: "use the schema", right: tableRight("usage", "schema catalog"), want: "usage of schema catalog", stays: true},
	} {
		s.part(test.name, func(b *bed) {
			s := s.on(b)
			typ, body, outcome := create, fmt.Sprintf(`{"name":"denied %d"}`, i), command.Committed
			subject, request, version := fmt.Sprintf("denied-%d", i), fmt.Sprintf("denied-%d", i), int64(1)
			switch test.typ {
			case release:
				b.send(c, "before-"+request, create, subject, body)
				typ, body, version = release, `{}`, 2
			case "invalid":
				body, outcome, version = `{"nmae":""}`, command.Rejected, 0
			}

			test.right.take(b)
			given := false
			defer func() {
				if !given {
					test.right.give(b)
				}
			}()
			s.awaitUnready(test.want)

			ctx, cancel := context.WithTimeout(b.Context(), 3*patience)
			defer cancel()
			type answer struct {
				reply command.Reply
				err   error
			}
			answered := make(chan answer, 1)
			cmd := b.build(request, typ, subject, body)
			go func() {
				reply, err := c.Send(ctx, cmd)
				answered <- answer{reply, err}
			}()
			rows := func() int {
				return b.count(`select count(*) from catalog.journal where request_id = $1`, request)
			}
			if strings.HasPrefix(test.name, "write ") {
				b.until("the command is recorded", func() bool { return rows() == 1 })
			}
			if test.stays {
				select {
				case a := <-answered:
					b.Errorf("answered without the right: %+v, %v", a.reply, a.err)
					answered <- a
				case <-time.After(time.Second): // nothing shows that nothing happens
				}
				s.awaitUnready(test.want)
			}

			test.right.give(b)
			given = true
			a := <-answered
			if a.err != nil {
				b.Fatal(a.err)
			}
			if a.reply.Outcome != outcome || a.reply.Duplicate || a.reply.Version != version {
				b.Errorf("reply %+v, want %v at version %d, and no duplicate", a.reply, outcome, version)
			}
			if n := rows(); n != 1 {
				b.Errorf("%d rows of the request, want one", n)
			}
			s.awaitReady()
		})
	}
}

// renewal changes the processor's password at the broker, which then restarts: the processor is shut out until its file
// holds the new one.
func renewal(s *server, c *client.Client) {
	ctx, cancel := context.WithTimeout(s.Context(), 3*patience)
	defer cancel()
	renewed := canary + "-renewed"
	for _, mechanism := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} {
		altered, err := s.admin.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{{User: kafkaProcessor, Mechanism: mechanism, Iterations: 4096, Password: renewed}})
		if err == nil {
			err = altered.Error()
		}
		if err != nil {
			s.Fatal(err)
		}
	}
	if err := s.kafka.Stop(); err != nil {
		s.Fatal(err)
	}
	s.awaitUnready("no broker answers")
	if err := s.kafka.Restart(ctx); err != nil {
		s.Fatal(err)
	}
	s.awaitUnready("the login was refused", "SASL_AUTHENTICATION_FAILED")
	s.secrets[kafkaProcessor] = renewed
	s.login(kafkaProcessor)
	s.awaitReady()
	if reply := s.send(c, "renewed", "catalog.brand.create", "renewed", `{"name":"Renewed"}`); reply.Outcome != command.Committed || reply.Duplicate {
		s.Errorf("reply %+v, want committed", reply)
	}
}
