package sbatchargs

import (
	"slices"

	"github.com/coxswain-sched/coxswain/engine/podscript"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// podForm is the job.Source.Form of a container of a pod: it has no variable and no directory of the job
// but those that are named.
const podForm = "pods"

// podsAsBatch is a job of kind job.Pods as the batch script that runs its pods.
func (r ContainerRuntime) podsAsBatch(j *job.Job, script []byte) (*job.Job, []byte, error) {
	set, err := podspec.ForJob(j, script)
	if err != nil {
		return nil, nil, err
	}
	if r == NoContainers {
		return nil, nil, fault.New(fault.Unsupported, "the pods of a manifest run in containers, and the nodes of this pool run none (container_runtime: none)").
			Advise("name another pool, or ask an administrator to install pyxis, podman, apptainer or enroot on the nodes and to name it in the pool's setting container_runtime")
	}
	made, err := podscript.Render(set, j.Spec, r.podRuntime())
	if err != nil {
		return nil, nil, err
	}
	of, spec := *j, *j.Spec
	spec.Program.Kind, spec.Program.Args = job.Batch, nil
	spec.Groups = slices.Clone(spec.Groups)
	for i := range spec.Groups {
		if g := &spec.Groups[i]; g.PerTask.CPU == 0 && g.PerDevice.CPU == 0 {
			g.PerTask.CPU = resource.OneCPU // of Slurm a task has one
		}
	}
	of.Spec = &spec
	return &of, made, nil
}

// podRuntime is how the containers of pods run.
func (r ContainerRuntime) podRuntime() podscript.Runtime {
	if !r.isCommand() {
		return podscript.Runtime{Name: string(Pyxis), Srun: true}
	}
	return podscript.Runtime{Name: string(r), Box: func(image string, c *job.Container) (get, run string) {
		s := &job.Spec{Image: image, Container: c, Source: job.Source{Form: podForm}}
		if r == Enroot {
			return enrootPodScripts(s)
		}
		return r.containerScripts(s)
	}}
}
