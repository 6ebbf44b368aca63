package slurm_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/store/upload"
)

// archives are archives of directories, by digest.
type archives map[string][]byte

func (a archives) Open(_ uint32, digest string) (io.ReadCloser, error) {
	b, ok := a[digest]
	if !ok {
		return nil, fault.New(fault.NotFound, "there is no archive %s", digest)
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// TestAJobBringsItsDirectory: it is below upload_dir before sbatch is called, belongs to the job's owner
// alone, and is the working directory that Slurm is told; what the job leaves there can be fetched.
func TestAJobBringsItsDirectory(t *testing.T) {
	from := t.TempDir()
	if err := os.WriteFile(filepath.Join(from, "in.txt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	if _, err := upload.Pack(t.Context(), from, &packed, 1<<20); err != nil {
		t.Fatal(err)
	}
	shared := t.TempDir()
	if err := os.Chmod(filepath.Dir(shared), 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shared, 0o711); err != nil {
		t.Fatal(err)
	}
	s := &stage{}
	e, root := stageWith(t, s, func(c *slurm.Config) {
		c.UploadDir, c.Uploads, c.UploadRoom = shared, archives{"d": packed.Bytes()}, 1<<20
	})
	plan := func(attempt uint32, digest string) *engine.Launch {
		return &engine.Launch{
			Ref: engine.Ref{Allocation: uint64(attempt), Attempt: attempt},
			Job: &job.Job{ID: 7, Spec: &job.Spec{
				WorkDir: "/home/anna/proj/sub", Output: job.Output{Stdout: "/home/anna/proj/out.txt"}, Groups: make([]job.TaskGroup, 1), Program: job.Program{Kind: job.Batch},
				Owner: job.Owner{User: "anna", UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}, Upload: &job.Upload{Digest: digest, Dir: "/home/anna/proj"},
			}},
			Script: []byte("#!/bin/sh\n"), Env: []string{"PWD=/home/anna/proj/sub"}, Claims: []fleet.Claim{{Node: "n1", Tasks: 1, Take: resource.Vector{CPU: resource.OneCPU}}},
		}
	}
	if os.Geteuid() == 0 {
		plan = func(f func(uint32, string) *engine.Launch) func(uint32, string) *engine.Launch {
			return func(attempt uint32, digest string) *engine.Launch {
				l := f(attempt, digest)
				l.Job.Spec.Owner.UID, l.Job.Spec.Owner.GID = 61001, 61001
				return l
			}
		}(plan)
	}
	l := plan(1, "d")
	if err := e.Admit(t.Context(), &engine.JobDraft{Spec: l.Job.Spec, Script: l.Script}); err != nil {
		t.Fatal(err)
	}
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	s.taken(t)
	trees, err := filepath.Glob(shared + "/cox-*/7")
	if err != nil || len(trees) != 1 {
		t.Fatalf("%v, %v", trees, err)
	}
	tree := trees[0]
	var sent site.Submission
	s.with(func() { sent = s.sent })
	if sent.Dir != tree+"/sub" || !slices.Contains(sent.Options, "--output="+tree+"/out.txt") {
		t.Errorf("in %s, want %s/sub; options %q", sent.Dir, tree, sent.Options)
	}
	if all := strings.Join(append(sent.Options, sent.Env...), " ") + string(sent.Script); strings.Contains(all, "/home/anna") {
		t.Errorf("the submission names the directory where it was: %s", all)
	}
	info, err := os.Stat(tree)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info, err)
	}
	var archive bytes.Buffer
	if err := e.PackFiles(t.Context(), l.Job, "in.txt", &archive); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	if err := upload.Unpack(&archive, to, 0); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(to, "in.txt")); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	if err := e.PackFiles(t.Context(), l.Job, "../..", io.Discard); fault.KindOf(err) != fault.Invalid {
		t.Errorf("out of the tree: %v", err)
	}
	plain := *l.Job.Spec
	plain.Upload = nil
	if err := e.PackFiles(t.Context(), &job.Job{ID: 8, Spec: &plain}, "x", io.Discard); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("of a job without: %v", err)
	}
	if err := e.DiscardUpload(t.Context(), 7); fault.KindOf(err) != fault.Conflict {
		t.Errorf("discarded beside an attempt: %v", err)
	}

	// The archive is gone, or the share is not mounted.
	gone := plan(2, "gone")
	gone.Job.ID = 9
	if err := e.Launch(t.Context(), gone); fault.KindOf(err) != fault.NotFound {
		t.Errorf("without an archive: %v", err)
	}
	none, _ := stageWith(t, &stage{}, func(c *slurm.Config) { c.UploadDir, c.Uploads = filepath.Join(root, "none"), archives{} })
	if err := none.Launch(t.Context(), l); fault.KindOf(err) != fault.Unavailable || !strings.Contains(fault.Remedy(err), "upload_dir") {
		t.Errorf("not mounted: %v", err)
	}
	if _, err := os.Stat(filepath.Join(root, "none")); !os.IsNotExist(err) {
		t.Error("the shared directory was made")
	}
	without, _ := stageWith(t, &stage{}, func(*slurm.Config) {})
	if err := without.Launch(t.Context(), l); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("a pool without upload_dir: %v", err)
	}
}
