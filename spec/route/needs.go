package route

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// NeedKind is what a script needs of the machines that it runs on.
type NeedKind string

// The kinds.
const (
	NeedModule   NeedKind = "module"   // software that an environment module brings
	NeedPackage  NeedKind = "package"  // software of spack or conda that the site or the user installed
	NeedProgram  NeedKind = "program"  // a program, where nothing says which image has it
	NeedPath     NeedKind = "path"     // a file system of the site, or a home directory
	NeedRuntime  NeedKind = "runtime"  // containers that the script starts by itself
	NeedLauncher NeedKind = "launcher" // a cluster that the script starts by srun
	NeedSubmit   NeedKind = "submit"   // other jobs that it submits
)

// Need is something that a script takes from the machines it runs on. A container does not have
// it unless an image or a volume brings it.
type Need struct {
	Kind     NeedKind `json:"kind"`
	What     string   `json:"what"` // "cuda/12.1", "~/venv"
	Evidence Evidence `json:"evidence"`
}

// stepContainer is the container that srun starts for a step.
const stepContainer = "srun's container"

// maxNeeds bounds the needs that are kept.
const maxNeeds = 64

// need notes something that the script needs, once.
func (f *Facts) need(n Need) {
	same := func(o Need) bool { return o.Kind == n.Kind && o.What == n.What }
	if len(f.needs) < maxNeeds && n.What != "" && !slices.ContainsFunc(f.needs, same) {
		f.needs = append(f.needs, n)
	}
}

// Needs are what the work takes from the machines as it is written, in the order in which it was
// found. Work that does not run on the machines' own software, as somebody says
// (--bare-metal=false), has none.
func (f *Facts) Needs() []Need {
	if b := f.Get(BareMetal); b.Origin == Flag && !b.Yes() {
		return nil
	}
	contained := f.Get(Containers).Yes()
	return slices.DeleteFunc(slices.Clone(f.needs), func(n Need) bool {
		return n.Kind == NeedProgram && contained || f.imaged && (n.Kind == NeedLauncher || n.Kind == NeedRuntime && n.What == stepContainer)
	})
}

// dropNeeds forgets the needs of a kind.
func (f *Facts) dropNeeds(kind NeedKind) {
	f.needs = slices.DeleteFunc(f.needs, func(n Need) bool { return n.Kind == kind })
}

// loadsModules reports whether ml has a subcommand that loads modules, or names some.
func loadsModules(args []string) bool {
	switch firstPlain(args) {
	case "", "list", "avail", "av", "spider", "show", "help", "whatis", "keyword", "unload", "del", "rm":
		return false
	}
	return true
}

// noteNeeds notes what a program with its arguments takes from the machine.
func (s *scanner) noteNeeds(program string, words []string, line int) {
	add := func(kind NeedKind, what, says string) {
		s.facts.need(Need{Kind: kind, What: what, Evidence: s.evidence(line, says)})
	}
	args := words[1:]
	switch program {
	case "module", "ml":
		names := args
		if program == "module" || slices.Contains([]string{"load", "add", "swap"}, firstPlain(args)) {
			if !slices.Contains([]string{"load", "add", "swap"}, firstPlain(args)) {
				return
			}
			names = args[slices.Index(args, firstPlain(args))+1:]
		} else if !loadsModules(args) || slices.Contains([]string{"purge", "use", "restore", "reset"}, firstPlain(args)) {
			return
		}
		for _, n := range names {
			if !strings.HasPrefix(n, "-") {
				add(NeedModule, n, "a module of the machines")
			}
		}
		return
	case "spack":
		if len(args) > 1 && args[0] == "load" {
			add(NeedPackage, firstPlain(args[1:]), "software that spack installed")
		}
		return
	case "conda", "mamba", "micromamba":
		if len(args) > 1 && args[0] == "activate" {
			add(NeedPackage, "the conda environment "+args[1], "an environment of conda")
		}
	case "source", ".":
		if len(args) > 0 && (strings.HasSuffix(args[0], "/bin/activate") || args[0] == "activate") {
			if folder := strings.TrimSuffix(args[0], "/bin/activate"); folder != args[0] && sitePath(folder) == "" {
				add(NeedPath, folder, "an environment of Python")
			}
			if len(args) > 1 {
				add(NeedPackage, "the conda environment "+args[1], "an environment of conda")
			}
		}
	case "sbatch":
		add(NeedSubmit, "other jobs, which it submits by sbatch", "submits jobs")
	case "apptainer", "singularity", "enroot", "docker", "podman":
		if word := firstPlain(args); word != "build" && word != "cache" && word != "" {
			add(NeedRuntime, program, "containers that the script starts")
		}
	case "echo", "printf", "sed", "awk", "grep", "logger", "cat":
		if program != "cat" {
			return
		}
	}
	for _, w := range words {
		if program != "srun" && !s.contained {
			s.notePaths(w, line)
		}
	}
	switch i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "./") }); {
	case wrappers[program] && i >= 0:
		add(NeedProgram, args[i], "a program that some image has to have")
	case startsWork(program):
		add(NeedProgram, shownProgram(words[0]), "a program that some image has to have")
	}
}

