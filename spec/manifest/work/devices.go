package work

import (
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/spec/manifest/fields"
)

// deviceOf is the device that an extended resource of Kubernetes stands for. false: it is none that is
// counted here; the node's kubelet counts it.
func deviceOf(name string) (resource.DeviceRequest, bool) {
	d, ok := fields.FindDevice(name)
	if !ok || d.Class != fields.GPU {
		return resource.DeviceRequest{}, false
	}
	return resource.DeviceRequest{Kind: d.Kind, Type: d.Type, Profile: d.Profile}, true
}
