package resource

// Share is a part of one device in thousandths; WholeDevice is all of it. A
// share limits nothing by itself: whether it isolates depends on the device
// (a MIG instance does, time slicing does not).
type Share int32

// WholeDevice is the share of a device that is held alone.
const WholeDevice Share = 1000

// petabyte bounds the memory of a device that is counted, so that nothing wraps.
const petabyte = 1 << 50

// Load is how much of a device with so much memory (in bytes; 0: not known) is taken by
// thousandths of it, or by bytes of its memory where there are any, in units of which
// both are whole numbers: sums are exact.
func Load(memory Amount, share Share, bytes Amount) Amount {
	if bytes > 0 {
		return min(bytes, petabyte) * Amount(WholeDevice)
	}
	return min(max(memory, 1), petabyte) * Amount(share)
}

// FullLoad is the load of a whole device.
func FullLoad(memory Amount) Amount { return Load(memory, WholeDevice, 0) }

// ShareOf is how many thousandths of a device so many bytes of its memory are, rounded
// up; all of it where its memory is not known or smaller.
func ShareOf(bytes, memory Amount) Share {
	if memory <= 0 || bytes >= memory {
		return WholeDevice
	}
	return Share((min(bytes, petabyte)*Amount(WholeDevice) + memory - 1) / memory)
}

// DeviceRequest asks for Count devices of one kind, alike.
type DeviceRequest struct {
	Kind    string `json:"kind,omitempty"`    // "gpu" if empty
	Type    string `json:"type,omitempty"`    // "h100"; empty: any type, all of one type not required
	Count   int    `json:"count"`             // devices, or shares of devices if Share or Profile is set
	Share   Share  `json:"share,omitempty"`   // thousandths of one device each; zero: whole devices
	Profile string `json:"profile,omitempty"` // MIG profile such as "1g.10gb"; empty: no partition
	Memory  Amount `json:"memory,omitempty"`  // bytes of device memory that each must have; zero: any
	Bytes   Amount `json:"bytes,omitempty"`   // a share by memory: bytes of one device's each; Share is then what it counts for in quotas and usage, zero: a device
}

// Whole reports whether the request is for undivided devices.
func (r DeviceRequest) Whole() bool {
	return r.Profile == "" && r.Bytes == 0 && (r.Share == 0 || r.Share >= WholeDevice)
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
