// Package preflight looks at a Slurm cluster before a pool of it is used, and says what it found, what
// is missing, and what to do about that.
//
// It hands no job over: a job that would be is tried (sbatch --test-only) where that can be done. It
// creates one file in the directory of locks, and removes it again. Whether the nodes see the
// same locks, only a first job shows.
package preflight

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	"github.com/coxswain-sched/coxswain/driver/slurm/sbatchargs"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Config says which pool is checked. All but Options must be given.
type Config struct {
	Pool    string
	Site    site.Site         // the way into the cluster
	Locks   lockdir.Directory // the directory of locks
	OnNodes bool              // Locks is on each node, where the server cannot look
	Options []string          // sbatch's options for every job of the pool

	Containers sbatchargs.ContainerRuntime // how the nodes run images; empty: by pyxis

	Privileged  bool // the pool says that the way in may change everybody's jobs
	Suspends    bool // jobs can be suspended
	RefusesRoot bool // no job of root is handed over

	Identity func(context.Context) ([]engine.Finding, error) // says whose the jobs will be

	Patience time.Duration // for one answer of the cluster
	Longest  time.Duration // between two polls of all jobs
	Log      *slog.Logger
}

// look is one check of a cluster.
type look struct {
	Config
	found []engine.Finding
	way   *site.Look
	me    *site.Person // nil: not known
	is    site.Cluster
}

func (l *look) addFinding(what string, s engine.FindingState, mend, format string, args ...any) {
	l.found = append(l.found, engine.Finding{What: what, State: s, Text: fmt.Sprintf(format, args...), Mend: mend})
}

// addFailure adds the finding that something could not be looked at.
func (l *look) addFailure(what string, err error) {
	l.addFinding(what, engine.Missing, fault.Remedy(err), "%v", err)
}

// Run looks at the cluster, at the rights that the pool has there, and at the directory of locks. If it
// fails, it returns the findings so far too.
func Run(ctx context.Context, c Config) ([]engine.Finding, error) {
	l := &look{Config: c}
	var err error
	if l.is, err = c.Site.Cluster(ctx); err != nil {
		return nil, err
	}
	if k, ok := c.Site.(site.Looker); ok {
		if l.way, err = k.Look(ctx); err != nil {
			return nil, err
		}
		l.addFinding("way in", engine.Found, "", "%s", l.way.Way)
	} else {
		l.way = &site.Look{}
	}
	for _, f := range []func(context.Context){
		l.checkVersion, l.checkIdentity, l.checkRights, l.checkClusterParts, l.checkDevices, l.checkTopology, l.checkAccounting, l.checkProcessTracking, l.checkJobAge, l.checkClock, l.checkToken, l.checkContainers, l.checkLockDirectory,
	} {
		if f(ctx); ctx.Err() != nil {
			return l.found, fault.New(fault.Unavailable, "the look was not ended: %w", context.Cause(ctx))
		}
	}
	return l.found, nil
}

// tested are the versions of Slurm that the driver is tested with.
var tested = []string{"22.05", "24.11"}

func (l *look) checkVersion(context.Context) {
	version, _, _ := strings.Cut(strings.TrimPrefix(l.is.Version, "slurm "), "-")
	major := version
	if parts := strings.Split(version, "."); len(parts) > 2 {
		major = parts[0] + "." + parts[1]
	}
	switch {
	case slices.Contains(tested, major):
		l.addFinding("version", engine.Found, "", "Slurm %s, which is supported", version)
	case major < tested[0]:
		l.addFinding("version", engine.Missing, "upgrade Slurm to "+tested[0]+" or later", "Slurm %s is older than %s, the first that is supported", version, tested[0])
	default:
		l.addFinding("version", engine.Warning, "cox verify POOL shows whether it works", "Slurm %s was not tried; %s were", version, strings.Join(tested, " and "))
	}
	if l.way.Lacks != "" {
		l.addFinding("way in", engine.Warning, "give slurmrestd Slurm's commands beside it: --local or --ssh LOGIN", "slurmrestd alone cannot tell or do: %s", l.way.Lacks)
	}
}

func (l *look) checkIdentity(ctx context.Context) {
	found, err := l.Identity(ctx)
	if err != nil {
		l.addFailure("identity", err)
		return
	}
	l.found = append(l.found, found...)
	if t, ok := l.Site.(site.Teller); ok {
		if me, err := t.Me(ctx); err == nil {
			l.me = &me
		}
	}
}

// checkRights are to submit, and to suspend.
func (l *look) checkRights(ctx context.Context) {
	if t, ok := l.Site.(site.Trier); ok && !(l.me != nil && l.me.UID == 0 && l.RefusesRoot) {
		err := t.Try(ctx, &site.Submission{
			Script: []byte("#!/bin/sh\n"), Dir: "/", Env: []string{"PATH=/usr/bin:/bin"},
			Options: append(slices.Clone(l.Options), "--job-name=cox-check", "--ntasks=1", "--mem=1M", "--time=1", "--output=/dev/null"),
		})
		switch {
		case errors.Is(err, errors.ErrUnsupported) || fault.KindOf(err) == fault.Unsupported:
		case err != nil:
			l.addFinding("rights", engine.Missing, "sacctmgr show associations user=NAME and scontrol show partition say what may be submitted by whom", "a job would be refused: %v", err)
		default:
			l.addFinding("rights", engine.Found, "", "a job would be taken")
		}
	}
	switch {
	case l.me == nil:
	case l.me.Operator && l.Suspends:
		l.addFinding("rights", engine.Found, "", "%s may change and suspend everybody's jobs", l.me.Name)
	case l.me.Operator && !l.Privileged:
		l.addFinding("rights", engine.Warning, "--set privileged=true", "%s may suspend jobs, and the pool does not", l.me.Name)
	case !l.me.Operator && l.Privileged:
		l.addFinding("rights", engine.Missing, "sacctmgr modify user "+l.me.Name+" set adminlevel=Operator, or --set privileged=false", "%s is no operator of Slurm: it may neither suspend jobs nor change those of others", l.me.Name)
	case !l.me.Operator:
		l.addFinding("rights", engine.Warning, "sacctmgr modify user "+l.me.Name+" set adminlevel=Operator, and --set privileged=true", "%s is no operator of Slurm: jobs are not suspended", l.me.Name)
	}
	if l.me != nil && !l.me.Operator {
		l.addFinding("hand-over", engine.Found, "", "none: %s is no operator of Slurm and cannot drain nodes, so machines of this pool cannot be handed over", l.me.Name)
	}
}

