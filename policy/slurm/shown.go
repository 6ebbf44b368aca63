package slurm

import (
	"strings"
)

// shown reads what scontrol show config prints: the directives that a slurmctld works with,
// those too that nobody has set. What says nothing is passed over; what is about cgroup.conf
// and the like is not used.
func (im *importer) shown(f File) {
	section := ""
	for i, line := range strings.Split(f.Text, "\n") {
		key, value, ok := strings.Cut(line, "=")
		s := setting{file: f.Name, line: i + 1, key: strings.TrimSpace(key), value: strings.TrimSpace(value)}
		switch {
		case !ok:
			if line = strings.TrimSpace(line); strings.HasSuffix(line, ":") {
				section = strings.TrimSuffix(line, ":")
			}
			continue
		case s.value == "" || s.value == "N/A" || strings.HasPrefix(s.value, "(null"):
			continue
		case section != "":
			im.elsewhere(s, "not used: of %s", section)
			continue
		case strings.Contains(s.key, "_") || s.is("JobDefaults"): // SLURM_VERSION, BOOT_TIME
			im.elsewhere(s, "not used: the state of a moment")
			continue
		}
		s.key, _, _ = strings.Cut(s.key, "[") // SlurmctldHost[0]
		s.value = strings.TrimSuffix(strings.TrimSuffix(s.value, " sec"), " min")
		im.one(s)
	}
}
