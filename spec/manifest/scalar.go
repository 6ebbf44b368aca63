package manifest

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// scalarKind is what a plain value is to Kubernetes.
type scalarKind uint8

const (
	aText scalarKind = iota
	aBool
	anInteger
	aFraction
	aNull
)

// String names the kind in messages.
func (k scalarKind) String() string {
	return [...]string{"a text", "true or false", "a number", "a number", "nothing"}[k]
}

var plainFloat = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// resolveScalar says what a scalar is by the rules of YAML 1.1 that kubectl reads by: yes and on
// are true, 0644 and 0o644 are octal, 1_000 is a number. json is the value in JSON; of a text it
// is empty.
func resolveScalar(n *yaml.Node) (kind scalarKind, json string) {
	s := n.Text
	if n.Kind == yaml.Null {
		return aNull, "null"
	}
	if n.Quoted || s == "" {
		return aText, ""
	}
	switch s[0] {
	case 'y', 'Y', 't', 'T', 'o', 'O', 'n', 'N', 'f', 'F':
		if b, ok := plainBool(s); ok {
			return aBool, strconv.FormatBool(b)
		}
		return aText, ""
	case '+', '-', '.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return resolveNumber(s)
	}
	return aText, ""
}

func plainBool(s string) (value, ok bool) {
	switch s {
	case "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return true, true
	case "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return false, true
	}
	return false, false
}

func resolveNumber(s string) (kind scalarKind, json string) {
	plain := s
	if s[0] != '.' {
		plain = strings.ReplaceAll(s, "_", "")
	}
	if len(plain) > 400 {
		return aText, ""
	}
	if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return anInteger, strconv.FormatInt(i, 10)
	}
	if u, err := strconv.ParseUint(plain, 0, 64); err == nil {
		return anInteger, strconv.FormatUint(u, 10)
	}
	if !plainFloat.MatchString(plain) {
		return aText, ""
	}
	f, err := strconv.ParseFloat(plain, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return aText, ""
	}
	return aFraction, strconv.FormatFloat(f, 'g', -1, 64)
}
