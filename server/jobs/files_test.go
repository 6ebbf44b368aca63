package jobs

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/servertest"
	"github.com/coxswain-sched/coxswain/store/upload"
)

// someFiles are files of jobs, and the directories that are kept.
type someFiles struct {
	dir  string
	kept []job.ID
	fail error // after a part was sent
	room int64 // that is left beside what is kept, each of which has 1 GiB
}

func (f *someFiles) UploadRoom(context.Context) (int64, error) {
	return f.room - int64(len(f.kept))<<30, nil
}

func (f *someFiles) Receives() bool { return true }

func (f *someFiles) KeptUploads(context.Context) ([]job.ID, error) { return slices.Clone(f.kept), nil }

func (f *someFiles) DiscardUpload(_ context.Context, id job.ID) error {
	f.kept = slices.DeleteFunc(f.kept, func(have job.ID) bool { return have == id })
	return nil
}

func (f *someFiles) PackFiles(ctx context.Context, _ *job.Job, name string, to io.Writer) error {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	_, err = upload.PackTree(ctx, root, name, to)
	return errors.Join(err, f.fail)
}

// TestDirectoriesOfEndedJobsGo: some time after the end, and at once where nobody knows the job.
func TestDirectoriesOfEndedJobsGo(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	p := servertest.NewPlane()
	ended := func(id job.ID, ago time.Duration) *state.View {
		return &state.View{Job: job.Job{ID: id, State: job.Completed, Ended: now.Add(-ago), Spec: &job.Spec{}}}
	}
	p.Jobs = []*state.View{ended(1001, 25*time.Hour), ended(1002, 23*time.Hour), {Job: job.Job{ID: 1003, State: job.Running, Spec: &job.Spec{}}}, {Job: job.Job{ID: 1004, State: job.Pending, Spec: &job.Spec{}}}}
	f := &someFiles{kept: []job.ID{1001, 1002, 1003, 1004, 1999}}
	set := func(keep time.Duration) *Service {
		return &Service{cfg: Config{Plane: p, Files: f, UploadKeep: keep, Now: func() time.Time { return now }}}
	}
	if err := set(24 * time.Hour).sweepTrees(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []job.ID{1002, 1003, 1004}; !slices.Equal(f.kept, want) {
		t.Errorf("kept %v, want %v", f.kept, want)
	}
	if err := set(0).sweepTrees(t.Context()); err != nil || len(f.kept) != 3 {
		t.Errorf("without a time: kept %v, %v", f.kept, err)
	}
}

// TestDirectoriesMakeRoom: those of ended jobs, what ended first first, and no more than are needed.
func TestDirectoriesMakeRoom(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	p := servertest.NewPlane()
	for id, ago := range map[job.ID]time.Duration{1001: time.Hour, 1002: 3 * time.Hour, 1003: 2 * time.Hour} {
		p.Jobs = append(p.Jobs, &state.View{Job: job.Job{ID: id, State: job.Completed, Ended: now.Add(-ago), Spec: &job.Spec{}}})
	}
	p.Jobs = append(p.Jobs, &state.View{Job: job.Job{ID: 1006, State: job.Completed, Ended: now.Add(-time.Hour + time.Second), Spec: &job.Spec{}}})
	p.Jobs = append(p.Jobs, &state.View{Job: job.Job{ID: 1004, State: job.Pending, Spec: &job.Spec{}}}, &state.View{Job: job.Job{ID: 1005, State: job.Running, Spec: &job.Spec{}}})
	slices.SortFunc(p.Jobs, func(a, b *state.View) int { return cmp.Compare(a.Job.ID, b.Job.ID) })
	all := []job.ID{1001, 1002, 1003, 1004, 1005, 1006}
	for room, want := range map[int64][]job.ID{
		7 << 30: all, 6 << 30: {1001, 1003, 1004, 1005, 1006}, 5 << 30: {1001, 1004, 1005, 1006}, 0: {1004, 1005, 1006},
	} {
		f := &someFiles{kept: slices.Clone(all), room: room}
		s := register(p, new(servertest.Log), func(c *Config) { c.Files, c.Now = f, func() time.Time { return now } })
		if err := s.makeTreeRoom(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if !slices.Equal(f.kept, want) {
			t.Errorf("room for %d GiB: kept %v, want %v", room>>30, f.kept, want)
		}
	}
}

// TestFilesOfJobs: those of one's own jobs, whole or with an error.
func TestFilesOfJobs(t *testing.T) {
	p := servertest.NewPlane()
	f := &someFiles{dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(f.dir, "result"), []byte("42"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, p, func(c *Config) { c.Files = f })
	anna, ben := r.As(t, "anna"), r.As(t, "ben")
	done, err := anna.Submit(t.Context(), servertest.Request())
	if err != nil {
		t.Fatal(err)
	}
	name := done.ID.String()
	fetch := func(path string) (string, error) {
		body, err := anna.Files(t.Context(), name, path)
		if err != nil {
			return "", err
		}
		defer body.Close()
		to := t.TempDir()
		if err := upload.Unpack(body, to, 0); err != nil {
			return "", err
		}
		b, err := os.ReadFile(filepath.Join(to, "result"))
		return string(b), err
	}
	for _, path := range []string{"", "result", "./x/../result"} {
		if got, err := fetch(path); err != nil || got != "42" {
			t.Errorf("%q: %q, %v", path, got, err)
		}
	}
	for path, kind := range map[string]fault.Kind{"../x": fault.Invalid, "none": fault.NotFound} {
		if _, err := fetch(path); fault.KindOf(err) != kind {
			t.Errorf("%q: %v", path, err)
		}
	}
	if _, err := ben.Files(t.Context(), name, ""); fault.KindOf(err) != fault.Permission && fault.KindOf(err) != fault.NotFound {
		t.Errorf("another user's: %v", err)
	}
	f.fail = errors.New("the disk is on fire")
	if _, err := fetch(""); err == nil || !strings.Contains(err.Error(), "the disk is on fire") {
		t.Errorf("an archive that broke off: %v", err)
	}
}

// TestArchivesAtOnceAreBounded: for one user and for all; those who run the server are let through.
func TestArchivesAtOnceAreBounded(t *testing.T) {
	var l packLimit
	for uid := range uint32(maxPacks / maxUserPacks) {
		for range maxUserPacks {
			if err := l.beginPack(&auth.Identity{UID: 1000 + uid}, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, uid := range []uint32{1000, 2000} {
		if err := l.beginPack(&auth.Identity{UID: uid}, true); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("one more of user %d: %v", uid, err)
		}
	}
	if err := l.beginPack(&auth.Identity{}, false); err != nil {
		t.Error(err)
	}
	l.endPack(0)
	l.endPack(1000)
	if err := l.beginPack(&auth.Identity{UID: 2000}, true); err != nil {
		t.Errorf("after the end of one: %v", err)
	}
}
