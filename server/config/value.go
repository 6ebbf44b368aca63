package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

const day = 24 * time.Hour

// Duration is written 90s, 5m, 2h30m or 30d.
type Duration time.Duration

// String is the shortest exact form.
func (d Duration) String() string {
	t := time.Duration(d)
	if t >= 2*day && t%day == 0 {
		return strconv.FormatInt(int64(t/day), 10) + "d"
	}
	s := t.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// UnmarshalYAML reads a duration.
func (d *Duration) UnmarshalYAML(n ast.Node) error {
	v, err := parseDuration(n.GetToken().Value)
	if err != nil {
		return &valueError{n.GetToken(), err}
	}
	*d = Duration(v)
	return nil
}

// MarshalYAML writes it as people do.
func (d Duration) MarshalYAML() ([]byte, error) { return []byte(d.String()), nil }

func parseDuration(text string) (time.Duration, error) {
	wrong := fmt.Errorf("%q is not a length of time: write 90s, 5m, 2h30m, 30d or 1:30:00", text)
	if text == "0" {
		return 0, nil
	}
	var v time.Duration
	if n, rest, ok := strings.Cut(text, "d"); ok {
		days, err := strconv.ParseUint(n, 10, 16)
		if err != nil {
			return 0, wrong
		}
		if v, text = time.Duration(days)*day, rest; text == "" {
			return v, nil
		}
	}
	w, err := time.ParseDuration(text)
	if err != nil && v == 0 && strings.ContainsAny(text, ":-") { // as Slurm writes it: 1:30:00, 2-0
		w, err = slurmfmt.ParseDuration(text)
	}
	if err != nil || w < 0 || v+w < 0 {
		return 0, wrong
	}
	return v + w, nil
}

// Bytes is a size, written 512M, 64G or 1T (powers of 1024).
type Bytes int64

// String is the size with its largest unit that leaves no rest.
func (b Bytes) String() string {
	n, unit := int64(b), 0
	for n != 0 && n%1024 == 0 && unit < len("KMGTP") {
		n, unit = n/1024, unit+1
	}
	return strconv.FormatInt(n, 10) + "KMGTP"[max(unit-1, 0):unit]
}

// UnmarshalYAML reads a size.
func (b *Bytes) UnmarshalYAML(node ast.Node) error {
	text := node.GetToken().Value
	n, unit := text, int64(1)
	if i := strings.IndexAny(strings.ToUpper(text), "KMGTP"); i > 0 {
		unit = 1 << (10 * (1 + strings.IndexByte("KMGTP", strings.ToUpper(text)[i])))
		if rest := strings.ToUpper(text[i+1:]); rest != "" && rest != "B" && rest != "IB" {
			unit = 0
		}
		n = strings.TrimSpace(text[:i])
	}
	v, err := strconv.ParseInt(n, 10, 64)
	if err != nil || v < 0 || unit == 0 || v > 1<<62/unit {
		return &valueError{node.GetToken(), fmt.Errorf("%q is no size: write 512M, 64G or 1T", text)}
	}
	*b = Bytes(v * unit)
	return nil
}

// MarshalYAML writes it as people do.
func (b Bytes) MarshalYAML() ([]byte, error) { return []byte(b.String()), nil }
