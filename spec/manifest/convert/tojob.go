package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
	"github.com/coxswain-sched/coxswain/spec"
)

// ToJob makes a job whose tasks run the command of the pods of a set in their image. sp is the job of the set; it is
// not changed. What a task cannot have is lost, with a warning for each. Pods whose programs differ are refused.
func ToJob(sp *job.Spec, set *podspec.Set) (*job.Spec, []spec.Warning, error) {
	c := &converter{set: set, file: sp.Source.File}
	out := *sp
	first, err := set.Roles[0].Pod()
	if err != nil {
		return nil, nil, err
	}
	for i := range set.Roles[1:] {
		r := &set.Roles[i+1]
		p, err := r.Pod()
		if err != nil {
			return nil, nil, err
		}
		if !sameProgram(&first.Spec.Containers[0], &p.Spec.Containers[0]) {
			return nil, nil, fault.New(fault.Unsupported, "the pods of %s run another program than those of %s, and a job of tasks has one", r.Name, set.Roles[0].Name).
				Advise("submit the manifest as it is: cox submit %s", sp.Source.File)
		}
	}
	main := &first.Spec.Containers[0]
	out.Program = job.Program{Kind: job.Direct, Args: slices.Concat(main.Command, main.Args)}
	if len(out.Program.Args) == 0 {
		return nil, nil, fault.New(fault.Unsupported, "the container %s runs what its image says, and a task needs a command", main.Name).
			Advise("write command into the manifest")
	}
	out.Image = main.Image
	box := job.Container{WorkDir: main.WorkingDir}
	if len(main.Command) == 0 {
		yes := true
		box.Entrypoint = &yes
	}
	c.convertVolumes(&box, first)
	c.convertEnv(&out, main)
	if !box.IsZero() {
		out.Container = &box
	}
	out.Secrets, out.Serve = nil, nil
	c.listLost(sp, first)
	return &out, c.warnings, nil
}

// converter collects what is lost.
type converter struct {
	set      *podspec.Set
	file     string
	warnings []spec.Warning
}

func (c *converter) noteLost(path, format string, args ...any) {
	c.warnings = append(c.warnings, spec.Warning{File: c.file, Option: path, Message: fmt.Sprintf(format, args...)})
}

// sameProgram reports whether two containers run the same.
func sameProgram(a, b *podspec.Container) bool {
	return a.Image == b.Image && slices.Equal(a.Command, b.Command) && slices.Equal(a.Args, b.Args)
}

// convertVolumes makes mounts of directories of the node and of memory.
func (c *converter) convertVolumes(box *job.Container, p *podspec.PodTemplate) {
	for _, m := range p.Spec.Containers[0].Mounts {
		i := slices.IndexFunc(p.Spec.Volumes, func(v podspec.Volume) bool { return v.Name == m.Name })
		if i < 0 {
			continue
		}
		v := &p.Spec.Volumes[i]
		var flags []string
		if m.ReadOnly {
			flags = []string{"ro"}
		}
		switch {
		case v.HostPath != nil:
			box.Mounts = append(box.Mounts, job.Mount{Source: strings.TrimSuffix(v.HostPath.Path+"/"+m.SubPath, "/"), Target: m.MountPath, Flags: flags})
		case v.EmptyDir != nil:
			box.Mounts = append(box.Mounts, job.Mount{Source: "tmpfs", Target: m.MountPath})
			if v.EmptyDir.Medium != "Memory" {
				c.noteLost("volumes."+v.Name, "is in memory then, and not on the disk")
			}
		default:
			c.noteLost("volumes."+v.Name, "is lost: a task has directories of its node alone")
		}
	}
}

