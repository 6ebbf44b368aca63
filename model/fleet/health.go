package fleet

import (
	"fmt"
	"slices"
	"time"
)

// Verdict is what a check says of a node or a device.
type Verdict string

// The verdicts.
const (
	Passed Verdict = "pass"
	Warned Verdict = "warn"    // something is wrong, and work goes on there
	Failed Verdict = "fail"    // no work should start there
	Unsure Verdict = "unknown" // it could not be looked at, which says nothing of the node
)

// CheckResult is what one check says of a node, or of one of its devices.
type CheckResult struct {
	Check   string  `json:"check"`
	Device  *int    `json:"device,omitempty" doc:"index of the device that it is about; left out: the node as a whole"`
	UUID    string  `json:"uuid,omitempty" doc:"of that device, where it has one"`
	Verdict Verdict `json:"verdict" enum:"pass,warn,fail,unknown" doc:"unknown: it could not be looked at, which says nothing of the node"`
	Text    string  `json:"text,omitempty" doc:"what was seen"`
	From    string  `json:"from,omitempty" doc:"whose check it is, if it was read and not run by Coxswain: slurm, kubernetes"`

	// At is when the system that it was read from was asked; zero: it was seen now.
	At time.Time `json:"-"`
}

// HealthFence keeps new work off a node, or off one device of it, since a check failed. It is apart from
// a drain, which administrators set and remove.
type HealthFence struct {
	Device   *int      `json:"device,omitempty" doc:"index of the device; left out: the node as a whole"`
	UUID     string    `json:"uuid,omitempty" doc:"of that device: another device in its place is not fenced"`
	Check    string    `json:"check" doc:"that failed"`
	Evidence string    `json:"evidence" doc:"what the check saw"`
	At       time.Time `json:"since"`
}

// Covers reports whether a fence keeps work off a device.
func (f *HealthFence) Covers(d *Device) bool {
	return f.Device != nil && *f.Device == d.Index && (f.UUID == "" || d.UUID == "" || f.UUID == d.UUID)
}

// Subject names what a check is about: "GPU 2" for a device, "" for the node as a whole.
func Subject(device *int) string {
	if device == nil {
		return ""
	}
	return fmt.Sprintf("device %d", *device)
}

// String is "check disk failed: no space left on /tmp".
func (f *HealthFence) String() string { return "check " + f.Check + " failed: " + f.Evidence }

// WithFences is a node as its fences leave it: closed as a whole, or without some of its devices. The
// description that is given is not changed.
func (n Node) WithFences(fences []HealthFence) Node {
	for i := range fences {
		f := &fences[i]
		if f.Device == nil {
			if n.State == Up {
				n.State, n.Why = Draining, f.String()
			}
			continue
		}
		at := slices.IndexFunc(n.Devices, func(d Device) bool { return f.Covers(&d) })
		if at < 0 || n.Devices[at].Fenced != "" {
			continue
		}
		n.Devices = slices.Clone(n.Devices)
		n.Devices[at].Fenced = f.String()
	}
	return n
}
