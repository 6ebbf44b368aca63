package slurm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	"github.com/coxswain-sched/coxswain/driver/slurm/sbatchargs/sbatchargstest"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// atDoor is an engine that has no cluster but what a test gives it.
func atDoor(t *testing.T, c Config) *Engine {
	t.Helper()
	locks, err := lockdir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c.Pool, c.Room, c.Patience = "far", locks, time.Minute
	return &Engine{cfg: c, log: &journal{cluster: "word"}, owners: newOwners(&c)}
}

// TestTheDoorRefusesWhatALaunchWould: of every field that Slurm has no words for, the refusal
// at the door is the launch's, with the field and a remedy; and what is taken at the door is
// rendered at the launch.
func TestTheDoorRefusesWhatALaunchWould(t *testing.T) {
	refused := 0
	for name, f := range sbatchargstest.Fields {
		if f.None != "" {
			continue
		}
		for _, placed := range []bool{false, true} {
			e := atDoor(t, Config{Placed: placed})
			s := sbatchargstest.Job()
			if f.Set != nil {
				f.Set(s)
			}
			at := e.Admit(t.Context(), &engine.JobDraft{Spec: s})
			claims := []fleet.Claim{{Node: "n1", Tasks: 2}, {Node: "n2", Tasks: 2}}
			then := e.checkSubmittable(s, nil, nil)
			if then == nil {
				_, then = e.cfg.sbatchSettings().Build(&job.Job{ID: 7, Spec: s}, engine.Ref{}, claims, nil)
			}
			if then == nil {
				if at != nil {
					t.Errorf("%s, placed %v: %v", name, placed, at)
				}
				continue
			}
			refused++
			var part *engine.FieldError
			if at == nil || at.Error() != "pool far: "+then.Error() || fault.KindOf(at) != fault.KindOf(then) || fault.Remedy(at) == "" || !errors.As(at, &part) || len(part.Fields) == 0 {
				t.Errorf("%s, placed %v: %v (%s) at the door, %v at the launch", name, placed, at, fault.Remedy(at), then)
			}
		}
	}
	if refused < 8 {
		t.Errorf("only %d refusals", refused)
	}
}

// gate is a cluster that knows some users, and a way in that cannot say all.
type gate struct {
	site.Site
	known []string
	fits  error
	err   error // of every question
	asked int
}

func (g *gate) Me(context.Context) (site.Person, error) { return site.Person{}, g.err }

func (g *gate) Person(_ context.Context, name string) (site.Person, error) {
	g.asked++
	switch {
	case g.err != nil:
		return site.Person{}, g.err
	case !slices.Contains(g.known, name):
		return site.Person{}, fault.New(fault.NotFound, "id: no such user")
	}
	return site.Person{Name: name, UID: 1000}, nil
}

func (g *gate) Fits(context.Context, *site.Submission) error {
	g.asked++
	return g.fits
}

// TestTheDoorKnowsUsers: a user whom the cluster does not know is refused with what to do, and
// so is what the way in cannot say; where nobody answers the job is taken, and nobody asks
// again for a while.
func TestTheDoorKnowsUsers(t *testing.T) {
	g := &gate{known: []string{"ann"}}
	e := atDoor(t, Config{Site: g, Identity: Identity{Mode: AsOwner}})
	of := func(user string) *engine.JobDraft {
		s := sbatchargstest.Job()
		s.Owner = job.Owner{User: user, UID: 1000}
		return &engine.JobDraft{Spec: s}
	}
	if err := e.Admit(t.Context(), of("ann")); err != nil {
		t.Error(err)
	}
	if err := e.Admit(t.Context(), of("eve")); fault.KindOf(err) != fault.Permission || !strings.Contains(err.Error(), "user eve") || !strings.Contains(fault.Remedy(err), "account made for eve") {
		t.Errorf("%v (%s)", err, fault.Remedy(err))
	}
	if err := e.Admit(t.Context(), of("")); fault.KindOf(err) != fault.Permission {
		t.Errorf("nobody's: %v", err)
	}
	g.fits = fault.New(fault.Unsupported, "cannot be told --switches").Advise("leave it out")
	if err := e.Admit(t.Context(), of("ann")); fault.KindOf(err) != fault.Unsupported || fault.Remedy(err) != "leave it out" {
		t.Errorf("%v (%s)", err, fault.Remedy(err))
	}
	g.fits, g.err = nil, fault.New(fault.Unavailable, "no answer")
	if err := e.Admit(t.Context(), of("eve")); err != nil {
		t.Errorf("nobody answers: %v", err)
	}
	g.err = nil
	was := g.asked
	if err := e.Admit(t.Context(), of("eve")); err != nil || g.asked != was {
		t.Errorf("just after: %v, asked %d times", err, g.asked-was)
	}
	e.silent = time.Time{}
	if err := e.Admit(t.Context(), of("eve")); err == nil {
		t.Error("a cluster that answers again is not asked")
	}
}

