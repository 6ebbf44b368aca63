package slurm

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/account"
	"github.com/coxswain-sched/coxswain/fault"
)

// conf reads slurm.conf. way are the files that include this one.
func (im *importer) conf(f File, way []string) error {
	if slices.Contains(way, f.Name) || len(way) > 16 {
		return fault.New(fault.Invalid, "%s: is included by itself", f.Name).Advise("take the Include line out that leads back: %s", strings.Join(append(way, f.Name), " > "))
	}
	for _, l := range confLines(f.Text) {
		all := l.settings(f.Name)
		first := all[0]
		switch {
		case first.is("include"):
			if err := im.include(f, first, all, way); err != nil {
				return err
			}
		case first.is("partitionname"):
			im.partition(all)
		case first.is("nodename"), first.is("nodeset"), first.is("downnodes"), first.is("frontendname"), first.is("switchname"):
			for _, s := range all {
				im.elsewhere(s, "nodes are found by the engine; what is declared of them stands in cox.yaml (room)")
			}
		default:
			for _, s := range all {
				im.one(s)
			}
		}
	}
	return nil
}

func (im *importer) include(f File, s setting, all []setting, way []string) error {
	name := s.value
	if s.alone && len(all) > 1 {
		name = all[1].String()
		s.key += " " + name
	}
	if im.o.Include == nil || name == "" {
		im.refuse(s, "the file is not at hand: name it on the command line")
		return nil
	}
	inner, err := im.o.Include(f.Name, name)
	if err != nil {
		im.refuse(s, "%v: name it on the command line, or put it there", err)
		return nil
	}
	im.kept(s)
	return im.conf(inner, append(way, f.Name))
}

// one is a setting of the cluster as a whole.
func (im *importer) one(s setting) {
	key := strings.ToLower(s.key)
	if f, ok := clusterKeys[key]; ok {
		f(im, s)
		return
	}
	if where, ok := elsewhereKeys[key]; ok {
		im.elsewhere(s, "%s", where)
		return
	}
	for _, p := range daemonPrefixes {
		if strings.HasPrefix(key, p) {
			im.elsewhere(s, "it is about Slurm's daemons")
			return
		}
	}
	im.refuse(s, "nothing here does what it says, and it is not known whether it matters: look at man slurm.conf")
}

// weight reads a weight of the priority.
func weight(to func(*account.Weights) *uint32) func(*importer, setting) {
	return func(im *importer, s setting) {
		im.number(s, 32, func(n int64) { *to(&im.p.Priority) = uint32(n) })
	}
}

// clusterKeys are the settings of slurm.conf that are rules of a site.
var clusterKeys = map[string]func(*importer, setting){
	"priorityweightage":            weight(func(w *account.Weights) *uint32 { return &w.Age }),
	"priorityweightassoc":          weight(func(w *account.Weights) *uint32 { return &w.Association }),
	"priorityweightfairshare":      weight(func(w *account.Weights) *uint32 { return &w.FairShare }),
	"priorityweightjobsize":        weight(func(w *account.Weights) *uint32 { return &w.JobSize }),
	"priorityweightpartition":      weight(func(w *account.Weights) *uint32 { return &w.Partition }),
	"priorityweightqos":            weight(func(w *account.Weights) *uint32 { return &w.QOS }),
	"priorityweighttres":           (*importer).weightTRES,
	"prioritytype":                 (*importer).priorityType,
	"prioritymaxage":               func(im *importer, s setting) { im.duration(s, func(d account.Duration) { im.p.Priority.MaxAge = d }) },
	"priorityfavorsmall":           func(im *importer, s setting) { im.p.Priority.FavorSmall = yes(s.value); im.kept(s) },
	"priorityflags":                (*importer).priorityFlags,
	"prioritydecayhalflife":        (*importer).halfLife,
	"prioritycalcperiod":           func(im *importer, s setting) { im.duration(s, func(d account.Duration) { im.p.FairShare.Period = d }) },
	"priorityusageresetperiod":     (*importer).usageReset,
	"schedulertype":                (*importer).schedulerType,
	"schedulerparameters":          (*importer).schedulerParameters,
	"preempttype":                  (*importer).preemptType,
	"preemptmode":                  func(im *importer, s setting) { im.preemptMode(s, &im.p.Preemption.Mode) },
	"preemptexempttime":            func(im *importer, s setting) { im.duration(s, func(d account.Duration) { im.p.Preemption.Exempt = d }) },
	"accountingstorageenforce":     (*importer).enforced,
	"licenses":                     (*importer).licenses,
	"enforcepartlimits":            (*importer).partLimits,
	"prioritysitefactorplugin":     refused("a program of the site decides there: give jobs a priority by QOS or account instead"),
	"prioritysitefactorparameters": refused("a program of the site decides there"),
	"preemptparameters":            refused("victims are chosen by what they lose: least GPU-seconds, whole gangs, minimal sets"),
	"jobsubmitplugins":             refused("a program of the site decides there: say what it says by limits, default_qos and allow_accounts"),
	"launchparameters":             refused("it is about how Slurm starts tasks"),
	"schedulertimeslice":           func(im *importer, s setting) { im.slices = append(im.slices, s) },
	"fairsharedampeningfactor":     refused("fair share is the Fair Tree, which needs no damping"),
}

