package reason

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// limitClause is the clause of a limit; the code itself if it is none.
func (r Reason) limitClause() string {
	word := r.Code.Limit()
	if word == "" {
		return string(r.Code)
	}
	need, most := r.limitAmount(r.Need), r.limitAmount(r.Most)
	switch {
	case strings.HasPrefix(string(r.Code), least):
		return fmt.Sprintf("limit %s: %s must have at least %s, this one has %s", word, r.Holder, most, need)
	case strings.HasPrefix(string(r.Code), single):
		return fmt.Sprintf("limit %s: %s may have at most %s, this one has %s", word, r.Holder, most, need)
	}
	if r.Need > r.Most {
		return fmt.Sprintf("limit %s: %s may have %s, this job alone needs %s and cannot start as long as that holds", word, r.Holder, most, need)
	}
	return fmt.Sprintf("limit %s: %s may have %s, has %s, this job needs %s", word, r.Holder, most, r.limitAmount(r.Used), need)
}

// limitAmount prints an amount of what a limit is about.
func (r Reason) limitAmount(n int64) string {
	kind, minutes := strings.CutSuffix(r.Resource, Minutes)
	switch {
	case n == math.MaxInt64 && (minutes || kind == "seconds"):
		return "no time limit"
	case minutes && (kind == "memory" || kind == "disk"):
		return strconv.FormatInt((n+59)/60, 10) + " MiB-minutes of " + kind
	case minutes:
		if kind == "cpu" || isDevice(kind) {
			n = (n + 999) / 1000
		}
		return fmt.Sprintf("%d %s-minutes", (n+59)/60, limitUnit(kind))
	case kind == "seconds":
		return (time.Duration(n) * time.Second).String()
	case kind == "jobs":
		return countText(int(n), "job")
	case kind == "node":
		return countText(int(n), "node")
	case isDevice(kind):
		name := limitUnit(kind) + "s"
		if n == 1000 {
			name = limitUnit(kind)
		}
		return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) + " " + name
	}
	if name, ok := strings.CutPrefix(kind, "license/"); ok {
		return countText(int(n), "licence") + " of " + name
	}
	return amountText(kind, n)
}

func isDevice(kind string) bool { return kind == "gpu" || strings.Contains(kind, ":") }

func limitUnit(kind string) string {
	name, typ, typed := strings.Cut(kind, ":")
	switch {
	case name == "gpu" && typed:
		return typ + " GPU"
	case name == "gpu":
		return "GPU"
	case name == "cpu":
		return "CPU"
	}
	return kind
}
