package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// submitted is the answer to a submission.
type submitted struct {
	response
	ID number `json:"job_id"`
}

// Submit is site.Site's. The directives of the script count, as they do for sbatch; its
// text is handed over to the byte, but that v0.0.38 has no arguments for scripts
// (slurmrestd 22.05 crashes of them): they are set in the script's first line then.
func (s *Site) Submit(ctx context.Context, sub *site.Submission) (uint32, error) {
	if err := s.checkUser(sub); err != nil {
		return 0, err
	}
	v, err := s.slurmVersion(ctx)
	if err != nil {
		return 0, err
	}
	body, err := encodeSubmission(sub, v)
	if err != nil {
		return 0, err
	}
	var a submitted
	err = s.callAPI(ctx, &request{method: http.MethodPost, base: "slurm", path: "/job/submit", body: body, user: sub.User}, &a)
	if id := a.ID.uint32(); id != 0 { // whatever was complained of beside is a warning
		return id, s.cancelPartial(context.WithValue(ctx, acting{}, sub.User), id, &a)
	}
	if err == nil {
		err = fault.New(fault.Unavailable, "slurmrestd answered a submission without a number of a job")
	}
	return 0, err
}

// checkUser refuses a user whom nothing can be asked for.
func (s *Site) checkUser(sub *site.Submission) error {
	if s.keep == nil && sub.User != "" && sub.User != s.cfg.User {
		return fault.New(fault.Unsupported, "without tokens, jobs are those of whoever slurmrestd takes us for, and not of %s", sub.User).Advise("give the pool a way to tokens for each user")
	}
	return nil
}

var _ site.Fitter = (*Site)(nil)

// Fits is site.Fitter's. A user for whom there is no token is refused if there is one for the
// site itself and slurmrestd answers that: else it is no matter of this user's.
func (s *Site) Fits(ctx context.Context, sub *site.Submission) error {
	if err := s.checkUser(sub); err != nil {
		return err
	}
	v, err := s.slurmVersion(ctx)
	if err != nil {
		return err
	}
	if _, err := encodeSubmission(sub, v); err != nil {
		return err
	}
	if s.keep == nil || sub.User == "" || sub.User == s.cfg.User {
		return nil
	}
	_, none := s.keep.tokenFor(ctx, sub.User)
	if none == nil {
		return nil
	}
	var d diag
	if err := s.callAPI(ctx, &request{method: http.MethodGet, base: "slurm", path: "/diag"}, &d); err != nil {
		return err
	}
	return fault.New(fault.Permission, "%w", none).Advise("%s", fault.Remedy(none))
}

// cancelPartial ends a job again of which slurmrestd has left something out: 24.11 takes fields that
// it does not know, and says so in a warning. The job is held to be ours until then: if it
// cannot be ended, it is to be found by its tag.
func (s *Site) cancelPartial(ctx context.Context, id uint32, a *submitted) error {
	for _, w := range a.Warnings {
		if !strings.Contains(string(w.What), "Ignoring unknown field") {
			continue
		}
		if err := s.deleteOrSignal(ctx, id, nil); err != nil {
			return fault.New(fault.Unavailable, "slurmrestd left a part of job %d out (%s), and it could not be ended: %w", id, w.What, err)
		}
		return fault.New(fault.Unsupported, "slurmrestd leaves a part of the job out, so it was ended before it began: %s", w.What)
	}
	return nil
}

// encodeSubmission is what is sent for one.
func encodeSubmission(sub *site.Submission, version string) ([]byte, error) {
	all, err := describeJob(sub, version)
	if err != nil {
		return nil, err
	}
	text := sub.Script
	if len(sub.Args) > 0 {
		if version == old {
			var ok bool
			if text, ok = script.Arguments(text, sub.Args); !ok {
				return nil, fault.New(fault.Unsupported, "slurmrestd %s cannot hand arguments to a script that is no shell script", version)
			}
		} else {
			all[0]["argv"] = list(append([]string{"sbatch"}, sub.Args...)) // the first is replaced by the script's name
		}
	}
	for _, d := range all {
		d.completeFor(sub, version)
	}
	if len(all) == 1 {
		return encodeFields(map[string]any{"script": string(text), "job": all[0]}, len(text))
	}
	return encodeFields(map[string]any{"script": string(text), "jobs": all}, len(text))
}