func refused(why string) func(*importer, setting) {
	return func(im *importer, s setting) { im.refuse(s, "%s", why) }
}

func (im *importer) weightTRES(s setting) {
	im.weights(s, func(w map[string]float64) {
		im.p.Priority.TRES = map[string]uint32{}
		for name, f := range w {
			if name == "memory" {
				f /= 1024 // a weight of the factor, which has no unit
			}
			im.p.Priority.TRES[name] = uint32(min(max(f, 0), 1<<32-1))
		}
	})
}

func (im *importer) priorityType(s setting) {
	if strings.EqualFold(s.value, "priority/basic") {
		im.about(s, "first come, first served: write no weights")
		return
	}
	im.kept(s)
}

// words are those that a field may have, by its tag.
func words(of any, field string) []string {
	f, _ := reflect.TypeOf(of).FieldByName(field)
	return strings.Split(f.Tag.Get("enum"), ",")
}

func (im *importer) priorityFlags(s setting) {
	known := words(account.Weights{}, "Flags")
	var left []string
	for _, f := range list(s.value) {
		switch name := flagName(f); {
		case name == "fair_tree": // it is what there is
		case name == "max_tres":
			im.billing = "max"
		case name == "max_tres_gres":
			im.billing = "max_gres"
		case slices.Contains(known, name):
			if !slices.Contains(im.p.Priority.Flags, name) {
				im.p.Priority.Flags = append(im.p.Priority.Flags, name)
			}
		default:
			left = append(left, unbuilt(f))
		}
	}
	if len(left) > 0 {
		im.about(s, "without %s", strings.Join(left, "; without "))
		return
	}
	im.kept(s)
}

// unbuilt is a flag that nothing here does, and what does instead.
func unbuilt(flag string) string {
	if why, known := account.Instead(flagName(flag)); known {
		return flag + ", which is not built: " + why
	}
	return flag + ", which is not known"
}

func (im *importer) halfLife(s setting) {
	if s.value == "0" {
		im.p.FairShare.HalfLife = -1
		im.kept(s)
		return
	}
	im.duration(s, func(d account.Duration) { im.p.FairShare.HalfLife = d })
}

func (im *importer) usageReset(s setting) {
	v := strings.ToLower(s.value)
	switch {
	case v == "none":
		im.kept(s)
	case v == "now":
		im.refuse(s, "usage is not forgotten by a file that is applied again and again")
	case slices.Contains(words(account.FairShare{}, "Reset"), v):
		im.p.FairShare.Reset = v
		im.kept(s)
	default:
		im.unreadable(s, "a period")
	}
}

func (im *importer) schedulerType(s setting) {
	switch strings.ToLower(s.value) {
	case "sched/backfill":
		im.backfill = true
		im.kept(s)
	case "sched/builtin":
		im.p.Backfill.Off = true
		im.kept(s)
	default:
		im.refuse(s, "there is backfill, and the strict order (backfill: {off: true})")
	}
}

