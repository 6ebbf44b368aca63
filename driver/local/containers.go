package local

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/podscript"
	"github.com/coxswain-sched/coxswain/model/containeropt"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
)

// containerRuntime is the runtime of the engine's containers, which is looked for anew as long as
// there is none: an administrator may install one at any time.
type containerRuntime struct {
	mu    sync.Mutex
	found *container.Settings
}

// findRuntime returns the runtime; the error says what to install.
func (e *Engine) findRuntime() (*container.Settings, error) {
	r := &e.runtime
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found != nil {
		return r.found, nil
	}
	if err := e.checkContainers(); err != nil {
		return nil, err
	}
	found, err := e.cfg.Containers.Find()
	if err != nil {
		return nil, err
	}
	found.Cache = filepath.Join(e.cfg.Root, "images")
	r.found = found
	return found, nil
}

// probeRuntime asks the runtime, once, how it keeps processes together.
func (e *Engine) probeRuntime(ctx context.Context, set *container.Settings) error {
	e.runtime.mu.Lock()
	defer e.runtime.mu.Unlock()
	return set.Probe(ctx)
}

// checkContainers reports why this engine can have no containers whatever is installed.
func (e *Engine) checkContainers() error {
	if e.cfg.Naming == NamedByUser {
		return fault.New(fault.Unsupported, "virtual nodes of a server without root's rights are in a user namespace, in which no container runtime works").
			Advise("use cox run --by-address, or start the server with room.by_address: true or as root (cox up)")
	}
	if isDynamic(e.coxPath()) {
		return fault.New(fault.Unsupported, "this cox needs the machine's C library, and images may not have it").
			Advise("use the cox of a release, or build it with CGO_ENABLED=0 (make build)")
	}
	return nil
}

// isDynamic reports whether a program needs an interpreter of the system. One that cannot be read
// is left to whoever starts it.
func isDynamic(name string) bool {
	f, err := elf.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	return slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}

// admitContainer refuses a job whose container can never run here.
func (e *Engine) admitContainer(s *job.Spec) error {
	about := func(err error, fields ...string) error { return engine.About(err, fields...) }
	for _, o := range containeropt.Options {
		if _, given := s.Source.Given[o.Name]; given && o.Refused != "" {
			return about(fault.New(fault.Unsupported, "--%s is refused: %s", o.Name, o.Refused), o.Name)
		}
	}
	if s.Image == "" {
		if s.Container.IsZero() {
			return nil
		}
		return about(fault.New(fault.Invalid, "the options of a container need an image").Advise("add image, or --container-image=NAME"), "container_options", "container-mounts")
	}
	if err := containeropt.CheckImage(s.Image); err != nil {
		return about(fault.New(fault.Invalid, "image: %w", err), "image", "container-image")
	}
	set, err := e.findRuntime()
	if err != nil {
		return about(fault.New(fault.KindOf(err), "image: %.100q: %w", s.Image, err).Advise("%s", fault.Remedy(err)), "image", "container-image")
	}
	asked := container.Spec{Image: s.Image}
	if s.Container != nil {
		asked.Mounts, asked.RemapRoot = s.Container.Mounts, s.Container.RemapRoot != nil && *s.Container.RemapRoot
	}
	if err := set.CheckSpec(&asked); err != nil {
		return about(err, "container_options", "container-image", "container-mounts", "container-remap-root")
	}
	for i := range asked.Mounts {
		m := &asked.Mounts[i]
		if err := containeropt.CheckPaths(m); err != nil {
			return about(fault.New(fault.Invalid, "container-mounts: %w", err).Advise("name it without them, for example by a symbolic link"), "container_options", "container-mounts")
		}
		source := m.Source
		if !filepath.IsAbs(source) {
			source = filepath.Join(s.WorkDir, source)
		}
		err := set.CheckMount(m, filepath.Clean(source))
		if real, e := filepath.EvalSymlinks(source); err != nil && e == nil && set.CheckMount(m, real) == nil {
			err = nil // the node looks again, as the job's user
		}
		if err != nil {
			return about(err, "container_options", "container-mounts")
		}
	}
	return nil
}

