package env

import (
	"fmt"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coxswain-sched/coxswain/agent/deviceenv"
	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/pmix"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/model/rlimit"
)

// Batch is the environment of the batch script on a node (0: the first): what
// the submission exports of base, Slurm's variables for the allocation, and what
// the submission sets last. base is not changed. SLURM_TASK_PID is not in it: the
// process adds its own number (barrier.Main does).
func Batch(a *step.Alloc, base []string, node int) []string {
	s := newScope(a, node)
	env := newEnviron(FilterExport(base, a.Export))
	env.removeIf(func(name string) bool { return isStale(name) || strings.HasPrefix(name, rlimit.Prefix) })
	if a.Export != "" && a.Export != "ALL" {
		env.set("SLURM_EXPORT_ENV", a.Export)
	}
	setLoginDefaults(env, a)
	env.fillVariables(s, inBatch)
	env.setDevices(s.visibleDevices(), a.Nodes[node].Vendors)
	env.set("ENVIRONMENT", "BATCH")
	env.set("HOSTNAME", a.Nodes[node].Name)
	if !env.hasName("TMPDIR") {
		env.set("TMPDIR", "/tmp")
	}
	if a.Bin != "" {
		env.set("PATH", a.Bin+":"+env.get("PATH"))
	}
	env.set(step.AllocVariable, a.File())
	env.setAll(a.Set)
	env.setAll(a.Ports)
	return env.pairs()
}

// setAll sets NAME=VALUE.
func (e *environ) setAll(pairs []string) {
	for _, v := range pairs {
		name, value, _ := strings.Cut(v, "=")
		e.set(name, value)
	}
}

// Allocation is the environment of a process outside of an allocation that uses it: of an
// srun or salloc that made it. base is its own, and not changed.
func Allocation(a *step.Alloc, base []string) []string {
	own := *a
	own.Export, own.Set = "", nil // these are about what the job runs itself
	env := newEnviron(Batch(&own, base, 0))
	was := newEnviron(base)
	for _, name := range []string{"ENVIRONMENT", "HOSTNAME", "TMPDIR"} { // this process is no batch script, and not on the node
		if value := was.get(name); value != "" {
			env.set(name, value)
		} else {
			env.removeIf(func(n string) bool { return n == name })
		}
	}
	return env.pairs()
}

// Exported is what a submission exports of its environment by --export, for a job that gets
// Slurm's variables from Slurm itself: without those of an outer job.
func Exported(base []string, export string) []string {
	env := letThrough(base, export, 0)
	env.removeIf(func(name string) bool { return name == "" || isStale(name) })
	if export != "" && export != "ALL" {
		env.set("SLURM_EXPORT_ENV", export)
	}
	return env.pairs()
}

// Task is the environment of one task of a step: srun's, as it was exported,
// and Slurm's variables for the step and the task. Own is node.Config's.
func Task(a *step.Alloc, prep *wire.Preparation, part, local int, own []string) []string {
	s := newStepScope(a, prep, part, local)
	env := newEnviron(prep.Env)
	env.removeIf(setPerTask)
	env.inContainer(own)
	env.fillVariables(s, inTask)
	env.setDevices(s.visibleDevices(), a.Nodes[s.node].Vendors)
	env.set("HOSTNAME", a.Nodes[s.node].Name)
	if !env.hasName("TMPDIR") {
		env.set("TMPDIR", "/tmp")
	}
	env.set(step.AllocVariable, a.File())
	env.setAll(s.program.Set)
	env.setAll(a.Ports)
	return env.pairs()
}

// FilterExport is what --export lets through of an environment: ALL or nothing said,
// all of it; NIL and NONE, Slurm's own variables; a list, these, those named, and
// those set by it. Slurm's own variables always pass.
func FilterExport(base []string, export string) []string {
	return letThrough(base, export, 64).pairs()
}

// letThrough is exported, as an environment with room for so many more.
func letThrough(base []string, export string, more int) *environ {
	words := strings.Split(export, ",")
	if export == "" {
		words[0] = "ALL"
	}
	env := &environ{names: make([]string, 0, len(base)+more), values: make(map[string]string, len(base)+more)}
	all := slices.Contains(words, "ALL")
	for _, v := range base {
		name, value, _ := strings.Cut(v, "=")
		if all || alwaysExported(name) || slices.Contains(words, name) {
			env.set(name, value)
		}
	}
	for _, w := range words {
		if name, value, ok := strings.Cut(w, "="); ok {
			env.set(name, value)
		}
	}
	return env
}

// alwaysExported reports whether a variable is Slurm's or Coxswain's own and passes every
// --export.
func alwaysExported(name string) bool {
	return strings.HasPrefix(name, "SLURM_") || strings.HasPrefix(name, "SPANK_") || strings.HasPrefix(name, "SLURMD_") ||
		name == step.AllocVariable
}

