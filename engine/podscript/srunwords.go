package podscript

import (
	"github.com/coxswain-sched/coxswain/model/containeropt"
	"github.com/coxswain-sched/coxswain/model/job"
)

// srunWords are the options of srun for a container.
func srunWords(image string, c *job.Container) ([]string, error) {
	if err := containeropt.CheckImage(image); err != nil {
		return nil, err
	}
	return containeropt.Words(image, c), nil
}
