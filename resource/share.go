package resource

// Share is a part of one device in thousandths; WholeDevice is all of it. A
// share limits nothing by itself: whether it isolates depends on the device
// (a MIG instance does, time slicing does not).
type Share int16

// WholeDevice is the share of a device that is held alone.
const WholeDevice Share = 1000

// DeviceRequest asks for Count devices of one kind, alike.
type DeviceRequest struct {
	Kind    string `json:"kind,omitempty"`    // "gpu" if empty
	Type    string `json:"type,omitempty"`    // "h100"; empty: any type, all of one type not required
	Count   int    `json:"count"`             // devices, or shares of devices if Share or Profile is set
	Share   Share  `json:"share,omitempty"`   // thousandths of one device each; zero: whole devices
	Profile string `json:"profile,omitempty"` // MIG profile such as "1g.10gb"; empty: no partition
	Memory  Amount `json:"memory,omitempty"`  // bytes of device memory that each must have; zero: any
}

// Whole reports whether the request is for undivided devices.
func (r DeviceRequest) Whole() bool {
	return r.Profile == "" && (r.Share == 0 || r.Share >= WholeDevice)
}

// KindOf returns the device kind, "gpu" where none is said.
func (r DeviceRequest) KindOf() string {
	if r.Kind == "" {
		return "gpu"
	}
	return r.Kind
}

// Requirements are countable resources and devices asked for together.
type Requirements struct {
	Vector
	Devices []DeviceRequest `json:"devices,omitempty"`
}

// IsZero reports whether nothing is asked for.
func (r Requirements) IsZero() bool { return r.Vector.IsZero() && len(r.Devices) == 0 }

// DeviceCount sums the devices (or shares) asked for, of every kind and type.
func (r Requirements) DeviceCount() int {
	n := 0
	for _, d := range r.Devices {
		n += d.Count
	}
	return n
}
