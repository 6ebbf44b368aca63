package podagent

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// oomKills is how many processes of this container the kernel has killed at its memory
// limit; 0 where that is not shown. A kubelet whose kernel ends the whole container instead
// says so itself, and nothing of this runs any more.
func (p Place) oomKills() int {
	for _, name := range []string{"memory.events", "memory/memory.oom_control"} {
		text, err := os.ReadFile(filepath.Join(p.Group, name))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) == 2 && f[0] == "oom_kill" {
				n, _ := strconv.Atoi(f[1])
				return n
			}
		}
	}
	return 0
}

// oomText says what to do about it.
func oomText(kills int, name string) string {
	return fmt.Sprintf("the kernel ended %d of its processes on %s at the pod's memory limit; ask for more with --mem", kills, name)
}
