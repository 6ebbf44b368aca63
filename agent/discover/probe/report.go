// Package probe is what the helper cox-gpuprobe prints: one JSON object that
// says which NVIDIA GPUs NVML sees, or why it sees none.
//
// The helper is a process of its own because the vendor's library runs in it:
// whatever that does, the caller only sees an exit status. The two may come
// from different builds, so the object carries a Version, readers ignore
// fields that they do not know, and a field that could not be asked is absent
// (-1 for numbers where 0 means something).
package probe

// Version is the form of Report made by this build. It grows when a field
// changes its meaning, not when one is added.
const Version = 1

// Report is the whole output.
type Report struct {
	Version int    `json:"version"`
	Driver  string `json:"driver,omitempty"` // driver version, "550.54.15"
	GPUs    []GPU  `json:"gpus"`
	// Problems are devices or questions that failed, one line each, while
	// the rest of the report is good.
	Problems []string `json:"problems,omitempty"`
	// Error is set when there is no report at all; the helper then exits 1.
	Error *Error `json:"error,omitempty"`
}

// Error says why NVML could not be asked.
type Error struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
}

// Kind is the sort of an Error.
type Kind string

// The kinds of errors.
const (
	NoLibrary   Kind = "no-library"  // libnvidia-ml.so.1 cannot be loaded
	NoSymbol    Kind = "no-symbol"   // the library lacks a function that is needed
	NoDriver    Kind = "no-driver"   // the library is there and refuses to start
	Failed      Kind = "failed"      // it started, and the list of GPUs failed
	Unsupported Kind = "unsupported" // not on this operating system
)

// GPU is one GPU in NVML's order, which is by PCI address.
type GPU struct {
	Index       int       `json:"index"`
	Minor       int       `json:"minor"` // N of /dev/nvidiaN; -1 unknown
	UUID        string    `json:"uuid,omitempty"`
	Name        string    `json:"name,omitempty"`
	PCI         string    `json:"pci,omitempty"` // as NVML spells it
	MemoryBytes int64     `json:"memory_bytes"`  // 0 unknown
	UsedBytes   int64     `json:"used_bytes"`    // without the driver's reserve where NVML tells it apart
	Exclusive   bool      `json:"exclusive"`     // compute mode admits one process only
	Prohibited  bool      `json:"prohibited"`    // compute mode admits none
	MIG         bool      `json:"mig"`           // MIG mode is on now
	Instances   []MIG     `json:"instances,omitempty"`
	Processes   []Process `json:"processes,omitempty"`
	Links       []Link    `json:"links,omitempty"`  // to peers with at least one NVLink
	Errors      *Errors   `json:"errors,omitempty"` // of its memory; nil: not counted, or an older helper
}

// Errors is what a GPU counts of its memory.
type Errors struct {
	Uncorrected  int64 `json:"uncorrected"`   // ECC errors that were not corrected, since the driver was loaded
	RemapPending bool  `json:"remap_pending"` // rows are remapped at the next reset
	RemapFailed  bool  `json:"remap_failed"`  // a bad row could not be
}

// MIG is one MIG device.
type MIG struct {
	UUID            string `json:"uuid"`
	Name            string `json:"name,omitempty"` // product name with the profile at its end
	GPUInstance     int    `json:"gpu_instance"`   // -1 unknown
	ComputeInstance int    `json:"compute_instance"`
	GPUSlices       int    `json:"gpu_slices,omitempty"`
	ComputeSlices   int    `json:"compute_slices,omitempty"`
	MemoryBytes     int64  `json:"memory_bytes"`
}

// Process uses a GPU.
type Process struct {
	PID         int    `json:"pid"`
	Name        string `json:"name,omitempty"`
	MemoryBytes int64  `json:"memory_bytes"` // -1 unknown
	Graphics    bool   `json:"graphics"`
}

// Link counts the NVLinks to another GPU, directly or through NVSwitch.
type Link struct {
	Peer  int `json:"peer"` // Index of the other GPU
	Count int `json:"count"`
}

// Load is a line of the helper when it watches: how busy the GPUs were just now.
type Load struct {
	Version int       `json:"version"`
	GPUs    []GPULoad `json:"gpus"`
	Error   *Error    `json:"error,omitempty"` // there are no numbers; the helper then exits 1
}

// GPULoad is one GPU of a Load. MIG devices have none of their own.
type GPULoad struct {
	UUID        string `json:"uuid"`
	Busy        int    `json:"busy"`         // per cent of the driver's last sample in which a kernel ran; -1 unknown
	UsedBytes   int64  `json:"used_bytes"`   // without the driver's reserve where NVML tells it apart
	MemoryBytes int64  `json:"memory_bytes"` // 0 unknown: then UsedBytes too
}