// modest is a difference of clocks that does no harm.
const modest = 2 * time.Second

func (l *look) checkClock(context.Context) {
	switch d := l.way.Ahead; {
	case !l.way.Clock:
	case d.Abs() <= modest:
		l.addFinding("clock", engine.Found, "", "slurmctld's is ours")
	default:
		word := "ahead of"
		if d < 0 {
			word = "behind"
		}
		l.addFinding("clock", engine.Warning, "chronyc makestep on the machine whose clock is wrong", "slurmctld's is %s %s ours: which beginning a record speaks of can be uncertain, and tokens run out at other times", d.Abs(), word)
	}
}

func (l *look) checkToken(context.Context) {
	t := l.way.Token
	switch {
	case t == nil:
	case t.Life == 0 && t.Left == 0:
		l.addFinding("token", engine.Found, "", "from %s, and it does not say when it runs out", t.From)
	case !t.Renewed:
		l.addFinding("token", engine.Warning, "token_command or token_key has tokens renewed", "from %s; it runs out in %s, and nobody renews it", t.From, t.Left.Round(time.Second))
	case strings.HasPrefix(t.From, "file "):
		l.addFinding("token", engine.Found, "", "from %s, which has to be written anew within %s", t.From, t.Left.Round(time.Second))
	default:
		l.addFinding("token", engine.Found, "", "from %s, good for %s, and renewed before it runs out", t.From, max(t.Life, t.Left).Round(time.Second))
	}
}

// checkLockDirectory tries the directory as the driver uses it.
func (l *look) checkLockDirectory(ctx context.Context) {
	if l.OnNodes {
		l.addFinding("locks", engine.Warning, "--shared DIR in the place of locks=node, where there is a directory that all nodes share", "in %s on each node: the server cannot look there. An end that Slurm's records leave open waits until its nodes have answered; a beginning is seen up to %s late; what Slurm puts back is a new job; a node that loses the directory while it restarts protects nothing that began before", l.Locks.Dir(), l.Longest)
		return
	}
	r := l.Locks
	dir, name := r.Dir(), "check-"+rand.Text()[:16]
	mend := "mkdir -p " + dir + " && chmod 1733 " + dir + ", on a file system that all nodes share; or --shared another directory"
	missing := func(format string, args ...any) {
		l.addFinding("locks", engine.Missing, mend, "%s: %s", dir, fmt.Sprintf(format, args...))
	}
	mine, _, err := r.Take(ctx, name, "check")
	if err != nil {
		missing("%v", err)
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Patience)
		defer cancel()
		if err := r.Remove(ctx, name); err != nil {
			l.Log.Warn("slurm: a file of a look is left", "directory", dir, "file", name, "error", err)
		}
	}()
	again, held, err := r.Take(ctx, name, "again")
	switch {
	case err != nil:
		missing("%v", err)
	case !mine || again || held != "check":
		missing("a file was created twice: this file system does not create files exclusively, and no job could be kept from beginning twice")
	default:
		l.addFinding("locks", engine.Found, "", "%s: files are created there, and exclusively; that the nodes have it too, cox verify %s shows", dir, l.Pool)
	}
}

// checkContainers is how images run: whether srun has the options of pyxis. What the nodes have
// installed cannot be seen from where jobs are handed over.
func (l *look) checkContainers(ctx context.Context) {
	k, ok := l.Site.(site.OptionFinder)
	if !ok {
		return
	}
	has, err := k.HasSrunOption(ctx, "--container-image")
	const install = "install pyxis and enroot on the nodes (plugstack.conf), or podman or apptainer, and --set container_runtime=podman"
	switch r := l.Containers; {
	case errors.Is(err, errors.ErrUnsupported):
	case err != nil:
		l.addFailure("containers", err)
	case r == sbatchargs.NoContainers:
		l.addFinding("containers", engine.Found, "", "jobs that name an image are refused (container_runtime: none)")
	case r != "" && r != sbatchargs.Pyxis:
		l.addFinding("containers", engine.Found, "", "srun starts %s for jobs that name an image (container_runtime); it has to be on every node", r)
	case has:
		l.addFinding("containers", engine.Found, "", "srun has pyxis (--container-image)")
	case r == sbatchargs.Pyxis:
		l.addFinding("containers", engine.Missing, install, "container_runtime is pyxis, and srun has no --container-image")
	default:
		l.addFinding("containers", engine.Warning, install, "srun has no pyxis (--container-image): jobs that name an image fail")
	}
}
