package slurm

import (
	"maps"
	"slices"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/policy"
)

// combineLines puts together what lines said of each other.
func (im *importer) combineLines() {
	for _, u := range im.assocs.users {
		a := im.accountNamed(u.account)
		a.Users = append(a.Users, u.User)
	}
	for _, p := range im.p.Partitions {
		for _, q := range slices.Concat(p.AllowQOS, p.DenyQOS, []string{p.QOS}) {
			if q != "" {
				im.qosNamed(q)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(im.thresholds)) {
		if s := im.thresholds[name]; im.enforces[name] || isUnlimited(s.value) {
			im.readFactor(s, &im.qos[name].UsageThreshold)
		} else {
			im.noteAbout(s, "left out: without the flag EnforceUsageThreshold Slurm does not look at it")
		}
	}
	im.reportOverSubscribe()
	for _, name := range slices.Sorted(maps.Keys(im.qos)) {
		im.p.QOS = append(im.p.QOS, *im.qos[name])
	}
	root := slices.ContainsFunc(im.p.Accounts, func(a account.Account) bool { return a.Name == account.RootName })
	for i := range im.p.Accounts {
		if a := &im.p.Accounts[i]; !root && a.Parent == account.RootName {
			a.Parent = "" // nothing is said of the root
		}
	}
}

// checkContradictions says what the settings contradict each other in: cox apply will refuse it.
func (im *importer) checkContradictions() {
	im.dropUnknownAccounts()
	for _, x := range im.p.Check() {
		im.report.Add(policy.Finding{File: "(together)", What: x.Path + ": " + x.Message, Verdict: policy.Refused, How: "correct it in the file before you apply it: " + x.Remedy})
	}
}

// dropUnknownAccounts leaves out accounts that partitions name and no file has.
func (im *importer) dropUnknownAccounts() {
	have := map[string]bool{}
	for _, a := range im.p.Accounts {
		have[a.Name] = true
	}
	missing := func(names []string) []string {
		return slices.DeleteFunc(names, func(n string) bool {
			if have[n] {
				return false
			}
			im.report.Add(policy.Finding{File: "(together)", What: "account " + n + " of a partition", Verdict: policy.Refused, How: "no file defines the account, so the partition does not name it: add the output of sacctmgr dump to the command"})
			return true
		})
	}
	for i := range im.p.Partitions {
		p := &im.p.Partitions[i]
		p.DenyAccts = missing(p.DenyAccts)
		if slices.ContainsFunc(p.AllowAccts, func(n string) bool { return have[n] }) { // else everybody might use it
			p.AllowAccts = missing(p.AllowAccts)
		}
	}
}
