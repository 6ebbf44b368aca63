package sbatch

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rlimit"
)

// fillEnvironment fills what --export and --export-file say, and checks what --propagate says, which
// Source.Given keeps.
func (p *parser) fillEnvironment(s *job.Spec, set settings) {
	if d, ok := set.get("propagate"); ok {
		if _, err := rlimit.ParsePropagate(d.Value); err != nil {
			p.failOption(d, err, "forms: ALL, NONE, AS, CORE, CPU, DATA, FSIZE, MEMLOCK, NOFILE, NPROC, RSS, STACK, lists of these names")
		}
	}
	if d, ok := set.get("export"); ok {
		s.Env.Export = d.Value
		p.checkExport(d)
	}
	d, ok := set.get("export-file")
	if !ok {
		return
	}
	data, ok := p.readFile(d)
	if !ok {
		return
	}
	for entry := range bytes.SplitSeq(data, []byte{0}) {
		name, _, ok := strings.Cut(string(entry), "=")
		switch {
		case len(bytes.TrimSpace(entry)) == 0:
		case !ok || !validName(name):
			p.failOption(d, fmt.Errorf("has an entry that is no NAME=value: %.40q", entry), "separate entries by a NUL character, as env -0 does")
			return
		default:
			s.Env.Set = append(s.Env.Set, string(entry))
		}
	}
}

// checkExport wants ALL, NIL, NONE, or a list of NAME and NAME=value.
func (p *parser) checkExport(d *Directive) {
	at := 0
	for part := range splitExport(d.Value) {
		name, _, _ := strings.Cut(part, "=")
		if part != "" && !validName(name) {
			p.blamePart(d, at, len(part), fmt.Sprintf("%q is not the name of a variable", name), "forms: ALL, NONE, NIL, NAME, NAME=value, lists of these")
			return
		}
		at += len(part) + 1
	}
}

// splitExport yields the parts of an --export list; quotes protect commas.
func splitExport(s string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		from := 0
		var quote rune
		for i, r := range s {
			switch {
			case quote != 0 && r == quote:
				quote = 0
			case quote == 0 && (r == '"' || r == '\''):
				quote = r
			case quote == 0 && r == ',':
				if !yield(s[from:i]) {
					return
				}
				from = i + 1
			}
		}
		yield(s[from:])
	}
}

func validName(s string) bool {
	return s != "" && !strings.ContainsAny(s, " \t\n\x00\"'") && (s[0] < '0' || s[0] > '9')
}

// readFile reads the file that an option names.
func (p *parser) readFile(d *Directive) ([]byte, bool) {
	if p.opts.ReadFile == nil {
		p.failOption(d, errors.New("cannot be read here"), "submit by a command that runs where the file is")
		return nil, false
	}
	data, err := p.opts.ReadFile(d.Value)
	if err != nil {
		p.failOption(d, fmt.Errorf("cannot be read: %w", err), "name a file that is there and that you may read")
		return nil, false
	}
	return data, true
}
