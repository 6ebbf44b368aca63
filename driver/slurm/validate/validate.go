// Package validate says which jobs a Slurm cluster's own rules never let run.
//
// The model. The rules are those of an inventory (partitions, accounts, QOS, reservations,
// licences and their limits); a job is held against them as it would be submitted, with the
// pool's options.
//
// Guarantees: only what is certain is refused, with the rule and a remedy. A job that may run
// now or later, when nodes or licences are free, is not; nor is one that a part of the inventory
// that was not told could let run.
//
// It asks no cluster, and does not judge how old an inventory is: the engine does.
package validate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// submission is what a job asks of a cluster, together with what the pool adds.
type submission struct {
	*job.Spec
	user                      string // empty: it is not known
	account, qos, reservation string
	parts                     []string
	time                      time.Duration // at least
	nodes                     int
	inv                       *fleet.Inventory
	partitions                map[string]*fleet.Partition
	rules                     map[string]*fleet.QOS
}

// Check refuses a job that a rule of the cluster's never lets run: as fault.Invalid, with the
// rule, what would mend it and the field (engine.About). user is whom the job is submitted as,
// empty: it is not known; options are those that the pool adds to every job, which outrank
// the job's own.
func Check(inv *fleet.Inventory, spec *job.Spec, user string, options []string) error {
	option := func(name, own string) string {
		for _, o := range options {
			if v, ok := strings.CutPrefix(o, "--"+name+"="); ok {
				return v
			}
		}
		return own
	}
	w := &submission{
		Spec: spec, user: user, account: option("account", spec.Account), qos: option("qos", spec.QOS), reservation: option("reservation", spec.Reservation),
		time: spec.TimeLimit, inv: inv,
		partitions: indexByName(inv.Partitions, func(p *fleet.Partition) string { return p.Name }), rules: indexByName(inv.QOS, func(q *fleet.QOS) string { return q.Name }),
	}
	if list := option("partition", strings.Join(spec.Partitions, ",")); list != "" {
		w.parts = strings.Split(list, ",")
	} else {
		for i := range inv.Partitions {
			if inv.Partitions[i].Default {
				w.parts = []string{inv.Partitions[i].Name}
			}
		}
	}
	if spec.TimeMin > 0 {
		w.time = min(w.time, spec.TimeMin)
	}
	for i := range spec.Groups {
		w.nodes += spec.Groups[i].Nodes.Min
	}
	for _, rule := range []func() error{w.checkNamesExist, w.byAccount, w.byQOS, w.byPartition, w.byLicense} {
		if err := rule(); err != nil {
			return err
		}
	}
	return nil
}

func neverRuns(field, mend, format string, args ...any) error {
	return engine.About(fault.New(fault.Invalid, format, args...).Advise("%s", mend), field)
}

// checkNamesExist: what is named is there.
func (w *submission) checkNamesExist() error {
	for _, p := range w.parts {
		if w.partitions[p] == nil {
			return neverRuns("partition", "--partition: "+joinSortedNames(w.partitions), "there is no partition %s", p)
		}
	}
	if enforcesRule(w.inv, "qos") && len(w.rules) > 0 && w.qos != "" && w.rules[w.qos] == nil {
		return neverRuns("qos", "--qos: "+joinSortedNames(w.rules), "there is no QOS %s", w.qos)
	}
	if w.reservation == "" || strings.Contains(w.reservation, ",") || w.isPartMissing("reservations") {
		return nil
	}
	all := indexByName(w.inv.Reservations, func(r *fleet.Reservation) string { return r.Name })
	if all[w.reservation] == nil {
		mend := "--reservation: " + joinSortedNames(all)
		if len(all) == 0 {
			mend = "leave the reservation out: there is none now"
		}
		return neverRuns("reservation", mend, "there is no reservation %s", w.reservation)
	}
	return nil
}

// isPartMissing reports whether a part of the inventory was not told.
func (w *submission) isPartMissing(what string) bool {
	return slices.ContainsFunc(w.inv.Unknown, func(s string) bool { return strings.HasPrefix(s, what+":") })
}

// possibleAssociations are the associations by which the job may run: of the user where that is known, in
// the account that is named. ok is false if it is not certain which they are.
func (w *submission) possibleAssociations() (all []*fleet.Association, ok bool) {
	if !enforcesRule(w.inv, "associations") || len(w.inv.Associations) == 0 || w.isPartMissing("associations") || w.user == "root" {
		return nil, false
	}
	for i := range w.inv.Associations {
		a := &w.inv.Associations[i]
		if a.User == "" || w.user != "" && a.User != w.user || w.account != "" && !strings.EqualFold(a.Account, w.account) {
			continue
		}
		if w.account != "" || a.Default {
			all = append(all, a)
		}
	}
	return all, w.user != "" || w.account != ""
}

