package route

import (
	"strings"

	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/srunopt"
)

// Bounds of what is looked at and kept.
const (
	maxLine   = 4096 // bytes of a line
	maxFound  = 100  // lines that start something
	maxInside = 4    // commands inside of each other: srun bash -c "env torchrun"
)

// scanner looks at the commands of a shell script.
type scanner struct {
	facts *Facts
	file  string
	first int      // line of the file at which the script begins
	lines []string // of the script
	vars  map[string]assignedText

	contained bool // the command runs in a container of its step: its paths are those of an image
}

// assignedText is the text of a variable, and where it was assigned.
type assignedText struct {
	text string
	line int
}

// scanScript looks through a script whose first line is line number first of the file.
func scanScript(f *Facts, file, script string, first int) {
	s := &scanner{facts: f, file: file, first: first, lines: strings.Split(script, "\n"), vars: map[string]assignedText{}}
	readShell(script, first, 0, func(c *shellCommand) { s.noteCommand(c, 0) }, s.noteCode)
}

// evidence is a line as evidence.
func (s *scanner) evidence(line int, says string) Evidence {
	e := Evidence{File: s.file, Line: line, Says: says}
	if i := line - s.first; i >= 0 && i < len(s.lines) {
		text := strings.TrimSpace(strings.TrimSuffix(s.lines[i], "\r"))
		e.Text = text[:min(len(text), maxLine)]
	}
	return e
}

// noteCode looks at a line of a here document that Python reads.
func (s *scanner) noteCode(text string, line int) {
	for i, re := range compiled().code {
		if re != nil && len(text) <= maxLine && re.MatchString(text) {
			s.notePattern(i, line)
		}
	}
}

// notePattern states what a pattern shows.
func (s *scanner) notePattern(i, line int) {
	p := &patterns[i]
	e := s.evidence(line, p.says)
	for _, k := range p.facts {
		s.facts.Set(k, 1, File, e)
	}
	if p.runs != Plain && len(s.facts.launchers) < maxFound {
		s.facts.launchers = append(s.facts.launchers, launcher{p.runs, e})
	}
}

// noteCommand looks at a command, and at those that it starts.
func (s *scanner) noteCommand(c *shellCommand, inside int) {
	assigned := c.assigned
	words := c.words
	if len(words) > 0 {
		switch words[0] {
		case "export", "declare", "typeset", "local", "readonly", "setenv":
			assigned, words = append(assigned[:len(assigned):len(assigned)], words[1:]...), nil
		}
	}
	for _, a := range assigned {
		s.noteAssigned(a, c.line)
	}
	if len(words) > 0 {
		s.noteProgram(words, c.line, inside)
	}
}

// noteAssigned looks at NAME=value.
func (s *scanner) noteAssigned(text string, line int) {
	name, value, ok := strings.Cut(text, "=")
	name = strings.TrimSuffix(name, "+")
	if !ok || !isName(name) {
		return
	}
	for i, re := range compiled().variable {
		if re != nil && re.MatchString(name) {
			s.notePattern(i, line)
		}
	}
	if rest, nccl := strings.CutPrefix(name, "NCCL_"); (nccl || strings.HasPrefix(name, "RCCL_")) && rest != "" && len(s.facts.tuned) < maxEvidence {
		s.facts.tuned = append(s.facts.tuned, s.evidence(line, "settings of NCCL"))
	}
	if len(s.vars) < maxFound {
		s.vars[name] = assignedText{value, line}
	}
	s.notePaths(value, line)
}

// variableOf is the name of the variable that a word is, "$A" or "${A}" or "${A[@]}"; "" if it is none.
func variableOf(word string) string {
	name, ok := strings.CutPrefix(word, "$")
	if !ok {
		return ""
	}
	if rest, braces := strings.CutPrefix(name, "{"); braces {
		name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(rest, "}"), "[@]"), "[*]")
	}
	if !isName(name) {
		return ""
	}
	return name
}

// wrappers start the command behind their own options.
var wrappers = map[string]bool{
	"env": true, "nohup": true, "exec": true, "command": true, "eval": true, "sudo": true, "nice": true, "ionice": true, "numactl": true, "taskset": true, "time": true,
	"timeout": true, "stdbuf": true, "xargs": true, "setsid": true, "apptainer": true, "singularity": true, "docker": true, "podman": true, "nerdctl": true, "enroot": true,
	"conda": true, "mamba": true, "micromamba": true, "uv": true, "poetry": true, "pipenv": true, "pixi": true, "nsys": true, "ncu": true, "ssh": true, "pdsh": true,
	"mpirun": true, "mpiexec": true, "mpiexec.hydra": true, "ibrun": true, "jsrun": true, "aprun": true, "$MPIRUN": true, "catchsegv": true, "dask": true,
}

// noteProgram looks at a program and its arguments.
func (s *scanner) noteProgram(words []string, line, inside int) {
	if inside > maxInside {
		return
	}
	program := s.programName(words[0])
	if program == "" { // a variable whose text is a command
		v := s.vars[variableOf(words[0])]
		readShell(v.text, 0, 1, func(c *shellCommand) { c.line = v.line; s.noteProgramOf(c, inside+1) }, func(string, int) {})
		return
	}
	args := words[1:]
	s.noteNeeds(program, words, line)
	switch {
	case program == "ml" && !loadsModules(args), program == "[" || program == "[[" || program == "test":
		return
	case program == "srun":
		s.noteStep(args, line, inside)
		return
	case isPython(program):
		s.notePython(args, line)
		return
	case isShell(program) || program == "eval" || program == "ssh" || program == "su":
		s.noteShellText(args, line, inside)
	}
	matched := compiled().matchCommand(program, args)
	for _, i := range matched {
		s.notePattern(i, line)
	}
	if !wrappers[program] {
		return
	}
	for i := range args { // whichever is the command: options of wrappers are not known
		if base := s.programName(args[i]); i < maxWrapped && base != "" && !strings.HasPrefix(args[i], "-") && (i == 0 || !takesValue(args[i-1])) {
			found := compiled().matchCommand(base, args[i+1:])
			if isPython(base) || isShell(base) || wrappers[base] || base == "srun" || len(found) > 0 {
				s.noteProgram(args[i:], line, inside+1)
				return
			}
		}
	}
}

