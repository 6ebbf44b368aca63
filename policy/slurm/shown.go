package slurm

import (
	"strings"

	"github.com/coxswain-sched/coxswain/policy"
)

// readShownConfig reads what scontrol show config prints: the directives that a slurmctld works with,
// those too that nobody has set. What says nothing is passed over; what is about cgroup.conf
// and the like is not used.
func (im *importer) readShownConfig(f File) {
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
			im.noteVerdict(s, policy.Ignored, "a setting of Slurm's %s", section)
			continue
		case s.hasKey("JobDefaults"):
			im.refuseSetting(s, "%s", noDefaults)
			continue
		case strings.Contains(s.key, "_"): // SLURM_VERSION, BOOT_TIME
			im.noteVerdict(s, policy.Ignored, "a fact about the daemon that printed it")
			continue
		}
		s.key, _, _ = strings.Cut(s.key, "[") // SlurmctldHost[0]
		s.value = strings.TrimSuffix(strings.TrimSuffix(s.value, " sec"), " min")
		im.readGlobal(s)
	}
}
