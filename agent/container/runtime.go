package container

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/containeropt"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Kind names a runtime.
type Kind string

// The runtimes, in the order in which they are looked for.
const (
	Podman    Kind = "podman"
	Apptainer Kind = "apptainer"
	Enroot    Kind = "enroot"
	Docker    Kind = "docker"
)

// Kinds are all runtimes.
var Kinds = []Kind{Podman, Apptainer, Enroot, Docker}

// Runtime says how a runtime is called. Its methods are pure.
type Runtime interface {
	// Image says how an image is got.
	Image(s *Spec) Image
	// Prepare are commands that make the container, in order; none: Start does.
	Prepare(s *Spec) []Command
	// Start runs the container in the foreground until its init ends.
	Start(s *Spec) Command
	// Remove removes containers, also ones that run or that are not there.
	Remove(names []string) []Command
}

// Image is how an image is got.
type Image struct {
	File string  // the image is there if this file is; empty: Has tells
	Has  Command // succeeds if the image is there, and prints its digest, which ReadDigest reads
	Pull Command // gets it; no words: it cannot be got
}

// Command is a program and its arguments, with its name first; no words: nothing to do.
type Command struct {
	Words []string
	Env   []string // NAME=VALUE, beside the environment of the caller
}

// Spec is a container to be run. Paths are absolute.
type Spec struct {
	Name  string   // no other container of the node has it
	Mark  string   // of the attempt that it belongs to
	Image string   // as its user wrote it
	Cache string   // directory of image files, for runtimes without a store of their own
	Rc    string   // file that enroot runs in the place of an entry point
	Init  []string // the command that is to run inside

	Mounts   []job.Mount
	WorkDir  string // empty: the image's
	UID, GID uint32 // of its processes, outside
	Root     bool   // the runtime is called by root

	RemapRoot  bool // its processes are root inside
	Entrypoint bool // the image's entry point runs Init
	ReadOnly   bool // its files cannot be changed

	Devices   []string // names of CDI or files of /dev
	NVIDIA    bool     // it has GPUs of NVIDIA
	AMD       bool     // it has GPUs of AMD
	NoQueues  bool     // the node has no /dev/mqueue, so that its IPC namespace cannot be shared
	Login     string   // folder of agent/registry with the user's login for the image's registry; empty: the runtime's own files count
	NoCgroups bool     // the runtime can leave the container in the control group of its caller
}

// New returns the runtime of a kind. Program is its path, args are put before all others.
func New(k Kind, program string, args []string) Runtime {
	words := append([]string{program}, args...)
	switch k {
	case Podman:
		return podman{words}
	case Apptainer:
		return apptainer{words}
	case Enroot:
		return enroot{words}
	case Docker:
		return docker{words}
	}
	return nil
}

// call makes a command line.
func call(program []string, parts ...[]string) Command {
	return Command{Words: slices.Concat(append([][]string{program}, parts...)...)}
}

// imageFile is the file in which a runtime without a store of its own keeps an image.
func imageFile(s *Spec, suffix string) string {
	if containeropt.IsFile(s.Image) {
		return s.Image
	}
	name := strings.Map(func(r rune) rune {
		if r == '/' || r == ':' || r == '@' {
			return '+'
		}
		return r
	}, containeropt.Reference(s.Image))
	return filepath.Join(s.Cache, name+suffix)
}

// mountOptions are the flags of a mount that a runtime is told, without those that it sees to
// by itself.
func mountOptions(m *job.Mount) []string {
	return slices.DeleteFunc(slices.Clone(m.Flags), func(f string) bool { return strings.HasPrefix(f, "x-create=") })
}

// volumeFlag is a mount as podman, docker and apptainer take it.
func volumeFlag(m *job.Mount) string {
	text := m.Source + ":" + m.Target
	if options := mountOptions(m); len(options) > 0 {
		text += ":" + strings.Join(options, ",")
	}
	return text
}

// digestForm is the digest of a manifest, behind the name of a repository or alone.
var digestForm = regexp.MustCompile(`^(?:(.*)@)?(sha256:[0-9a-f]{64})$`)

// ReadDigest reads what Image.Has printed of an image: the digest that its repository has, else the
// one that the runtime has by itself. Empty: there is none, as of an image that docker built and
// never pushed.
func ReadDigest(image, printed string) string {
	repository := containeropt.Reference(image)
	if name, _, ok := strings.Cut(repository, "@"); ok {
		repository = name
	} else if i := strings.LastIndexByte(repository, ':'); i > strings.LastIndexByte(repository, '/') {
		repository = repository[:i]
	}
	own, named := "", ""
	for word := range strings.FieldsSeq(printed) {
		m := digestForm.FindStringSubmatch(word)
		switch {
		case m == nil:
		case m[1] == repository && (named == "" || named == own): // else of a list, or of the same files here
			named = m[2]
		case own == "":
			own = m[2]
		}
	}
	return cmp.Or(named, own)
}
