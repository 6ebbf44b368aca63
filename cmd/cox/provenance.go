package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/job"
)

// The bounds of what is looked at before a submission.
const (
	provenanceTime = 2 * time.Second
	provenanceSize = 64 << 20 // bytes of a file that is hashed
	provenanceMost = 32       // files
)

// provenance records where the work comes from: the git commit of the working
// directory, and the files that are named on the command line. What cannot be had
// becomes a note and stops nothing.
func provenance(ctx context.Context, req *api.Submit) *job.Provenance {
	ctx, cancel := context.WithTimeout(ctx, provenanceTime)
	defer cancel()
	p := &job.Provenance{}
	var note string
	if p.Git, note = gitState(ctx, req.Dir); note != "" {
		p.Notes = append(p.Notes, note)
	}
	names := slices.Concat([]string{req.File}, req.ScriptArgs, req.Command)
	for _, name := range names {
		if len(p.Files) == provenanceMost {
			p.Notes = append(p.Notes, "more files are named than are recorded")
			break
		}
		h, note := hashFile(name)
		if note != "" {
			p.Notes = append(p.Notes, note)
		}
		if h != nil {
			p.Files = append(p.Files, *h)
		}
	}
	return p
}

// hashFile returns nil where the word names no regular file.
func hashFile(name string) (*job.FileHash, string) {
	st, err := os.Stat(name)
	if name == "" || name == "-" || err != nil || !st.Mode().IsRegular() {
		return nil, ""
	}
	if st.Size() > provenanceSize {
		return nil, name + ": too large to be hashed"
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, name + ": " + err.Error()
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return nil, name + ": " + err.Error()
	}
	return &job.FileHash{Name: name, SHA256: hex.EncodeToString(h.Sum(nil)), Size: n}, ""
}

// gitState asks git about a directory; nil outside of a working copy. Git is not
// called where no .git is above, which spares its start.
func gitState(ctx context.Context, dir string) (g *job.Git, note string) {
	if !insideGit(dir) {
		return nil, ""
	}
	out, err := git(ctx, dir, "status", "--porcelain=v2", "--branch", "--untracked-files=normal")
	if err != nil {
		return nil, "git: " + err.Error()
	}
	g = &job.Git{}
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "# branch.oid "):
			g.Commit = strings.TrimPrefix(line, "# branch.oid ")
		case strings.HasPrefix(line, "# branch.head "):
			g.Branch = strings.TrimPrefix(line, "# branch.head ")
		case !strings.HasPrefix(line, "#"):
			g.Dirty = true
		}
	}
	if g.Branch == "(detached)" {
		g.Branch = ""
	}
	if out, err = git(ctx, dir, "rev-parse", "--show-toplevel"); err == nil {
		g.Root = strings.TrimSpace(out)
	}
	if out, err = git(ctx, dir, "config", "--get", "remote.origin.url"); err == nil {
		g.Remote = withoutCredentials(strings.TrimSpace(out))
	}
	return g, ""
}

func insideGit(dir string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "--no-optional-locks"}, args...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", errors.New("took too long")
	}
	if line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n"); err != nil && line != "" {
		return "", errors.New(line)
	}
	return string(out), err
}

// withoutCredentials removes the user and password of a remote's address.
func withoutCredentials(remote string) string {
	u, err := url.Parse(remote)
	if err != nil || u.Scheme == "" {
		return remote // git@host:path: the user is no secret
	}
	u.User = nil
	return u.String()
}
