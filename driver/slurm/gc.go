package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// garbageCollector ends jobs and removes locks that nobody needs any more.
type garbageCollector struct {
	e       *Engine
	sweptTo string // where the next look for old locks begins
}

// run brings Slurm's view in line with the driver's, now and then, until the engine is
// closed. slurmctld finds jobs again that it had lost, and goes on with what was reported
// ended since: such a job begins nothing, for its lock is fenced, or it has ended on its
// nodes, and yet it waits, or holds nodes. It is ended. And locks of attempts that were
// forgotten long ago are removed.
func (g *garbageCollector) run() {
	var swept time.Time
	pause := g.e.cfg.Tidy
	for {
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-g.e.ctx.Done():
			t.Stop()
			return
		}
		began := time.Now()
		if err := g.endGhostJobs(); err != nil && g.e.ctx.Err() == nil {
			g.e.cfg.Log.Warn("slurm: jobs that are over and live in Slurm", "error", err)
		}
		if g.e.blind {
			if err := g.e.noteController(); err != nil && g.e.ctx.Err() == nil {
				g.e.cfg.Log.Warn("slurm: which slurmctld it is", "error", err)
			}
		}
		if err := g.e.sweepHandedSecrets(); err != nil && g.e.ctx.Err() == nil {
			g.e.cfg.Log.Warn("slurm: secrets of jobs that have ended", "error", err)
		}
		if err := g.e.discardUnclaimed(); err != nil && g.e.ctx.Err() == nil {
			g.e.cfg.Log.Warn("slurm: jobs that Slurm put back", "error", err)
		}
		if !g.e.blind && time.Since(swept) > g.e.cfg.Sweep { // nodes sweep their own
			swept = time.Now()
			if err := g.sweepLocks(swept.Add(-g.e.cfg.KeepLocks)); err != nil && g.e.ctx.Err() == nil {
				g.e.cfg.Log.Warn("slurm: old locks", "error", err)
			}
		}
		pause = g.pauseAfter(time.Since(began))
	}
}

// pauseAfter is the pause after a look that took so long. A controller that hangs does not make it
// long: what it costs is not what the look costs.
func (g *garbageCollector) pauseAfter(took time.Duration) time.Duration {
	return min(max(g.e.cfg.Tidy, thrift*took), 10*g.e.cfg.Tidy)
}

// endGhostJobs ends the jobs with this driver's tag that live in Slurm and are over here.
func (g *garbageCollector) endGhostJobs() error {
	var errs []error // what one user is refused, the others are not
	for _, user := range g.e.owners.sortedSubmitters() {
		ctx, cancel := g.e.controller.callContext()
		all, err := g.e.cfg.Site.Of(ctx, user)
		cancel()
		if err != nil {
			if errs = append(errs, err); fault.KindOf(err) == fault.Unavailable {
				break // nor would it answer for the others
			}
			continue
		}
		for i := range all {
			if j := &all[i]; !j.State.Final() && !j.Completing && g.isOver(j.Comment) {
				if err := g.endGhostJob(j); err != nil {
					errs = append(errs, err)
					break
				}
			}
		}
	}
	return errors.Join(errs...)
}

// endGhostJob ends a job that is over here, if the number is still its.
func (g *garbageCollector) endGhostJob(j *site.Job) error {
	ctx, cancel := g.e.controller.callContext()
	defer cancel()
	now, err := g.e.cfg.Site.Jobs(ctx, []uint32{j.ID})
	if err != nil {
		return err
	}
	for i := range now {
		if n := &now[i]; n.ID != j.ID || n.Comment != j.Comment || n.State.Final() || n.Completing {
			continue
		}
		g.e.cfg.Log.Info("slurm: a job that is over here lives in Slurm, and is ended", "job", j.ID, "comment", j.Comment)
		return g.e.owners.siteToChange(g.e.owners.jobUser(j)).End(ctx, j.ID)
	}
	return nil
}

