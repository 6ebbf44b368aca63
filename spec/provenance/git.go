package provenance

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/coxswain-sched/coxswain/model/job"
)

// repository is where a working copy's git files are.
type repository struct {
	root   string // of the working copy
	dir    string // its own git directory
	common string // the one that it shares with other working copies; dir if none
}

// lookAtGit describes the working copy that the directory belongs to, if any.
func lookAtGit(ctx context.Context, r Request) found {
	var out found
	repo, err := findRepository(r.Dir)
	switch {
	case err != nil:
		out.addNote("git: %s", err)
		return out
	case repo == nil:
		return out
	}
	out.git = &job.Git{Root: repo.root}
	commit, branch, err := repo.readHead()
	switch {
	case err != nil:
		out.addNote("git: commit of %s: %s", repo.root, err)
	case commit == "":
		out.addNote("git: %s has no commit yet", repo.root)
	}
	out.git.Commit, out.git.Branch = commit, branch
	conf, err := repo.readConfig()
	if err != nil {
		out.addNote("git: configuration of %s: %s", repo.root, err)
	}
	out.git.Remote = withoutCredentials(conf.origin)
	if out.git.Dirty, err = repo.isDirty(ctx, conf, r.Environ); err != nil {
		out.git.Dirty = true
		out.addNote("git: whether %s differs from its commit is not known, and taken as yes: %s", repo.root, err)
	}
	return out
}

// findRepository looks for .git in a directory and those above it.
func findRepository(dir string) (*repository, error) {
	for at, levels := filepath.Clean(dir), 0; levels < 100; levels++ {
		name := filepath.Join(at, ".git")
		switch info, err := os.Lstat(name); {
		case err == nil && info.Mode().IsRegular(): // of another working copy, or a submodule
			return followLink(at, name)
		case err == nil:
			if _, err := os.Stat(filepath.Join(name, "HEAD")); err == nil {
				return &repository{at, name, name}, nil
			}
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
			return nil, fmt.Errorf("%s cannot be looked at", name)
		}
		up := filepath.Dir(at)
		if up == at {
			break
		}
		at = up
	}
	return nil, nil
}

// followLink follows a .git that is a file.
func followLink(root, name string) (*repository, error) {
	text, err := readSmall(name, 4096)
	target, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	if err != nil || !ok {
		return nil, fmt.Errorf("%s is no link to a repository", name)
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(root, target)
	}
	repo := &repository{root, target, target}
	if text, err := readSmall(filepath.Join(target, "commondir"), 4096); err == nil {
		repo.common = strings.TrimSpace(string(text))
		if !filepath.IsAbs(repo.common) {
			repo.common = filepath.Join(target, repo.common)
		}
	}
	return repo, nil
}

var hexCommit = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// readHead reads the commit and the branch; the commit is empty before the first one.
func (r *repository) readHead() (commit, branch string, err error) {
	text, err := readSmall(filepath.Join(r.dir, "HEAD"), 4096)
	if err != nil {
		return "", "", err
	}
	line := strings.TrimSpace(string(text))
	ref, symbolic := strings.CutPrefix(line, "ref: ")
	if !symbolic {
		if !hexCommit.MatchString(line) {
			return "", "", errors.New("HEAD is in a form that is not known")
		}
		return line, "", nil
	}
	if !strings.HasPrefix(ref, "refs/") || strings.Contains(ref, "..") || strings.ContainsAny(ref, "\x00\n\\") {
		return "", "", errors.New("HEAD names no branch in a form that is known")
	}
	branch, _ = strings.CutPrefix(ref, "refs/heads/")
	for range 5 { // a branch may stand for another one
		commit, err = r.readRef(ref)
		next, again := strings.CutPrefix(commit, "ref: ")
		if !again || err != nil {
			return commit, branch, err
		}
		ref = next
	}
	return "", branch, errors.New("HEAD leads in circles")
}

// readRef reads what a reference names: "" if it is not there.
func (r *repository) readRef(name string) (string, error) {
	if !strings.HasPrefix(name, "refs/") || strings.Contains(name, "..") {
		return "", errors.New("a reference is in a form that is not known")
	}
	if text, err := readSmall(filepath.Join(r.common, filepath.FromSlash(name)), 4096); err == nil {
		line := strings.TrimSpace(string(text))
		if hexCommit.MatchString(line) || strings.HasPrefix(line, "ref: ") {
			return line, nil
		}
		return "", errors.New("a reference is in a form that is not known")
	}
	if _, err := os.Stat(filepath.Join(r.common, "reftable")); err == nil {
		return "", errors.New("its references are in tables, which are not read yet")
	}
	packed, err := readSmall(filepath.Join(r.common, "packed-refs"), 16<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	lines := bufio.NewScanner(bytes.NewReader(packed))
	for lines.Scan() {
		if commit, ref, ok := strings.Cut(lines.Text(), " "); ok && ref == name && hexCommit.MatchString(commit) {
			return commit, nil
		}
	}
	return "", err
}

// settings are what matters here of a repository's own configuration.
type settings struct {
	origin   string
	filters  []string // names of filters that it defines
	includes bool     // it takes over other files
}

var section = regexp.MustCompile(`^\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\](.*)$`)

// readConfig reads the repository's own configuration, and that of a linked working copy.
func (r *repository) readConfig() (settings, error) {
	var s settings
	var failed error
	for _, name := range []string{filepath.Join(r.common, "config"), filepath.Join(r.dir, "config.worktree")} {
		text, err := readSmall(name, 1<<20)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			failed = err
			continue
		}
		s.readSettings(string(text))
	}
	return s, failed
}

func (s *settings) readSettings(text string) {
	kind, name := "", ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if m := section.FindStringSubmatch(line); m != nil {
			kind, name, line = strings.ToLower(m[1]), strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(m[2]), strings.TrimSpace(m[3])
			if dotted, ok := strings.CutPrefix(kind, "filter."); ok { // an old form
				kind, name = "filter", dotted
			}
			switch kind {
			case "include", "includeif":
				s.includes = true
			case "filter":
				s.filters = append(s.filters, name)
			}
		}
		key, value, _ := strings.Cut(line, "=")
		if kind == "remote" && name == "origin" && strings.EqualFold(strings.TrimSpace(key), "url") && s.origin == "" {
			s.origin = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
}

// withoutCredentials is a remote's address without user, password, query and
// fragment; the user of ssh stays.
func withoutCredentials(remote string) string {
	if !strings.Contains(remote, "://") {
		if at := strings.Index(remote, "@"); at >= 0 && strings.Contains(remote[:at], ":") { // user:password@host:path
			return remote[at+1:]
		}
		return remote // a path, or user@host:path, which is ssh
	}
	u, err := url.Parse(remote)
	if err != nil || u.Host == "" && u.Scheme != "file" {
		return ""
	}
	user := u.User.Username()
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	if user != "" && (u.Scheme == "ssh" || u.Scheme == "git+ssh") {
		u.User = url.User(user)
	}
	return u.String()
}
