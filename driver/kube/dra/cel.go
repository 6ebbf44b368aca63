package dra

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Which devices a DeviceClass has is said in CEL. Read here is the part of CEL that the classes
// of drivers are written in: device.driver, device.attributes and device.capacity compared with
// literals, in, !, && and ||. What is more than that is an error when the class is read, never
// a guess.

// term is an expression that was read. A device that lacks what it asks for is an error, as in
// CEL: such a device does not match.
type term func(d *candidate) (any, error)

var errLacks = errors.New("the device does not say so")

// parseSelector reads an expression.
func parseSelector(text string) (term, error) {
	p := &phrase{words: celWords(text)}
	t, err := p.parseOr()
	if err == nil && p.at < len(p.words) {
		err = fmt.Errorf("%q is not understood", p.words[p.at])
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	return t, nil
}

// matches reports whether an expression is true of a device.
func (t term) matches(d *candidate) bool {
	v, err := t(d)
	return err == nil && v == true
}

// phrase is an expression as it is read.
type phrase struct {
	words []string
	at    int
}

// celWords are the words of an expression: names, numbers, strings with their quotes, signs.
func celWords(text string) (out []string) {
	for r := []rune(text); len(r) > 0; {
		n := 1
		name := func(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) }
		switch c := r[0]; {
		case unicode.IsSpace(c):
			r = r[1:]
			continue
		case c == '\'' || c == '"':
			for n < len(r) && r[n] != c && r[n] != '\\' {
				n++
			}
			n = min(n+1, len(r))
		case name(c):
			for n < len(r) && name(r[n]) {
				n++
			}
		case len(r) > 1 && slices.Contains([]string{"&&", "||", "==", "!=", "<=", ">="}, string(r[:2])):
			n = 2
		}
		out, r = append(out, string(r[:n])), r[n:]
	}
	return out
}

func (p *phrase) nextIs(word string) bool {
	if p.at < len(p.words) && p.words[p.at] == word {
		p.at++
		return true
	}
	return false
}

func (p *phrase) expectWords(words ...string) error {
	for _, w := range words {
		if !p.nextIs(w) {
			return fmt.Errorf("%q is expected before %q", w, strings.Join(p.words[p.at:], " "))
		}
	}
	return nil
}

// parseOr reads terms joined by ||, each of them terms joined by &&.
func (p *phrase) parseOr() (term, error) {
	return p.parseJoined("||", true, func() (term, error) { return p.parseJoined("&&", false, p.parseNot) })
}

// parseJoined reads terms with a sign between them; one that is the decisive value decides, whatever
// the others are.
func (p *phrase) parseJoined(sign string, decisive bool, one func() (term, error)) (term, error) {
	t, err := one()
	all := []term{t}
	for err == nil && p.nextIs(sign) {
		t, err = one()
		all = append(all, t)
	}
	if err != nil || len(all) == 1 {
		return all[0], err
	}
	return func(d *candidate) (any, error) {
		var failed error
		for _, t := range all {
			v, err := t(d)
			if err == nil && v == decisive {
				return decisive, nil
			}
			if _, ok := v.(bool); err == nil && !ok {
				err = errLacks
			}
			failed = errors.Join(failed, err)
		}
		return !decisive, failed
	}, nil
}

func (p *phrase) parseNot() (term, error) {
	if !p.nextIs("!") {
		return p.parseComparison()
	}
	t, err := p.parseNot()
	return func(d *candidate) (any, error) {
		v, err := t(d)
		b, ok := v.(bool)
		if err == nil && !ok {
			err = errLacks
		}
		return !b, err
	}, err
}

var compares = []string{"==", "!=", "<", "<=", ">", ">=", "in"}

// parseComparison reads a value, or two with a sign between them.
func (p *phrase) parseComparison() (term, error) {
	a, err := p.parseValue()
	if err != nil || p.at == len(p.words) || !slices.Contains(compares, p.words[p.at]) {
		return a, err
	}
	sign := p.words[p.at]
	p.at++
	b, err := p.parseValue()
	return func(d *candidate) (any, error) {
		x, err := a(d)
		if err != nil {
			return nil, err
		}
		y, err := b(d)
		if err != nil {
			return nil, err
		}
		return compareValues(sign, x, y)
	}, err
}

// compareValues is what a sign makes of two values, which have to be of one kind.
func compareValues(sign string, x, y any) (any, error) {
	switch y := y.(type) {
	case string:
		if x, ok := x.(string); ok {
			return orderResult(sign, strings.Compare(x, y))
		}
	case int64:
		if x, ok := x.(int64); ok {
			return orderResult(sign, int(max(-1, min(1, x-y))))
		}
	case bool:
		if x, ok := x.(bool); ok && (sign == "==" || sign == "!=") {
			return (x == y) == (sign == "=="), nil
		}
	case []any:
		if sign == "in" && isScalar(x) && !slices.ContainsFunc(y, func(v any) bool { return !isScalar(v) }) {
			return slices.Contains(y, x), nil
		}
	case map[string]any:
		if x, ok := x.(string); ok && sign == "in" {
			_, has := y[x]
			return has, nil
		}
	}
	return nil, errLacks
}

