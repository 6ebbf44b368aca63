package hostlist

import (
	"fmt"
	"strconv"
	"strings"
)

func isSeparator(c byte) bool { return c == ',' || c == ' ' || c == '\t' || c == '\n' }

// functions are the names that only a controller can resolve.
var functions = []string{
	"block", "blockwith", "switch", "switchwith", "ring", "ringwith", "torus", "toruswith", "feature",
}

// parser walks a list once; ranges counts the ranges seen so far.
type parser struct {
	list   string
	pos    int
	ranges int
}

func parseList(list string) ([]item, error) {
	p := &parser{list: list}
	var items []item
	for {
		for p.pos < len(list) && isSeparator(list[p.pos]) {
			p.pos++
		}
		if p.pos == len(list) {
			return items, nil
		}
		it, err := p.parseItem()
		if err != nil {
			return nil, err
		}
		if items = append(items, it); len(items) > MaxHosts {
			return nil, p.parseError(it.at, it.end, fmt.Sprintf("makes a list of more than %d hosts", MaxHosts))
		}
	}
}

func (p *parser) parseError(from, to int, reason string) error {
	return &Error{p.list, from, to - from, reason}
}

func (p *parser) parseItem() (item, error) {
	it := item{at: p.pos}
	from := p.pos
	for {
		switch {
		case p.pos == len(p.list) || isSeparator(p.list[p.pos]):
			it.end = p.pos
			it.text = append(it.text, p.list[from:p.pos])
			return it, p.checkFunction(it)
		case p.list[p.pos] == ']':
			return it, p.parseError(it.at, p.pos+1, "has ] without [")
		case p.list[p.pos] == '[':
			it.text = append(it.text, p.list[from:p.pos])
			set, err := p.parseSet()
			if err != nil {
				return it, err
			}
			it.sets = append(it.sets, set)
			from = p.pos
		default:
			p.pos++
		}
	}
}

func (p *parser) checkFunction(it item) error {
	name, _, ok := strings.Cut(it.text[0], "{")
	if !ok {
		return nil
	}
	for _, f := range functions {
		if f == name {
			return p.parseError(it.at, it.end, "needs a Slurm controller to say which hosts it means")
		}
	}
	return nil
}

// parseSet reads "[r,r,…]" and leaves pos behind the bracket.
func (p *parser) parseSet() ([]span, error) {
	open := p.pos
	length := strings.IndexByte(p.list[open:], ']')
	if length < 0 {
		return nil, p.parseError(open, len(p.list), "has no closing ]")
	}
	inner := p.list[open+1 : open+length]
	p.pos = open + length + 1
	if p.ranges += strings.Count(inner, ",") + 1; p.ranges > MaxRanges {
		return nil, p.parseError(open, p.pos, fmt.Sprintf("makes more than %d ranges", MaxRanges))
	}
	set := make([]span, 0, strings.Count(inner, ",")+1)
	at := open + 1
	for part := range strings.SplitSeq(inner, ",") {
		s, reason := parseRange(part)
		if reason != "" {
			if part == "" {
				return nil, p.parseError(open, p.pos, reason)
			}
			return nil, p.parseError(at, at+len(part), reason)
		}
		set = append(set, s)
		at += len(part) + 1
	}
	return set, nil
}

// parseRange reads "7" or "007-012"; the reason is empty if it is a range.
func parseRange(text string) (s span, reason string) {
	low, high, isRange := strings.Cut(text, "-")
	if text == "" {
		return s, "has an empty range"
	}
	if !isRange {
		high = low
	}
	if !isDigits(low) || !isDigits(high) {
		return s, "is not a range (forms: 3, 3-7, 003-007)"
	}
	var err, err2 error
	s.lo, err = strconv.ParseUint(low, 10, 64)
	s.hi, err2 = strconv.ParseUint(high, 10, 64)
	switch {
	case err != nil || err2 != nil:
		return s, "has a number that is too large"
	case s.lo > s.hi:
		return s, "runs backwards"
	case s.hi-s.lo >= MaxRange:
		return s, fmt.Sprintf("has more than %d hosts", MaxRange)
	}
	s.width = len(low)
	return s, ""
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
