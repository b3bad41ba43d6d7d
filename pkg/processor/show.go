package processor

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/keys"
	"github.com/seed54173720/writ/pkg/store"
	"github.com/seed54173720/writ/pkg/store/postgres"
)

func (a *app) showCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:         "show ADDRESS",
		Short:       "Show an aggregate's state and the history of its commands, refusals included",
		Example:     "  processor show brand/acme\n  processor show tenant/brand/acme --json",
		Args:        exactly(1),
		Annotations: quietly,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		address, err := command.ParseAddress(args[0])
		if err != nil {
			return &usageError{err}
		}
		if !a.kernel.HasAggregate(address.Type) {
			return &usageError{fmt.Errorf("address %q: context %s has no aggregate type %q", args[0], a.kernel.Name(), address.Type)}
		}
		return a.withStore(cmd.Context(), func(s *postgres.Store) error {
			v, err := a.view(cmd.Context(), s, address)
			if err != nil {
				return err
			}
			if asJSON {
				return v.printJSON(a)
			}
			return v.print(a)
		})
	}
	return cmd
}

// view is an aggregate as people see it.
type view struct {
	Address   string         `json:"address"`
	Tenant    string         `json:"tenant"`
	Aggregate addressed      `json:"aggregate"`
	Version   int64          `json:"version"`
	State     jsontext.Value `json:"state"`
	Fault     string         `json:"fault,omitempty"` // why the state cannot be read
	History   []historyEntry `json:"history"`
}

type addressed struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

type historyEntry struct {
	Version   int64          `json:"version,omitzero"`
	Outcome   string         `json:"outcome"`
	Type      string         `json:"type"`
	Time      time.Time      `json:"time"`
	RequestID string         `json:"requestId"`
	Caller    string         `json:"caller"`
	Position  string         `json:"position,omitzero"`
	Events    []historyEvent `json:"events,omitempty"`
	Taken     []string       `json:"keysTaken,omitempty"`
	Released  []string       `json:"keysReleased,omitempty"`
	Error     jsontext.Value `json:"error,omitempty"`
	Result    jsontext.Value `json:"result,omitempty"`
}

type historyEvent struct {
	Type string         `json:"type"`
	Data jsontext.Value `json:"data"`
}

func (a *app) view(ctx context.Context, s *postgres.Store, address command.Aggregate) (*view, error) {
	v := &view{
		Address: address.String(), Tenant: address.Tenant, Aggregate: addressed{address.Type, address.ID},
		State: jsontext.Value("null"), History: []historyEntry{},
	}
	k := &kernel.Kernel{Context: a.kernel, Store: s}
	state, err := k.Load(ctx, address)
	var unreadable *kernel.UnreadableError
	switch {
	case errors.As(err, &unreadable): // its history can still be looked at
		v.Fault = err.Error()
	case err != nil:
		return nil, err
	case state.Version > 0:
		v.Version = state.Version
		if v.State, err = json.Marshal(state.Value(), json.Deterministic(true)); err != nil {
			return nil, fmt.Errorf("show %s: its state: %w", address, err)
		}
	}
	err = s.History(ctx, address.Stream(), func(r *store.Row) error {
		v.History = append(v.History, entry(r))
		return nil
	})
	return v, err
}

func entry(r *store.Row) historyEntry {
	e := historyEntry{
		Version: r.Version, Outcome: r.Outcome.String(), Type: r.Type, Time: r.Time.UTC(), RequestID: r.RequestID,
		Caller: r.Caller, Taken: keyNames(r.Taken), Released: keyNames(r.Released), Result: r.Result,
	}
	if r.FromRecord {
		e.Position = r.Position.String()
	}
	for _, event := range r.Events {
		e.Events = append(e.Events, historyEvent{event.Type, event.Data})
	}
	if r.Error != nil {
		e.Error = r.Error.Append(nil)
	}
	return e
}

func keyNames(ks []keys.Key) (names []string) {
	for _, k := range ks {
		names = append(names, k.String())
	}
	return names
}

func (v *view) printJSON(a *app) error {
	text, err := json.Marshal(v, jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("show %s: %w", v.Address, err)
	}
	_, err = fmt.Fprintf(a.stdout, "%s\n", text)
	return err
}

func (v *view) print(a *app) error {
	switch {
	case v.Fault != "":
		fmt.Fprintf(a.stdout, "%s cannot be read: %s\n", v.Address, v.Fault)
	case v.Version == 0:
		fmt.Fprintf(a.stdout, "%s does not exist\n", v.Address)
	default:
		state := v.State.Clone()
		_ = state.Indent(jsontext.WithIndent("  "))
		fmt.Fprintf(a.stdout, "%s at version %d\n%s\n", v.Address, v.Version, state)
	}
	if len(v.History) == 0 {
		return nil
	}
	fmt.Fprintln(a.stdout)
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "VERSION\tOUTCOME\tTYPE\tTIME\tREQUEST\tCALLER\tRECORD\tWHAT")
	for _, e := range v.History {
		version := "-"
		if e.Version > 0 {
			version = fmt.Sprint(e.Version)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", version, e.Outcome, e.Type, e.Time.Format(time.RFC3339Nano),
			e.RequestID, e.Caller, e.Position, e.what())
	}
	return w.Flush()
}

// what says on one line what the command did, or why not.
func (e *historyEntry) what() (text string) {
	add := func(s string) {
		if text != "" {
			text += "; "
		}
		text += s
	}
	for _, event := range e.Events {
		add(event.Type + " " + string(event.Data))
	}
	for _, key := range e.Taken {
		add("takes " + key)
	}
	for _, key := range e.Released {
		add("releases " + key)
	}
	if e.Error != nil {
		add(string(e.Error))
	}
	if e.Result != nil {
		add("result " + string(e.Result))
	}
	return text
}
