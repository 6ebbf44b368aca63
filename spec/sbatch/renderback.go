package sbatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/spec"
)

// notSaid are fields that are no matter of directives, or are warned of where they
// are written.
var notSaid = []string{"owner", "program", "source", "provenance", "env", "kill_on_bad_exit", "groups"}

// compareReread reads what was rendered and warns of each field that comes out otherwise.
func (r *renderer) compareReread(text []byte) {
	back, _, err := Parse(spec.Source{Name: "job", Data: text}, Options{
		Dir: r.spec.Source.Submit, MaxArraySize: slurmfmt.MaxArraySize, Mail: true, Now: time.Unix(0, 0).In(r.timeZone()),
	})
	var bad *spec.Error
	if errors.As(err, &bad) {
		for _, e := range append([]*spec.Error{bad}, bad.Others...) {
			r.addWarning("", "sbatch would refuse this: %s", e.Message)
		}
		return
	}
	r.warnDifferences("", jsonFields(plainSpec(r.spec)), jsonFields(plainSpec(back)), notSaid)
	for i := range min(len(r.spec.Groups), len(back.Groups)) {
		where := ""
		if len(r.spec.Groups) > 1 {
			where = fmt.Sprintf("group %d: ", i)
		}
		r.warnDifferences(where, jsonFields(plainGroup(r.spec.Groups[i])), jsonFields(plainGroup(back.Groups[i])), nil)
	}
}

func (r *renderer) warnDifferences(where string, want, got map[string]json.RawMessage, leave []string) {
	names := maps.Clone(want)
	maps.Copy(names, got)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if bytes.Equal(want[name], got[name]) || slices.Contains(leave, name) {
			continue
		}
		r.addWarning("", "%s%s has no exact counterpart: %s becomes %s", where, strings.ReplaceAll(name, "_", " "), showJSON(want[name]), showJSON(got[name]))
	}
}

func showJSON(text json.RawMessage) string {
	if len(text) == 0 {
		return "nothing"
	}
	return oneLine(string(text))
}

// jsonFields are the JSON fields of a value.
func jsonFields(v any) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	if b, err := json.Marshal(v); err == nil {
		_ = json.Unmarshal(b, &m)
	}
	return m
}

// plainSpec is a job without what only tells how it was written.
func plainSpec(s *job.Spec) job.Spec {
	out := *s
	out.Depends.Text = ""
	if s.Array != nil {
		a := *s.Array
		a.Text, a.Step = "", 0
		out.Array = &a
	}
	return out
}

// plainGroup is a group without what only tells how it was written, or is warned of
// where it is.
func plainGroup(g job.TaskGroup) job.TaskGroup {
	g.Name, g.Constraint.Text, g.Tasks.Min = "", "", 0
	if g.Distribution == "block" {
		g.Distribution = ""
	}
	if g.CPUsPerTask == 1 {
		g.CPUsPerTask = 0
	}
	return g
}