// schedulerParameters judges each option by itself.
func (im *importer) schedulerParameters(s setting) {
	for _, part := range list(s.value) {
		key, value, _ := strings.Cut(part, "=")
		one := setting{file: s.file, line: s.line, key: s.key, value: part}
		n, err := strconv.Atoi(value)
		switch k := strings.ToLower(key); {
		case k == "bf_max_job_test" && err == nil && n > 0:
			im.p.Backfill.Depth = n
			im.about(one, "backfill.depth counts kinds of job, not jobs")
		case k == "bf_job_part_count_reserve" && err == nil && n >= 0:
			im.p.Backfill.Reservations = n
			im.about(one, "backfill.reservations is for the whole queue, not for each partition")
		case k == "max_switch_wait" && err == nil && n >= 0:
			im.switchWait(one, n)
		case k == "bf_continue", k == "assoc_limit_stop", k == "nohold_on_prolog_fail":
			im.refuse(one, "%s", schedulerWords[k])
		case strings.HasPrefix(k, "bf_"), slices.Contains(pacing, k):
			im.refuse(one, "it bounds the work of a pass, which here costs what has changed")
		default:
			im.refuse(one, "nothing here does that")
		}
	}
}

// switchWait: Slurm's default is ours, and none at all has a word of its own.
func (im *importer) switchWait(s setting, seconds int) {
	im.p.Topology.SwitchWait = account.Duration(time.Duration(seconds) * time.Second)
	if seconds == 0 {
		im.p.Topology.SwitchWait = -1
	}
	im.kept(s)
}

var schedulerWords = map[string]string{
	"bf_continue":           "a pass is not interrupted, so it does not have to go on",
	"assoc_limit_stop":      "a job at its limit is passed by others; a quota's order: strict lets nothing pass",
	"nohold_on_prolog_fail": "a failed start is tried again with growing pauses",
}

var pacing = []string{
	"default_queue_depth", "partition_job_depth", "sched_interval", "sched_min_interval", "sched_max_job_start", "max_rpc_cnt", "max_sched_time",
	"batch_sched_delay", "build_queue_timeout", "defer", "defer_batch", "sched_queue_depth",
}

func (im *importer) preemptType(s setting) {
	switch strings.ToLower(s.value) {
	case "preempt/none", "none", "":
		im.p.Preemption.By = nil
	case "preempt/qos":
		im.p.Preemption.By = []string{"qos"}
	case "preempt/partition_prio":
		im.p.Preemption.By = []string{"partition"}
	default:
		im.unreadable(s, "a way to preempt: preempt/qos, preempt/partition_prio")
		return
	}
	im.kept(s)
}

// preemptMode reads a mode of the cluster, a partition or a QOS.
func (im *importer) preemptMode(s setting, to *string) {
	var left []string
	for _, m := range list(s.value) {
		switch low := strings.ToLower(m); low {
		case "off", "cluster", "":
		case "requeue", "cancel":
			*to = low
		case "suspend":
			*to = low
		case "gang":
			im.gang = true // with SUSPEND it is what lets jobs go on; alone it is about partitions
		case "within":
			left = append(left, "WITHIN (preemption.by: [priority] lets jobs of one QOS stop each other)")
		default:
			left = append(left, m)
		}
	}
	if len(left) > 0 {
		im.about(s, "without %s", strings.Join(left, ", "))
		return
	}
	im.kept(s)
}

// enforced: the rules of a site are always enforced here.
func (im *importer) enforced(s setting) {
	have := map[string]bool{}
	var left []string
	for _, v := range list(strings.ToLower(s.value)) {
		have[v] = true
		if slices.Contains([]string{"wckeys", "nosteps", "nojobs"}, v) {
			left = append(left, v)
		}
	}
	im.enforce = true
	switch all := have["all"] || have["limits"] && have["qos"] || have["safe"] && have["qos"]; {
	case !all:
		im.about(s, "accounts, QOS and limits of the rules are always enforced here: leave out what is not meant to be")
	case len(left) > 0:
		im.about(s, "without %s: a job starts if it keeps its limits then; usage is of all jobs", strings.Join(left, ", "))
	default:
		im.kept(s)
	}
}