// isScalar reports whether a value is of a kind that can be compared: a domain's attributes, a list,
// a version and an amount cannot.
func isScalar(v any) bool {
	switch v.(type) {
	case string, int64, bool:
		return true
	}
	return false
}

func orderResult(sign string, c int) (any, error) {
	switch sign {
	case "==":
		return c == 0, nil
	case "!=":
		return c != 0, nil
	case "<":
		return c < 0, nil
	case "<=":
		return c <= 0, nil
	case ">":
		return c > 0, nil
	case ">=":
		return c >= 0, nil
	}
	return nil, errLacks
}

func constantTerm(v any) term { return func(*candidate) (any, error) { return v, nil } }

// parseValue reads what stands on one side of a sign.
func (p *phrase) parseValue() (term, error) {
	if p.at == len(p.words) {
		return nil, errors.New("it ends too early")
	}
	w := p.words[p.at]
	p.at++
	switch {
	case w == "(":
		t, err := p.parseOr()
		return t, errors.Join(err, p.expectWords(")"))
	case w == "true" || w == "false":
		return constantTerm(w == "true"), nil
	case w == "[":
		return p.parseList()
	case w == "device":
		return p.parseDevice()
	case w[0] == '\'' || w[0] == '"':
		s, err := celString(w)
		return constantTerm(s), err
	}
	n, err := strconv.ParseInt(w, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is not understood", w)
	}
	return constantTerm(n), nil
}

func celString(w string) (string, error) {
	if len(w) < 2 || w[len(w)-1] != w[0] {
		return "", fmt.Errorf("%s is not understood", w)
	}
	return w[1 : len(w)-1], nil
}

func (p *phrase) parseList() (term, error) {
	var all []term
	for !p.nextIs("]") {
		if len(all) > 0 {
			if err := p.expectWords(","); err != nil {
				return nil, err
			}
		}
		t, err := p.parseValue()
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return func(d *candidate) (any, error) {
		out := []any{}
		for _, t := range all {
			v, err := t(d)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	}, nil
}

// parseDevice reads what stands behind "device".
func (p *phrase) parseDevice() (term, error) {
	if err := p.expectWords("."); err != nil {
		return nil, err
	}
	capacity := false
	switch {
	case p.nextIs("driver"):
		return func(d *candidate) (any, error) { return d.driver, nil }, nil
	case p.nextIs("attributes"):
	case p.nextIs("capacity"):
		capacity = true
	default:
		return nil, fmt.Errorf("device.%s is not understood", strings.Join(p.words[p.at:], ""))
	}
	domain, err := p.parseIndex()
	if err != nil {
		return nil, err
	}
	of := func(d *candidate) map[string]any {
		if capacity {
			return d.capacitiesIn(domain)
		}
		return d.attributesIn(domain)
	}
	name := ""
	switch {
	case p.nextIs("."):
		if p.at == len(p.words) {
			return nil, errors.New("it ends too early")
		}
		name = p.words[p.at]
		p.at++
	case p.at < len(p.words) && p.words[p.at] == "[":
		if name, err = p.parseIndex(); err != nil {
			return nil, err
		}
	default:
		return func(d *candidate) (any, error) { return of(d), nil }, nil
	}
	one := func(d *candidate) (any, error) {
		v, ok := of(d)[name]
		if !ok {
			return nil, errLacks
		}
		return v, nil
	}
	if capacity && p.nextIs(".") {
		return p.parseCompareTo(one)
	}
	return one, nil
}

// parseIndex reads ['NAME'].
func (p *phrase) parseIndex() (string, error) {
	if err := p.expectWords("["); err != nil {
		return "", err
	}
	if p.at == len(p.words) {
		return "", errors.New("it ends too early")
	}
	s, err := celString(p.words[p.at])
	p.at++
	return s, errors.Join(err, p.expectWords("]"))
}

// parseCompareTo reads compareTo(quantity('80Gi')) behind a capacity.
func (p *phrase) parseCompareTo(one term) (term, error) {
	if err := p.expectWords("compareTo", "(", "quantity", "("); err != nil {
		return nil, err
	}
	if p.at == len(p.words) {
		return nil, errors.New("it ends too early")
	}
	s, err := celString(p.words[p.at])
	p.at++
	if err = errors.Join(err, p.expectWords(")", ")")); err != nil {
		return nil, err
	}
	q, err := resource.ParseQuantity(s)
	return func(d *candidate) (any, error) {
		v, err := one(d)
		have, ok := v.(resource.Quantity)
		if err == nil && !ok {
			err = errLacks
		}
		return int64(have.Cmp(q)), err
	}, err
}
