package slurm

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/policy"
)

// readConf reads slurm.conf. way are the files that include this one.
func (im *importer) readConf(f File, way []string) error {
	if slices.Contains(way, f.Name) || len(way) > 16 {
		return fault.New(fault.Invalid, "%s: is included by itself", f.Name).Advise("take the Include line out that leads back: %s", strings.Join(append(way, f.Name), " > "))
	}
	for _, l := range confLines(f.Text) {
		all := l.splitSettings(f.Name)
		first := all[0]
		switch {
		case isTemplated(l.text):
			im.readTemplate(f, l)
		case first.hasKey("include"):
			if err := im.readInclude(f, first, all, way); err != nil {
				return err
			}
		case first.hasKey("partitionname"):
			im.readPartition(all)
		case first.hasKey("nodename"):
			im.readNodes(all)
		case first.hasKey("nodeset"):
			im.nodeSet(all)
		case first.hasKey("downnodes"):
			im.downNodes(all)
		case first.hasKey("frontendname"):
			im.reportEach(all, ofFront, "FrontendName line", "")
		default:
			for _, s := range all {
				im.readGlobal(s)
			}
		}
	}
	return nil
}

// readTemplate is a line that only becomes one of a configuration: what it sets is named, its
// value is not known.
func (im *importer) readTemplate(f File, l confLine) {
	key, value, paired := strings.Cut(l.text, "=")
	key = strings.TrimSpace(key)
	s := setting{file: f.Name, line: l.line, key: key, value: value, alone: !paired}
	if why, ok := confIndex[strings.ToLower(key)]; ok {
		im.notUsed(s, why)
		return
	}
	if where, ok := elsewhereKeys[strings.ToLower(key)]; ok {
		im.noteElsewhere(s, "%s", where)
		return
	}
	im.refuseSetting(s, "it is a line of a template: hand the file to the import that is made of it")
}

func (im *importer) readInclude(f File, s setting, all []setting, way []string) error {
	name := s.value
	if s.alone && len(all) > 1 {
		name = all[1].String()
		s.key += " " + name
	}
	name = strings.ReplaceAll(name, "%c", im.cluster.Name)
	if im.o.Include == nil || name == "" {
		im.refuseSetting(s, "the file is not at hand: name it on the command line")
		return nil
	}
	inner, err := im.o.Include(f.Name, name)
	if err != nil {
		im.refuseSetting(s, "%v: name it on the command line, or put it there", err)
		return nil
	}
	im.noteKept(s)
	return im.readConf(im.maskBinary(inner), append(way, f.Name))
}

// readGlobal is a setting of the cluster as a whole.
func (im *importer) readGlobal(s setting) {
	key := strings.ToLower(s.key)
	if f, ok := clusterKeys[key]; ok {
		f(im, s)
		return
	}
	if key == "clustername" {
		im.cluster.Name = strings.ToLower(s.value)
	}
	if where, ok := elsewhereKeys[key]; ok {
		im.noteElsewhere(s, "%s", where)
		return
	}
	if why, ok := confIndex[key]; ok {
		im.notUsed(s, why)
		return
	}
	im.refuseSetting(s, "%s", unknownDirective(s.key, "slurm.conf", slices.Concat(namesOf(unusedConf), slices.Collect(maps.Keys(placed)), slices.Collect(maps.Keys(ruleWords)))))
}

// notUsed says why nothing here looks at a directive, and what is its name now.
func (im *importer) notUsed(s setting, why string) {
	if old := oldNames[strings.ToLower(s.key)]; old != "" && !strings.EqualFold(old, s.key) {
		why += "; an old name, since then " + old
	}
	im.noteElsewhere(s, "not used: %s", why)
}

// priorityWeight reads a weight of the priority.
func priorityWeight(to func(*account.Weights) *uint32) func(*importer, setting) {
	return func(im *importer, s setting) {
		im.readNumber(s, 32, func(n int64) { *to(&im.p.Priority) = uint32(n) })
	}
}

