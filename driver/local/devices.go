package local

import (
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/devicelock"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// lockDevices takes the room's physical devices for this engine. Devices that somebody else holds are
// an error, or, where Config.Share says so, a note.
func (e *Engine) lockDevices() error {
	if e.cfg.Devices == nil {
		return nil
	}
	l := *e.cfg.Devices
	var err error
	if l.Owner.Identity, err = attempt.DeviceOwner(e.cfg.Root); err != nil {
		return err
	}
	var devices []fleet.Device
	for i := range e.cfg.Nodes {
		devices = append(devices, e.cfg.Nodes[i].Devices...)
	}
	var errs []error
	e.devices, errs = l.TakeAll(devices)
	e.locker = &l
	if len(errs) == 0 {
		return nil
	}
	refusal := devicelock.Refusal(errs)
	if e.cfg.Share {
		e.notes = append(e.notes, fmt.Sprintf("shared: %s; jobs of both can be on one device at once", refusal))
		return nil
	}
	return refusal.Advise("%s", e.cfg.ShareAdvice)
}

// lockerFor is with what the supervisors of an attempt keep its devices while no engine runs; nil
// for an attempt without devices that can be locked.
func (e *Engine) lockerFor(claims []fleet.Claim, nodes []fleet.Node) *devicelock.Locker {
	if e.locker == nil || !slices.ContainsFunc(nodes, func(n fleet.Node) bool { return len(fleet.ClaimedDevices(n, claims)) > 0 }) {
		return nil
	}
	return e.locker
}
