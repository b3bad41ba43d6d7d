package catalog

import (
	"errors"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/seed54173720/writ/pkg/command"
)

// Price is an exact amount: the decimal text as it was sent, "12.50", never a float. It is written as a JSON string,
// which every language reads without rounding, and read from a string or a number.
type Price string

// pricePattern allows up to a trillion and two places: no sign, no exponent, no leading zero.
var pricePattern = regexp.MustCompile(`^(0|[1-9][0-9]{0,11})(\.[0-9]{1,2})?$`)

// Equal reports whether p and q are the same amount: 12.5 and 12.50 are.
func (p Price) Equal(q Price) bool { return p.plain() == q.plain() }

// plain returns the shortest text of the amount.
func (p Price) plain() string {
	s := string(p)
	if strings.Contains(s, ".") {
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	return s
}

func (p Price) check() error {
	if !pricePattern.MatchString(string(p)) {
		return &command.Error{
			Code: CodeBadPrice, Message: "the price must be a plain decimal from 0 with at most 12 digits and 2 places",
			Fields: map[string]string{"price": "is no price"},
		}
	}
	return nil
}

// UnmarshalJSON takes a string or a number, digits as they are; check says whether they are a price.
func (p *Price) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		return json.Unmarshal(data, (*string)(p))
	case 'n', 't', 'f', '[', '{':
		return errors.New("must be a decimal as a string or a number")
	}
	*p = Price(data)
	return nil
}
