package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"
)

// This file is what the processor is compared with: the same commands by a consume loop as a good programmer writes
// it with franz-go and pgx. A goroutine for each partition executes its commands in order, each in one transaction
// that is one round trip: the event under the aggregate's next version and under the request's ID, and the name that
// it takes. Unique indexes find repeats, lost races and taken names. The states of aggregates are cached.

// loopTables has one heap row for a command with two unique indexes, which is faster than a table for each.
const loopTables = `
create table event (
    aggregate text   not null,
    version   bigint not null,
    request   uuid   not null constraint event_request unique,
    type      text   not null,
    body      json   not null,
    constraint event_version primary key (aggregate, version)
);
create table name (name text constraint name_taken primary key, aggregate text not null);`

const (
	insertEvent   = `insert into event (aggregate, version, request, type, body) values ($1, $2, $3, $4, $5)`
	insertName    = `insert into name (name, aggregate) values ($1, $2)`
	selectEvents  = `select type, body from event where aggregate = $1 order by version`
	selectRequest = `select version from event where request = $1`
)

type loop struct {
	pool               *pgxpool.Pool
	consumer, producer *kgo.Client
	replies            string // topic
}

// request is a command; its event says the same.
type request struct {
	id, typ, aggregate string
	body               []byte
}

type fields struct {
	Name, Price     string
	Stock, Quantity int64
}

// state is that of a product or a brand.
type state struct {
	version, stock int64
	price          string
}

type answer struct {
	RequestID string `json:"requestId"`
	Aggregate string `json:"aggregate"`
	Outcome   string `json:"outcome"`
	Code      string `json:"code,omitempty"`
	Version   int64  `json:"version"`
	Duplicate bool   `json:"duplicate"`
}

func (l *loop) run(ctx context.Context) error {
	partitions := map[int32]chan []*kgo.Record{}
	for {
		fetches := l.consumer.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachPartition(func(f kgo.FetchTopicPartition) {
			if partitions[f.Partition] == nil {
				partitions[f.Partition] = make(chan []*kgo.Record, 4)
				go l.partition(ctx, partitions[f.Partition])
			}
			partitions[f.Partition] <- f.Records
		})
	}
}

// partition executes commands one after the other. A reply goes to the partition of its command's number, so that
// replies are acknowledged in the order of the commands, and offsets marked in that order.
func (l *loop) partition(ctx context.Context, batches <-chan []*kgo.Record) {
	cache := map[string]state{}
	for records := range batches {
		for _, r := range records {
			reply, err := l.execute(ctx, cache, read(r))
			for ; err != nil && ctx.Err() == nil; reply, err = l.execute(ctx, cache, read(r)) {
				slog.Warn("again", "partition", r.Partition, "offset", r.Offset, "error", err)
			}
			if err != nil {
				return
			}
			value, _ := json.Marshal(reply) // of strings and numbers
			l.producer.Produce(context.Background(), &kgo.Record{Topic: l.replies, Partition: 0, Key: []byte(reply.RequestID), Value: value},
				func(_ *kgo.Record, err error) {
					if err == nil {
						l.consumer.MarkCommitRecords(r)
					}
				})
		}
	}
}

func read(r *kgo.Record) request {
	c := request{aggregate: string(r.Key), body: r.Value}
	for _, h := range r.Headers {
		switch h.Key {
		case "ce_id":
			c.id = string(h.Value)
		case "ce_type":
			c.typ = string(h.Value)
		}
	}
	return c
}

// execute decides and commits. An error means: again.
func (l *loop) execute(ctx context.Context, cache map[string]state, c request) (answer, error) {
	reply := answer{RequestID: c.id, Aggregate: c.aggregate, Outcome: "committed"}
	s, err := l.load(ctx, cache, c)
	if err != nil {
		return reply, err
	}
	next, name, code := decide(s, c)
	if code == "" {
		batch := &pgx.Batch{} // one round trip, and without a begin one transaction
		batch.Queue(insertEvent, c.aggregate, next.version, c.id, c.typ, c.body)
		if name != "" {
			batch.Queue(insertName, name, c.aggregate)
		}
		err := l.pool.SendBatch(ctx, batch).Close()
		var violation *pgconn.PgError
		switch {
		case err == nil:
			cache[c.aggregate], reply.Version = next, next.version
			return reply, nil
		case !errors.As(err, &violation) || violation.ConstraintName == "":
			return reply, err
		case violation.ConstraintName == "name_taken":
			code = "name-taken"
		case violation.ConstraintName == "event_version": // somebody was faster
			if cache[c.aggregate], err = l.fold(ctx, c.aggregate); err == nil {
				err = violation
			}
			return reply, err
		}
	}
	// What is refused now may have been committed before.
	err = l.pool.QueryRow(ctx, selectRequest, c.id).Scan(&reply.Version)
	reply.Duplicate = err == nil
	if errors.Is(err, pgx.ErrNoRows) {
		reply.Outcome, reply.Code, reply.Version, err = "rejected", code, s.version, nil
	}
	return reply, err
}

// load returns the state before c. What is to be created is taken for new; if it is not, its first version is there.
func (l *loop) load(ctx context.Context, cache map[string]state, c request) (state, error) {
	s, ok := cache[c.aggregate]
	if ok || creates(c.typ) {
		return s, nil
	}
	return l.fold(ctx, c.aggregate)
}

func (l *loop) fold(ctx context.Context, aggregate string) (s state, err error) {
	rows, err := l.pool.Query(ctx, selectEvents, aggregate)
	if err != nil {
		return s, err
	}
	var e request
	_, err = pgx.ForEachRow(rows, []any{&e.typ, &e.body}, func() error {
		var f fields
		err := json.Unmarshal(e.body, &f)
		s = s.evolve(e.typ, f)
		return err
	})
	return s, err
}

// decide returns the next state and the name that is taken with it, or why there is none.
func decide(s state, c request) (next state, name, code string) {
	var f fields
	switch err := json.Unmarshal(c.body, &f); {
	case err != nil:
		return s, "", "invalid-body"
	case creates(c.typ) && s.version > 0:
		return s, "", "already-exists"
	case !creates(c.typ) && s.version == 0:
		return s, "", "not-found"
	case c.typ == "catalog.product.take-stock" && s.stock < f.Quantity:
		return s, "", "out-of-stock"
	case c.typ == "catalog.brand.create":
		name = f.Name
	}
	return s.evolve(c.typ, f), name, ""
}

func creates(typ string) bool {
	return typ == "catalog.brand.create" || typ == "catalog.product.create"
}

func (s state) evolve(typ string, f fields) state {
	s.version++
	switch typ {
	case "catalog.product.create":
		s.stock, s.price = f.Stock, f.Price
	case "catalog.product.change-price":
		s.price = f.Price
	case "catalog.product.add-stock":
		s.stock += f.Quantity
	case "catalog.product.take-stock":
		s.stock -= f.Quantity
	}
	return s
}
