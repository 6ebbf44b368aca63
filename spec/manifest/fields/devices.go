package fields

import "strings"

// DeviceClass is what a resource of a container is.
type DeviceClass uint8

// The classes.
const (
	Plain       DeviceClass = iota // cpu, memory, ephemeral-storage
	GPU                            // an accelerator, a slice of one or a share in one
	Network                        // an adapter for EFA or RDMA
	OtherDevice                    // of a device plugin that is not known
)

// Device is what the name of a resource means.
type Device struct {
	Name  string // as a container writes it; * at its end stands for any text
	Class DeviceClass
	Text  string

	// Of a GPU: what model/resource's DeviceRequest has. An empty Kind is gpu.
	Kind, Type, Profile string
}

// Devices are the resources that are known, in the order of the documentation.
var Devices = []Device{
	{Name: "cpu", Text: "CPUs"},
	{Name: "memory", Text: "memory"},
	{Name: "ephemeral-storage", Text: "disk of the node"},
	{Name: "hugepages-*", Class: OtherDevice, Text: "memory in large pages"},
	{Name: "nvidia.com/gpu", Class: GPU, Text: "GPUs of NVIDIA"},
	{Name: "nvidia.com/gpu.shared", Class: GPU, Text: "GPUs of NVIDIA that containers share; each counts as one"},
	{Name: "nvidia.com/mig-*", Class: GPU, Text: "slices of GPUs of NVIDIA (MIG), such as nvidia.com/mig-1g.10gb"},
	{Name: "amd.com/gpu", Class: GPU, Text: "GPUs of AMD"},
	{Name: "gpu.intel.com/i915", Class: GPU, Text: "GPUs of Intel (driver i915)"},
	{Name: "gpu.intel.com/xe", Class: GPU, Text: "GPUs of Intel (driver xe)"},
	{Name: "gpu.intel.com/millicores", Class: OtherDevice, Text: "parts of a GPU of Intel"},
	{Name: "gpu.intel.com/memory.max", Class: OtherDevice, Text: "memory of a GPU of Intel"},
	{Name: "habana.ai/gaudi", Class: GPU, Type: "gaudi", Text: "Gaudi of Intel"},
	{Name: "aws.amazon.com/neuron", Class: GPU, Kind: "neuron", Text: "Trainium and Inferentia of AWS"},
	{Name: "aws.amazon.com/neurondevice", Class: GPU, Kind: "neurondevice", Text: "Trainium and Inferentia of AWS, by an older name"},
	{Name: "aws.amazon.com/neuroncore", Class: GPU, Kind: "neuroncore", Text: "cores of Trainium and Inferentia of AWS"},
	{Name: "google.com/tpu", Class: GPU, Kind: "tpu", Text: "TPUs of Google"},
	{Name: "vpc.amazonaws.com/efa", Class: Network, Text: "adapters for EFA of AWS"},
	{Name: "rdma/*", Class: Network, Text: "adapters for RDMA"},
	{Name: "networking.gke.io.networks/*", Class: Network, Text: "networks of Google Kubernetes Engine"},
	{Name: "nvidia.com/hostdev", Class: Network, Text: "adapters of NVIDIA"},
}

// migPrefix begins the name of a slice.
const migPrefix = "nvidia.com/mig-"

// FindDevice says what a resource is. The name has to be one that Kubernetes takes: a plain one
// of the list above, or one with a domain; others are not ok.
func FindDevice(name string) (d Device, ok bool) {
	for _, d := range Devices {
		if d.Name == name {
			return d, true
		}
		prefix, pattern := strings.CutSuffix(d.Name, "*")
		if rest, cut := strings.CutPrefix(name, prefix); pattern && cut && rest != "" {
			d.Name = name
			if prefix == migPrefix {
				d.Profile = strings.TrimSuffix(rest, ".shared")
			}
			return d, true
		}
	}
	domain, rest, ok := strings.Cut(name, "/")
	if !ok || domain == "" || rest == "" {
		return Device{}, false
	}
	return Device{Name: name, Class: OtherDevice, Text: "a device of a plugin"}, true
}

// NearestDevice is the resource that a name which Kubernetes does not take must stand for, empty
// if none is near.
func NearestDevice(name string) string {
	switch strings.ToLower(name) {
	case "gpu", "gpus", "nvidia", "nvidia-gpu", "nvidia.com":
		return "nvidia.com/gpu"
	case "ram", "mem":
		return "memory"
	case "disk", "storage":
		return "ephemeral-storage"
	}
	names := make([]string, 0, len(Devices))
	for _, d := range Devices {
		if !strings.HasSuffix(d.Name, "*") {
			names = append(names, d.Name)
		}
	}
	return Nearest(name, names)
}

// Rules of resources, by class. Those of Plain and GPU are the rule of the field around them.
var (
	networkRule = Rule{
		Marks: [engineCount]Mark{NoEffect, NoEffect, Passed}, Text: "the adapters of a node are there for all of its jobs", Remedy: "leave it out",
	}
	otherRule = Rule{
		Marks: [engineCount]Mark{Refused, Refused, Passed}, Text: "no node outside Kubernetes counts it", Remedy: "leave it out, or use a pool of Kubernetes",
	}
)

// resourceField is the field of a resource with a rule of its own, nil for the others.
func resourceField(name string) *Field {
	f := &Field{Name: name, Type: scalars["quantity"], Default: "0"}
	switch d, _ := FindDevice(name); d.Class {
	case Network:
		f.Rule = &networkRule
	case OtherDevice:
		f.Rule = &otherRule
	default:
		return nil
	}
	return f
}

// selectorField is the field of a label in a node selector that has a rule of its own, nil for the
// others.
func selectorField(name string) *Field {
	switch name {
	case "kubernetes.io/os":
		return &Field{Name: name, Type: scalars["string"], Default: "linux", Rule: &systemRule}
	case "kubernetes.io/arch":
		return &Field{Name: name, Type: scalars["string"], Rule: &architectureRule}
	}
	return nil
}

// Rules of labels of nodes that every node has.
var (
	systemRule = Rule{
		Marks: [engineCount]Mark{Refused, Refused, Passed}, Text: "nodes run Linux", Remedy: "leave it out, or use a pool of Kubernetes",
	}
	architectureRule = Rule{
		Marks: [engineCount]Mark{NoEffect, NoEffect, Passed}, Text: "the image has to be one for the nodes", Remedy: "leave it out",
	}
)