// clusterKeys are the settings of slurm.conf that are rules of a site.
var clusterKeys = map[string]func(*importer, setting){
	"priorityweightage":       priorityWeight(func(w *account.Weights) *uint32 { return &w.Age }),
	"priorityweightassoc":     priorityWeight(func(w *account.Weights) *uint32 { return &w.Association }),
	"priorityweightfairshare": priorityWeight(func(w *account.Weights) *uint32 { return &w.FairShare }),
	"priorityweightjobsize":   priorityWeight(func(w *account.Weights) *uint32 { return &w.JobSize }),
	"priorityweightpartition": priorityWeight(func(w *account.Weights) *uint32 { return &w.Partition }),
	"priorityweightqos":       priorityWeight(func(w *account.Weights) *uint32 { return &w.QOS }),
	"priorityweighttres":      (*importer).weightTRES,
	"prioritytype":            (*importer).priorityType,
	"prioritymaxage": func(im *importer, s setting) {
		im.readDuration(s, func(d account.Duration) { im.p.Priority.MaxAge = d })
	},
	"priorityfavorsmall":    func(im *importer, s setting) { im.p.Priority.FavorSmall = isYes(s.value); im.noteKept(s) },
	"priorityflags":         (*importer).priorityFlags,
	"prioritydecayhalflife": (*importer).halfLife,
	"prioritycalcperiod": func(im *importer, s setting) {
		im.readDuration(s, func(d account.Duration) { im.p.FairShare.Period = d })
	},
	"priorityusageresetperiod": (*importer).usageReset,
	"schedulertype":            (*importer).schedulerType,
	"schedulerparameters":      (*importer).schedulerParameters,
	"preempttype":              (*importer).preemptType,
	"preemptmode":              func(im *importer, s setting) { im.preemptMode(s, &im.p.Preemption.Mode) },
	"preemptexempttime": func(im *importer, s setting) {
		im.readDuration(s, func(d account.Duration) { im.p.Preemption.Exempt = d })
	},
	"jobrequeue":                   (*importer).jobRequeue,
	"jobfileappend":                (*importer).jobFileAppend,
	"accountingstorageenforce":     (*importer).noteEnforced,
	"licenses":                     (*importer).readLicenses,
	"enforcepartlimits":            (*importer).partLimits,
	"prioritysitefactorplugin":     refusedSetting("a program of the site decides there: give jobs a priority by QOS or account instead"),
	"prioritysitefactorparameters": refusedSetting("a program of the site decides there"),
	"preemptparameters":            refusedSetting("victims are chosen by what they lose: least GPU-seconds, whole gangs, minimal sets"),
	"jobsubmitplugins":             refusedSetting("a program of the site decides there: say what it says by limits, default_qos and allow_accounts"),
	"launchparameters":             refusedSetting("it is about how Slurm starts tasks"),
	"schedulertimeslice":           func(im *importer, s setting) { im.slices = append(im.slices, s) },
	"fairsharedampeningfactor":     refusedSetting("fair share is the Fair Tree, which needs no damping"),
}

// ruleWords are the names of clusterKeys with what they become, for people.
var ruleWords = map[string]string{
	"PriorityWeightAge": "`priority.age`", "PriorityWeightAssoc": "`priority.association`", "PriorityWeightFairshare": "`priority.fair_share`", "PriorityWeightJobSize": "`priority.job_size`",
	"PriorityWeightPartition": "`priority.partition`", "PriorityWeightQOS": "`priority.qos`", "PriorityWeightTRES": "`priority.tres`", "PriorityType": "multifactor is what there is; basic: no weights",
	"PriorityMaxAge": "`priority.max_age`", "PriorityFavorSmall": "`priority.favor_small`", "PriorityFlags": "`priority.flags`, a partition's `billing_rule`", "PriorityDecayHalfLife": "`fair_share.half_life`",
	"PriorityCalcPeriod": "`fair_share.period`", "PriorityUsageResetPeriod": "`fair_share.reset`", "SchedulerType": "`backfill`", "SchedulerParameters": "each by itself: `backfill`, `topology.switch_wait`",
	"JobRequeue": "`batch.requeue`", "JobFileAppend": "`batch.open_mode`",
	"PreemptType": "`preemption.by`", "PreemptMode": "`preemption.mode`", "PreemptExemptTime": "`preemption.exempt`", "AccountingStorageEnforce": "the rules are always enforced", "Licenses": "`licenses`",
	"EnforcePartLimits": "near it: what can never start is refused at once", "SchedulerTimeSlice": "`time_slice` of partitions where jobs take turns",
	"PrioritySiteFactorPlugin": "refused: a program", "PrioritySiteFactorParameters": "refused: a program", "PreemptParameters": "refused: victims are chosen by what they lose",
	"JobSubmitPlugins": "refused: a program; limits, `default_qos` and `allow_accounts` say what it says", "LaunchParameters": "refused: how Slurm starts tasks",
	"FairShareDampeningFactor": "refused: the Fair Tree needs no damping",
}

