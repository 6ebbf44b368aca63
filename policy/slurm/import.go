package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/account"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/policy"
	"github.com/coxswain-sched/coxswain/slurmfmt"
)

// File is a text with the name by which its user knows it.
type File struct {
	Name string
	Text string
}

// Options say what stands around the files.
type Options struct {
	// Include returns the text that an Include line of a file names.
	Include func(from, name string) (File, error)
}

// Import reads slurm.conf and dumps, in the order given, and returns the rules with
// what became of every setting. The error is about files that are none of these.
func Import(files []File, o Options) (*account.Policy, *policy.Report, error) {
	im := &importer{o: o, p: &account.Policy{}, report: &policy.Report{}, qos: map[string]*account.QOS{}, thresholds: map[string]setting{}, says: map[string]bool{}, enforces: map[string]bool{}, flavor: map[string]bool{}}
	for _, f := range files {
		switch kindOf(f.Text) {
		case aConf:
			if err := im.conf(f, nil); err != nil {
				return nil, nil, err
			}
		case aDump:
			im.dump(f)
		case aTable:
			im.table(f)
		default:
			return nil, nil, fault.New(fault.Invalid, "%s: is neither slurm.conf nor the output of sacctmgr dump", f.Name).
				Advise("cox import slurm /etc/slurm/slurm.conf dump.cfg, after: sacctmgr dump CLUSTER file=dump.cfg")
		}
	}
	im.finish()
	return im.p, im.report, nil
}

type kind uint8

const (
	nothing kind = iota
	aConf
	aDump
	aTable // sacctmgr show qos -P
)

// kindOf tells the files apart by their first line that says something.
func kindOf(text string) kind {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case strings.HasPrefix(strings.ToLower(line), "name|"):
			return aTable
		}
		if d, ok := dumpLineOf("", 0, line); ok && slices.Contains([]string{"cluster", "parent", "account", "user", "qos"}, d.kind) {
			return aDump
		}
		if strings.Contains(line, "=") || strings.HasPrefix(strings.ToLower(line), "include ") {
			return aConf
		}
		return nothing
	}
	return aConf // nothing is in it
}

// importer is the rules while they are made.
type importer struct {
	o      Options
	p      *account.Policy
	report *policy.Report

	defaults []setting // of PartitionName=DEFAULT
	billing  string    // of PriorityFlags
	backfill bool
	enforce  bool
	qos      map[string]*account.QOS

	thresholds map[string]setting // UsageThreshold, by QOS
	shares     []*shared          // OverSubscribe=NO and FORCE
	says       map[string]bool    // OverSubscribe, of partitions
	gang       bool               // forced ones have jobs take turns
	slices     []setting          // SchedulerTimeSlice
	enforces   map[string]bool    // QOS with EnforceUsageThreshold
	flavor     map[string]bool
	assocs     assocs
}

func (im *importer) add(s setting, v policy.Verdict, how string, args ...any) {
	if len(args) > 0 {
		how = fmt.Sprintf(how, args...)
	}
	im.report.Add(policy.Finding{File: s.file, Line: s.line, What: s.String(), Verdict: v, How: how})
}

func (im *importer) kept(s setting) { im.add(s, policy.Kept, "") }

func (im *importer) about(s setting, how string, args ...any) {
	im.add(s, policy.Approximated, how, args...)
}

func (im *importer) refuse(s setting, why string, args ...any) {
	im.add(s, policy.Refused, why, args...)
}

func (im *importer) elsewhere(s setting, where string, args ...any) {
	im.add(s, policy.Elsewhere, where, args...)
}

// unreadable refuses a value that says nothing that can be understood.
func (im *importer) unreadable(s setting, what string) {
	im.refuse(s, "%q is not %s", s.value, what)
}

// number reads a whole number from 0 on; -1 and none (Slurm's "not limited") are
// false and need no word.
func (im *importer) number(s setting, bits int, set func(int64)) {
	v := strings.TrimSpace(s.value)
	if unlimited(v) {
		im.kept(s)
		return
	}
	n, err := strconv.ParseUint(v, 10, bits)
	if err != nil {
		im.unreadable(s, "a number")
		return
	}
	set(int64(n))
	im.kept(s)
}

func unlimited(v string) bool {
	switch strings.ToUpper(strings.TrimSpace(v)) {
	case "", "-1", "INFINITE", "UNLIMITED", "NONE", "(NULL)":
		return true
	}
	return false
}

// duration reads a time as Slurm writes limits: minutes, h:m:s, d-h.
func (im *importer) duration(s setting, set func(account.Duration)) {
	if unlimited(s.value) {
		im.kept(s)
		return
	}
	d, err := slurmfmt.ParseTimeLimit(s.value)
	if err != nil || d < 0 {
		im.unreadable(s, "a time")
		return
	}
	set(account.Duration(d))
	im.kept(s)
}

// seconds reads a time in seconds.
func (im *importer) seconds(s setting, set func(account.Duration)) {
	n, err := strconv.ParseUint(s.value, 10, 32)
	if err != nil {
		im.duration(s, set) // some versions write 00:01:00
		return
	}
	set(account.Duration(time.Duration(n) * time.Second))
	im.kept(s)
}

// yes reads Slurm's booleans.
func yes(v string) bool {
	switch strings.ToLower(v) {
	case "yes", "up", "true", "1":
		return true
	}
	return false
}

// list takes a value apart at commas.
func list(v string) (out []string) {
	for part := range strings.SplitSeq(v, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// flagName turns Slurm's names of flags into ours: FAIR_TREE and DenyOnLimit become
// fair_tree and deny_on_limit.
func flagName(s string) string {
	if strings.ToUpper(s) == s {
		return strings.ToLower(s)
	}
	var b strings.Builder
	for i, r := range s {
		if r >= 'A' && r <= 'Z' {
			if i > 0 && (s[i-1] < 'A' || s[i-1] > 'Z') {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// finish settles what files decide together.
func (im *importer) finish() {
	im.settle()
	for i := range im.p.Partitions {
		if p := &im.p.Partitions[i]; len(p.Billing) > 0 && im.billing != "" {
			p.BillingRule = im.billing
		}
	}
	im.together()
}
