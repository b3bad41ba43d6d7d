package main

import (
	"context"
	"fmt"
	"strings"
)

// round is one measurement of everything; what was not asked for is nil.
type round struct {
	copy, writ, loop, hot, kafka *result
	half, slow, tenth            *load // of the processor
	loopHalf, loopSlow           *load
}

// round measures in the order b, a, c, d, e, f: a copies what b wrote, and d runs at parts of the rates of b and c.
func (b *bed) round(ctx context.Context, number int) (r round, err error) {
	schema := func(part string) string { return fmt.Sprintf("bench_%d_%s", number+1, part) }
	if b.measures('b') {
		if r.writ, err = b.drainMix(ctx, schema("b")); err != nil {
			return r, fmt.Errorf("b: %w", err)
		}
		if b.measures('a') {
			copied, err := b.rawCopy(ctx, schema("b"), schema("a"))
			if err != nil {
				return r, fmt.Errorf("a: %w", err)
			}
			r.copy = &copied
			err = b.dropSchema(ctx, schema("a"))
			if err != nil {
				return r, fmt.Errorf("a: %w", err)
			}
		} else if err := b.dropSchema(ctx, schema("b")); err != nil {
			return r, fmt.Errorf("b: %w", err)
		}
	}
	for _, part := range []struct {
		letter  rune
		measure func(context.Context, string, *round) error
	}{{'c', b.partC}, {'d', b.partD}, {'e', b.partE}, {'f', b.partF}} {
		if !b.measures(part.letter) {
			continue
		}
		if err := part.measure(ctx, schema(string(part.letter)), &r); err != nil {
			return r, fmt.Errorf("%c: %w", part.letter, err)
		}
	}
	return r, nil
}

func (b *bed) drainMix(ctx context.Context, schema string) (*result, error) {
	records, err := newWorkload(b.options, schema).take(b.commands, writCommands)
	if err != nil {
		return nil, err
	}
	r, err := b.writ(ctx, b.embedded, schema, records, 0)
	return &r, err
}

func (b *bed) partC(ctx context.Context, schema string, r *round) error {
	records, err := newWorkload(b.options, schema).take(b.loopCommands, loopCommands)
	if err != nil {
		return err
	}
	if err := b.freshTopics(ctx, b.embedded, 0); err != nil {
		return err
	}
	measured, err := b.plainLoop(ctx, schema, records)
	if err != nil {
		return err
	}
	r.loop = &measured
	return b.dropSchema(ctx, schema)
}

func (b *bed) partD(ctx context.Context, schema string, r *round) error {
	if err := b.freshSchema(ctx, schema); err != nil {
		return err
	}
	loads, err := b.loads(ctx, workerConfig{Kind: kindWrit, Schema: schema, Commands: writCommands, Replies: writReplies, Tuning: b.tuning},
		r.writ.rate()/2, slow, r.writ.rate()/10)
	if err != nil {
		return err
	}
	r.half, r.slow, r.tenth = &loads[0], &loads[1], &loads[2]
	if err := b.dropSchema(ctx, schema); err != nil {
		return err
	}
	if r.loop == nil {
		return nil
	}
	schema += "_loop"
	if err := b.freshLoopSchema(ctx, schema); err != nil {
		return err
	}
	loads, err = b.loads(ctx, workerConfig{Kind: kindLoop, Schema: schema, Commands: loopCommands, Replies: loopReplies},
		r.loop.rate()/2, slow)
	if err != nil {
		return fmt.Errorf("loop: %w", err)
	}
	r.loopHalf, r.loopSlow = &loads[0], &loads[1]
	return b.dropSchema(ctx, schema)
}

func (b *bed) partE(ctx context.Context, schema string, r *round) error {
	records, err := newWorkload(b.options, schema).hot(b.hotCommands, writCommands)
	if err != nil {
		return err
	}
	measured, err := b.writ(ctx, b.embedded, schema, records, 1)
	if err != nil {
		return err
	}
	r.hot = &measured
	return b.dropSchema(ctx, schema)
}

func (b *bed) partF(ctx context.Context, schema string, r *round) error {
	records, err := newWorkload(b.options, schema).take(b.commands, writCommands)
	if err != nil {
		return err
	}
	measured, err := b.writ(ctx, b.apache, schema, records, 0)
	if err != nil {
		return err
	}
	r.kafka = &measured
	return b.dropSchema(ctx, schema)
}

// line is the round in one line, for who watches.
func (r round) line() string {
	var parts []string
	rate := func(letter string, m *result) {
		if m != nil {
			parts = append(parts, fmt.Sprintf("%s %.0f/s", letter, m.rate()))
		}
	}
	rate("a", r.copy)
	rate("b", r.writ)
	rate("c", r.loop)
	if r.half != nil {
		parts = append(parts, fmt.Sprintf("d p99 %.1f ms", r.half.quantile(0.99)))
	}
	rate("e", r.hot)
	rate("f", r.kafka)
	return strings.Join(parts, ", ")
}
