package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"pgregory.net/rapid"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/kernel/kerneltest"
)

// A plain model of the catalogue, of the answers to repeats and of unique keys, written from their description and
// sharing nothing with the code under test.

// op is one command of a random batch. Its fields are all that its fingerprint depends on, and the request ID.
type op struct {
	request, typ, subject string
	owner                 string // that the command names
	name, price           string // of transfer-owner, name is the next owner
	n                     int64
}

func (o op) aggregate() string { return o.aggregateType() + "/" + o.subject }

func (o op) aggregateType() string { return o.typ[:strings.Index(o.typ, ".")] }

// key is the unique key that the command asks for, "" if none.
func (o op) key() string {
	if o.name == "" || o.aggregateType() == "product" || strings.HasSuffix(o.typ, ".transfer-owner") {
		return ""
	}
	return fold(o.aggregateType(), o.name)
}

func fold(namespace, name string) string {
	return namespace + ":" + strings.ToLower(strings.TrimSpace(name))
}

func (o op) body() any {
	switch o.typ {
	case "brand.create", "brand.rename", "category.create", "category.rename":
		return map[string]any{"name": o.name}
	case "product.create":
		return map[string]any{"name": o.name, "brand": "1", "category": "1", "price": o.price, "stock": o.n}
	case "product.change-price":
		return map[string]any{"price": o.price}
	case "product.add-stock", "product.take-stock":
		return map[string]any{"quantity": o.n}
	case "product.transfer-owner":
		return map[string]any{"owner": o.name}
	}
	return map[string]any{}
}

// state is a modelled aggregate of any type.
type state struct {
	version     int64
	deleted     bool
	owner       string
	name, price string
	stock       int64
}

// decided is what the model decides, and what comes of it.
type decided struct {
	outcome command.Outcome
	code    command.Code
	next    state
	event   string // name and JSON
	take    string // key to be held from now on
	release string // key not to be held any more
}

// decide decides on a state. taken says whether another aggregate holds the op's key.
func (o op) decide(s state, taken bool) decided {
	next := s
	if next.version++; next.version == 1 {
		next.owner = o.owner
	}
	reject := func(code command.Code) decided { return decided{outcome: command.Rejected, code: code, next: s} }
	nothing := decided{outcome: command.Nothing, next: s}
	commit := func(event, json string, args ...any) decided {
		return decided{outcome: command.Committed, next: next, event: event + fmt.Sprintf(json, args...)}
	}
	typ, name, _ := strings.Cut(o.typ, ".")
	if (typ == "brand" || typ == "category") && (name == "create" || name == "rename") && strings.TrimSpace(o.name) == "" {
		return reject("blank-name")
	}
	switch {
	case s.deleted && name != "delete" && name != "recover":
		return reject("deleted")
	case name == "create" && s.version > 0:
		return reject("already-exists")
	case name != "create" && typ != "trouble" && s.version == 0:
		return reject("not-found")
	case s.version > 0 && o.owner != "" && o.owner != s.owner:
		return reject("wrong-owner")
	}
	switch name {
	case "delete":
		if s.deleted {
			return nothing
		}
		next.deleted = true
		return commit("deleted", `{}`)
	case "recover":
		if !s.deleted {
			return nothing
		}
		next.deleted = false
		return commit("recovered", `{}`)
	}
	switch o.typ {
	case "product.transfer-owner":
		if o.name == s.owner {
			return nothing
		}
		next.owner = o.name
		return commit("owner-transferred", `{"owner":%q}`, o.name)
	case "brand.create", "category.create":
		if taken {
			return reject("name-taken")
		}
		next.name = o.name
		d := commit("created", `{"name":%q}`, o.name)
		d.take = o.key()
		return d
	case "brand.rename", "category.rename":
		if o.name == s.name {
			return nothing
		}
		if taken {
			return reject("name-taken")
		}
		next.name = o.name
		d := commit("renamed", `{"name":%q}`, o.name)
		if old := fold(typ, s.name); s.name == "" {
			d.take = o.key()
		} else if old != o.key() {
			d.take, d.release = o.key(), old
		}
		return d
	case "brand.release-name":
		if s.name == "" {
			return nothing
		}
		next.name = ""
		d := commit("name-released", `{}`)
		d.release = fold(typ, s.name)
		return d
	case "product.create":
		next.name, next.price, next.stock = o.name, o.price, o.n
		return commit("created", `{"name":%q,"brand":"1","category":"1","price":%q,"stock":%d}`, o.name, o.price, o.n)
	case "product.change-price":
		if o.price == s.price {
			return nothing
		}
		next.price = o.price
		return commit("price-changed", `{"price":%q}`, o.price)
	case "product.add-stock":
		next.stock += o.n
		return commit("stock-added", `{"quantity":%d}`, o.n)
	case "product.take-stock":
		if s.stock < o.n {
			return reject("out-of-stock")
		}
		next.stock -= o.n
		return commit("stock-taken", `{"quantity":%d}`, o.n)
	case "trouble.bump":
		return commit("bumped", `{}`)
	case "trouble.fail":
		return decided{outcome: command.Failed, code: command.CodeDecisionFailed, next: s}
	case "trouble.panic":
		return decided{outcome: command.Failed, code: command.CodeDecisionPanicked, next: s}
	}
	panic("no command " + o.typ)
}

