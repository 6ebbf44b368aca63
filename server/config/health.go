package config

import (
	"slices"
	"strings"
	"time"
)

// Health says how nodes are checked.
type Health struct {
	Every    Duration      `yaml:"every" doc:"between two checks of a node; 0: none at intervals"`
	After    bool          `yaml:"after" doc:"check a node of this machine when its last job has ended, and after a job that did not end well; no job waits for it"`
	Before   Duration      `yaml:"before" doc:"how long the start of a job waits at most for the checks of its nodes of this machine, which run just before it; 0: no job waits for a check. In Slurm, Prolog and HealthCheckProgram do this"`
	Timeout  Duration      `yaml:"timeout" doc:"of each check; one that takes longer has failed"`
	Failures int           `yaml:"failures" doc:"of a check in a row, until it fences"`
	Passes   int           `yaml:"passes" doc:"of a check in a row, until what it fenced is used again; one is enough for cox node check"`
	Checks   []HealthCheck `yaml:"checks" doc:"of nodes of this machine (docs/explanation/health.md); default: disk, memory and clock warn, devices fences. []: none"`
}

// HealthCheck is one check of the nodes of this machine.
type HealthCheck struct {
	Check  string   `yaml:"check" doc:"disk, memory, mounts, clock, devices or script"`
	Do     string   `yaml:"do" doc:"if it fails: warn, or fence: no new work starts there. Default: warn; devices and script: fence"`
	Name   string   `yaml:"name" doc:"of a script, in results"`
	Run    []string `yaml:"run" doc:"of a script: the program, by its absolute path, and its arguments; it runs as the server's user, and fails with an exit code other than 0"`
	Paths  []string `yaml:"paths" doc:"of disk and mounts. disk without any: the state directory and /tmp"`
	Free   Bytes    `yaml:"free" doc:"of disk and memory: what must be free. Default: 1 GiB of a disk, 256 MiB of memory"`
	Within Duration `yaml:"within" doc:"of clock: how far it may be off; 0: it has to be synchronized, and no more"`
}

// The actions of a check.
const (
	HealthWarn  = "warn"
	HealthFence = "fence"
)

// Kinds of check.
const (
	checkDisk, checkMemory, checkMounts = "disk", "memory", "mounts"
	checkClock, checkDevices            = "clock", "devices"
	checkScript                         = "script"
)

func defaultHealth() Health {
	return Health{
		Every: Duration(5 * time.Minute), After: true, Timeout: Duration(30 * time.Second), Failures: 1, Passes: 2,
		Checks: []HealthCheck{{Check: checkDisk}, {Check: checkMemory}, {Check: checkClock}, {Check: checkDevices}},
	}
}

// Action is what is done if the check fails.
func (c *HealthCheck) Action() string {
	switch {
	case c.Do != "":
		return c.Do
	case c.Check == checkDevices || c.Check == checkScript:
		return HealthFence
	}
	return HealthWarn
}

// label is the check's name in results.
func (c *HealthCheck) label() string {
	if c.Name != "" {
		return c.Name
	}
	return c.Check
}

func (p *problems) checkHealth(h *Health) {
	p.checkRange("failures", h.Failures, 1, 1000)
	p.checkRange("passes", h.Passes, 1, 1000)
	if h.Timeout <= 0 {
		p.addProblem("timeout", "health.timeout: a check needs time, for example 30s")
	}
	if h.Before != 0 && (time.Duration(h.Before) < time.Second || time.Duration(h.Before) > 10*time.Minute) {
		p.addProblem("before", "health.before: %s is not between 1s and 10m: write how long a job may wait for checks, or 0 for none", time.Duration(h.Before))
	}
	if h.Before != 0 && len(h.Checks) == 0 {
		p.addProblem("before", "health.before: there is no check that a job could wait for: leave it out, or list health.checks")
	}
	if h.Every != 0 && time.Duration(h.Every) < time.Second {
		p.addProblem("every", "health.every: %s is shorter than a second: write 1s at least, or 0 for no checks at intervals", time.Duration(h.Every))
	}
	var names []string
	for i := range h.Checks {
		c := &h.Checks[i]
		p.checkHealthCheck(c)
		if slices.Contains(names, c.label()) {
			p.addProblem("checks", "health.checks: two are called %s: give a script a name, and several paths to one check", c.label())
		}
		names = append(names, c.label())
	}
}

func (p *problems) checkHealthCheck(c *HealthCheck) {
	kinds := []string{checkDisk, checkMemory, checkMounts, checkClock, checkDevices, checkScript}
	where := "health.checks: " + c.label()
	if !slices.Contains(kinds, c.Check) {
		hint := "checks are " + strings.Join(kinds, ", ")
		if near := nearestWord(c.Check, kinds); near != "" {
			hint = "did you mean " + near + "?"
		}
		p.addProblem("check", "health.checks: there is no check %q; %s", c.Check, hint)
		return
	}
	if !slices.Contains([]string{"", HealthWarn, HealthFence}, c.Do) {
		p.addProblem("do", "%s: %q is neither warn nor fence", where, c.Do)
	}
	for _, wrong := range []struct {
		field string
		set   bool
		of    []string
	}{
		{"name", c.Name != "", []string{checkScript}},
		{"run", len(c.Run) > 0, []string{checkScript}},
		{"paths", len(c.Paths) > 0, []string{checkDisk, checkMounts}},
		{"free", c.Free != 0, []string{checkDisk, checkMemory}},
		{"within", c.Within != 0, []string{checkClock}},
	} {
		if wrong.set && !slices.Contains(wrong.of, c.Check) {
			p.addProblem(wrong.field, "%s: %s is for %s: leave it out", where, wrong.field, strings.Join(wrong.of, " and "))
		}
	}
	switch {
	case c.Check == checkScript && (len(c.Run) == 0 || !strings.HasPrefix(c.Run[0], "/")):
		p.addProblem("checks", "%s: a script needs its program by an absolute path: run: [/etc/coxswain/check-nfs]", where)
	case c.Check == checkScript && c.Name == "":
		p.addProblem("checks", "%s: a script needs a name, as name: nfs", where)
	case c.Check == checkScript && slices.Contains(kinds, c.Name):
		p.addProblem("name", "%s: that is the name of a check of Coxswain's: choose another", where)
	case c.Check == checkMounts && len(c.Paths) == 0:
		p.addProblem("checks", "%s: say what must be mounted: paths: [/home]", where)
	}
	for _, path := range c.Paths {
		if !strings.HasPrefix(path, "/") {
			p.addProblem("paths", "%s: %q is not an absolute path", where, path)
		}
	}
}