// maxWrapped is how many words behind a wrapper may be its command.
const maxWrapped = 64

// takesValue reports whether an option may have its value in the next word: a long one without =.
func takesValue(option string) bool {
	switch option {
	case "-c", "-B", "-v", "-e", "-H", "-w", "-n", "-np", "--bind", "--env", "--name", "--volume", "--mount", "--workdir", "--hostfile", "--mca":
		return true
	}
	return false
}

func (s *scanner) noteProgramOf(c *shellCommand, inside int) {
	if len(c.words) > 0 {
		s.noteProgram(c.words, c.line, inside)
	}
}

// programName is the name of a program, without its folder; "" for a variable whose text is known
// to be a command. A variable that is named after a launcher is that.
func (s *scanner) programName(word string) string {
	name := variableOf(word)
	if name == "" {
		return baseName(word)
	}
	if v, known := s.vars[name]; known && strings.TrimSpace(v.text) != "" && !strings.HasPrefix(v.text, "$") {
		return ""
	}
	switch upper := strings.ToUpper(name); {
	case strings.Contains(upper, "MPIRUN"), strings.Contains(upper, "MPIEXEC"), upper == "MPI_RUN", upper == "MPI_EXEC":
		return "$MPIRUN"
	case upper == "SRUN":
		return "srun"
	}
	return word
}

// noteShellText looks at the text behind bash -c, or the words behind eval.
func (s *scanner) noteShellText(args []string, line, inside int) {
	for i, a := range args {
		if strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.HasSuffix(a, "c") && i+1 < len(args) {
			text := args[i+1]
			if v, ok := s.vars[variableOf(text)]; ok {
				text = v.text
			}
			readShell(text, 0, 1, func(c *shellCommand) {
				c.line = line
				s.noteCommand(c, inside+1)
			}, func(string, int) {})
			return
		}
	}
}

// notePython looks at python -m MODULE, python -c CODE and python FILE.
func (s *scanner) notePython(args []string, line int) {
	for i, a := range args {
		switch {
		case a == "-m" && i+1 < len(args):
			for _, k := range matchModule(args[i+1]) {
				s.notePattern(k, line)
			}
			return
		case a == "-c" && i+1 < len(args):
			for l := range strings.SplitSeq(args[i+1], "\n") {
				s.noteCode(l, line)
			}
			return
		case !strings.HasPrefix(a, "-"):
			return
		}
	}
}

// noteStep looks at srun: its own options, and the command that it starts.
func (s *scanner) noteStep(args []string, line, inside int) {
	single, end := false, len(args)
	scan := getopt.New(srunopt.Table{}, args)
	for done := false; !done; {
		it := scan.Next()
		switch it.Kind {
		case getopt.End:
			end, done = len(args), true
		case getopt.Terminator:
			end, done = it.Next, true
		case getopt.Plain:
			end, done = it.Word, true
		default:
		}
	}
	options := args[:end]
	for i, o := range options {
		next := ""
		if i+1 < len(options) {
			next = options[i+1]
		}
		switch {
		case o == "-N1", o == "-n1", o == "--nodes=1", o == "--ntasks=1", (o == "-N" || o == "-n" || o == "--nodes" || o == "--ntasks") && next == "1":
			single = true
		case strings.HasPrefix(o, "--mpi=pmi"), strings.HasPrefix(o, "--mpi=openmpi"), strings.HasPrefix(o, "--mpi=cray"), o == "--mpi" && next != "none" && next != "list":
			e := s.evidence(line, "srun with MPI")
			s.facts.Set(TightlyCoupled, 1, File, e)
			if len(s.facts.launchers) < maxFound {
				s.facts.launchers = append(s.facts.launchers, launcher{MPI, e})
			}
		case strings.HasPrefix(o, "--container-image"), strings.HasPrefix(o, "--container-name"):
			s.facts.Set(Containers, 1, File, s.evidence(line, "container image"))
			s.facts.need(Need{Kind: NeedRuntime, What: stepContainer, Evidence: s.evidence(line, "containers that srun starts")})
			defer func(was bool) { s.contained = was }(s.contained)
			s.contained = true
		}
	}
	for _, o := range options {
		s.notePaths(o, line)
	}
	if !single && len(s.facts.steps) < maxFound {
		s.facts.steps = append(s.facts.steps, s.evidence(line, "tasks of a step start together"))
	}
	rays := s.countLaunchers(Ray)
	if end < len(args) {
		s.noteProgram(args[end:], line, inside+1)
	}
	if s.countLaunchers(Ray) > rays {
		s.facts.need(Need{Kind: NeedLauncher, What: "Ray, which srun starts here", Evidence: s.evidence(line, "srun starts Ray")})
	}
}

func (s *scanner) countLaunchers(r Runtime) (n int) {
	for _, l := range s.facts.launchers {
		if l.runtime == r {
			n++
		}
	}
	return n
}