// byAccount: the user has an association with the account.
func (w *submission) byAccount() error {
	all, ok := w.possibleAssociations()
	if !ok || len(all) > 0 {
		return nil
	}
	have := map[string]*fleet.Association{}
	for i := range w.inv.Associations {
		if a := &w.inv.Associations[i]; a.User != "" && (w.user == "" || a.User == w.user) {
			have[a.Account] = a
		}
	}
	switch {
	case w.account == "" && len(have) > 0: // its default is not told
		return nil
	case w.user == "":
		return neverRuns("account", "--account: "+joinSortedNames(have), "nobody has an association with account %s (AccountingStorageEnforce)", w.account)
	case len(have) == 0:
		return neverRuns("account", "sacctmgr add user "+w.user+" account=ACCOUNT", "user %s has no association with any account (AccountingStorageEnforce)", w.user)
	}
	return neverRuns("account", "--account: "+joinSortedNames(have), "user %s has no association with account %s (AccountingStorageEnforce)", w.user, w.account)
}

// byQOS: the association may have the QOS, and its limit of time, or the association's.
func (w *submission) byQOS() error {
	all, ok := w.possibleAssociations()
	q := w.rules[w.qos]
	if ok && w.user != "" && w.qos != "" && enforcesRule(w.inv, "qos") && len(all) > 0 {
		may := func(a *fleet.Association) bool { return len(a.QOS) == 0 || slices.Contains(a.QOS, w.qos) }
		if !slices.ContainsFunc(all, may) {
			return neverRuns("qos", "--qos: "+strings.Join(all[0].QOS, ", "), "user %s may not use QOS %s in account %s", w.user, w.qos, all[0].Account)
		}
	}
	if !enforcesRule(w.inv, "limits") || w.time == 0 || q == nil {
		return nil
	}
	if q.MaxTime > 0 && wholeMinutes(w.time) > wholeMinutes(fromSeconds(q.MaxTime)) {
		return neverRuns("time", "--time="+formatSeconds(q.MaxTime), "QOS %s: at most %s (MaxWall), the job asks for %s", q.Name, formatSeconds(q.MaxTime), formatSeconds(int64(w.time/time.Second)))
	}
	over := func(a *fleet.Association) bool {
		return a.MaxTime > 0 && wholeMinutes(w.time) > wholeMinutes(fromSeconds(a.MaxTime))
	}
	if q.MaxTime > 0 || !ok || w.user == "" || len(all) == 0 || slices.ContainsFunc(all, func(a *fleet.Association) bool { return !over(a) }) {
		return nil
	}
	return neverRuns("time", "--time="+formatSeconds(all[0].MaxTime), "account %s: at most %s for user %s (MaxWall), the job asks for %s", all[0].Account, formatSeconds(all[0].MaxTime), w.user, formatSeconds(int64(w.time/time.Second)))
}

