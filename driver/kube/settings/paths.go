package settings

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	amount "github.com/coxswain-sched/coxswain/model/resource"
)

// WorkDirRule says what becomes of a working directory that no path of the settings has, and
// that the job did not name: it is where it was submitted.
type WorkDirRule string

// The rules.
const (
	WorkDirRefused WorkDirRule = "refuse"
	WorkDirEmpty   WorkDirRule = "empty"  // an empty directory of the pod stands in its place
	WorkDirUpload  WorkDirRule = "upload" // it comes with the job, or the job is refused
)

// EffectiveWorkDir is the rule that holds: without any path each job would be refused.
func (t *Terms) EffectiveWorkDir() WorkDirRule {
	if len(t.Paths) == 0 {
		return cmp.Or(t.WorkDir, WorkDirEmpty)
	}
	return cmp.Or(t.WorkDir, WorkDirRefused)
}

// CheckJob refuses a job that the pool's pods are not for.
func (t *Terms) CheckJob(s *job.Spec) error {
	if err := t.checkNamespace(s); err != nil {
		return err
	}
	if s.Program.Kind == job.Pods { // the template says what is in its pods
		return nil
	}
	if err := t.CheckPodFields(s.Pod); err != nil {
		return err
	}
	return t.CheckPaths(s)
}

// everywhere are directories that images have, or that every pod has.
var everywhere = []string{"/tmp", "/var/tmp", "/dev", "/proc", podagent.WorkDir}

// hasPath reports whether a file or directory can be in the pods.
func (t *Terms) hasPath(name string) bool {
	_, ok := t.PathOf(name)
	return ok || slices.ContainsFunc(everywhere, func(dir string) bool { return isWithinDir(name, dir) })
}

// ForJob are the terms for a job: the directory that came with it is in the pods.
func (t *Terms) ForJob(s *job.Spec) *Terms {
	if s.Upload == nil {
		return t
	}
	more := *t
	more.Paths = append(slices.Clone(t.Paths), Path{Prefix: s.Upload.Dir, Volume: Volume{Kind: Empty, Size: t.UploadRoomOf(s)}})
	return &more
}

// DefaultUploadRoom is what the directory that came with a job has in each pod, in bytes.
const DefaultUploadRoom = 10 << 30

// UploadRoomOf is what the directory that came with a job may have in each pod, in bytes: with what a pod
// has of its node's disk by what the job asks for, which is for all that it writes there.
func (t *Terms) UploadRoomOf(s *job.Spec) int64 {
	room := cmp.Or(t.UploadRoom, DefaultUploadRoom)
	for i := range s.Groups {
		g := &s.Groups[i]
		n, share := amount.Amount(max(render.TasksPerNode(g), 1)), amount.Amount(0)
		if s.PodPerTask() { // what does not divide is refused
			share = (g.PerNode.Disk / n).Add(g.PerTask.Disk)
		} else {
			share = g.PerNode.Disk.Add(g.PerTask.Disk.Mul(int(n)))
		}
		room = max(room, int64(share))
	}
	return room
}

// shut are directories of images, and of ours, in whose place no directory of a job's can stand.
var shut = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr", "/etc", "/dev", "/proc", "/sys", "/run", "/boot", podagent.Dir, podagent.PlanDir}

// checkUpload refuses a directory that came with a job and cannot stand in the pods.
func (t *Terms) checkUpload(u *job.Upload) error {
	refuse := func(mend, format string, args ...any) error {
		return engine.About(fault.New(fault.Invalid, format, args...).Advise("%s", mend), "upload")
	}
	if t.EffectiveWorkDir() != WorkDirUpload {
		return refuse("leave --upload out; or have an administrator set workdir to upload", "the pool takes no working directory that comes with a job")
	}
	if p, ok := t.PathOf(u.Dir); ok {
		return refuse("leave --upload out: the files are there", "the pods have %s already, by %s of the pool's paths", u.Dir, p.Prefix)
	}
	for _, p := range t.Paths {
		if isWithinDir(p.Prefix, u.Dir) {
			return refuse("submit from a directory that has none of the pool's paths in it", "%s of the pool's paths is in %s", p.Prefix, u.Dir)
		}
	}
	for _, dir := range shut {
		if isWithinDir(u.Dir, dir) || isWithinDir(dir, u.Dir) {
			return refuse("submit from another directory", "%s cannot stand in the pods: their images have %s", u.Dir, dir)
		}
	}
	return nil
}

