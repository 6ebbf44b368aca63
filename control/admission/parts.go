package admission

import (
	"fmt"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Parts sets what parts of devices by memory count for in quotas, limits and usage, for
// good: of the smallest device here that has so much, rounded up to thousandths; a whole
// device where there is none (yet). It refuses a part where devices would do of which
// nobody knows how much memory they have, and none of which that is known. The nodes are
// asked for only if they are needed.
func Parts(s *job.Spec, nodes func() ([]fleet.Node, error)) error {
	var list []fleet.Node
	for i := range s.Groups {
		g := &s.Groups[i]
		for _, devices := range [][]resource.DeviceRequest{g.PerNode.Devices, g.PerTask.Devices, g.Total.Devices} {
			for k := range devices {
				r := &devices[k]
				if r.Bytes <= 0 {
					continue
				}
				if list == nil {
					var err error
					if list, err = nodes(); err != nil {
						return err
					}
				}
				if err := shareOfSmallest(r, list); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func shareOfSmallest(r *resource.DeviceRequest, nodes []fleet.Node) error {
	least, known, unknown := resource.Amount(0), false, ""
	for i := range nodes {
		for _, d := range nodes[i].Devices {
			switch {
			case d.Kind != r.KindOf() || r.Type != "" && d.Type != r.Type || d.Profile != "":
			case d.Memory <= 0:
				unknown = fmt.Sprintf("%s %d of node %s", d.Kind, d.Index, nodes[i].Name)
			default:
				known = true
				if d.Memory >= max(r.Bytes, r.Memory) && (least == 0 || d.Memory < least) {
					least = d.Memory
				}
			}
		}
	}
	if unknown != "" && !known {
		return fault.New(fault.Invalid, "share: how much memory %s has is not known, and no other device would do", unknown).
			Advise("ask for thousandths of a device (share: 250), or an administrator declares gpu_memory for it")
	}
	r.Share = resource.ShareOf(r.Bytes, least)
	return nil
}
