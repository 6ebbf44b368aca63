// Package worktree keeps the directories that came with jobs (job.Upload) as directories of this
// machine's file system: one for each job, which is its working directory over all its attempts.
//
// A tree appears whole or not at all, owned by the job's user with mode 0700. It is made beside its
// place, where nobody but this process may look, so nobody can lead the making astray. What its
// archive unpacks to is bounded, and room is left on the file system for others.
//
// Nothing is removed by itself: who knows the jobs calls Discard. A Store is safe for concurrent
// use, by one process at a time; a job has one call of Make at a time.
package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store/upload"
)

// Archives has the archives of directories that were sent with jobs; *upload.Store is one.
type Archives interface {
	Open(uid uint32, digest string) (io.ReadCloser, error)
}

// Store keeps trees below Dir, by the number of their job. Dir has to be there, and to be a directory
// that only this process's user may write to.
type Store struct {
	Dir      string
	Archives Archives
	Room     int64 // bytes that a tree may have when it is made; 0: any number

	once  sync.Once
	turns chan struct{} // an element for each tree that is being made
	mu    sync.Mutex
	due   int64 // bytes that trees may have that are being made
}

// mostMakings is how many trees are made at once; further ones wait.
const mostMakings = 3

// partial begins the name of a tree that is being made; gone ends that of one that is being removed.
const (
	partial = ".part-"
	gone    = ".gone"
)

// Path is where the tree of a job is.
func (s *Store) Path(id job.ID) string { return filepath.Join(s.Dir, id.String()) }

// Make makes the tree of a job, unless it is there. It belongs to the job's owner if this process is
// root's, and to this process's user otherwise. No room on the disk: fault.Exhausted; the archive is
// not there any more: fault.NotFound. One that is larger than Room is fault.Invalid: it never fits.
func (s *Store) Make(j *job.Job) error {
	tree, u := s.Path(j.ID), j.Spec.Upload
	if info, err := os.Lstat(tree); err == nil && info.IsDir() {
		return nil
	}
	s.once.Do(func() { s.turns = make(chan struct{}, mostMakings) })
	s.turns <- struct{}{}
	defer func() { <-s.turns }()
	most, err := s.reserveRoom()
	if err != nil {
		return err
	}
	defer s.releaseRoom(most)
	archive, err := s.Archives.Open(j.Spec.Owner.UID, u.Digest)
	if err != nil {
		return err
	}
	defer archive.Close()
	part, err := os.MkdirTemp(s.Dir, partial+j.ID.String()+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(part) // not where it has got its name
	err = upload.Unpack(archive, part, most)
	if fault.KindOf(err) == fault.Exhausted && most == s.Room {
		return fault.New(fault.Invalid, "%w", err).Advise("leave out what the job does not need (%s)", upload.IgnoreFile)
	}
	if err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		uid, gid := int(j.Spec.Owner.UID), int(j.Spec.Owner.GID)
		if err := giveTree(part, func(name string) error { return os.Lchown(name, uid, gid) }); err != nil {
			return fmt.Errorf("give the working directory to its user: %w", err)
		}
	}
	return os.Rename(part, tree)
}

// Left is how many bytes further trees may have, so that others have room on the file system.
func (s *Store) Left() (int64, error) { return upload.FreeRoom(s.Dir) }

// reserveRoom is how many bytes a tree may have, which others may not have until releaseRoom. What others
// have written of theirs is counted twice: as theirs, and as not free.
func (s *Store) reserveRoom() (most int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free, err := s.Left()
	if err != nil {
		return 0, err
	}
	free -= s.due
	defer func() { s.due += most }()
	if free <= 0 {
		return 0, fault.New(fault.Exhausted, "the file system of %s has no room for the working directory of another job", s.Dir).
			Advise("ask an administrator to make room there: old directories go after jobs.upload_keep")
	}
	if s.Room > 0 {
		return min(s.Room, free), nil
	}
	return free, nil
}

func (s *Store) releaseRoom(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due -= n
}

// giveTree gives all in a directory away, and the directory itself last: until then nobody else gets into
// it, and can exchange what is still to be given. Links are given themselves, not what they lead to.
func giveTree(dir string, give func(name string) error) error {
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		return give(name)
	})
	if err != nil {
		return err
	}
	return give(dir)
}

// Kept lists the jobs that have a tree.
func (s *Store) Kept(ctx context.Context) (ids []job.ID, err error) {
	found, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, d := range found {
		if n, err := strconv.ParseUint(strings.TrimSuffix(d.Name(), gone), 10, 64); err == nil && n > 0 {
			ids = append(ids, job.ID(n))
		}
	}
	return ids, ctx.Err()
}

// Discard removes the tree of a job, if there is one. Links in it are removed, not followed.
func (s *Store) Discard(id job.ID) error {
	tree := s.Path(id)
	if err := os.Rename(tree, tree+gone); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.RemoveAll(tree + gone)
}

// SweepPartial removes what a process that has ended left of trees that it was making.
func (s *Store) SweepPartial() error {
	left, err := filepath.Glob(filepath.Join(s.Dir, partial+"*"))
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// InTree is a job as it is where its tree is its working directory: each name below the directory that
// was sent leads into the tree, and it brings nothing any more. The job that is given is not changed.
func (s *Store) InTree(j *job.Job) *job.Job {
	spec := *j.Spec
	spec.Upload = nil // it is there
	for _, name := range []*string{&spec.WorkDir, &spec.Output.Stdin, &spec.Output.Stdout, &spec.Output.Stderr, &spec.Source.Submit} {
		*name = s.pathInTree(j, *name)
	}
	out := *j
	out.Spec = &spec
	return &out
}

// PackFiles writes an archive of a file or directory below a directory; see engine.FilePacker. In the
// words of an error the directory is that of the job.
func PackFiles(ctx context.Context, dir, name string, j *job.Job, to io.Writer) error {
	if dir != "" {
		dir += "/." // a pipe in its place is an error at once, and not waited for
	}
	root, err := os.OpenRoot(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && j.Spec.Upload != nil:
		return fault.New(fault.NotFound, "the directory of job %s is not there: the job has not started, or it was removed some time after its end (jobs.upload_keep)", j.Name()).
			Advise("cox show %s says when the job ran", j.Name())
	case errors.Is(err, fs.ErrPermission):
		return fault.New(fault.Permission, "user %s: %w", j.Spec.Owner.User, err)
	case errors.Is(err, fs.ErrNotExist):
		return fault.New(fault.NotFound, "%w", err)
	case err != nil:
		return err
	}
	defer root.Close()
	_, err = upload.PackTree(ctx, root, name, to)
	return err
}

// Env is the environment that a job was submitted with, as it is where its tree is.
func (s *Store) Env(j *job.Job, env []string) []string {
	out := make([]string, len(env))
	for i, v := range env {
		if dir, ok := strings.CutPrefix(v, "PWD="); ok {
			v = "PWD=" + s.pathInTree(j, dir)
		}
		out[i] = v
	}
	return out
}

// pathInTree is where a name leads.
func (s *Store) pathInTree(j *job.Job, name string) string {
	if rest, ok := strings.CutPrefix(name, j.Spec.Upload.Dir); ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(j.Spec.Upload.Dir, "/")) {
		return filepath.Join(s.Path(j.ID), filepath.Clean("/"+rest)) // not above it
	}
	return name
}
