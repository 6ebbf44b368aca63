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
		case templated(l.text):
			im.template(f, l)
		case first.is("include"):
			if err := im.include(f, first, all, way); err != nil {
				return err
			}
		case first.is("partitionname"):
			im.partition(all)
		case first.is("nodename"):
			im.nodes(all)
		case first.is("nodeset"):
			im.nodeSet(all)
		case first.is("downnodes"):
			im.downNodes(all)
		case first.is("frontendname"):
			im.each(all, ofFront, "FrontendName line", "")
		default:
			for _, s := range all {
				im.one(s)
			}
		}
	}
	return nil
}

// template is a line that only becomes one of a configuration: what it sets is named, its
// value is not known.
func (im *importer) template(f File, l confLine) {
	key, value, paired := strings.Cut(l.text, "=")
	key = strings.TrimSpace(key)
	s := setting{file: f.Name, line: l.line, key: key, value: value, alone: !paired}
	if why, ok := confIndex[strings.ToLower(key)]; ok {
		im.notUsed(s, why)
		return
	}
	if where, ok := elsewhereKeys[strings.ToLower(key)]; ok {
		im.elsewhere(s, "%s", where)
		return
	}
	im.refuse(s, "it is a line of a template: hand the file to the import that is made of it")
}

func (im *importer) include(f File, s setting, all []setting, way []string) error {
	name := s.value
	if s.alone && len(all) > 1 {
		name = all[1].String()
		s.key += " " + name
	}
	name = strings.ReplaceAll(name, "%c", im.cluster.Name)
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
	return im.conf(im.readable(inner), append(way, f.Name))
}

// one is a setting of the cluster as a whole.
func (im *importer) one(s setting) {
	key := strings.ToLower(s.key)
	if f, ok := clusterKeys[key]; ok {
		f(im, s)
		return
	}
	if key == "clustername" {
		im.cluster.Name = strings.ToLower(s.value)
	}
	if where, ok := elsewhereKeys[key]; ok {
		im.elsewhere(s, "%s", where)
		return
	}
	if why, ok := confIndex[key]; ok {
		im.notUsed(s, why)
		return
	}
	im.refuse(s, "%s", unknown(s.key, "slurm.conf", slices.Concat(namesOf(unusedConf), slices.Collect(maps.Keys(placed)), slices.Collect(maps.Keys(ruleWords)))))
}

// notUsed says why nothing here looks at a directive, and what is its name now.
func (im *importer) notUsed(s setting, why string) {
	if old := oldNames[strings.ToLower(s.key)]; old != "" && !strings.EqualFold(old, s.key) {
		why += "; an old name, since then " + old
	}
	im.elsewhere(s, "not used: %s", why)
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

// ruleWords are the names of clusterKeys with what they become, for people.
var ruleWords = map[string]string{
	"PriorityWeightAge": "`priority.age`", "PriorityWeightAssoc": "`priority.association`", "PriorityWeightFairshare": "`priority.fair_share`", "PriorityWeightJobSize": "`priority.job_size`",
	"PriorityWeightPartition": "`priority.partition`", "PriorityWeightQOS": "`priority.qos`", "PriorityWeightTRES": "`priority.tres`", "PriorityType": "multifactor is what there is; basic: no weights",
	"PriorityMaxAge": "`priority.max_age`", "PriorityFavorSmall": "`priority.favor_small`", "PriorityFlags": "`priority.flags`, a partition's `billing_rule`", "PriorityDecayHalfLife": "`fair_share.half_life`",
	"PriorityCalcPeriod": "`fair_share.period`", "PriorityUsageResetPeriod": "`fair_share.reset`", "SchedulerType": "`backfill`", "SchedulerParameters": "each by itself: `backfill`, `topology.switch_wait`",
	"PreemptType": "`preemption.by`", "PreemptMode": "`preemption.mode`", "PreemptExemptTime": "`preemption.exempt`", "AccountingStorageEnforce": "the rules are always enforced", "Licenses": "`licenses`",
	"EnforcePartLimits": "near it: what can never start is refused at once", "SchedulerTimeSlice": "`time_slice` of partitions where jobs take turns",
	"PrioritySiteFactorPlugin": "refused: a program", "PrioritySiteFactorParameters": "refused: a program", "PreemptParameters": "refused: victims are chosen by what they lose",
	"JobSubmitPlugins": "refused: a program; limits, `default_qos` and `allow_accounts` say what it says", "LaunchParameters": "refused: how Slurm starts tasks",
	"FairShareDampeningFactor": "refused: the Fair Tree needs no damping",
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
