package devicelock

import (
	"strings"

	"github.com/coxswain-sched/coxswain/model/fleet"
)

// lockName is one name under which a device is locked. Instances of one GPU hold the GPU's names in
// common.
type lockName struct {
	name     string
	instance bool // the name is that of the GPU of which the device is an instance
}

// Lockable reports whether a device can be locked: it exists, and has a name of its own.
func Lockable(d *fleet.Device) bool { return len(namesOf(d)) > 0 }

// namesOf lists the names under which a device is locked; none of a declared one.
func namesOf(d *fleet.Device) (names []lockName) {
	if d.Declared {
		return nil
	}
	instance := d.Parent != "" || d.Profile != ""
	for _, n := range []lockName{{d.UUID, false}, {d.Parent, true}, {d.Bus, instance}} {
		if n.name = cleanName(n.name); n.name != "" {
			names = append(names, n)
		}
	}
	return names
}

// cleanName makes one word of lower-case letters, digits and ".-_" of a UUID or a PCI address.
func cleanName(s string) string {
	const most = 100
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		}
		return '_'
	}, strings.ToLower(s))
	return s[:min(len(s), most)]
}