func refusedSetting(why string) func(*importer, setting) {
	return func(im *importer, s setting) { im.refuseSetting(s, "%s", why) }
}

func (im *importer) weightTRES(s setting) {
	im.readBillingWeights(s, func(w map[string]float64) {
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
		im.noteAbout(s, "first come, first served: write no weights")
		return
	}
	im.noteKept(s)
}

// allowedWords are those that a field may have, by its tag.
func allowedWords(of any, field string) []string {
	f, _ := reflect.TypeOf(of).FieldByName(field)
	return strings.Split(f.Tag.Get("enum"), ",")
}

func (im *importer) priorityFlags(s setting) {
	known := allowedWords(account.Weights{}, "Flags")
	var left []string
	for _, f := range splitCommas(s.value) {
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
			left = append(left, unsupportedFlag(f))
		}
	}
	if len(left) > 0 {
		im.noteAbout(s, "without %s", strings.Join(left, "; without "))
		return
	}
	im.noteKept(s)
}

// unsupportedFlag is a flag that nothing here does, and what does instead.
func unsupportedFlag(flag string) string {
	if why, known := account.Instead(flagName(flag)); known {
		return flag + ", which is not built: " + why
	}
	return flag + ", which is not known"
}

func (im *importer) halfLife(s setting) {
	if s.value == "0" {
		im.p.FairShare.HalfLife = -1
		im.noteKept(s)
		return
	}
	im.readDuration(s, func(d account.Duration) { im.p.FairShare.HalfLife = d })
}

func (im *importer) usageReset(s setting) {
	v := strings.ToLower(s.value)
	switch {
	case v == "none":
		im.noteKept(s)
	case v == "now":
		im.refuseSetting(s, "usage is not forgotten by a file that is applied again and again")
	case slices.Contains(allowedWords(account.FairShare{}, "Reset"), v):
		im.p.FairShare.Reset = v
		im.noteKept(s)
	default:
		im.refuseUnreadable(s, "a period")
	}
}

func (im *importer) schedulerType(s setting) {
	switch strings.ToLower(s.value) {
	case "sched/backfill":
		im.backfill = true
		im.noteKept(s)
	case "sched/builtin":
		im.p.Backfill.Off = true
		im.noteKept(s)
	default:
		im.refuseSetting(s, "there is backfill, and the strict order (backfill: {off: true})")
	}
}

// schedulerParameters judges each option by itself.
func (im *importer) schedulerParameters(s setting) {
	for _, part := range splitCommas(s.value) {
		key, value, _ := strings.Cut(part, "=")
		one := setting{file: s.file, line: s.line, key: s.key, value: part}
		n, err := strconv.Atoi(value)
		switch k := strings.ToLower(key); {
		case k == "bf_max_job_test" && err == nil && n > 0:
			im.p.Backfill.Depth = n
			im.noteAbout(one, "backfill.depth counts kinds of job, not jobs")
		case k == "bf_job_part_count_reserve" && err == nil && n >= 0:
			im.p.Backfill.Reservations = n
			im.noteAbout(one, "backfill.reservations is for the whole queue, not for each partition")
		case k == "max_switch_wait" && err == nil && n >= 0:
			im.switchWait(one, n)
		case k == "bf_continue", k == "assoc_limit_stop", k == "nohold_on_prolog_fail":
			im.refuseSetting(one, "%s", schedulerWords[k])
		case strings.HasPrefix(k, "bf_"), slices.Contains(pacing, k):
			im.refuseSetting(one, "it bounds the work of a pass, which here costs what has changed")
		default:
			im.refuseSetting(one, "nothing here does that")
		}
	}
}

