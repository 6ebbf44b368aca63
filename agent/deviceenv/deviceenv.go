// Package deviceenv says by which environment variables a program sees exactly
// the GPUs that it was given.
//
// The variables are a convention that CUDA, ROCm and OpenCL follow, no fence:
// a program may overwrite them. The numbers are the machine's own, as Slurm
// writes them where devices are not fenced by cgroups, so that a task on GPUs
// 2 and 3 reads CUDA_VISIBLE_DEVICES=2,3. Two traps are dealt with here:
//
//   - CUDA counts the fastest GPU first unless told otherwise, so numbers come
//     with CUDA_DEVICE_ORDER=PCI_BUS_ID.
//   - On AMD hardware HIP reads CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and
//     (OpenCL) GPU_DEVICE_ORDINAL after ROCR_VISIBLE_DEVICES has been applied,
//     and counts in what that left. The same numbers in two of them hide
//     everything; the later ones therefore count from 0 or are removed.
//
// The package is pure. It does not look at the machine (package discover) and
// knows nothing of containers, where NVIDIA_VISIBLE_DEVICES belongs to the
// container's runtime.
package deviceenv

import (
	"slices"
	"strconv"
	"strings"
)

// Vendor is who makes a GPU.
type Vendor string

// The vendors, and the mark of devices that are only declared.
const (
	NVIDIA   Vendor = "nvidia"
	AMD      Vendor = "amd"
	Declared Vendor = "declared"
)

// Device is one device as its vendor's variable names it.
type Device struct {
	Vendor Vendor `json:"vendor"`
	Index  int    `json:"index"` // the vendor's number on this machine
	// Instance is the UUID of a MIG instance, "MIG-…", which has no number;
	// empty for a whole GPU.
	Instance string `json:"instance,omitempty"`
}

// The variables that this package answers for. One that is not set is
// removed, so that nothing inherited shows through.
const (
	CUDA      = "CUDA_VISIBLE_DEVICES"
	CUDAOrder = "CUDA_DEVICE_ORDER"
	ROCR      = "ROCR_VISIBLE_DEVICES"
	HIP       = "HIP_VISIBLE_DEVICES"
	OpenCL    = "GPU_DEVICE_ORDINAL"
)

// none names no device in every one of the variables: a number that does not
// exist ends the list.
const none = "-1"

// Vars are values by name for all of the variables; "" means to remove it.
type Vars map[string]string

// For gives the variables of a task that gets devices, in their order, on a
// machine with hardware of the vendors in present. Hardware that the task
// does not get is hidden. With neither devices nor hardware all variables are
// removed.
func For(devices []Device, present ...Vendor) Vars {
	v := Vars{CUDA: "", CUDAOrder: "", ROCR: "", HIP: "", OpenCL: ""}
	nvidia, amd, declared := ofVendor(devices, NVIDIA), ofVendor(devices, AMD), ofVendor(devices, Declared)
	if len(declared) > 0 && len(nvidia) == 0 && len(amd) == 0 {
		// No such hardware: programs only read the numbers. All three, as
		// Slurm sets them for devices whose vendor it was not told.
		v[CUDA], v[ROCR], v[OpenCL] = joinNames(declared), joinNames(declared), joinNames(declared)
		return v
	}
	switch {
	case len(nvidia) > 0:
		v[CUDA] = joinNames(nvidia)
		v[CUDAOrder] = "PCI_BUS_ID"
		if len(amd) == 0 && !slices.ContainsFunc(nvidia, func(d Device) bool { return d.Instance != "" }) {
			v[OpenCL] = joinNames(nvidia)
		}
	case slices.Contains(present, NVIDIA):
		v[CUDA] = none
	}
	switch {
	case len(amd) > 0:
		v[ROCR] = joinNames(amd)
		v[OpenCL] = fromZero(len(amd))
		if v[CUDA] != "" {
			v[HIP] = fromZero(len(amd)) // goes before CUDA_VISIBLE_DEVICES
		}
	case slices.Contains(present, AMD):
		v[ROCR], v[HIP] = none, none
	}
	return v
}

// Apply gives env ("NAME=VALUE") with the variables set or removed; env
// itself is not changed. Set ones come last, sorted by name.
func (v Vars) Apply(env []string) []string {
	out := make([]string, 0, len(env)+len(v))
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if _, ours := v[name]; !ours {
			out = append(out, e)
		}
	}
	return append(out, v.Environ()...)
}

// Environ lists the variables to be set as "NAME=VALUE", sorted by name.
func (v Vars) Environ() []string {
	var out []string
	for name, value := range v {
		if value != "" {
			out = append(out, name+"="+value)
		}
	}
	slices.Sort(out)
	return out
}

func ofVendor(devices []Device, vendor Vendor) []Device {
	var out []Device
	for _, d := range devices {
		if d.Vendor == vendor {
			out = append(out, d)
		}
	}
	return out
}

// joinNames joins the names. CUDA takes either numbers or UUIDs in one list, and
// shows at most one MIG instance to a process; a MIG instance among whole
// GPUs is named by its UUID all the same.
func joinNames(devices []Device) string {
	names := make([]string, len(devices))
	for i, d := range devices {
		names[i] = d.Instance
		if d.Instance == "" {
			names[i] = strconv.Itoa(d.Index)
		}
	}
	return strings.Join(names, ",")
}

func fromZero(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return strings.Join(names, ",")
}
