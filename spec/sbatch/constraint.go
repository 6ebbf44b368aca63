package sbatch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/job"
)

// maxAlternatives bounds how far a constraint may multiply out.
const maxAlternatives = 256

// errCounted refuses "feature*2": so many nodes with one feature and so many with
// another.
var errCounted = errors.New("counts nodes by feature, which is not built yet")

// constraintRemedy says what would be right instead.
func constraintRemedy(err error) string {
	if errors.Is(err, errCounted) {
		return "write one component for each kind of node (#SBATCH hetjob), with --nodes and --constraint of its own"
	}
	return "forms: a, a&b, a|b, (a|b)&c, [a|b]"
}

// parseConstraint reads the value of --constraint: names joined by "&" (or ",")
// and "|", with parentheses; "[a|b]" wants all nodes alike. For an error, at and
// n say which bytes are wrong.
func parseConstraint(s string) (c job.Constraint, at, n int, err error) {
	p := constraintParser{text: s}
	alternatives, err := p.parseOr()
	if err == nil && p.pos < len(s) {
		err = fmt.Errorf("has a %q too many", s[p.pos:p.pos+1])
	}
	if err != nil {
		return job.Constraint{}, min(p.pos, len(s)), min(1, len(s)-min(p.pos, len(s))), err
	}
	return job.Constraint{Text: s, Alternatives: alternatives, Same: p.same}, 0, 0, nil
}

type constraintParser struct {
	text  string
	pos   int
	depth int
	names int
	same  bool
}

func (p *constraintParser) peekByte() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

func (p *constraintParser) parseOr() ([][]string, error) {
	out, err := p.parseAnd()
	for err == nil && p.peekByte() == '|' {
		p.pos++
		var more [][]string
		if more, err = p.parseAnd(); err == nil {
			out, err = append(out, more...), tooMany(len(out)+len(more))
		}
	}
	return out, err
}

func (p *constraintParser) parseAnd() ([][]string, error) {
	out, err := p.parseFactor()
	for err == nil && (p.peekByte() == '&' || p.peekByte() == ',') {
		p.pos++
		var right [][]string
		if right, err = p.parseFactor(); err != nil {
			return nil, err
		}
		if err = tooMany(len(out) * len(right)); err != nil {
			return nil, err
		}
		var product [][]string
		for _, a := range out {
			for _, b := range right {
				product = append(product, unionOf(a, b))
			}
		}
		out = product
	}
	return out, err
}

func tooMany(n int) error {
	if n > maxAlternatives {
		return fmt.Errorf("has more than %d alternatives", maxAlternatives)
	}
	return nil
}

func unionOf(a, b []string) []string {
	out := slices.Clone(a)
	for _, f := range b {
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

func (p *constraintParser) parseFactor() ([][]string, error) {
	if open := p.peekByte(); open == '(' || open == '[' {
		if p.depth++; p.depth > 16 {
			return nil, fmt.Errorf("is nested too deeply")
		}
		shut := byte(')')
		if open == '[' {
			shut, p.same = ']', true
		}
		p.pos++
		out, err := p.parseOr()
		if err != nil {
			return nil, err
		}
		if p.peekByte() != shut {
			return nil, fmt.Errorf("has no closing %c", shut)
		}
		p.pos++
		p.depth--
		return out, p.noCount()
	}
	from := p.pos
	for p.pos < len(p.text) && !strings.ContainsRune("&|,()[]* \t", rune(p.text[p.pos])) {
		p.pos++
	}
	if p.pos == from {
		return nil, fmt.Errorf("lacks the name of a feature")
	}
	if p.names++; p.names > maxKinds {
		return nil, fmt.Errorf("names more than %d features", maxKinds)
	}
	return [][]string{{p.text[from:p.pos]}}, p.noCount()
}

// noCount refuses "feature*2".
func (p *constraintParser) noCount() error {
	if p.peekByte() == '*' {
		return errCounted
	}
	return nil
}