// troubled is the catalogue and an aggregate that brings trouble.
func troubled() *kernel.Context {
	type (
		trouble struct{ N int }
		none    struct{}
		bumped  struct{}
	)
	c := catalog.Context()
	a := kernel.Add[trouble](c, "trouble")
	kernel.On(a, "bumped", func(t trouble, _ bumped) trouble { t.N++; return t })
	kernel.Handle(a, "bump", kernel.Either, func(context.Context, *kernel.Scope[trouble], none) (kernel.Decision, error) {
		return kernel.Events(bumped{}), nil
	})
	kernel.Handle(a, "fail", kernel.Either, func(context.Context, *kernel.Scope[trouble], none) (kernel.Decision, error) {
		return kernel.Decision{}, errors.New("as it was told")
	})
	kernel.Handle(a, "panic", kernel.Either, func(context.Context, *kernel.Scope[trouble], none) (kernel.Decision, error) {
		panic("as it was told")
	})
	return c
}

// answer is what a sender can see of a reply.
type answer struct {
	outcome   command.Outcome
	code      command.Code
	version   int64
	duplicate bool
}

func (a answer) String() string {
	s := fmt.Sprint(a.outcome, " ", a.code, " ", a.version)
	if a.duplicate {
		s = "duplicate " + s
	}
	return s
}

func answered(r command.Reply) answer {
	a := answer{outcome: r.Outcome, version: r.Version, duplicate: r.Duplicate}
	if r.Error != nil {
		a.code = r.Error.Code
	}
	return a
}

// model processes one command at a time.
type model struct {
	states   map[string]state
	holders  map[string]string // key -> aggregate
	requests map[string]modelled
	own      map[command.Position]answer
}

type modelled struct {
	op op
	answer
}

func newModel() *model {
	return &model{
		states: map[string]state{}, holders: map[string]string{},
		requests: map[string]modelled{}, own: map[command.Position]answer{},
	}
}

func (m *model) process(o op, at command.Position) answer {
	if a, ok := m.own[at]; ok {
		return a
	}
	request := o.aggregateType() + " " + o.request
	if latest, ok := m.requests[request]; ok && latest.outcome.Final() {
		if latest.op == o {
			latest.duplicate = true
			return latest.answer
		}
		return answer{outcome: command.Rejected, code: command.CodeRequestIDReused}
	}
	d := o.decide(m.states[o.aggregate()], m.taken(o))
	m.apply(o, d)
	a := answer{outcome: d.outcome, code: d.code}
	if d.outcome == command.Committed {
		a.version = d.next.version
	}
	m.requests[request], m.own[at] = modelled{o, a}, a
	return a
}

// taken reports whether another aggregate holds the op's key.
func (m *model) taken(o op) bool {
	holder, held := m.holders[o.key()]
	return held && holder != o.aggregate()
}

func (m *model) apply(o op, d decided) {
	m.states[o.aggregate()] = d.next
	if d.release != "" {
		delete(m.holders, d.release)
	}
	if d.take != "" {
		m.holders[d.take] = o.aggregate()
	}
}

