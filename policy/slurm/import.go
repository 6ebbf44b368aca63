package slurm

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/policy"
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
	r, err := Read(files, o)
	if err != nil {
		return nil, nil, err
	}
	return r.Policy, r.Report, nil
}

// Result is what files of Slurm's become.
type Result struct {
	Policy  *account.Policy
	Report  *policy.Report
	Cluster *Cluster // its machines, as far as the files declare them
	Server  *Server  // what belongs into the server's cox.yaml
}

// Read is Import, and reads files about machines too.
func Read(files []File, o Options) (*Result, error) {
	c := newCluster()
	im := &importer{told: map[setting]int{}, cluster: c, server: &Server{cluster: c}, o: o, p: &account.Policy{}, report: &policy.Report{}, qos: map[string]*account.QOS{}, defined: map[string]bool{}, thresholds: map[string]setting{}, says: map[string]bool{}, enforces: map[string]bool{}, flavor: map[string]bool{}}
	// What lies below speaks of what slurm.conf declares, in whatever order they are named.
	slices.SortStableFunc(files, func(a, b File) int { return cmp.Compare(kindOf(a).readingOrder(), kindOf(b).readingOrder()) })
	for _, f := range files {
		if err := im.readFile(im.maskBinary(f)); err != nil {
			return nil, err
		}
	}
	im.finishImport()
	im.checkMachines()
	im.reportMissing(files)
	return &Result{im.p, im.report, im.cluster, im.server}, nil
}

func (im *importer) readFile(f File) error {
	switch k := kindOf(f); k {
	case aConf:
		return im.readConf(f, nil)
	case aDump:
		im.readDump(f)
	case aTable:
		im.readQOSTable(f)
	case aShown:
		im.readShownConfig(f)
	case aGres:
		im.readGres(f)
	case aTopology:
		im.readTopology(f)
	case aTopologyYAML:
		return im.topologyYAML(f)
	case aScript:
		im.refuseSetting(setting{file: f.Name, key: path.Base(f.Name), alone: true}, siteProgram)
	case another:
		im.readUnused(f)
	default:
		return fault.New(fault.Invalid, "%s: this is not a file of Slurm's that the import knows, such as slurm.conf or the output of sacctmgr dump", f.Name).
			Advise("name files that are: cox import slurm /etc/slurm/slurm.conf dump.cfg (sacctmgr dump CLUSTER file=dump.cfg makes the second)")
	}
	return nil
}

// importer is the rules while they are made.
type importer struct {
	o       Options
	p       *account.Policy
	cluster *Cluster
	report  *policy.Report

	defaults []setting       // of PartitionName=DEFAULT
	usual    []setting       // of NodeName=DEFAULT
	told     map[setting]int // findings about settings that are elsewhere
	billing  string          // of PriorityFlags
	backfill bool
	basic    bool   // PriorityType=priority/basic
	consumes string // SelectTypeParameters
	enforce  bool
	server   *Server
	defined  map[string]bool // QOS that a file defines, not only names
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

func (im *importer) addVerdict(s setting, v policy.Verdict, how string, args ...any) {
	if len(args) > 0 {
		how = fmt.Sprintf(how, args...)
	}
	im.report.Add(policy.Finding{File: s.file, Line: s.line, What: s.String(), Verdict: v, How: how})
}

func newReport() *policy.Report { return &policy.Report{} }

func (im *importer) noteKept(s setting) { im.addVerdict(s, policy.Kept, "") }

func (im *importer) noteAbout(s setting, how string, args ...any) {
	im.addVerdict(s, policy.Approximated, how, args...)
}

// refuseSetting says that nothing does what a setting says. What it was said to be before is put right.
func (im *importer) refuseSetting(s setting, why string, args ...any) {
	if i, ok := im.told[s]; ok {
		im.report.Findings[i].Verdict, im.report.Findings[i].How = policy.Refused, fmt.Sprintf(why, args...)
		return
	}
	im.addVerdict(s, policy.Refused, why, args...)
}

func (im *importer) noteElsewhere(s setting, where string, args ...any) {
	im.noteVerdict(s, policy.Elsewhere, where, args...)
}

// noteVerdict reports a setting that may still be refused.
func (im *importer) noteVerdict(s setting, v policy.Verdict, how string, args ...any) {
	if im.told != nil {
		im.told[s] = len(im.report.Findings)
	}
	im.addVerdict(s, v, how, args...)
}

// refuseUnreadable refuses a value that says nothing that can be understood.
func (im *importer) refuseUnreadable(s setting, what string) {
	im.refuseSetting(s, "%q is not %s", s.value, what)
}

// readNumber reads a whole number from 0 on; -1 and none (Slurm's "not limited") are
// false and need no word.
func (im *importer) readNumber(s setting, bits int, set func(int64)) {
	v := strings.TrimSpace(s.value)
	if isUnlimited(v) {
		im.noteKept(s)
		return
	}
	n, err := strconv.ParseUint(v, 10, bits)
	if err != nil {
		im.refuseUnreadable(s, "a number")
		return
	}
	set(int64(n))
	im.noteKept(s)
}

func isUnlimited(v string) bool {
	switch strings.ToUpper(strings.TrimSpace(v)) {
	case "", "-1", "INFINITE", "UNLIMITED", "NONE", "(NULL)":
		return true
	}
	return false
}

// readDuration reads a time as Slurm writes limits: minutes, h:m:s, d-h.
func (im *importer) readDuration(s setting, set func(account.Duration)) {
	if isUnlimited(s.value) {
		im.noteKept(s)
		return
	}
	d, err := slurmfmt.ParseTimeLimit(s.value)
	if err != nil || d < 0 {
		im.refuseUnreadable(s, "a time")
		return
	}
	set(account.Duration(d))
	im.noteKept(s)
}

// readSeconds reads a time in seconds.
func (im *importer) readSeconds(s setting, set func(account.Duration)) {
	n, err := strconv.ParseUint(s.value, 10, 32)
	if err != nil {
		im.readDuration(s, set) // some versions write 00:01:00
		return
	}
	set(account.Duration(time.Duration(n) * time.Second))
	im.noteKept(s)
}

// isYes reads Slurm's booleans.
func isYes(v string) bool {
	switch strings.ToLower(v) {
	case "yes", "up", "true", "1":
		return true
	}
	return false
}

// splitCommas takes a value apart at commas.
func splitCommas(v string) (out []string) {
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

// finishImport settles what files decide together.
func (im *importer) finishImport() {
	im.combineLines()
	if im.basic {
		im.p.Priority = account.Weights{}
	}
	for i := range im.p.Partitions {
		if p := &im.p.Partitions[i]; len(p.Billing) > 0 && im.billing != "" {
			p.BillingRule = im.billing
		}
	}
	im.checkContradictions()
}
