package native

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/spec"
)

// findMissing compares a job with what its text is read as.
func findMissing(s *job.Spec, script []byte, text string) []spec.Warning {
	opts := Options{Owner: s.Owner, Dir: s.Source.Submit, Now: time.Unix(0, 0), MaxArraySize: 0, Mail: true, Webhook: func(string) error { return nil }}
	if opts.Dir == "" {
		opts.Dir = s.WorkDir
	}
	file := s.Source.File
	back, again, _, err := Parse(spec.Source{Name: file, Data: []byte(text)}, opts)
	if err != nil {
		return []spec.Warning{{File: file, Message: "the job cannot be said in this form: " + oneLine(err)}}
	}
	want, got := flattenJob(s), flattenJob(back)
	var out []spec.Warning
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if have, ok := got[name]; !ok || have != want[name] {
			out = append(out, spec.Warning{File: file, Option: name, Message: fmt.Sprintf("has no counterpart in this form: %.80s", want[name])})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			out = append(out, spec.Warning{File: file, Option: name, Message: fmt.Sprintf("cannot be left unsaid in this form: %.80s", got[name])})
		}
	}
	if s.Program.Kind == job.Batch && string(script) != string(again) {
		out = append(out, spec.Warning{File: file, Option: "script", Message: "has no counterpart in this form, byte by byte"})
	}
	return out
}

func oneLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// flattenJob is a job as JSON paths and values, without what only its submission knows.
func flattenJob(s *job.Spec) map[string]string {
	c := *s
	c.Source, c.Provenance, c.Upload, c.Owner = job.Source{}, nil, nil, job.Owner{}
	c.Env.Export = exportWord(c.Env.Export)
	c.Env.Hash, c.Program.ScriptHash, c.Program.ScriptName = "", "", ""
	c.Begin, c.Deadline = c.Begin.UTC(), c.Deadline.UTC()
	if c.Array != nil {
		a := *c.Array
		a.Text, a.Indices = fmt.Sprintf("%s (%s)", a.Text, slurmfmt.FormatArrayIndices(a.Indices)), nil
		c.Array = &a
	}
	if c.WorkDir != "" {
		c.WorkDir = path.Clean(c.WorkDir)
	}
	data, err := json.Marshal(&c)
	var tree any
	if err == nil {
		err = json.Unmarshal(data, &tree)
	}
	if err != nil {
		return map[string]string{"": err.Error()} // plain data: cannot happen
	}
	out := map[string]string{}
	flattenValue(out, "", tree)
	return out
}

func flattenValue(out map[string]string, at string, v any) {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			flattenValue(out, strings.TrimPrefix(at+"."+k, "."), e)
		}
	case []any:
		if len(x) > 100 { // a list of nodes: as one
			out[at] = fmt.Sprint(x...)
			return
		}
		for i, e := range x {
			flattenValue(out, fmt.Sprintf("%s[%d]", at, i), e)
		}
	default:
		out[at] = fmt.Sprint(x)
	}
}
