package sched

import (
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/model/reason"
)

// This file is licences of which a job is to have one (sbatch --licenses=a|b): it has the
// first of them with which it passes its limits, all of them, those on that licence too.
// Each alternative is a policy of its own (effectivePolicy.choices); what waits has those of all, what
// runs those of the one that it has, and a Start names it, for whoever restores the job.
//
// A class of such jobs stands by the option that was tried last. Stopped with each of them
// it rests in a list of its own, and is asked about in each cycle: there are few of them.
//
// Source: Slurm's man page of sbatch, --licenses.

// firstBlockedCheck is the first check that a class's first job surely does not pass, whatever is
// free; -1: there is none. It settles on the licence that the job would have.
func (c *Core) firstBlockedCheck(l *jobClass) int {
	for k := range l.options {
		if c.surelyBlocked(&l.options[k]) < 0 {
			l.licenseOption = l.options[k]
			return -1
		}
	}
	if l.options != nil {
		l.licenseOption = l.options[0]
	}
	return c.surelyBlocked(&l.licenseOption)
}

func (c *Core) surelyBlocked(o *licenseOption) int {
	return c.limits.book.BlockedSurely(o.rules, o.needs, o.exact)
}

// passesAnyLicense reports whether a class's jobs might pass with one of their licences.
func (c *Core) passesAnyLicense(l *jobClass) bool {
	return slices.ContainsFunc(l.options, func(o licenseOption) bool { return c.surelyBlocked(&o) < 0 })
}

// chosenLicense is which of the alternatives that they ask for a class's first job would have;
// empty: they ask for none.
func (l *jobClass) chosenLicense() string {
	for k := range l.options {
		if l.options[k].rules == l.rules {
			return l.key.policy.choices[k].key.licenses
		}
	}
	return ""
}

// policyAtStart is the policy of a job that starts, and the licence that it has of those that
// it would have taken. One more use of the policy is counted.
func (c *Core) policyAtStart(e *queuedJob) (*effectivePolicy, string) {
	t := e.class.key.policy
	if t.choices == nil {
		t.uses++
		return t, ""
	}
	license := e.class.chosenLicense()
	if e.nominee != nil {
		license = e.nominee.run.license
	}
	return c.policyWithLicense(e.spec, license), license
}

// wakeLicenseChoices wakes the classes that may pass now with one of their licences; anew says
// that the cycle begins.
func (p *schedulingCycle) wakeLicenseChoices(anew bool) {
	s := &p.Core.limits
	either := s.byLicense
	s.byLicense = s.byLicense[:0]
	for _, l := range either {
		switch {
		case l.waiting != forLimit || l.members == 0:
		case l.moves != 0 && l.moves == s.moves+1 && !anew, l.moves == 0 && !p.passesAnyLicense(l):
			s.byLicense = append(s.byLicense, l)
		default:
			p.wakeBarred(l)
		}
	}
}

// scheduleLicenseChoices finds when time may let such a class pass. One that its claims stopped is
// asked about each second, if there are minutes that become less.
func (c *Core) scheduleLicenseChoices() {
	s := &c.limits
	for _, l := range s.byLicense {
		if l.waiting != forLimit || l.members == 0 {
			continue
		}
		for k := range l.options {
			o := &l.options[k]
			for i := range o.rules.Checks {
				switch check := &o.rules.Checks[i]; {
				case l.moves == 0 && s.book.Exceeds(check, o.needs[i]):
					s.scheduleCheck(check, o.needs[i])
				case l.moves != 0 && s.book.Falls(check):
					s.dueBy(atSecond(floorSeconds(c.clock.now) + 1))
				}
			}
		}
		if l.moves != 0 {
			c.schedulePlanned(l)
		}
	}
}

// licenseReasons are why a class's jobs do not pass with any of their licences, beside what
// they were told; none: with one of them they may.
func (c *Core) licenseReasons(l *jobClass) (out []reason.Reason) {
	if c.passesAnyLicense(l) {
		return nil
	}
	for k := range l.options {
		if o := &l.options[k]; k > 0 || l.waiting != forLimit {
			i := c.surelyBlocked(o)
			out = append(out, c.limitReason(o.rules, i, o.needs[i]))
		}
	}
	return out
}

// restoreLicenseWait lets a class rest again as it did.
func (c *Core) restoreLicenseWait(l *jobClass) {
	for k := range l.options {
		if i := checkOfReason(l.options[k].rules, &l.why); i >= 0 {
			l.licenseOption, l.check = l.options[k], int32(i)
			break
		}
	}
	if c.passesAnyLicense(l) { // but for its claims
		l.moves = c.limits.moves + 1
	}
	c.waitForLimit(l)
}

// checkLicenseChoice looks for a class that rests for a limit which it passes with one of its
// licences.
func (c *Core) checkLicenseChoice(l *jobClass) error {
	id := l.jobs.firstJob().id
	switch {
	case l.headsIndex >= 0:
		return fmt.Errorf("job %d rests for a limit and may become the head", id)
	case !slices.Contains(c.limits.byLicense, l):
		return fmt.Errorf("job %d rests for a limit and would not be looked at again", id)
	case l.moves == 0 && c.passesAnyLicense(l) && (c.limits.due == 0 || c.limits.due > c.clock.now):
		return fmt.Errorf("job %d rests for limits that it passes with one of its licences", id)
	}
	return nil
}
