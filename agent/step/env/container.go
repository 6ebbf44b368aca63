package env

import (
	"slices"
	"strings"
)

// OfContainer are those of an environment by which a container's runtime and the plugins of a
// kubelet say what this one container has: they are true in no other. It is not nil.
func OfContainer(environ []string) []string {
	out := []string{}
	for _, v := range environ {
		if name, _, ok := strings.Cut(v, "="); ok && isContainerDevice(name) {
			out = append(out, v)
		}
	}
	return out
}

// isContainerDevice are devices: GPUs, their channels between nodes, and, by the name of the
// resource, what is given by its PCI address.
func isContainerDevice(name string) bool {
	return strings.HasPrefix(name, "PCIDEVICE_") ||
		slices.Contains([]string{"NVIDIA_VISIBLE_DEVICES", "NVIDIA_IMEX_CHANNELS", "AMD_VISIBLE_DEVICES", "HABANA_VISIBLE_DEVICES"}, name)
}

// inContainer has an environment that came from another container say what this one has.
// nil: nodes are no containers.
func (e *environ) inContainer(own []string) {
	if own == nil {
		return
	}
	e.removeIf(isContainerDevice)
	for _, v := range own {
		name, value, _ := strings.Cut(v, "=")
		e.set(name, value)
	}
}