// setLoginDefaults gives a job what a login would give it, where its submission exports nothing
// of that kind.
func setLoginDefaults(env *environ, a *step.Alloc) {
	fallback := func(name, value string) {
		if value != "" && !env.hasName(name) {
			env.set(name, value)
		}
	}
	fallback("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	if a.Export == "NIL" {
		return
	}
	name := a.Owner.User
	if u, err := user.LookupId(strconv.FormatUint(uint64(a.Owner.UID), 10)); err == nil {
		name = u.Username
		fallback("HOME", u.HomeDir)
	}
	fallback("USER", name)
	fallback("LOGNAME", name)
	fallback("SHELL", "/bin/sh")
}

// Override sets variables of an environment: NAME=VALUE.
func Override(base, set []string) []string {
	env := newEnviron(base)
	for _, v := range set {
		name, value, _ := strings.Cut(v, "=")
		env.set(name, value)
	}
	return env.pairs()
}

// environ is an environment under construction, in the order of the first setting.
type environ struct {
	names  []string
	values map[string]string
}

// newEnviron starts from NAME=VALUE pairs; the last of a name counts.
func newEnviron(base []string) *environ {
	e := &environ{values: make(map[string]string, len(base)+64)}
	for _, v := range base {
		if name, value, ok := strings.Cut(v, "="); ok && name != "" {
			e.set(name, value)
		}
	}
	return e
}

func (e *environ) set(name, value string) {
	if !e.hasName(name) {
		e.names = append(e.names, name)
	}
	e.values[name] = value
}

func (e *environ) hasName(name string) bool { _, ok := e.values[name]; return ok }
func (e *environ) get(name string) string   { return e.values[name] }

// remove drops a variable. Most are not there, which costs nothing.
func (e *environ) remove(name string) {
	if e.hasName(name) {
		e.removeIf(func(n string) bool { return n == name })
	}
}

// removeIf drops every variable for which drop is true.
func (e *environ) removeIf(drop func(name string) bool) {
	e.names = slices.DeleteFunc(e.names, func(name string) bool {
		if drop(name) {
			delete(e.values, name)
			return true
		}
		return false
	})
}

// pairs is the environment as execve wants it.
func (e *environ) pairs() []string {
	out := make([]string, len(e.names))
	for i, name := range e.names {
		out[i] = name + "=" + e.values[name]
	}
	return out
}

// fillVariables sets every variable of the table that belongs to a kind of process and has a value.
func (e *environ) fillVariables(s *envScope, in processKind) {
	for i := range variables {
		v := &variables[i]
		if v.in&in == 0 || v.value == nil {
			continue
		}
		value, ok := v.value(s)
		switch {
		case ok && value == "":
			e.remove(v.name)
		case ok:
			e.set(v.name, value)
		}
	}
	if in == inBatch && s.alloc.Het() {
		e.fillGroups(s)
	}
}

// fillGroups sets the variables of every component of a heterogeneous job.
func (e *environ) fillGroups(s *envScope) {
	for g := range s.alloc.Groups {
		own := *s
		own.group = g
		for i := range variables {
			v := &variables[i]
			if !v.perGroup {
				continue
			}
			if value, ok := v.value(&own); ok && value != "" {
				e.set(fmt.Sprintf("%s_HET_GROUP_%d", v.name, g), value)
			}
		}
	}
}

// setDevices sets the variables by which programs learn of their GPUs.
func (e *environ) setDevices(devices []step.AllocDevice, present []deviceenv.Vendor) {
	var shown []deviceenv.Device
	for _, d := range devices {
		shown = append(shown, d.Shown)
	}
	vars := deviceenv.For(shown, present...)
	memoryLimits(vars, devices)
	for name, value := range vars {
		if value == "" {
			e.remove(name)
		} else {
			e.set(name, value)
		}
	}
}

// memoryLimits says how much of the memory of each device is the job's, where it has
// parts by memory. CUDA's multi-process service holds a program to it, counting devices as
// CUDA_VISIBLE_DEVICES has them; without that service nothing does.
func memoryLimits(vars deviceenv.Vars, devices []step.AllocDevice) {
	var mps, all []string
	nvidia := 0
	for _, d := range devices {
		if d.Bytes > 0 {
			all = append(all, strconv.FormatInt(d.Bytes>>20, 10))
		}
		if d.Shown.Vendor != deviceenv.NVIDIA {
			continue
		}
		if d.Bytes > 0 {
			mps = append(mps, fmt.Sprintf("%d=%dM", nvidia, d.Bytes>>20))
		}
		nvidia++
	}
	vars["COX_GPU_MEMORY"] = strings.Join(all, ",")
	if len(mps) > 0 {
		vars["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = strings.Join(mps, ",")
	}
}

// isStale reports whether a variable of an outer job must not be seen in this one.
func isStale(name string) bool {
	return strings.HasPrefix(name, "PMI_") || pmix.OfServer(name) || variableKinds()[name] != 0 || strings.Contains(name, "_HET_GROUP_")
}

// setPerTask reports whether a variable is set for each task anew or not at all.
func setPerTask(name string) bool {
	return strings.HasPrefix(name, "PMI_") || pmix.OfServer(name) || variableKinds()[name] == inTask
}

// variableKinds is where each variable of the table belongs.
var variableKinds = sync.OnceValue(func() map[string]processKind {
	m := make(map[string]processKind, len(variables))
	for _, v := range variables {
		m[v.name] |= v.in
	}
	return m
})