// TestPreview: what is shown beforehand is what an attempt submits, to the byte, but for the
// numbers of the job and the attempt and the word in the lock's name; directives that do not
// count are told with their lines.
func TestPreview(t *testing.T) {
	const batch = "#!/bin/bash\n#SBATCH -N2 --array=3-4\n#SBATCH --time=5 --begin=now\necho hi\n"
	parsed, _, err := sbatch.Parse(spec.Source{Name: "/h/train.sbatch", Data: []byte(batch)}, sbatch.Options{Dir: "/w", Mail: true})
	if err != nil {
		t.Fatal(err)
	}
	claims := []fleet.Claim{{Node: "n1", Tasks: 2}, {Node: "n2", Tasks: 2}}
	for name, c := range map[string]struct {
		spec   *job.Spec
		script string
		placed bool
		claims []fleet.Claim
		notes  []string
	}{
		"native": {spec: sbatchargstest.Job()},
		"batch": {spec: parsed, script: batch, notes: []string{
			"train.sbatch:2: --array is a comment now: Coxswain sees to it", "train.sbatch:3: --begin is a comment now: Coxswain sees to it", "task 3 of 2", "lines are added that take the lock", "options outrank the script",
		}},
		"placed":        {spec: sbatchargstest.Job(), placed: true, claims: claims, notes: []string{"the nodes are those that it would get"}},
		"batch, placed": {spec: parsed, script: batch, placed: true, claims: claims, notes: []string{"train.sbatch:2: --nodes is a comment now: options say what it gets"}},
	} {
		e := atDoor(t, Config{Placed: c.placed})
		d := &engine.JobDraft{Spec: c.spec, Script: []byte(c.script), Claims: c.claims}
		got, err := e.Preview(d)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		j := &job.Job{ID: 57, Spec: c.spec, Attempt: 1}
		if a := c.spec.Array; a != nil {
			j.Array = &job.ArrayTask{Job: 57, Index: a.Indices[0]}
		}
		a := e.draftOf(engine.Ref{Allocation: 12, Attempt: 1}, &order{Job: j, Claims: claims, Script: []byte(c.script), Token: "wordabc"})
		sub, err := e.renderSubmission(a)
		if err != nil {
			t.Fatal(err)
		}
		plain := strings.NewReplacer("12.1-wordabc", "0.0-TOKEN", "attempt 12.1", "attempt 0.0", ":57:12.1", ":0:0.0", "slurm-57_3", "slurm-0_3", "Job 57 ", "Job 0 ").Replace
		if s := plain(string(sub.Script)); s != string(got.Script) {
			t.Errorf("%s: shown\n%s\nsubmitted\n%s", name, got.Script, s)
		}
		want := make([]string, len(sub.Options))
		for i, o := range sub.Options {
			want[i] = plain(o)
		}
		if len(got.Options) != 1 || !slices.Equal(got.Options[0], want) || !slices.Equal(got.Args, sub.Args) {
			t.Errorf("%s: shown %q, submitted %q", name, got.Options, want)
		}
		for _, n := range append(c.notes, "not known yet") {
			if !strings.Contains(strings.Join(got.Notes, "\n"), n) {
				t.Errorf("%s: %q is not in %q", name, n, got.Notes)
			}
		}
	}
	e := atDoor(t, Config{Placed: true})
	if got, err := e.Preview(&engine.JobDraft{Spec: sbatchargstest.Job()}); err != nil || !strings.Contains(strings.Join(got.Notes, "\n"), "when Coxswain has chosen them") {
		t.Errorf("without nodes: %+v, %v", got, err)
	}
	s := sbatchargstest.Job()
	s.Within = job.InLeaf
	if _, err := atDoor(t, Config{}).Preview(&engine.JobDraft{Spec: s}); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("what is refused: %v", err)
	}
}