// completeFor adds what each component has to say.
func (d description) completeFor(sub *site.Submission, version string) {
	if _, has := d["current_working_directory"]; sub.Dir != "" || !has {
		d["current_working_directory"] = cmp.Or(sub.Dir, "/")
	}
	env := sbatchEnvironment(sub.Env, d)
	if version == old {
		d["environment"] = object(env)
	} else {
		d["environment"] = list(env)
	}
}

// encodeFields makes JSON of fields, some of which are JSON already: encoding/json would read
// these again, byte by byte. size is about that of their texts.
func encodeFields(fields map[string]any, size int) ([]byte, error) {
	out, err := appendJSON(make([]byte, 0, size+size/16+8<<10), fields)
	switch {
	case err != nil:
		return nil, fault.New(fault.Invalid, "what was to be sent: %w", err)
	case bytes.Contains(out, []byte(`\u0000`)):
		return nil, fault.New(fault.Invalid, "there is a NUL character in the script, its arguments, its environment or its comment")
	}
	return out, nil
}

// appendJSON appends a value.
func appendJSON(b []byte, value any) ([]byte, error) {
	var err error
	switch v := value.(type) {
	case json.RawMessage:
		return append(b, v...), nil
	case string:
		return appendLiteral(b, v), nil
	case list:
		b = append(b, '[')
		for i, t := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendLiteral(b, t)
		}
		return append(b, ']'), nil
	case object:
		return v.appendJSON(b), nil
	case description:
		return appendJSON(b, map[string]any(v))
	case []description:
		b = append(b, '[')
		for i, d := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendJSON(b, d); err != nil {
				return b, err
			}
		}
		return append(b, ']'), nil
	case map[string]any:
		b = append(b, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendLiteral(b, name), ':')
			if b, err = appendJSON(b, v[name]); err != nil {
				return b, err
			}
		}
		return append(b, '}'), nil
	}
	text, err := json.Marshal(value)
	return append(b, text...), err
}

// sbatchEnvironment is the job's, and what sbatch adds to it by itself.
func sbatchEnvironment(env []string, d description) []string {
	out := slices.Clone(env)
	add := func(name, value string) {
		if value != "" && !slices.ContainsFunc(out, func(v string) bool { return strings.HasPrefix(v, name+"=") }) {
			out = append(out, name+"="+value)
		}
	}
	dir, _ := d["current_working_directory"].(string)
	add("SLURM_SUBMIT_DIR", dir)
	host, _ := os.Hostname()
	add("SLURM_SUBMIT_HOST", host)
	add("SLURM_PRIO_PROCESS", "0")
	for field, name := range map[string]string{"cpus_per_task": "SLURM_CPUS_PER_TASK", "tasks_per_node": "SLURM_NTASKS_PER_NODE", "distribution": "SLURM_DISTRIBUTION", "tres_per_task": "SLURM_TRES_PER_TASK"} {
		switch value := d[field].(type) {
		case string:
			add(name, value)
		case int64:
			b, _ := json.Marshal(value)
			add(name, string(b))
		}
	}
	slices.Sort(out[len(env):])
	return out
}

// appendLiteral appends a string of JSON that has every byte of a text: encoding/json replaces
// those that are not UTF-8, which file names and old scripts may have, and json-c takes.
func appendLiteral(b []byte, text string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	from := 0 // of what is to be appended as it is
	for i := range len(text) {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' && c != 0x7f {
			continue
		}
		b = append(b, text[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(b, text[from:]...), '"')
}

// list is a list of texts.
type list []string

// object is an environment as v0.0.38 takes it. Of two variables of a name the last counts.
type object []string

func (o object) appendJSON(b []byte) []byte {
	value := make(map[string]string, len(o))
	names := make([]string, 0, len(o))
	for _, v := range o {
		name, text, _ := strings.Cut(v, "=")
		if _, had := value[name]; !had {
			names = append(names, name)
		}
		value[name] = text
	}
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendLiteral(append(appendLiteral(b, name), ':'), value[name])
	}
	return append(b, '}')
}
