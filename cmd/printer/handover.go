package printer

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
)

// Moved prints what becomes of machines that are handed over, or of hand-overs that are walked back.
func Moved(list []api.MovedMachine, dry, abort bool) string {
	var b strings.Builder
	moving := 0
	for i := range list {
		v := &list[i]
		name := v.Machine
		if v.Node != "" && v.Node != v.Machine {
			name += " (" + v.Node + ")"
		}
		switch {
		case v.Error != nil:
			fmt.Fprintf(&b, "%s: refused: %s", name, v.Error.Error())
			if v.Error.Remedy != "" {
				fmt.Fprintf(&b, " (%s)", v.Error.Remedy)
			}
			b.WriteString("\n")
			continue
		case abort:
			fmt.Fprintf(&b, "%s: walked back, stays in pool %s\n", name, v.From)
		case dry:
			fmt.Fprintf(&b, "%s: would move from pool %s to pool %s; %s\n", name, v.From, v.To, v.Why)
		default:
			fmt.Fprintf(&b, "%s: moves from pool %s to pool %s; %s\n", name, v.From, v.To, v.Why)
		}
		moving++
	}
	if moving > 0 && !dry {
		b.WriteString("cox machine list shows how far they are\n")
	}
	return b.String()
}
