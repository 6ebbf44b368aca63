package provenance

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// Defaults of a Policy.
const (
	DefaultTimeout  = 150 * time.Millisecond
	DefaultMaxFile  = 64 << 20  // bytes
	DefaultMaxTotal = 256 << 20 // bytes
	maxFiles        = 200
	maxNotes        = 50
)

// Policy says what is looked at and how far. The zero value looks at all of it
// within the defaults.
type Policy struct {
	NoGit    bool
	NoFiles  bool
	Timeout  time.Duration // for all of it; 0: DefaultTimeout
	MaxFile  int64         // bytes of a file that is hashed; 0: DefaultMaxFile
	MaxTotal int64         // bytes of all files; 0: DefaultMaxTotal

	Environment EnvironmentPolicy
}

func (p Policy) withDefaults() Policy {
	if p.Timeout <= 0 {
		p.Timeout = DefaultTimeout
	}
	if p.MaxFile <= 0 {
		p.MaxFile = DefaultMaxFile
	}
	if p.MaxTotal <= 0 {
		p.MaxTotal = DefaultMaxTotal
	}
	return p
}

// Request is what is known at submission.
type Request struct {
	Dir     string   // working directory of the job, absolute
	Files   []string // files named, relative to Dir or absolute
	Words   []string // words of a command line: those that name a regular file are files, the others are passed over
	Environ []string // NAME=VALUE, for git's own needs (PATH, HOME) and for notes
	Image   string
	Policy  Policy
}

// found is what one of the searches has to say.
type found struct {
	git   *job.Git
	files []job.FileHash
	notes []string
}

func (f *found) addNote(format string, args ...any) {
	if len(f.notes) < maxNotes {
		f.notes = append(f.notes, fmt.Sprintf(format, args...))
	}
}

// Collect looks at the working directory and the files. It returns at the deadline
// of ctx or of the policy at the latest, with what it has; it is never nil.
func Collect(ctx context.Context, r Request) *job.Provenance {
	r.Policy = r.Policy.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, r.Policy.Timeout)
	defer cancel()

	p := &job.Provenance{}
	// A file system that does not answer blocks a search for good; it is left behind
	// then, and ends when its call returns.
	search := func(skip bool, look func(context.Context, Request) found) <-chan found {
		out := make(chan found, 1)
		if skip {
			out <- found{}
			return out
		}
		go func() { out <- look(ctx, r) }()
		return out
	}
	git := search(r.Policy.NoGit || r.Dir == "", lookAtGit)
	files := search(r.Policy.NoFiles || len(r.Files)+len(r.Words) == 0, lookAtFiles)
	late := time.After(r.Policy.Timeout + 50*time.Millisecond) // what obeys the deadline is here by then
	for git != nil || files != nil {
		var f found
		select {
		case f = <-git:
			git = nil
		case f = <-files:
			files = nil
		case <-late:
			p.Notes = append(p.Notes, fmt.Sprintf("%s did not answer within %v", waitedText(git != nil, files != nil), r.Policy.Timeout))
			git, files = nil, nil
		}
		if f.git != nil {
			p.Git = f.git
		}
		p.Files = append(p.Files, f.files...)
		p.Notes = append(p.Notes, f.notes...)
	}
	recordImage(p, r.Image)
	if _, dropped := r.Policy.Environment.Apply(r.Environ); len(dropped) > 0 {
		p.Notes = append(p.Notes, "environment: left out by policy: "+joinNames(dropped, 10))
	}
	return p
}

func waitedText(git, files bool) string {
	switch {
	case git && files:
		return "working directory and files"
	case git:
		return "working directory"
	}
	return "files"
}

// joinNames joins names, the first most of them.
func joinNames(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

var digest = regexp.MustCompile(`@(sha(?:256:[0-9a-f]{64}|512:[0-9a-f]{128}))$`)

// recordImage records a digest that is part of the image's name. Nobody is asked.
func recordImage(p *job.Provenance, name string) {
	if name == "" {
		return
	}
	if m := digest.FindStringSubmatch(name); m != nil {
		p.Image = m[1]
		return
	}
	p.Notes = append(p.Notes, fmt.Sprintf("image %.200s%s; write NAME@sha256:… to pin it", name, unresolvedImage))
}

// unresolvedImage is what a note says of an image that was named without a digest.
const unresolvedImage = ": its digest is not resolved"

// IsImageNote reports whether a note says that the digest of an image is not resolved. It is so at
// submission; the runtime resolves it when the job starts.
func IsImageNote(note string) bool {
	return strings.HasPrefix(note, "image ") && strings.Contains(note, unresolvedImage)
}
