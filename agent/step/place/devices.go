package place

import (
	"slices"

	"github.com/coxswain-sched/coxswain/agent/step"
)

// checkDevices reports devices that no node of the job has.
func (p *placer) checkDevices() error {
	d, most, total := p.request.Devices, 0, 0
	for _, part := range p.group.Parts {
		n := len(devicesOfType(part.Devices, d.Type))
		most, total = max(most, n), total+n
	}
	if max(d.PerNode, d.PerTask) > most || d.Total > total {
		return errDevices
	}
	return nil
}

// takeResources takes CPUs for a number of tasks, and the picked devices, from a part's room.
func (p *placer) takeResources(part, tasks int, give *step.StepPart) {
	have := &p.have[part]
	give.CPUs = have.cpus
	if p.exact {
		give.CPUs = min(have.cpus, tasks*max(p.request.CPUsPerTask, 1))
	}
	have.cpus -= give.CPUs
	have.whole = false
	have.devices = removeDevices(have.devices, give.Devices)
}

// pickDevices picks the devices of a part for its tasks.
func (p *placer) pickDevices(part, tasks int) ([]step.AllocDevice, error) {
	d := p.request.Devices
	have := devicesOfType(p.have[part].devices, d.Type)
	want := len(have)
	switch {
	case d.None:
		want = 0
	case d.PerTask > 0:
		want = d.PerTask * tasks
	case d.PerNode > 0:
		want = d.PerNode
	case d.Total > 0:
		want = p.shareOfTotal(part)
	}
	if want > len(have) {
		return nil, errTooMany
	}
	return slices.Clone(have[:want]), nil
}

// shareOfTotal is a part's share of --gpus: one on every node, then filled from the
// first; more than there can be if the chosen nodes together have too few.
func (p *placer) shareOfTotal(part int) int {
	d := p.request.Devices
	left := d.Total - len(p.chosen)
	if left < 0 {
		return 1 << 30
	}
	share := 0
	for _, i := range p.chosen {
		room := len(devicesOfType(p.have[i].devices, d.Type))
		extra := min(left, max(room-1, 0))
		left -= extra
		if i == part {
			share = 1 + extra
		}
	}
	if left > 0 {
		return 1 << 30
	}
	return share
}

// devicesOfType filters devices by type; all if it is empty.
func devicesOfType(all []step.AllocDevice, typ string) []step.AllocDevice {
	if typ == "" {
		return all
	}
	var out []step.AllocDevice
	for _, d := range all {
		if d.Type == typ {
			out = append(out, d)
		}
	}
	return out
}

// removeDevices removes devices by their index.
func removeDevices(all, gone []step.AllocDevice) []step.AllocDevice {
	return slices.DeleteFunc(slices.Clone(all), func(d step.AllocDevice) bool {
		return slices.ContainsFunc(gone, func(g step.AllocDevice) bool { return g.Index == d.Index })
	})
}
