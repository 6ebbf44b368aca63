package slurm

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/policy"
)

// reportMissing says what the rules need that no file has.
func (im *importer) reportMissing(files []File) {
	has := map[kind]bool{}
	for _, f := range files {
		has[kindOf(f)] = true
	}
	dump := "sacctmgr dump " + cmp.Or(im.cluster.Name, "CLUSTER") + " file=dump.cfg"
	add := func(what, remedy string) {
		im.report.Missing = append(im.report.Missing, policy.Missing{What: what, Remedy: remedy})
	}
	switch {
	case has[aConf]:
	case has[aShown]:
		add("partitions and nodes: scontrol show config does not print them", "add slurm.conf to the command")
	case has[aDump] || has[aTable]:
		add("partitions, nodes, priorities and preemption: no slurm.conf was named", "add it to the command, for example /etc/slurm/slurm.conf")
	}
	if (has[aConf] || has[aShown]) && !has[aDump] {
		what := "accounts and users: until the rules have some, every account name is taken"
		if im.p.Priority.FairShare > 0 {
			what += ", and priority.fair_share has no effect"
		}
		add(what, "where Slurm's commands are: "+dump+"; then add dump.cfg to the command")
	}
	im.reportUndefined(has[aTable], add)
	if len(im.cluster.order) == 0 && len(im.cluster.parts) > 0 {
		add("nodes: slurm.conf has no NodeName lines", "name the file that has them, or let the partitions of cox.yaml have all nodes of the server")
	}
	if strings.Contains(strings.ToLower(im.consumes), "memory") && !im.saysDefaultMemory() {
		im.report.Add(policy.Finding{
			File: "(together)", What: "DefMemPerCPU, DefMemPerNode are not set", Verdict: policy.Refused,
			How: "Slurm gives a job without --mem all memory of its nodes; here such a job counts no memory: have scripts say --mem",
		})
	}
}

// saysDefaultMemory reports whether a file has a default amount of memory for jobs.
func (im *importer) saysDefaultMemory() bool {
	return slices.ContainsFunc(im.report.Findings, func(f policy.Finding) bool { return strings.HasPrefix(strings.ToLower(f.What), "defmemper") })
}

// reportUndefined names the QOS that something names and no file defines.
func (im *importer) reportUndefined(table bool, add func(what, remedy string)) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(im.qos)) {
		if !im.defined[name] {
			names = append(names, name)
		}
	}
	remedy := "where Slurm's commands are: sacctmgr show qos -P > qos.txt; then add qos.txt to the command"
	switch {
	case len(names) > 0:
		if table {
			remedy = "correct the name where it is used, or add the QOS to Slurm first"
		}
		add("limits and priority of QOS "+strings.Join(names, ", ")+": no file defines it, so the rules have its name alone", remedy)
	case len(im.qos) == 0 && slices.Contains(im.p.Preemption.By, "qos"):
		add("QOS: PreemptType=preempt/qos has no effect without QOS that say whom they preempt", remedy)
	}
}