// switchWait: Slurm's default is ours, and none at all has a word of its own.
func (im *importer) switchWait(s setting, seconds int) {
	im.p.Topology.SwitchWait = account.Duration(time.Duration(seconds) * time.Second)
	if seconds == 0 {
		im.p.Topology.SwitchWait = -1
	}
	im.noteKept(s)
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

// jobRequeue reads whether batch jobs are requeued that do not say. That they are is the rule here, too.
func (im *importer) jobRequeue(s setting) {
	switch s.value {
	case "1":
		im.p.Batch.Requeue = ""
		im.noteKept(s)
	case "0":
		im.p.Batch.Requeue = account.RequeueOff
		im.addVerdict(s, policy.Kept, "batch scripts run once unless they say --requeue; preemption by requeue ends the others for good")
	default:
		im.refuseUnreadable(s, "0 or 1")
	}
}

// jobFileAppend reads what becomes of output files that are there when a batch job starts.
func (im *importer) jobFileAppend(s setting) {
	switch s.value {
	case "0":
		im.p.Batch.OpenMode = ""
	case "1":
		im.p.Batch.OpenMode = account.OpenAppend
	default:
		im.refuseUnreadable(s, "0 or 1")
		return
	}
	im.noteKept(s)
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
		im.refuseUnreadable(s, "a way to preempt: preempt/qos, preempt/partition_prio")
		return
	}
	im.noteKept(s)
}

// preemptMode reads a mode of the cluster, a partition or a QOS.
func (im *importer) preemptMode(s setting, to *string) {
	var left []string
	for _, m := range splitCommas(s.value) {
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
		im.noteAbout(s, "without %s", strings.Join(left, ", "))
		return
	}
	im.noteKept(s)
}

// noteEnforced: the rules of a site are always enforced here.
func (im *importer) noteEnforced(s setting) {
	have := map[string]bool{}
	var left []string
	for _, v := range splitCommas(strings.ToLower(s.value)) {
		have[v] = true
		if slices.Contains([]string{"wckeys", "nosteps", "nojobs"}, v) {
			left = append(left, v)
		}
	}
	im.enforce = true
	switch all := have["all"] || have["limits"] && have["qos"] || have["safe"] && have["qos"]; {
	case !all:
		im.noteAbout(s, "accounts, QOS and limits of the rules are always enforced here: leave out what is not meant to be")
	case len(left) > 0:
		im.noteAbout(s, "without %s: a job starts if it keeps its limits then; usage is of all jobs", strings.Join(left, ", "))
	default:
		im.noteKept(s)
	}
}

func (im *importer) readLicenses(s setting) {
	for _, part := range splitCommas(strings.ReplaceAll(s.value, ";", ",")) {
		name, count, ok := strings.Cut(strings.Replace(part, "*", ":", 1), ":")
		n := int64(1)
		if ok {
			v, err := strconv.ParseInt(count, 10, 32)
			if err != nil || v < 0 {
				im.refuseUnreadable(s, "a list of NAME:COUNT")
				return
			}
			n = v
		}
		name, _, _ = strings.Cut(name, "@")
		if !slices.ContainsFunc(im.p.Licenses, func(l account.License) bool { return l.Name == name }) {
			im.p.Licenses = append(im.p.Licenses, account.License{Name: name, Count: n})
		}
	}
	im.noteKept(s)
}

func (im *importer) partLimits(s setting) {
	if strings.EqualFold(s.value, "no") {
		im.noteKept(s)
		return
	}
	im.noteAbout(s, "a job that exceeds a limit of a partition waits and says so; one that can never start there is told at once")
}

// placed are directives that have a place, but not in the rules of a site.
var placed = map[string]string{
	"ClusterName": "name in cox.yaml", "KillWait": "jobs.grace in cox.yaml", "MinJobAge": "state.memory in cox.yaml", "MaxArraySize": "jobs.max_array in cox.yaml",
	"UnkillableStepTimeout": "jobs.unkillable in cox.yaml", "DependencyParameters": "kill_invalid_depend is jobs.kill_on_invalid_dep in cox.yaml; the rest bounds work that is not done here",
	"Prolog": "hooks.prolog in cox.yaml", "Epilog": "hooks.epilog in cox.yaml", "MailProg": "notify.command in cox.yaml", "MailDomain": "notify.domain in cox.yaml",
	"PrivateData": "auth.private in cox.yaml", "StateSaveLocation": "state.dir in cox.yaml", "SlurmctldDebug": "log.level in cox.yaml",
}

// elsewhereKeys are placed by their names in lower case.
var elsewhereKeys = func() map[string]string {
	out := map[string]string{}
	for name, where := range placed {
		out[strings.ToLower(name)] = where
	}
	return out
}()
