package step

import "slices"

// checkDevices reports devices that no node of the job has.
func (p *placer) checkDevices() error {
	d, most, total := p.ask.Devices, 0, 0
	for _, part := range p.group.Parts {
		n := len(ofType(part.Devices, d.Type))
		most, total = max(most, n), total+n
	}
	if max(d.PerNode, d.PerTask) > most || d.Total > total {
		return errDevices
	}
	return nil
}

// take takes CPUs for a number of tasks, and the picked devices, from a part's room.
func (p *placer) take(part, tasks int, give *StepPart) {
	have := &p.have[part]
	give.CPUs = have.cpus
	if p.exact {
		give.CPUs = min(have.cpus, tasks*max(p.ask.CPUsPerTask, 1))
	}
	have.cpus -= give.CPUs
	have.whole = false
	have.devices = without(have.devices, give.Devices)
}

// devices picks the devices of a part for its tasks.
func (p *placer) devices(part, tasks int) ([]AllocDevice, error) {
	d := p.ask.Devices
	have := ofType(p.have[part].devices, d.Type)
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
	d := p.ask.Devices
	left := d.Total - len(p.chosen)
	if left < 0 {
		return 1 << 30
	}
	share := 0
	for _, i := range p.chosen {
		room := len(ofType(p.have[i].devices, d.Type))
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

// ofType filters devices by type; all if it is empty.
func ofType(all []AllocDevice, typ string) []AllocDevice {
	if typ == "" {
		return all
	}
	var out []AllocDevice
	for _, d := range all {
		if d.Type == typ {
			out = append(out, d)
		}
	}
	return out
}

// without removes devices by their index.
func without(all, gone []AllocDevice) []AllocDevice {
	return slices.DeleteFunc(slices.Clone(all), func(d AllocDevice) bool {
		return slices.ContainsFunc(gone, func(g AllocDevice) bool { return g.Index == d.Index })
	})
}
