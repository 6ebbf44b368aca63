package slurm

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rlimit"
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
	if u, ok := confIndex[strings.ToLower(key)]; ok {
		im.notUsed(s, u)
		return
	}
	if where, ok := placedKeys[strings.ToLower(key)]; ok {
		im.noteElsewhere(s, "%s in cox.yaml", where)
		return
	}
	im.refuseSetting(s, "this is a line of a template: import the file that is made from the template")
}

func (im *importer) readInclude(f File, s setting, all []setting, way []string) error {
	name := s.value
	if s.alone && len(all) > 1 {
		name = all[1].String()
		s.key += " " + name
	}
	name = strings.ReplaceAll(name, "%c", im.cluster.Name)
	if im.o.Include == nil || name == "" {
		im.refuseSetting(s, "the file could not be read: name it on the command line")
		return nil
	}
	inner, err := im.o.Include(f.Name, name)
	if err != nil {
		im.refuseSetting(s, "%v: put the file there, or name it on the command line", err)
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
	if _, ok := placedKeys[key]; ok {
		im.readPlaced(s, key)
		return
	}
	if u, ok := confIndex[key]; ok {
		im.notUsed(s, u)
		return
	}
	im.refuseSetting(s, "%s", unknownDirective(s.key, "slurm.conf", slices.Concat(namesOf(unusedConf), slices.Collect(maps.Keys(placed)), slices.Collect(maps.Keys(ruleWords)))))
}

// notUsed says why nothing here looks at a directive, and what its name is now.
func (im *importer) notUsed(s setting, u unused) {
	why := u.why
	if old := oldNames[strings.ToLower(s.key)]; old != "" && !strings.EqualFold(old, s.key) {
		why += oldName(old)
	}
	if u.differs && !slices.Contains(confDefaults[strings.ToLower(s.key)], strings.ToLower(s.value)) {
		im.refuseSetting(s, "%s", why)
		return
	}
	if u.differs {
		why = "with this value Slurm and Coxswain do the same"
	}
	im.noteVerdict(s, policy.Ignored, "%s", why)
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
	"jobrequeue":                    (*importer).jobRequeue,
	"jobfileappend":                 (*importer).jobFileAppend,
	"propagateresourcelimits":       (*importer).propagateLimits,
	"propagateresourcelimitsexcept": (*importer).propagateExcept,
	"requeueexit":                   requeueExit(func(b *account.Batch) *job.ExitCodes { return &b.RequeueExit }),
	"requeueexithold":               requeueExit(func(b *account.Batch) *job.ExitCodes { return &b.RequeueExitHold }),
	"accountingstorageenforce":      (*importer).noteEnforced,
	"licenses":                      (*importer).readLicenses,
	"enforcepartlimits":             (*importer).partLimits,
	"selecttype":                    (*importer).selectType,
	"selecttypeparameters":          (*importer).selectParameters,
	"prioritysitefactorplugin":      refusedSetting("a program of the site, which Coxswain does not run: give jobs their priority by QOS or account"),
	"prioritysitefactorparameters":  refusedSetting("parameters of PrioritySiteFactorPlugin, which Coxswain does not run"),
	"preemptparameters":             refusedSetting("Coxswain stops the jobs that lose the least GPU time, and no more than it must; no option changes that"),
	"jobsubmitplugins":              refusedSetting(siteProgram),
	"schedulertimeslice":            func(im *importer, s setting) { im.slices = append(im.slices, s) },
	"launchparameters": func(im *importer, s setting) {
		im.noteVerdict(s, policy.Ignored, "how Slurm starts tasks")
	},
	"fairsharedampeningfactor": func(im *importer, s setting) {
		im.noteVerdict(s, policy.Ignored, "Slurm's Fair Tree, which is in force here too, does not use it")
	},
}

// ruleWords are the names of clusterKeys with what they become, for people.
var ruleWords = map[string]string{
	"PriorityWeightAge": "`priority.age`", "PriorityWeightAssoc": "`priority.association`", "PriorityWeightFairshare": "`priority.fair_share`", "PriorityWeightJobSize": "`priority.job_size`",
	"PriorityWeightPartition": "`priority.partition`", "PriorityWeightQOS": "`priority.qos`", "PriorityWeightTRES": "`priority.tres`", "PriorityType": "kept; basic: no weights",
	"PriorityMaxAge": "`priority.max_age`", "PriorityFavorSmall": "`priority.favor_small`", "PriorityFlags": "`priority.flags`, a partition's `billing_rule`", "PriorityDecayHalfLife": "`fair_share.half_life`",
	"PriorityCalcPeriod": "`fair_share.period`", "PriorityUsageResetPeriod": "`fair_share.reset`", "SchedulerType": "`backfill`", "SchedulerParameters": "each by itself: `backfill`, `topology.switch_wait`",
	"JobRequeue": "`batch.requeue`", "JobFileAppend": "`batch.open_mode`", "PropagateResourceLimits": "`batch.propagate`", "PropagateResourceLimitsExcept": "`batch.propagate`", "RequeueExit": "`batch.requeue_exit`", "RequeueExitHold": "`batch.requeue_exit_hold`",
	"PreemptType": "`preemption.by`", "PreemptMode": "`preemption.mode`", "PreemptExemptTime": "`preemption.exempt`", "AccountingStorageEnforce": "kept; the rules are always enforced", "Licenses": "`licenses`",
	"EnforcePartLimits": "approximated; with `--config`, jobs over MaxTime are refused at once", "SchedulerTimeSlice": "`time_slice` of partitions where jobs take turns",
	"PrioritySiteFactorPlugin": "refused: a program", "PrioritySiteFactorParameters": "refused: a program", "PreemptParameters": "refused: Coxswain stops the jobs that lose the least GPU time, and no more than it must",
	"JobSubmitPlugins": "refused: a program of the site; write its rules as limits, `default_qos` and `allow_accounts`", "LaunchParameters": "ignored: how Slurm starts tasks",
	"FairShareDampeningFactor": "ignored: the Fair Tree does not use it", "SelectType": "kept; with linear, scripts must say --exclusive",
	"SelectTypeParameters": "kept if memory is counted; Coxswain always counts it",
}

// siteProgram says what to do instead of a program that decides about jobs.
const siteProgram = "a program of the site, which Coxswain does not run: write its rules as limits, default_qos and allow_accounts"

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
		im.basic = true
		im.addVerdict(s, policy.Kept, "first come, first served: Slurm ignores its priority weights then, and the rules have none")
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
	return flag + ", which Coxswain does not know"
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
		im.refuseSetting(s, "NOW resets all usage once; cox apply never resets usage")
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
		im.refuseSetting(s, "Slurm has sched/backfill and sched/builtin alone: rules say backfill: {off: true} for the second")
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
		case schedulerWords[k] != "":
			im.refuseSetting(one, "%s", schedulerWords[k])
		case slices.Contains(pacing, k):
			im.noteVerdict(one, policy.Ignored, "it paces Slurm's scheduler; Coxswain looks at the whole queue whenever something changes")
		default:
			im.refuseSetting(one, "Coxswain has no such option")
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

// schedulerWords say what stands for options of SchedulerParameters that change decisions.
var schedulerWords = map[string]string{
	"assoc_limit_stop":      "jobs pass one that is at its account's limit; order: strict in a quota lets none pass",
	"nohold_on_prolog_fail": "a job whose start fails is tried again after growing pauses, and is not held",
	"bf_max_job_user":       boundJobs, "bf_max_job_part": boundJobs, "bf_max_job_assoc": boundJobs, "bf_max_job_user_part": boundJobs,
	"bf_min_prio_reserve": "every job gets a planned start, up to backfill.reservations", "bf_min_age_reserve": "every job gets a planned start, up to backfill.reservations",
}

const boundJobs = "backfill has no such bound: limits of a QOS or an account bound the jobs of a user (user_jobs, jobs)"

// pacing are options of SchedulerParameters that bound how often Slurm's scheduler works, and how long.
var pacing = strings.Fields(`bf_continue bf_interval bf_max_time bf_yield_interval bf_yield_sleep bf_yield_rpc_cnt bf_resolution bf_window bf_window_linear
	bf_node_space_size bf_running_job_reserve bf_one_resv_per_job bf_max_job_start default_queue_depth partition_job_depth sched_interval sched_min_interval sched_max_job_start
	max_rpc_cnt max_sched_time batch_sched_delay build_queue_timeout defer defer_batch sched_queue_depth enable_job_state_cache`)

// selectType reads how Slurm gives out what nodes have.
func (im *importer) selectType(s setting) {
	if strings.EqualFold(s.value, "select/linear") {
		im.noteAbout(s, "jobs share nodes here: a script that counts on whole nodes says --exclusive")
		return
	}
	im.noteKept(s)
}

// selectParameters reads what of nodes Slurm counts.
func (im *importer) selectParameters(s setting) {
	im.consumes = s.value
	if !strings.Contains(strings.ToLower(s.value), "memory") {
		im.noteAbout(s, "Coxswain counts memory too: jobs that ask for more memory than a node has left wait")
		return
	}
	im.noteKept(s)
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

// requeueExit reads exit codes after which batch jobs are requeued.
func requeueExit(to func(*account.Batch) *job.ExitCodes) func(*importer, setting) {
	return func(im *importer, s setting) {
		codes := job.ExitCodes(s.value)
		if err := codes.Check(); err != nil {
			im.refuseUnreadable(s, "a list of exit codes from 1 to 255 such as 1-9,18")
			return
		}
		*to(&im.p.Batch) = codes
		im.noteKept(s)
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

// propagateLimits reads which resource limits of the submitter jobs get.
func (im *importer) propagateLimits(s setting) {
	if _, err := rlimit.ParsePropagate(s.value); err != nil {
		im.refuseUnreadable(s, "ALL, NONE or a list of limits such as STACK,CORE")
		return
	}
	im.p.Batch.Propagate = strings.ToUpper(s.value)
	im.noteKept(s)
}

// propagateExcept reads which limits jobs do not get; they get all others.
func (im *importer) propagateExcept(s setting) {
	except, err := rlimit.ParsePropagate(s.value)
	if err != nil {
		im.refuseUnreadable(s, "a list of limits such as MEMLOCK,NOFILE")
		return
	}
	var names []string
	for _, k := range rlimit.Kinds {
		if !except.Has(k) {
			names = append(names, k.Name)
		}
	}
	im.p.Batch.Propagate = cmp.Or(strings.Join(names, ","), "NONE")
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
			left = append(left, "WITHIN: preemption.by: [priority] lets jobs of one QOS stop each other")
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
		im.noteAbout(s, "Coxswain always enforces the accounts, QOS and limits of its rules: remove from them what you do not want enforced")
	case len(left) > 0:
		im.noteAbout(s, "without %s: Coxswain records every job, and has no workload keys", strings.Join(left, ", "))
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
	im.server.refusesLong = true
	im.noteAbout(s, "with --config, a job over the MaxTime of its partitions is refused at once; one over another limit waits, and cox why says so")
}
