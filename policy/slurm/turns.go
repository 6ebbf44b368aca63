package slurm

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/policy"
)

// This file settles OverSubscribe, SchedulerTimeSlice and PreemptMode=SUSPEND, whose
// meanings depend on each other and on lines further down.
//
// Source: slurm.conf(5), OverSubscribe with its notes at FORCE:1 and NO; preempt.html, which
// has sites that suspend but take no turns write FORCE:1.

// shared is an OverSubscribe=NO or FORCE with the partitions for which it holds: several of
// DEFAULT, none where all say their own.
type shared struct {
	s  setting
	of []string
}

// readOverSubscribe notes what a partition says; the one without a name is DEFAULT.
func (im *importer) readOverSubscribe(p *account.Partition, s setting) {
	how, _, _ := strings.Cut(strings.ToLower(s.value), ":")
	for _, h := range im.shares {
		h.of = slices.DeleteFunc(h.of, func(n string) bool { return n == p.Name })
	}
	if how != "no" && how != "force" {
		im.says[p.Name] = true
		im.refuseSetting(s, "%s", partitionWords["oversubscribe"])
		return
	}
	i := slices.IndexFunc(im.shares, func(h *shared) bool { return h.s == s })
	if i < 0 {
		i = len(im.shares)
		im.shares = append(im.shares, &shared{s: s})
	}
	if p.Name != "" {
		im.says[p.Name] = true
		im.shares[i].of = append(im.shares[i].of, p.Name)
	}
}

// reportOverSubscribe says of each such line, once, what became of it.
func (im *importer) reportOverSubscribe() {
	var take []*account.Partition // turns
	for _, h := range im.shares {
		var of []*account.Partition
		for i := range im.p.Partitions {
			if slices.Contains(h.of, im.p.Partitions[i].Name) {
				of = append(of, &im.p.Partitions[i])
			}
		}
		switch most := h.mostSharing(); {
		case len(of) == 0, most == "1": // FORCE:1 has jobs suspended for those that outrank them, and for no others
			im.noteKept(h.s)
		case most == "":
			if im.preventSuspend(of...) {
				im.noteAbout(h.s, unsuspended)
			} else {
				im.noteKept(h.s)
			}
		case !im.gang:
			im.refuseSetting(h.s, "%s", partitionWords["oversubscribe"])
		default:
			take = append(take, of...)
			not := ""
			if most != "2" {
				not = ", not " + most
			}
			im.noteAbout(h.s, "two jobs take turns (time_slice)%s, on GPUs too, which Slurm gives to one job alone: remove time_slice if you do not want that", not)
		}
	}
	for i := range im.p.Partitions {
		if p := &im.p.Partitions[i]; !im.says[p.Name] && im.preventSuspend(p) { // NO is the default
			im.report.Add(policy.Finding{File: "(together)", What: "partition " + p.Name, Verdict: policy.Approximated, How: unsuspended})
		}
	}
	im.setTimeSlice(take)
}

// mostSharing is how many jobs may have the same CPUs; "" after NO.
func (h *shared) mostSharing() string {
	how, most, given := strings.Cut(h.s.value, ":")
	switch {
	case strings.EqualFold(how, "no"):
		return ""
	case !given:
		return "4"
	}
	return most
}

const unsuspended = "preempt_mode: off, because Slurm suspends no job in it without OverSubscribe=FORCE:1: remove it if its jobs should make room"

// preventSuspend keeps jobs of partitions from being suspended where Slurm would not do it, and
// reports whether there were any: OverSubscribe=NO lets nobody have another's CPUs.
func (im *importer) preventSuspend(of ...*account.Partition) (any bool) {
	for _, p := range of {
		if cmp.Or(p.PreemptMode, im.p.Preemption.Mode) == account.PreemptSuspend && len(im.p.Preemption.By) > 0 {
			p.PreemptMode, any = account.PreemptOff, true
		}
	}
	return any
}

// setTimeSlice says how long the turns are.
func (im *importer) setTimeSlice(take []*account.Partition) {
	long := account.Duration(30 * time.Second)
	for i, s := range im.slices {
		switch {
		case i < len(im.slices)-1:
			im.noteAbout(s, "left out: a later line says it again")
		case len(take) == 0:
			im.noteAbout(s, "left out: jobs take turns only with OverSubscribe=FORCE and PreemptMode=GANG")
		default:
			im.readSeconds(s, func(d account.Duration) {
				if d > 0 {
					long = d
				}
			})
		}
	}
	for _, p := range take {
		p.TimeSlice = long
	}
}
