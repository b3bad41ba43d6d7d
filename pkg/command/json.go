package command

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// CheckJSON reports whether body is one JSON value by the frozen grammar of
// [Canonical], without NUL in any string: the error's code is invalid-body and
// its message names the place. It does not look at the body's size.
func CheckJSON(body []byte) *Error {
	c := canonicalisers.Get().(*canonicaliser)
	defer c.release()
	c.out = c.out[:0]
	switch {
	case !c.text(body):
		return Errorf(CodeInvalidBody, "body is not JSON: it %s (byte %d)", c.fault, c.at)
	case c.nul > 0:
		return Errorf(CodeInvalidBody, "body holds NUL, as \\u0000, which is not allowed (byte %d)", c.nul)
	}
	return nil
}

// decodeOptions make a number that goes into an interface a [jsontext.Value],
// which keeps its digits.
var decodeOptions = json.JoinOptions(
	json.RejectUnknownMembers(true),
	json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, v *any) error {
		if d.PeekKind() == '0' {
			*v = jsontext.Value(nil)
		}
		return errors.ErrUnsupported
	})),
)

// Decode reads body into a fresh *into: by the grammar of [CheckJSON], with
// exact member names, and without members that T does not know. The error's code
// is invalid-body; where one member is at fault, Fields names it by its path,
// parts separated by '/'. After an error *into is undefined.
//
// A number keeps its digits where T lets it: in a [jsontext.Value], which is
// also what an interface gets, or in a type with its own UnmarshalJSON.
func Decode[T any](body []byte, into *T) *Error {
	var zero T
	*into = zero
	return decode(body, into)
}

func decode(body []byte, into any) *Error {
	// The library allows more depth and NUL; what might hold either is read by
	// our own grammar first.
	if bytes.Contains(body, []byte(`\u0000`)) || bytes.Count(body, []byte{'{'})+bytes.Count(body, []byte{'['}) > MaxDepth {
		if err := CheckJSON(body); err != nil {
			return err
		}
	}
	err := json.Unmarshal(body, into, decodeOptions)
	if err == nil {
		if string(bytes.Trim(body, " \t\r\n")) == "null" {
			return Errorf(CodeInvalidBody, "body is null; it must be %s", kindOf(reflect.TypeOf(into).Elem()))
		}
		return nil
	}
	if err := CheckJSON(body); err != nil {
		return err
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return Errorf(CodeInvalidBody, "body: %v", err)
	}
	fault := "is not what is expected here"
	switch {
	case errors.Is(err, json.ErrUnknownName):
		fault = "is not a member of this command"
	case semantic.GoType != nil && semantic.JSONKind != 0 && kindOf(semantic.GoType) != "":
		fault = fmt.Sprintf("must be %s, not %s", kindOf(semantic.GoType), kindName(semantic))
	case semantic.Err != nil:
		fault = semantic.Err.Error()
	}
	member := strings.TrimPrefix(string(semantic.JSONPointer), "/")
	if member == "" {
		return Errorf(CodeInvalidBody, "body %s", fault)
	}
	return fieldError(CodeInvalidBody, cut(member), fault)
}

// kindOf says in JSON's words what a Go type takes, or "" where that is the
// type's own affair.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number of " + fmt.Sprint(t.Bits()) + " bits"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number of " + fmt.Sprint(t.Bits()) + " bits, not negative"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return ""
}

func kindName(e *json.SemanticError) string {
	if len(e.JSONValue) > 0 && e.JSONKind == '0' {
		return cut(string(e.JSONValue))
	}
	return map[jsontext.Kind]string{
		'n': "null", 't': "true", 'f': "false", '"': "a string", '0': "a number", '{': "an object", '[': "an array",
	}[e.JSONKind]
}
