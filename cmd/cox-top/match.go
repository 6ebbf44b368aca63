package main

import (
	"regexp"
	"strings"
)

// matcher decides which lines a filter keeps. As in k9s: text or a regular expression, in
// any case, and with a ! before it the lines that do not match.
type matcher struct {
	text    string
	pattern *regexp.Regexp // nil: the text is no pattern
	inverse bool
}

func newMatcher(filter string) matcher {
	text, inverse := strings.CutPrefix(filter, "!")
	m := matcher{text: strings.ToLower(text), inverse: inverse}
	if p, err := regexp.Compile("(?i)" + text); err == nil && text != regexp.QuoteMeta(text) {
		m.pattern = p
	}
	return m
}

func (m matcher) isEmpty() bool { return m.text == "" }

func (m matcher) matches(s string) bool {
	found := strings.Contains(strings.ToLower(s), m.text) || m.pattern != nil && m.pattern.MatchString(s)
	return found != m.inverse
}