// byPartition: one of the partitions takes it.
func (w *submission) byPartition() error {
	var first error
	for _, name := range w.parts {
		err := w.checkPartition(w.partitions[name])
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// qosMayLift reports whether a QOS may let the job over a partition's limit.
func (w *submission) qosMayLift(p *fleet.Partition, flag string) bool {
	has := func(q *fleet.QOS) bool {
		return q != nil && slices.ContainsFunc(q.Flags, func(f string) bool { return strings.EqualFold(f, flag) })
	}
	if w.qos != "" || len(w.rules) == 0 {
		return has(w.rules[w.qos]) || has(w.rules[p.QOS]) || w.isPartMissing("qos") || w.qos != "" && w.rules[w.qos] == nil
	}
	return slices.ContainsFunc(w.inv.QOS, func(q fleet.QOS) bool { return has(&q) }) // which one it gets is not known
}

func (w *submission) checkPartition(p *fleet.Partition) error {
	switch {
	case p.MaxTime > 0 && wholeMinutes(w.time) > wholeMinutes(fromSeconds(p.MaxTime)) && !w.qosMayLift(p, "PartitionTimeLimit"):
		return neverRuns("time", "--time="+formatSeconds(p.MaxTime)+w.partitionsWithTime(), "partition %s: at most %s (MaxTime), the job asks for %s", p.Name, formatSeconds(p.MaxTime), formatSeconds(int64(w.time/time.Second)))
	case p.MaxNodes > 0 && w.nodes > p.MaxNodes && !w.qosMayLift(p, "PartitionMaxNodes"):
		return neverRuns("nodes", "--nodes="+strconv.Itoa(p.MaxNodes), "partition %s: at most %d nodes a job (MaxNodes), the job asks for %d", p.Name, p.MaxNodes, w.nodes)
	case w.account != "" && slices.Contains(p.DenyAccounts, w.account):
		return neverRuns("account", "another --account or --partition", "partition %s: not for account %s (DenyAccounts)", p.Name, w.account)
	case w.account != "" && len(p.Accounts) > 0 && !w.accountAmong(p.Accounts):
		return neverRuns("account", "--account: "+strings.Join(p.Accounts, ", "), "partition %s: not for account %s (AllowAccounts)", p.Name, w.account)
	case w.qos != "" && slices.Contains(p.DenyQOS, w.qos):
		return neverRuns("qos", "another --qos or --partition", "partition %s: not with QOS %s (DenyQos)", p.Name, w.qos)
	case w.qos != "" && len(p.AllowQOS) > 0 && !slices.Contains(p.AllowQOS, w.qos):
		return neverRuns("qos", "--qos: "+strings.Join(p.AllowQOS, ", "), "partition %s: not with QOS %s (AllowQos)", p.Name, w.qos)
	}
	return nil
}

// accountAmong reports whether the account, or one above it, is among some; or whether that is not
// known.
func (w *submission) accountAmong(some []string) bool {
	parents := map[string]string{}
	for _, a := range w.inv.Associations {
		if a.User == "" {
			parents[a.Account] = a.Parent
		}
	}
	at := w.account
	for range len(parents) + 1 {
		if slices.Contains(some, at) {
			return true
		}
		up, ok := parents[at]
		if !ok {
			return at != "" && at != "root" // an account that is not told of
		}
		at = up
	}
	return false
}

// partitionsWithTime names the partitions that take the time.
func (w *submission) partitionsWithTime() string {
	var out []string
	for _, p := range w.inv.Partitions {
		if p.MaxTime == 0 || wholeMinutes(w.time) <= wholeMinutes(fromSeconds(p.MaxTime)) {
			out = append(out, p.Name)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return ", or --partition: " + strings.Join(out, ", ")
}

// byLicense: there are as many as it asks for. A name that Slurm does not know is none of
// its licences.
func (w *submission) byLicense() error {
	all := indexByName(w.inv.Licenses, func(l *fleet.License) string { return l.Name })
	for _, name := range w.LicensesThere {
		if all[name] == nil && !strings.Contains(name, "@") && !w.isPartMissing("licenses") {
			mend := "--licenses: " + joinSortedNames(all)
			if len(all) == 0 {
				mend = "leave it out, or have an administrator of the site add it to the rules (licenses in queues.yaml), or one of the cluster to slurm.conf"
			}
			return neverRuns("licenses", mend, "there is no licence %s: neither the site nor the cluster counts it", name)
		}
	}
	if strings.ContainsAny(w.Licenses, "|@") {
		return nil
	}
	for part := range strings.SplitSeq(w.Licenses, ",") {
		name, count, ok := strings.Cut(strings.TrimSpace(part), ":")
		n := int64(1)
		if ok {
			var err error
			if n, err = strconv.ParseInt(count, 10, 64); err != nil {
				continue
			}
		}
		if l := all[name]; l != nil && n > l.Total {
			return neverRuns("licenses", fmt.Sprintf("--licenses=%s:%d", name, l.Total), "licence %s: there are %d, the job asks for %d", name, l.Total, n)
		}
	}
	return nil
}

func fromSeconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// wholeMinutes are what Slurm is given: whole ones, rounded up.
func wholeMinutes(d time.Duration) int64 { return int64((d + time.Minute - 1) / time.Minute) }

// formatSeconds is a time in sbatch's form.
func formatSeconds(s int64) string {
	text := fmt.Sprintf("%02d:%02d:%02d", s%86400/3600, s%3600/60, s%60)
	if s >= 86400 {
		return fmt.Sprintf("%d-%s", s/86400, text)
	}
	return text
}

// enforcesRule reports whether the cluster certainly enforces a kind of rule about accounts.
func enforcesRule(inv *fleet.Inventory, what string) bool {
	return slices.Contains(inv.Enforced, what) || slices.Contains(inv.Enforced, "all")
}

// indexByName are some things by name.
func indexByName[T any](all []T, name func(*T) string) map[string]*T {
	out := map[string]*T{}
	for i := range all {
		out[name(&all[i])] = &all[i]
	}
	return out
}

// joinSortedNames are names, sorted, for people.
func joinSortedNames[T any](m map[string]*T) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}