func (im *importer) licenses(s setting) {
	for _, part := range list(strings.ReplaceAll(s.value, ";", ",")) {
		name, count, ok := strings.Cut(strings.Replace(part, "*", ":", 1), ":")
		n := int64(1)
		if ok {
			v, err := strconv.ParseInt(count, 10, 32)
			if err != nil || v < 0 {
				im.unreadable(s, "a list of NAME:COUNT")
				return
			}
			n = v
		}
		name, _, _ = strings.Cut(name, "@")
		if !slices.ContainsFunc(im.p.Licenses, func(l account.License) bool { return l.Name == name }) {
			im.p.Licenses = append(im.p.Licenses, account.License{Name: name, Count: n})
		}
	}
	im.kept(s)
}

func (im *importer) partLimits(s setting) {
	if strings.EqualFold(s.value, "no") {
		im.kept(s)
		return
	}
	im.about(s, "a job that exceeds a limit of a partition waits and says so; one that can never start there is told at once")
}

// elsewhereKeys are settings that have a place, but not in the rules of a site.
var elsewhereKeys = map[string]string{
	"clustername": "name in cox.yaml", "killwait": "jobs.grace in cox.yaml", "minjobage": "state.memory in cox.yaml", "maxarraysize": "jobs.max_array in cox.yaml",
	"unkillablesteptimeout": "jobs.unkillable in cox.yaml", "kill_on_invalid_depend": "jobs.kill_on_invalid_dep in cox.yaml", "prolog": "hooks.prolog in cox.yaml", "epilog": "hooks.epilog in cox.yaml",
	"mailprog": "notify.command in cox.yaml", "maildomain": "notify.domain in cox.yaml", "privatedata": "auth.private in cox.yaml", "statesavelocation": "state.dir in cox.yaml",
	"slurmctlddebug": "log.level in cox.yaml", "grestypes": "devices are found by the engine", "accountingstoragetres": "all of cpu, memory, gpu, node and licences is always counted",
	"gresplugins": "devices are found by the engine", "maxjobcount": "there is no bound; submitted in limits bounds an account's", "jobrequeue": "a job says --requeue itself",
	"defmempercpu": "a job says its memory itself", "defmempernode": "a job says its memory itself", "maxmempernode": "limits.node of a QOS", "maxmempercpu": "limits of a QOS",
	"overtimelimit": "a job ends at its limit", "firstjobid": "numbers begin with 1", "returntoservice": "a node that answers again is used again", "rebootprogram": "nodes are not booted from here",
	"topologyplugin": "the topology is a property of nodes", "topologyparam": "the topology is a property of nodes",
}

// daemonPrefixes begin the settings of Slurm's own processes.
var daemonPrefixes = []string{
	"slurm", "control", "backup", "auth", "cred", "crypto", "proctrack", "task", "jobacct", "jobcomp", "jobcontainer", "jobcredential", "jobfile", "accountingstorage", "acct", "select", "switch", "mpi",
	"log", "debug", "messagetimeout", "inactivelimit", "waittime", "tcptimeout", "batchstarttimeout", "completewait", "epilog", "prolog", "health", "tmp", "plug", "communication", "cli", "dependency",
	"federation", "get", "group", "hash", "httpparser", "interactive", "keepalive", "disable", "resume", "suspend", "power", "propagate", "resv", "route", "salloc", "sbatch", "srun", "burstbuffer", "bcast",
	"core", "data", "track", "use", "vsize", "x11", "namespace", "certmgr", "url", "tls", "fast", "metrics", "stepmgr", "cache", "cloud", "ext", "rsip", "checkpoint", "eio", "allowspec", "parameters", "maxdbd", "maxstep", "maxtasks", "maxbatch", "maxnodecount", "nodefeatures", "mcs",
}
