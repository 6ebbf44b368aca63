package work

import (
	"strings"

	"github.com/coxswain-sched/coxswain/model/resource"
)

// deviceOf is the device that an extended resource of Kubernetes stands for. false: it is none that is
// counted here; the node's kubelet counts it.
func deviceOf(name string) (resource.DeviceRequest, bool) {
	if profile, ok := strings.CutPrefix(name, "nvidia.com/mig-"); ok {
		return resource.DeviceRequest{Profile: strings.ReplaceAll(profile, ".shared", "")}, true
	}
	switch {
	case name == "nvidia.com/gpu", name == "nvidia.com/gpu.shared", name == "amd.com/gpu",
		strings.HasPrefix(name, "gpu.intel.com/") && !strings.Contains(name, "millicores") && !strings.Contains(name, "memory"):
		return resource.DeviceRequest{}, true
	case name == "habana.ai/gaudi":
		return resource.DeviceRequest{Type: "gaudi"}, true
	case name == "google.com/tpu", name == "aws.amazon.com/neuron", name == "aws.amazon.com/neuroncore", name == "aws.amazon.com/neurondevice":
		return resource.DeviceRequest{Kind: strings.TrimPrefix(name[strings.LastIndexByte(name, '/')+1:], "")}, true
	}
	return resource.DeviceRequest{}, false
}
