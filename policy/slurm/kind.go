package slurm

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/policy"
)

type kind uint8

const (
	nothing kind = iota
	aConf
	aGres
	aTopology
	aTopologyYAML
	aDump
	aShown  // scontrol show config
	aTable  // sacctmgr show qos -P
	another // a file of Slurm's about which nothing here says anything
	aScript // job_submit.lua
)

// readingOrder puts files in the order in which they are read: slurm.conf, gres.conf, topology.conf,
// dumps, tables.
func (k kind) readingOrder() int { return int(k) }

// others are files of Slurm's that are not used, by their names, and why.
var others = map[string]string{
	"slurmdbd.conf":               "where Slurm keeps its accounting, and for how long; here state in cox.yaml",
	"cgroup.conf":                 "how Slurm confines jobs; it goes on doing so in a Slurm pool",
	"cgroup_allowed_devices_file": "how Slurm confines jobs; it goes on doing so in a Slurm pool",
	"plugstack.conf":              "plugins of Slurm (SPANK), which go on working in a Slurm pool",
	"job_container.conf":          "how Slurm gives each job its own /tmp; it goes on doing so in a Slurm pool",
	"namespace.yaml":              "how Slurm gives each job its own /tmp; it goes on doing so in a Slurm pool",
	"burst_buffer.conf":           "burst buffers, which Coxswain does not have",
	"acct_gather.conf":            "what Slurm measures of jobs",
	"ext_sensors.conf":            "what Slurm measures of jobs",
	"oci.conf":                    "how Slurm starts containers",
	"scrun":                       "how Slurm starts containers",
	"helpers.conf":                "programs that change features of nodes in Slurm",
	"knl.conf":                    "modes of Knights Landing processors",
	"mpi.conf":                    "how Slurm starts MPI programs",
	"federation.conf":             "Slurm's federation, which Coxswain does not have",
	"resources.yaml":              "licences by place; write them as licenses in queues.yaml",
	"cli_filter":                  "programs that run at Slurm's commands",
	"slurmrestd":                  "how Slurm's REST server runs",
}

// otherWhy says why a file is not used, by its name; false: it is none of these.
func otherWhy(name string) (string, bool) {
	base := strings.ToLower(path.Base(name))
	if why, ok := others[base]; ok {
		return why, true
	}
	for _, part := range slices.Sorted(maps.Keys(others)) { // htc-slurmdbd.conf.tpl, cgroup.conf_prod
		stem, _, conf := strings.Cut(part, ".")
		if conf && strings.Contains(base, part) || !conf && strings.HasPrefix(base, stem+".") {
			return others[part], true
		}
	}
	return "", false
}

// kindOf tells files apart by their names where these are Slurm's, else by the first line
// that says something.
func kindOf(f File) kind {
	base := strings.ToLower(path.Base(f.Name))
	switch _, other := otherWhy(f.Name); {
	case strings.Contains(base, ".lua"):
		return aScript
	case other:
		return another
	case strings.Contains(base, "topology.y") || strings.Contains(base, "topology") && (strings.HasSuffix(base, ".yaml") || strings.HasSuffix(base, ".yml")):
		return aTopologyYAML
	case strings.Contains(base, "topology.conf"):
		return aTopology
	case strings.Contains(base, "gres") && strings.Contains(base, ".conf"):
		return aGres
	case strings.Contains(base, "slurm.conf"):
		return aConf
	}
	return byText(f.Text)
}

// Named reports whether a file is one of Slurm's by its name alone.
func Named(name string) bool { return kindOf(File{Name: name, Text: "x"}) != nothing }

func byText(text string) kind {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		low := strings.ToLower(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"), isTemplated(line), line == "---":
			continue
		case strings.HasPrefix(low, "configuration data as of"):
			return aShown
		case strings.HasPrefix(low, "name|"):
			return aTable
		case strings.HasPrefix(low, "- topology:"):
			return aTopologyYAML
		}
		if d, ok := dumpLineOf("", 0, line); ok && slices.Contains([]string{"cluster", "parent", "account", "user", "qos"}, d.kind) {
			return aDump
		}
		all := confLine{text: line}.splitSettings("")
		switch {
		case all[0].hasKey("switchname") || all[0].hasKey("blockname") || all[0].hasKey("blocksizes"):
			return aTopology
		case all[0].hasKey("name") || all[0].hasKey("autodetect") || all[0].hasKey("nodename") && slices.ContainsFunc(all, func(s setting) bool { return s.hasKey("name") || s.hasKey("autodetect") }):
			return aGres
		case strings.Contains(line, "="), strings.HasPrefix(low, "include "):
			return aConf
		}
		return nothing
	}
	return aConf // nothing is in it
}

// isTemplated reports whether a line is one of the template languages that configurations are
// written in: Jinja, ERB, Terraform.
func isTemplated(line string) bool {
	for _, mark := range []string{"{{", "{%", "{#", "<%", "%{"} {
		if strings.Contains(line, mark) {
			return true
		}
	}
	return strings.Contains(line, "${") || strings.HasPrefix(line, "{") && strings.HasSuffix(line, "}")
}

// readUnused reads a file that is not used: each line is in the report.
func (im *importer) readUnused(f File) {
	why, _ := otherWhy(f.Name)
	for _, l := range confLines(f.Text) {
		im.noteVerdict(setting{file: f.Name, line: l.line, key: l.text, alone: true}, policy.Ignored, "%s", why)
	}
}
