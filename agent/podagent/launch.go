package podagent

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/env"
	"github.com/coxswain-sched/coxswain/agent/supervise"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// launchOrder is what the supervisor of this member is told.
func (p *Plan) launchOrder(at Place) (*attempt.Launch, error) {
	j, spec := *p.Job, *p.Job.Spec
	j.Spec = &spec
	spec.Program.Client = ""             // its socket is of another machine
	spec.Image, spec.Container = "", nil // the pod is its container
	j.Attempt = p.Ref.Attempt
	l := &attempt.Launch{
		Ref: p.Ref, Digest: p.Ref.String(), Job: &j, Claims: p.Claims, Nodes: p.fleetNodes(nil), Script: p.Script,
		Env: programEnv(p.Env, os.Environ()), Grace: p.Grace, Naming: attempt.NamedByAddr, Root: at.rootDir(),
		Orphan: at.Lost, Tether: at.Lost, Slack: at.silenceLimit(), Umask: attempt.Umask(p.Env), Apart: true,
		Own: env.OfContainer(os.Environ()),
	}
	var err error
	if l.Secrets, err = p.takeSecrets(at); err != nil {
		return nil, err
	}
	if p.WorkDir == "" {
		return l, nil
	}
	switch {
	case dirMissing(spec.WorkDir) && p.Strict:
		return nil, fault.New(fault.Invalid, "the working directory %s is not in the pod: the volume there does not have it, or it is not %s's to enter", spec.WorkDir, cmp.Or(spec.Owner.User, "the pod's user")).
			Advise("make it on the volume, or name another by --chdir")
	case dirMissing(spec.WorkDir):
		spec.WorkDir = p.WorkDir
	}
	p.redirectOutputs(l)
	if err := os.MkdirAll(p.WorkDir, 0o755); err != nil && spec.WorkDir == p.WorkDir {
		return nil, fault.New(fault.Invalid, "the working directory %s is not in the pod, nor can %s be made: %w", p.Job.Spec.WorkDir, p.WorkDir, err).
			Advise("mount the volume that has %s", p.Job.Spec.WorkDir)
	}
	return l, nil
}

// redirectOutputs gives output files whose directory is not in the pod their place in WorkDir. A
// file that nobody named goes there also where the job's directory cannot be written to. Where
// the plan is strict, a file that somebody named stays where it is, and is found missing.
func (p *Plan) redirectOutputs(l *attempt.Launch) {
	spec := l.Job.Spec
	_, out, errs := supervise.Files(l)
	apart := errs != out
	inPod := func(name, pattern string) string {
		dir := filepath.Dir(name)
		switch {
		case name == "/dev/stderr":
			return "/dev/stdout" // a supervisor's own stream is the container's log
		case dirMissing(dir) && !p.Strict, pattern == "" && unix.Access(dir, unix.W_OK|unix.X_OK) != nil:
			return strings.ReplaceAll(filepath.Join(p.WorkDir, filepath.Base(name)), "%", "%%")
		}
		return pattern
	}
	spec.Output.Stdout = inPod(out, spec.Output.Stdout)
	if apart {
		spec.Output.Stderr = inPod(errs, spec.Output.Stderr)
	}
}

// fleetNodes are the members as an allocation has them. address is what is known of member i's
// address where the driver named none.
func (p *Plan) fleetNodes(address func(i int) string) []fleet.Node {
	out := make([]fleet.Node, len(p.Members))
	for i, m := range p.Members {
		out[i] = m.Node
		out[i].Name, out[i].Virtual = m.Name, false
		if address != nil {
			out[i].Address = cmp.Or(out[i].Address, address(i))
		}
	}
	return out
}

// allocText is what processes inside may know, on a member that has its files below dir.
func (p *Plan) allocText(dir string, nodes []fleet.Node, l *attempt.Launch, started time.Time) ([]byte, error) {
	j, spec := *p.Job, *p.Job.Spec
	j.Spec = &spec
	j.Attempt, spec.WorkDir = p.Ref.Attempt, l.Job.Spec.WorkDir
	root := rootOf(dir)
	a, err := step.NewAlloc(&j, p.Claims, nodes, step.Place{
		Dir: slotOf(root, 0).Dir, Bin: Place{Dir: dir}.linksDir(),
		Socket: func(i int) string { return slotOf(root, i).StepSocket() },
	}, started)
	if err != nil {
		return nil, err
	}
	a.Checkpoint, a.Restore = l.Checkpoint, l.Restore
	if s := spec.Serve; s != nil { // the driver has given each a number
		numbers := make([]int, len(s.Ports))
		for i := range s.Ports {
			numbers[i] = s.Ports[i].Number
		}
		a.Ports = s.Variables(numbers)
	}
	return a.Text()
}

// dirMissing reports whether a directory is not in the pod for its user: it does not exist,
// or is below one of the image's that he may not enter.
func dirMissing(dir string) bool {
	_, err := os.Stat(filepath.Join(dir) + "/.")
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// programEnv is what the program starts from: what was submitted, and over it what the
// image and the pod set, since a PATH of another machine leads nowhere here. The submitted
// home stays where the pod has it.
func programEnv(submitted, own []string) []string {
	out := slices.Clone(submitted)
	home := ""
	for _, v := range submitted {
		if dir, ok := strings.CutPrefix(v, "HOME="); ok && !dirMissing(dir) {
			home = dir
		}
	}
	for _, v := range own {
		name, _, ok := strings.Cut(v, "=")
		if !ok || strings.HasPrefix(name, "COX_POD_") || name == "HOME" && home != "" || name == "HOSTNAME" || name == "PWD" {
			continue
		}
		out = slices.DeleteFunc(out, func(o string) bool { return strings.HasPrefix(o, name+"=") })
		out = append(out, v)
	}
	return out
}

// stopCommand is the command that ends a member's part.
func stopCommand(p engine.Phase, c attempt.Command) attempt.Command {
	c.Op = attempt.OpStop
	if p < engine.Running {
		c.Op = attempt.OpAbort
	}
	return c
}