// shellPrograms are in every image, or do no work of their own.
var shellPrograms = map[string]bool{
	"cd": true, "echo": true, "printf": true, "export": true, "set": true, "source": true, ".": true, "mkdir": true, "rm": true, "cp": true, "mv": true, "ls": true, "cat": true,
	"date": true, "hostname": true, "sleep": true, "wait": true, "exit": true, "true": true, "false": true, "pwd": true, "test": true, "[": true, "[[": true, "chmod": true,
	"touch": true, "ln": true, "find": true, "grep": true, "sed": true, "awk": true, "head": true, "tail": true, "sort": true, "uniq": true, "cut": true, "tr": true, "wc": true,
	"seq": true, "basename": true, "dirname": true, "tee": true, "xargs": true, "env": true, "printenv": true, "id": true, "whoami": true, "uname": true, "unset": true,
	"ulimit": true, "umask": true, "trap": true, "shift": true, "read": true, "eval": true, "exec": true, "nohup": true, "timeout": true, "time": true, "kill": true, "let": true,
	"srun": true, "scontrol": true, "squeue": true, "sacct": true, "scancel": true, "sinfo": true, "sbatch": true, "sstat": true, "module": true, "ml": true, "conda": true,
	"mamba": true, "micromamba": true, "spack": true, "nvidia-smi": true, "rocm-smi": true, "bash": true, "sh": true, "which": true, "type": true, "command": true, "in": true,
	"return": true, "break": true, "continue": true, "alias": true, "shopt": true, "pushd": true, "popd": true, "local": true, "tar": true, "gzip": true, "du": true, "df": true,
	"expr": true, "realpath": true, "readlink": true, "stat": true, "diff": true, "mktemp": true, "getopts": true, "ps": true, "free": true, "lscpu": true, "deactivate": true, ":": true,
}

// startsWork reports whether a program is not one of the shell's usual ones.
func startsWork(program string) bool {
	return program != "" && !shellPrograms[program] && !strings.HasPrefix(program, "-") && !strings.HasSuffix(program, "()") && !strings.HasPrefix(program, "$(")
}

func shownProgram(word string) string {
	if strings.HasPrefix(word, "./") || strings.HasPrefix(word, "$") {
		return word
	}
	return baseName(word)
}

var (
	homePath = lazyRegexp(`(?:^|[=:,@])((?:~|\$HOME|\$\{HOME\}|\$SCRATCH|\$\{SCRATCH\}|\$WORK|\$\{WORK\}|\$PROJECT|\$\{PROJECT\})(?:/[\w.@+-]+)?)(?:[/:,"]|$)`)
	fullPath = lazyRegexp(`(?:^|[=,]|^-[A-Za-z])(/[A-Za-z][\w.-]*(?:/[\w.@+-]+)+)`)
)

func lazyRegexp(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// systemFolders are in every image, or of no site.
var systemFolders = []string{"tmp", "dev", "proc", "sys", "usr", "bin", "sbin", "etc", "lib", "lib64", "var", "run", "root", "workspace", "app"}

// sitePath is the part of a word that is a path of a site's file systems or of a home directory,
// as far as it is shown; "" if there is none.
func sitePath(word string) string {
	if len(word) > maxLine || strings.Contains(word, "://") {
		return ""
	}
	if m := homePath().FindStringSubmatch(word); m != nil {
		return m[1]
	}
	m := fullPath().FindStringSubmatch(word)
	if m == nil {
		return ""
	}
	parts := strings.Split(m[1][1:], "/")
	if slices.Contains(systemFolders, parts[0]) {
		return ""
	}
	return "/" + strings.Join(parts[:min(len(parts), 3)], "/")
}

func (s *scanner) notePaths(word string, line int) {
	if strings.ContainsAny(word, "/~$") {
		s.facts.need(Need{Kind: NeedPath, What: sitePath(word), Evidence: s.evidence(line, "a path of the site")})
	}
}

// Alternative is another engine that would do, and what it would take.
type Alternative struct {
	Engine Engine   `json:"engine"`
	Title  string   `json:"title"` // "kubernetes"
	If     []string `json:"if"`    // all must be; they complete "if"
}

// conditionsOf are what has to be brought to a cluster of containers before work with these needs
// runs there.
func conditionsOf(needs []Need) (out []string) {
	list := func(kinds ...NeedKind) (names []string) {
		for _, n := range needs {
			if slices.Contains(kinds, n.Kind) {
				names = append(names, n.What)
			}
		}
		return names
	}
	if software := list(NeedModule, NeedPackage); len(software) > 0 {
		out = append(out, "an image holds "+joinNames(software))
	} else if programs := list(NeedProgram); len(programs) > 0 {
		out = append(out, "an image holds "+joinNames(programs))
	}
	if runtimes := list(NeedRuntime); len(runtimes) > 0 {
		out = append(out, "the job names its image in place of "+joinNames(runtimes))
	}
	if paths := list(NeedPath); len(paths) == 1 {
		out = append(out, paths[0]+" is on a volume")
	} else if len(paths) > 1 {
		out = append(out, joinNames(paths)+" are on volumes")
	}
	if launchers := list(NeedLauncher); len(launchers) > 0 {
		out = append(out, "a Ray cluster is there for it: the script starts one by srun")
	}
	if len(list(NeedSubmit)) > 0 {
		out = append(out, "its containers can submit the jobs that it submits by sbatch")
	}
	return out
}

// joinNames joins names for a sentence; of many the first are named.
func joinNames(names []string) string {
	const most = 3
	if more := len(names) - most; more > 0 {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", more)
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return names[0]
}
