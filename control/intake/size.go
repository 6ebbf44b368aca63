package intake

import (
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Bounds of what a job says of itself. Scripts and environments are kept apart and are
// not in it.
const (
	maxNameBytes  = 1 << 10   // bytes of a name or comment
	maxSpecBytes  = 256 << 10 // of the whole specification
	maxArrayBytes = 64 << 20  // of the tasks of an array together
)

// checkSize refuses a specification that would fill memory and journal for everybody.
func checkSize(s *job.Spec) error {
	for what, text := range map[string]string{"--job-name": s.Name, "--comment": s.Comment} {
		if len(text) > maxNameBytes {
			return fault.New(fault.Invalid, "%s: %d bytes are more than the %d that it may have", what, len(text), maxNameBytes).
				Advise("put what is long into a file")
		}
	}
	text := len(s.WorkDir) + len(s.Output.Stdout) + len(s.Output.Stderr) + len(s.Output.Stdin) + len(s.Env.Export) + len(s.Depends.Text) + len(s.Licenses)
	for _, list := range [][]string{s.Program.Args, s.Program.Step, {s.Program.Client}, s.Env.Set, s.Partitions} {
		for _, t := range list {
			text += len(t)
		}
	}
	for k, v := range s.Source.Given {
		text += len(k) + len(v)
	}
	for i := range s.Groups {
		for _, list := range [][]string{s.Groups[i].NodeList, s.Groups[i].Exclude} {
			for _, t := range list {
				text += len(t) + 16 // of a slice's element
			}
		}
	}
	if p := s.Pod; p != nil {
		for _, m := range []map[string]string{p.Labels, p.Annotations, p.NodeSelector} {
			for k, v := range m {
				text += len(k) + len(v)
			}
		}
		for _, t := range append([]string{p.ServiceAccount, p.RuntimeClass, p.PriorityClass}, p.Tolerations...) {
			text += len(t)
		}
	}
	if u := s.Upload; u != nil {
		text += len(u.Digest) + len(u.Dir)
	}
	if s.Provenance != nil {
		text += len(s.Provenance.Notes)*64 + len(s.Provenance.Files)*128
		for _, t := range s.Provenance.Notes {
			text += len(t)
		}
	}
	if text > maxSpecBytes {
		return fault.New(fault.Invalid, "options and arguments have %d KiB together, more than the %d KiB that a job may have", text>>10, maxSpecBytes>>10).
			Advise("let the script read its arguments from a file; variables go by the environment")
	}
	if a := s.Array; a != nil && text*len(a.Indices) > maxArrayBytes {
		return fault.New(fault.Invalid, "options and arguments of %d bytes for each of %d tasks are more than an array may have (%d MiB)", text, len(a.Indices), maxArrayBytes>>20).
			Advise("let the script read its arguments from a file")
	}
	return nil
}