func (m *model) clone() *model {
	return &model{
		states: maps.Clone(m.states), holders: maps.Clone(m.holders),
		requests: maps.Clone(m.requests), own: maps.Clone(m.own),
	}
}

// batches draws random ops.
type batches struct {
	subjects []string          // few, so that commands meet on one aggregate
	names    func(op) []string // that commands of the op's aggregate may ask for
	scoped   bool              // a request ID is used for one aggregate only
	drawn    []op
}

var spellings = []string{"x", "X ", "y", "Y", "z", ""}

var owners = []string{"ann", "bob"}

func anyName(op) []string { return spellings }

func (b *batches) draw(t *rapid.T) op {
	if len(b.drawn) > 0 && rapid.IntRange(0, 9).Draw(t, "repeat") == 0 {
		return rapid.SampledFrom(b.drawn).Draw(t, "repeated") // the same request again
	}
	o := op{
		typ: rapid.SampledFrom([]string{
			"brand.create", "brand.create", "brand.rename", "brand.rename", "brand.rename", "brand.release-name",
			"brand.delete", "brand.recover", "brand.recover",
			"category.create", "category.rename",
			"product.create", "product.change-price", "product.add-stock", "product.take-stock",
			"product.delete", "product.recover", "product.transfer-owner",
			"trouble.bump", "trouble.fail", "trouble.panic",
		}).Draw(t, "type"),
		subject: rapid.SampledFrom(b.subjects).Draw(t, "subject"),
	}
	if rapid.IntRange(0, 3).Draw(t, "names an owner") == 0 {
		o.owner = rapid.SampledFrom(owners).Draw(t, "owner")
	}
	switch o.aggregateType() {
	case "brand", "category":
		if strings.HasSuffix(o.typ, ".create") || strings.HasSuffix(o.typ, ".rename") {
			o.name = rapid.SampledFrom(b.names(o)).Draw(t, "name")
		}
	case "product":
		switch o.typ {
		case "product.create":
			o.name, o.price, o.n = "p", "1.50", rapid.Int64Range(0, 3).Draw(t, "stock")
		case "product.change-price":
			o.price = rapid.SampledFrom([]string{"1.50", "2"}).Draw(t, "price")
		case "product.transfer-owner":
			o.name = rapid.SampledFrom(owners).Draw(t, "next owner")
		case "product.add-stock", "product.take-stock":
			o.n = rapid.Int64Range(1, 3).Draw(t, "quantity")
		}
	}
	o.request = fmt.Sprint("r", len(b.drawn))
	if len(b.drawn) > 0 && rapid.IntRange(0, 9).Draw(t, "reuse") == 0 {
		if other := rapid.SampledFrom(b.drawn).Draw(t, "reused"); !b.scoped || other.aggregate() == o.aggregate() {
			o.request = other.request // another command under the ID of a former one
		}
	}
	b.drawn = append(b.drawn, o)
	return o
}

// entry is an op at its place on a topic.
type entry struct {
	op
	at   command.Position
	wait command.Stage
}

func (b *batches) entries(t *rapid.T, most int, partitions int32) []entry {
	n := rapid.IntRange(1, most).Draw(t, "commands")
	entries := make([]entry, n)
	for i := range entries {
		entries[i] = entry{op: b.draw(t), at: command.Position{TopicID: [16]byte{1}, Partition: rapid.Int32Range(0, partitions-1).Draw(t, "partition"), Offset: int64(i)}}
	}
	return entries
}

func (e *entry) command(tenant string) *command.Command {
	c, err := command.New("catalog."+e.typ, "test").ID(e.request).Tenant(tenant).Subject(e.subject).
		Owner(e.owner).JSON(e.body()).WaitFor(e.wait).Build()
	if err != nil {
		panic(err)
	}
	return c
}

// someWait makes some of the senders wait for the snapshot.
func someWait(t *rapid.T, entries []entry) {
	for i := range entries {
		if rapid.IntRange(0, 3).Draw(t, "waits for the snapshot") == 0 {
			entries[i].wait = command.StageSnapshot
		}
	}
}

func records(tenant string, entries []entry) []kerneltest.Record {
	all := make([]kerneltest.Record, len(entries))
	for i, e := range entries {
		all[i] = kerneltest.Record{Command: e.command(tenant), Position: e.at}
	}
	return all
}