// isOver reports whether a comment is the tag of an attempt of this driver's that has ended.
func (g *garbageCollector) isOver(comment string) bool {
	tag, _, _ := strings.Cut(comment, " ")
	rest, ours := strings.CutPrefix(tag, "cox:"+g.e.log.cluster+":")
	_, name, ok := strings.Cut(rest, ":")
	ref, known := refOf(name)
	if !ours || !ok || !known {
		return false
	}
	for _, p := range g.e.log.requeuedJobs() {
		if p.Comment == comment {
			return false // it waits for another attempt
		}
	}
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	if a := g.e.attempts[ref]; a != nil {
		return a.ended
	}
	return g.e.log.IsFenced(ref)
}

// refOf reads a Ref's String.
func refOf(text string) (ref engine.Ref, ok bool) {
	n, err := fmt.Sscanf(text, "%d.%d", &ref.Allocation, &ref.Attempt)
	return ref, err == nil && n == 2 && ref.String() == text
}

// mostSwept is how many files one sweep looks at: the next one goes on.
const mostSwept = 20_000

// sweepLocks removes the locks of attempts that were forgotten, and whose files are older than a
// time: until then Slurm might find their jobs again.
func (g *garbageCollector) sweepLocks(before time.Time) error {
	ctx, cancel := context.WithTimeout(g.e.ctx, 10*g.e.cfg.Patience)
	defer cancel()
	used := map[string]bool{} // before the files are listed: what is forgotten since is for the next time
	for _, p := range g.e.log.requeuedJobs() {
		used[p.Ref.String()] = true
	}
	g.e.mu.Lock()
	for _, a := range g.e.attempts {
		used[a.ref.String()], used[a.guard.Ref.String()] = true, true // its own, or of the one whose job it took over
	}
	g.e.mu.Unlock()
	names, err := g.e.cfg.Room.List(ctx)
	if err != nil {
		return err
	}
	slices.Sort(names) // those of an attempt stand together
	names = slices.DeleteFunc(names, func(n string) bool { return !g.isForgottenFile(n, used) })
	from, _ := slices.BinarySearch(names, g.sweptTo)
	names = slices.Concat(names[from:], names[:from])
	var errs []error // a directory that a user has put there is his, and the others' go
	for looked := 0; len(names) > 0 && looked < mostSwept; {
		part := names[:batchWithoutSplit(names, sweptAtOnce)]
		names, looked = names[len(part):], looked+len(part)
		if g.sweptTo = ""; len(names) > 0 {
			g.sweptTo = names[0]
		}
		marks, err := g.e.cfg.Room.Look(ctx, part)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		if old := filesOlderThan(marks, before); len(old) > 0 {
			errs = append(errs, g.e.cfg.Room.Drop(ctx, old))
		}
	}
	return errors.Join(errs...)
}

// sweptAtOnce is how many files are looked at with one call, about.
const sweptAtOnce = 500

// stemOf is the attempt of a file's name.
func stemOf(name string) string {
	stem, _, _ := strings.Cut(name, "-")
	return stem
}

// isForgottenFile reports whether a file is of an attempt of this driver's that nobody knows any more.
func (g *garbageCollector) isForgottenFile(name string, used map[string]bool) bool {
	stem, _, ok := strings.Cut(name, "-"+g.e.log.cluster)
	ref, known := refOf(stem)
	if !ok || !known || used[stem] {
		return false // another driver's, or needed
	}
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	return g.e.attempts[ref] == nil && g.e.log.IsFenced(ref)
}

// batchWithoutSplit is how many of some sorted names to take so that no attempt's are parted.
func batchWithoutSplit(names []string, n int) int {
	if len(names) <= n {
		return len(names)
	}
	for n < len(names) && stemOf(names[n]) == stemOf(names[n-1]) {
		n++
	}
	return n
}

// filesOlderThan are the files of attempts all of whose files are older than a time.
func filesOlderThan(marks []lockdir.Mark, before time.Time) (out []string) {
	young := map[string]bool{}
	for i := range marks {
		if m := &marks[i]; !m.Time.Before(before) {
			young[stemOf(m.Name)] = true
		}
	}
	for i := range marks {
		if m := &marks[i]; !young[stemOf(m.Name)] {
			out = append(out, m.Name)
		}
	}
	return out
}