// CheckPaths refuses a job whose working directory, or a file of whose input and output, is nowhere
// in the pods.
func (t *Terms) CheckPaths(s *job.Spec) error {
	if s.Upload != nil {
		if err := t.checkUpload(s.Upload); err != nil {
			return err
		}
		t = t.ForJob(s)
	}
	dir := path.Clean(s.WorkDir)
	_, given := s.Source.Given["chdir"]
	named := s.Source.Submit != "" && (given || dir != path.Clean(s.Source.Submit))
	here, rule := t.hasPath(dir), t.EffectiveWorkDir()
	if _, mounted := t.PathOf(dir); rule == WorkDirUpload && !named && !mounted && !slices.Contains(everywhere, dir) {
		here = false // one that was made below /tmp is not there
	}
	switch {
	case !path.IsAbs(dir), here:
	case rule == WorkDirUpload:
		return engine.About(fault.New(fault.Invalid, "the working directory %s is nowhere in the pods: %s", dir, t.knownPaths()).
			Advise("have it sent with the job, by cox submit --upload; or name one that the pods have by --chdir"), "chdir")
	case named:
		return engine.About(fault.New(fault.Invalid, "the working directory %s is nowhere in the pods: %s", dir, t.knownPaths()).
			Advise("name one that is, or have an administrator add its volume to the pool's paths"), "chdir")
	case rule == WorkDirRefused:
		return engine.About(fault.New(fault.Invalid, "the working directory %s is nowhere in the pods: %s", dir, t.knownPaths()).
			Advise("submit from a directory that is, or name one by --chdir; or have an administrator add its volume to the pool's paths, or set workdir to empty"), "chdir")
	}
	for _, f := range []struct{ option, name string }{{"output", s.Output.Stdout}, {"error", s.Output.Stderr}, {"input", s.Output.Stdin}} {
		if err := t.reachFile(f.option, f.name, dir, here); err != nil {
			return err
		}
	}
	return nil
}

// reachFile is reach for one file that a job names. here says that the job's own directory is
// in the pods; an empty one stands in its place if not.
func (t *Terms) reachFile(option, name, dir string, here bool) error {
	if name == "" {
		return nil
	}
	full := name
	if !path.IsAbs(name) {
		full = path.Join(dir, name)
	}
	refuse := func(mend, format string, args ...any) error {
		return engine.About(fault.New(fault.Invalid, format, args...).Advise("%s", mend), option)
	}
	full = path.Clean(full)
	p, ok := t.PathOf(full)
	switch {
	case ok && p.Volume.ReadOnly && option != "input":
		return refuse("name a file elsewhere; cox logs shows the output wherever it is", "%s cannot be written: %s is read-only in the pods", full, p.Prefix)
	case t.hasPath(full), !here && isWithinDir(full, dir) && option != "input":
		return nil
	case !here && isWithinDir(full, dir):
		return refuse("leave it out, or submit from a directory that the pods have", "%s is nowhere in the pods: an empty directory stands in the place of %s", full, dir)
	}
	return refuse("name a file in a directory that is; cox logs shows the output wherever it is", "%s is nowhere in the pods: %s", full, t.knownPaths())
}

// knownPaths are the directories of volumes, in words.
func (t *Terms) knownPaths() string {
	if len(t.Paths) == 0 {
		return "the pool has no volumes"
	}
	var all []string
	for _, p := range t.Paths {
		all = append(all, p.Prefix)
	}
	slices.Sort(all)
	return "the pool has " + strings.Join(all, ", ")
}
