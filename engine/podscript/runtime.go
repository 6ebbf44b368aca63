package podscript

import "github.com/coxswain-sched/coxswain/model/job"

// Runtime is how the nodes of a pool run images.
type Runtime struct {
	Name string // for messages, such as podman
	// Srun says that srun has the options of pyxis. Otherwise Box is there.
	Srun bool
	// Ours says that srun and the runtime are Coxswain's own, of this machine.
	Ours bool
	// Box gives two scripts of a shell for an image: get, which a node runs once and which pulls it, and
	// run, which runs its arguments in a container. Without arguments, and where the container has the
	// entry point, run runs what the image says.
	Box func(image string, c *job.Container) (get, run string)
}

// Local is the runtime of this machine.
func Local() Runtime { return Runtime{Name: "srun", Srun: true, Ours: true} }
