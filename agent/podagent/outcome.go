package podagent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// MaxOutcome is the longest termination message that a kubelet keeps, in bytes.
const MaxOutcome = 4096

// ParseOutcome reads a termination message.
func ParseOutcome(text string) (*Outcome, error) {
	o := new(Outcome)
	return o, json.Unmarshal([]byte(text), o)
}

// Text is the outcome as a termination message, at most MaxOutcome bytes. What there is no
// room for is left out: tasks first, those that ended well before those that failed; then
// the end of the message.
func (o Outcome) Text() []byte {
	o.Message = strings.ToValidUTF8(o.Message, "?")
	all := mostTelling(o.Tasks)
	with := func(n int) []byte {
		o.Tasks, o.Left = all[:n], len(all)-n
		return encodeOutcome(o)
	}
	tooMany := func(n int) bool { return len(with(n)) > MaxOutcome }
	if n := sort.Search(len(all)+1, tooMany); n > 0 {
		return with(n - 1)
	}
	message := o.Message
	cut := sort.Search(len(message), func(n int) bool {
		o.Message = cutText(message, n)
		return tooMany(0)
	})
	o.Message = cutText(message, cut-1)
	return with(0)
}

// cutText is the first n bytes of a text, less a rune that would be cut.
func cutText(text string, n int) string {
	n = max(n, 0)
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	if n == 0 {
		return ""
	}
	return text[:n] + "…"
}

func encodeOutcome(o Outcome) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(o); err != nil {
		panic("outcome: " + err.Error()) // plain data
	}
	return bytes.TrimSpace(b.Bytes())
}

// mostTelling are tasks in the order of their worth: those that failed, by the time at which
// they did, then the others. What ends with the pod is not said of them: their process
// numbers and the files in it.
func mostTelling(tasks []engine.TaskReport) []engine.TaskReport {
	out := slices.Clone(tasks)
	for i := range out {
		out[i].PID, out[i].Log = 0, ""
	}
	slices.SortStableFunc(out, func(a, b engine.TaskReport) int {
		x, y := taskFailed(a), taskFailed(b)
		switch {
		case x && !y:
			return -1
		case y && !x:
			return 1
		case x:
			return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.Step, b.Step), cmp.Compare(a.Rank, b.Rank))
		}
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Rank, b.Rank))
	})
	return out
}

func taskFailed(t engine.TaskReport) bool {
	return !t.Exit.OK() || t.Cause != engine.Exited
}

// writeOutcome puts it where the kubelet looks. The file is there in a pod, mounted, and
// cannot be replaced.
func writeOutcome(name string, o Outcome) error {
	return os.WriteFile(name, o.Text(), 0o644)
}

// mostUsedSteps is how many steps of a Record an outcome has room for.
const mostUsedSteps = 4

// boundedUsage is a record without nodes, and without the steps in the middle where it has more
// than most.
func boundedUsage(r *rusage.Record, most int) *rusage.Record {
	if r == nil {
		return nil
	}
	out := *r
	out.LeftNodes, out.Nodes = out.LeftNodes+len(out.Nodes), nil
	if n := len(out.Steps) - most; n > 0 {
		out.Steps = slices.Delete(slices.Clone(out.Steps), most/2, most/2+n)
		out.LeftSteps += n
	}
	return &out
}