// planContainers completes a launch with the runtime of its containers. Without one, steps that ask
// for a container say so. pods: its steps are the pods of a manifest, which all run in containers.
func (e *Engine) planContainers(ctx context.Context, file *attempt.Launch, pods bool) error {
	image := file.Job.Spec.Image
	set, err := e.findRuntime()
	if err != nil {
		if image != "" {
			return fault.New(fault.KindOf(err), "image %s: %w", image, err).Advise("%s", fault.Remedy(err))
		}
		return nil
	}
	if image != "" || pods {
		if err := e.probeRuntime(ctx, set); err != nil {
			what := "image " + image
			if pods {
				what = podsNeed
			}
			return fault.New(fault.KindOf(err), "%s: %w", what, err).Advise("%s", fault.Remedy(err))
		}
	}
	own := *set
	file.Containers = &own
	at := step.Place{Shown: e.cfg.Shown}
	for _, n := range file.Nodes {
		for _, d := range fleet.ClaimedDevices(n, file.Claims) {
			if file.GPUs == nil {
				file.GPUs = map[string][]container.GPU{}
			}
			file.GPUs[n.Name] = append(file.GPUs[n.Name], container.GPU{Shown: at.ShownDevice(n, d), UUID: d.UUID})
		}
	}
	return e.makeImageCache(file)
}

// makeImageCache makes the directory of image files of the attempt's user, for runtimes that have
// no store of their own.
func (e *Engine) makeImageCache(file *attempt.Launch) error {
	if k := file.Containers.Runtime; k != container.Apptainer && k != container.Enroot {
		return nil
	}
	if err := os.MkdirAll(file.Containers.Cache, 0o711); err != nil {
		return err
	}
	uid, gid := os.Getuid(), os.Getgid()
	if file.User != nil {
		uid, gid = int(file.User.UID), int(file.User.GID)
	}
	file.Containers.Cache = filepath.Join(file.Containers.Cache, fmt.Sprint(uid))
	err := os.Mkdir(file.Containers.Cache, 0o700)
	if err == nil {
		err = os.Lchown(file.Containers.Cache, uid, gid)
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return err
}

// userVariables are the variables of a user's identity.
func userVariables(uid uint32) []string {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return []string{"HOME=/"}
	}
	return []string{"HOME=" + u.HomeDir, "USER=" + u.Username}
}

// pullLimit is how much longer a launch may take because of its image.
func pullLimit(l *attempt.Launch) time.Duration {
	if l.Containers == nil || l.Job.Spec.Image == "" {
		return 0
	}
	return l.Containers.PullLimit()
}

// removeContainers removes containers that a dead supervisor left. Nothing of them lives.
func (p *nodeAttempt) removeContainers(ctx context.Context) {
	text, err := os.ReadFile(p.home.Containers())
	set := p.gang.launch.Containers
	if err != nil || set == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, c := range set.New().Remove(strings.Fields(string(text))) {
		cmd := exec.CommandContext(ctx, c.Words[0], c.Words[1:]...)
		cmd.Dir = "/"
		cmd.Env = append(os.Environ(), c.Env...)
		if u := p.gang.launch.User; u != nil { // who must not see the server's environment
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}}
			cmd.Env = slices.Concat([]string{"PATH=" + os.Getenv("PATH")}, userVariables(u.UID), c.Env)
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			p.gang.e.cfg.Log.Warn("remove containers of a dead supervisor", "attempt", p.gang.launch.Ref, "err", err, "said", strings.TrimSpace(string(out)))
		}
	}
	if err := os.Remove(p.home.Containers()); err != nil {
		p.gang.e.cfg.Log.Warn("remove containers of a dead supervisor", "err", err)
	}
}

// asBatch is a launch of a manifest's pods as one of the batch script that runs them; any other launch is
// returned as it is.
func asBatch(l *engine.Launch) (*engine.Launch, error) {
	if l.Job == nil || l.Job.Spec == nil || l.Job.Spec.Program.Kind != job.Pods {
		return l, nil
	}
	script, err := renderPods(l.Job, l.Script)
	if err != nil {
		return nil, err
	}
	spec, of, out := *l.Job.Spec, *l.Job, *l
	spec.Program.Kind, spec.Program.Args = job.Batch, nil
	of.Spec, out.Job, out.Script = &spec, &of, script
	return &out, nil
}

func renderPods(j *job.Job, script []byte) ([]byte, error) {
	set, err := podspec.ForJob(j, script)
	if err != nil {
		return nil, err
	}
	return podscript.Render(set, j.Spec, podscript.Local())
}

// podsNeed says why pods need a runtime of containers.
const podsNeed = "the pods of a manifest run in containers"

// admitPods refuses pods that the machine cannot run as they are.
func (e *Engine) admitPods(d *engine.JobDraft) error {
	if d.Spec.Program.Kind != job.Pods {
		return nil
	}
	if _, err := renderPods(&job.Job{Spec: d.Spec}, d.Script); err != nil {
		return err
	}
	if _, err := e.findRuntime(); err != nil {
		return fault.New(fault.KindOf(err), "%s: %w", podsNeed, err).Advise("%s", fault.Remedy(err))
	}
	return nil
}