// convertEnv takes the variables that have a value.
func (c *converter) convertEnv(out *job.Spec, main *podspec.Container) {
	set := slices.Clone(out.Env.Set)
	for _, e := range main.Env {
		if e.From != nil {
			c.noteLost("env."+e.Name, "is lost: its value comes from elsewhere")
			continue
		}
		if strings.Contains(e.Value, "$(") {
			c.noteLost("env."+e.Name, "is taken as it is written: $(NAME) is not replaced")
		}
		set = append(set, e.Name+"="+e.Value)
	}
	for range main.EnvFrom {
		c.noteLost("envFrom", "is lost: a task has no ConfigMaps and no Secrets")
	}
	out.Env.Set = set
	if r := &c.set.Roles[0]; len(r.Env) > 0 {
		var names []string
		for _, e := range r.Env {
			names = append(names, e.Name)
		}
		c.noteLost("env", "what the kind adds is lost: %s; Slurm's variables say the same (SLURM_PROCID, SLURM_NTASKS, SLURM_JOB_NODELIST)", strings.Join(names, ", "))
	}
}

// listLost names what else a pod has that a task has not.
func (c *converter) listLost(sp *job.Spec, p *podspec.PodTemplate) {
	s, main := &p.Spec, &p.Spec.Containers[0]
	for _, x := range s.InitContainers {
		c.noteLost("initContainers."+x.Name, "is lost: run it before, in a job of its own or in a script")
	}
	for _, x := range s.Containers[1:] {
		c.noteLost("containers."+x.Name, "is lost: a task is one program")
	}
	for path, has := range map[string]bool{
		"nodeSelector": len(s.NodeSelector) > 0, "serviceAccountName": s.ServiceAccountName != "", "priorityClassName": s.PriorityClassName != "", "hostNetwork": s.HostNetwork,
		"securityContext": s.SecurityContext != nil || main.SecurityContext != nil, "containers." + main.Name + ".probes": main.ReadinessProbe != nil || main.LivenessProbe != nil || main.StartupProbe != nil,
		"containers." + main.Name + ".ports": len(main.Ports) > 0, "successPolicy": c.set.Complete != nil, "configMaps": len(c.set.ConfigMaps) > 0, "secrets": len(sp.Secrets) > 0,
	} {
		if has {
			c.noteLost(path, "is lost")
		}
	}
	c.listOthers(p)
	c.noteLost("names", "pods find each other by name, tasks by SLURM_JOB_NODELIST")
	slices.SortFunc(c.warnings, func(a, b spec.Warning) int { return strings.Compare(a.Option, b.Option) })
}

// Fields of a pod and of its main container that become something of a task, or that listLost names.
var (
	podFields = []string{
		"containers", "initContainers", "volumes", "restartPolicy", "nodeSelector", "serviceAccountName", "priorityClassName", "hostNetwork", "securityContext",
	}
	mainFields = []string{
		"name", "image", "command", "args", "workingDir", "env", "envFrom", "ports", "resources", "volumeMounts", "securityContext", "startupProbe", "readinessProbe", "livenessProbe",
	}
)

// listOthers names the fields of a pod and of its main container that nothing is made of, such as affinity.
func (c *converter) listOthers(p *podspec.PodTemplate) {
	var pod struct {
		Spec map[string]json.RawMessage `json:"spec"`
	}
	var containers []map[string]json.RawMessage
	var resources map[string]json.RawMessage
	if json.Unmarshal(c.set.Roles[0].Template, &pod) != nil || json.Unmarshal(pod.Spec["containers"], &containers) != nil {
		return // it was read before
	}
	for name := range pod.Spec {
		if !slices.Contains(podFields, name) {
			c.noteLost(name, "is lost")
		}
	}
	main := "containers." + p.Spec.Containers[0].Name + "."
	for name := range containers[0] {
		if !slices.Contains(mainFields, name) {
			c.noteLost(main+name, "is lost")
		}
	}
	if json.Unmarshal(containers[0]["resources"], &resources) == nil && resources["claims"] != nil {
		c.noteLost(main+"resources.claims", "is lost: a task asks for devices by number")
	}
}

// compactJSON is JSON without blanks.
func compactJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}
