package command

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

type someTypes map[string]TypeInfo

func (s someTypes) CommandType(name string) (TypeInfo, bool) {
	info, ok := s[name]
	return info, ok
}

func TestAdmissionAsksInOrder(t *testing.T) {
	t.Parallel()
	outage := errors.New("directory is away")
	forbidden := Errorf(CodeUnauthorized, "not you")
	invalid := Errorf(CodeInvalidBody, "no")
	for _, tt := range []struct {
		name      string
		command   *Builder
		authorise error
		validate  *Error
		want      error
		asked     string
	}{
		{"fine", New("catalog.brand.rename", "shop").Subject("7"), nil, nil, nil, "authorise validate"},
		{"create may leave the ID out", New("catalog.brand.create", "shop"), nil, nil, nil, "authorise validate"},
		{"another may not", New("catalog.brand.rename", "shop"), forbidden, invalid, &Error{Code: CodeInvalidID}, ""},
		{"another context", New("orders.brand.rename", "shop").Subject("7"), forbidden, invalid, &Error{Code: CodeUnknownType}, ""},
		{"unknown type", New("catalog.brand.paint", "shop"), forbidden, invalid, &Error{Code: CodeUnknownType}, ""},
		{"caller before body", New("catalog.brand.create", "shop"), forbidden, invalid, forbidden, "authorise"},
		{"body", New("catalog.brand.create", "shop"), nil, invalid, invalid, "authorise validate"},
		{"outage is no refusal", New("catalog.brand.create", "shop"), outage, invalid, outage, "authorise"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var asked []string
			validate := func([]byte) *Error {
				asked = append(asked, "validate")
				return tt.validate
			}
			a := Admission{
				Context: "catalog",
				Types: someTypes{
					"catalog.brand.create": {Creates: true, Validate: validate},
					"catalog.brand.rename": {Validate: validate},
					"orders.brand.rename":  {Validate: validate},
				},
				Authorise: func(context.Context, *Command) error {
					asked = append(asked, "authorise")
					return tt.authorise
				},
			}
			err := a.Admit(context.Background(), mustBuild(t, tt.command))
			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			var refusal *Error
			if errors.As(err, &refusal) == (tt.want == outage) && tt.want != nil {
				t.Errorf("%v: refusal %v", err, refusal)
			}
			if got := strings.Join(asked, " "); got != tt.asked {
				t.Errorf("asked %q, want %q", got, tt.asked)
			}
		})
	}
}

func TestAdmissionWithoutAuthoriserLetsEverybody(t *testing.T) {
	t.Parallel()
	a := Admission{Context: "catalog", Types: someTypes{"catalog.brand.create": {Creates: true}}}
	if err := a.Admit(context.Background(), mustBuild(t, New("catalog.brand.create", "shop"))); err != nil {
		t.Error(err)
	}
}

func TestCodesAreSortedAndFound(t *testing.T) {
	t.Parallel()
	all := Codes()
	if !slices.IsSortedFunc(all, func(a, b CodeInfo) int { return strings.Compare(string(a.Code), string(b.Code)) }) {
		t.Error("the codes are not sorted")
	}
	for _, want := range all {
		if got, ok := want.Code.Info(); !ok || got != want {
			t.Errorf("%s: got %+v, %v", want.Code, got, ok)
		}
	}
	if _, ok := Code("name-taken").Info(); ok {
		t.Error("an application's code is taken for one of Writ")
	}
}

func TestAddressHasOneSpelling(t *testing.T) {
	t.Parallel()
	for _, v := range addressVectors() {
		got, err := ParseAddress(v.Address)
		if want := (Aggregate{Tenant: v.Tenant, Type: v.Type, ID: v.ID}); err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", v.Address, got, err, want)
		}
	}
	for _, s := range []string{
		"", "brand", "/7", "brand/", "a/b/c/d", "/brand/7", "brand/a b", "brand/%2f", "brand/%41", "brand/%", "brand/%2", "brand/%GG",
		"brand/ü", "Brand/7", "acme/Brand/7", "brand/%00", "brand/%FF", "brand/" + strings.Repeat("x", 256), "brand/%E2%82",
	} {
		if a, err := ParseAddress(s); err == nil {
			t.Errorf("%q: accepted as %+v", s, a)
		}
	}
}

func TestOutcomesAndStagesHaveNames(t *testing.T) {
	t.Parallel()
	for o, final := range map[Outcome]bool{Committed: true, Nothing: true, Rejected: false, Failed: false} {
		if got, err := ParseOutcome(o.String()); err != nil || got != o || o.Final() != final {
			t.Errorf("%v: got %v, %v, final %v", o, got, err, o.Final())
		}
	}
	for _, s := range []Stage{StageCommitted, StageSnapshot} {
		if got, err := ParseStage(s.String()); err != nil || got != s {
			t.Errorf("%v: got %v, %v", s, got, err)
		}
	}
	if _, err := ParseOutcome(Outcome(0).String()); err == nil {
		t.Error("no outcome was parsed as one")
	}
	if _, err := ParseStage(Stage(7).String()); err == nil {
		t.Error("no stage was parsed as one")
	}
}
