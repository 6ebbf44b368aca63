package nodefence

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
)

// Key is the field of a node's Extra that has the mark. Where that is a JSON object already, as for
// SchedulerParameters=extra_constraints, the field is one more of it.
const Key = "coxswain_fence"

// reasonPrefix begins the reason of a drain that is ours.
const reasonPrefix = "coxswain: fence epoch "

// Mark is what a node says of our fence.
type Mark struct {
	engine.NodeFence      // Epoch 0: there is none
	Stands           bool // it is drained: nothing starts there
	Ours             bool // the drain is ours
	Drained          bool // by whomever
}

// Read finds our mark on a node, in its Extra or, where somebody wrote over that, in the reason of the drain.
func Read(n *site.Node) Mark {
	var m Mark
	for word := range strings.FieldsFuncSeq(strings.ToLower(n.State), func(r rune) bool { return strings.ContainsRune("+*~#!%$@^-", r) }) {
		switch word {
		case "drain", "drained", "draining", "drng":
			m.Drained = true
		}
	}
	byReason, ours := parseReason(n.Reason)
	m.Ours = m.Drained && ours
	if f, _, _, ok := findMark(n.Extra); ok {
		m.NodeFence = f
	} else if m.Ours {
		m.NodeFence = byReason
	}
	m.Stands = m.Epoch != 0 && m.Drained
	return m
}

// formatReason is the reason of a drain of ours.
func formatReason(f engine.NodeFence) string {
	return fmt.Sprintf("%s%d: %s", reasonPrefix, f.Epoch, strings.Map(func(r rune) rune {
		if r < ' ' || r == '\x7f' {
			return ' '
		}
		return r
	}, f.Reason))
}

func parseReason(text string) (f engine.NodeFence, ours bool) {
	rest, ok := strings.CutPrefix(text, reasonPrefix)
	if !ok {
		return f, false
	}
	number, reason, _ := strings.Cut(rest, ":")
	epoch, err := strconv.ParseUint(number, 10, 64)
	return engine.NodeFence{Epoch: epoch, Reason: strings.TrimSpace(reason)}, err == nil && epoch != 0
}

// findMark finds the mark in an Extra, and where its field begins and ends.
func findMark(extra string) (f engine.NodeFence, from, to int, ok bool) {
	from = strings.Index(extra, `"`+Key+`":`)
	if from < 0 {
		return f, 0, 0, false
	}
	at := from + len(Key) + 3
	d := json.NewDecoder(strings.NewReader(extra[at:]))
	if d.Decode(&f) != nil || f.Epoch == 0 {
		return engine.NodeFence{}, 0, 0, false
	}
	return f, from, at + int(d.InputOffset()), true
}

// withMark is an Extra with a mark in the place of one before. What else it says stays as it is.
func withMark(extra string, f engine.NodeFence) string {
	extra = withoutMark(extra)
	text, _ := json.Marshal(f) // of a number and a text: it does not fail
	field := `"` + Key + `":` + string(text)
	switch t := strings.TrimSpace(extra); {
	case t == "" || t == "{}":
		return "{" + field + "}"
	case strings.HasPrefix(t, "{") && json.Valid([]byte(t)):
		return "{" + field + "," + t[1:]
	}
	return extra + " {" + field + "}"
}

// withoutMark is an Extra as it was before withMark.
func withoutMark(extra string) string {
	_, from, to, ok := findMark(extra)
	if !ok {
		return extra
	}
	before, after := extra[:from], strings.TrimPrefix(extra[to:], ",")
	if b, isOpen := strings.CutSuffix(before, "{"); isOpen && strings.HasPrefix(after, "}") { // nothing else is in the object
		return strings.TrimSuffix(b, " ") + after[1:]
	}
	return before + after
}
