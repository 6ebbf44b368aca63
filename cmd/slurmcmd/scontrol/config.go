package scontrol

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/fleet"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
)

// showConfig prints those lines of Slurm's configuration that have a true value here.
func (s *command) showConfig() error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	var answers [3]fastclient.Value
	for i, path := range []string{"/v1", "/v1/settings", "/v1/licenses"} {
		if answers[i], err = c.JSON("GET", path, nil); err != nil {
			return err
		}
	}
	nodes, err := fleet.Nodes(c)
	if err != nil {
		return err
	}
	server, settings := answers[0], answers[1]
	lines := configOf(server, settings)
	lines["Licenses"] = licenseTotals(answers[2])
	lines["MaxNodeCount"] = strconv.Itoa(len(nodes))
	lines["GresTypes"] = gresTypes(nodes)
	if lines["ClusterName"], err = s.ClusterName(); err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "Configuration data as of %s\n", s.Now.Format("2006-01-02T15:04:05"))
	byName := func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) }
	for _, key := range slices.SortedFunc(maps.Keys(lines), byName) {
		fmt.Fprintf(s.Out, "%-23s = %s\n", key, lines[key])
	}
	fmt.Fprintf(s.Out, "\nSlurmctld(primary) at %s is UP\n", server.Get("host").Text())
	return nil
}

// configOf translates the server's settings into Slurm's keys and units.
func configOf(server, settings fastclient.Value) map[string]string {
	seconds := func(name string) string { return strconv.FormatInt(settings.Get(name).Int(), 10) + " sec" }
	text := func(name string) string { return orDefault(settings.Get(name).Text(), "(null)") }
	when := func(name, yes, no string) string {
		if settings.Get(name).Bool() {
			return yes
		}
		return no
	}
	out := map[string]string{
		"AccountingStorageEnforce": when("accounts", "associations,limits,qos", "none"),
		"AccountingStorageTRES":    "cpu,mem,node,billing,gres/gpu",
		"AccountingStorageType":    "accounting_storage/coxswain",
		"AccountingStoreFlags":     "job_comment,job_env,job_script",
		"BOOT_TIME":                server.Get("started").Time().Local().Format("2006-01-02T15:04:05"),
		"COX_VERSION":              server.Get("version").Text(),
		"DefMemPerNode":            "UNLIMITED",
		"DependencyParameters":     when("kill_on_invalid_dep", "kill_invalid_depend", "(null)"),
		"DisableRootJobs":          "No",
		"Epilog":                   text("epilog"),
		"FirstJobId":               "1",
		"JobFileAppend":            when("append_output", "1", "0"),
		"JobRequeue":               when("requeue", "1", "0"),
		"KillOnBadExit":            "0",
		"KillWait":                 seconds("grace"),
		"MailDomain":               text("mail_domain"),
		"MaxArraySize":             strconv.FormatInt(settings.Get("max_array").Int(), 10),
		"MaxJobCount":              "UNLIMITED",
		"MaxMemPerNode":            "UNLIMITED",
		"MinJobAge":                seconds("memory"),
		"OverTimeLimit":            "0 min",
		"PrivateData":              when("private", "jobs", "none"),
		"Prolog":                   text("prolog"),
		"PrologEpilogTimeout":      seconds("hook_timeout"),
		"RequeueExit":              text("requeue_exit"),
		"RequeueExitHold":          text("requeue_exit_hold"),
		"SchedulerType":            when("backfill", "sched/backfill", "sched/builtin"),
		"SelectType":               "select/cons_tres",
		"SelectTypeParameters":     "CR_CPU_MEMORY",
		"SLURM_VERSION":            slurmcmd.Release,
		"SlurmctldHost[0]":         server.Get("host").Text(),
		"SlurmUser":                slurmUser(settings.Get("uid").Int()),
		"StateSaveLocation":        text("state_dir"),
		"TrackWCKey":               "No",
		"UnkillableStepTimeout":    seconds("unkillable"),
		"WaitTime":                 "0 sec",
	}
	if _, port, err := net.SplitHostPort(settings.Get("listen").Text()); err == nil {
		out["SlurmctldPort"] = port
	}
	addPreemption(out, settings)
	addPriority(out, settings)
	return out
}

func slurmUser(uid int64) string {
	number := strconv.FormatInt(uid, 10)
	return slurmcmd.UserName(number) + "(" + number + ")"
}

// addPreemption adds who may take running jobs' place. Slurm has no type for quotas.
func addPreemption(out map[string]string, settings fastclient.Value) {
	mode := settings.Get("preempt_mode").Text()
	if mode == "checkpoint" {
		mode = "requeue" // after the job has saved
	}
	out["PreemptMode"] = strings.ToUpper(mode)
	by := settings.Get("preempt_by").Texts()
	switch {
	case len(by) == 0:
		out["PreemptType"] = "preempt/none"
	case slices.Contains(by, "qos"):
		out["PreemptType"] = "preempt/qos"
	case slices.Contains(by, "partition"):
		out["PreemptType"] = "preempt/partition_prio"
	}
	out["PreemptExemptTime"] = spanOrNone(settings.Get("preempt_exempt").Int())
}

func spanOrNone(seconds int64) string {
	if seconds == 0 {
		return "NONE"
	}
	return string(jobs.AppendLongSpan(nil, seconds))
}

// addPriority adds how priorities come about.
func addPriority(out map[string]string, settings fastclient.Value) {
	weights := settings.Get("weights")
	if len(weights.Names()) == 0 {
		out["PriorityType"] = "priority/basic"
		return
	}
	span := func(name string) string { return string(jobs.AppendLongSpan(nil, settings.Get(name).Int())) }
	out["PriorityType"] = "priority/multifactor"
	out["PriorityDecayHalfLife"], out["PriorityCalcPeriod"], out["PriorityMaxAge"] = span("half_life"), span("usage_period"), span("priority_max_age")
	out["PriorityUsageResetPeriod"] = strings.ToUpper(orDefault(settings.Get("usage_reset").Text(), "none"))
	out["PriorityFavorSmall"] = "No"
	if settings.Get("favor_small").Bool() {
		out["PriorityFavorSmall"] = "Yes"
	}
	for name, key := range map[string]string{
		"age": "Age", "association": "Assoc", "fair_share": "FairShare", "job_size": "JobSize", "partition": "Partition", "qos": "QOS",
	} {
		out["PriorityWeight"+key] = strconv.FormatInt(weights.Get(name).Int(), 10)
	}
	var tres []string
	for _, name := range weights.Names() {
		if kind, ok := strings.CutPrefix(name, "tres/"); ok {
			switch kind {
			case "memory":
				kind = "mem"
			case "gpu":
				kind = "gres/gpu"
			}
			tres = append(tres, kind+"="+strconv.FormatInt(weights.Get(name).Int(), 10))
		}
	}
	slices.Sort(tres)
	out["PriorityWeightTRES"] = orDefault(strings.Join(tres, ","), "(null)")
}

func licenseTotals(v fastclient.Value) string {
	var list []string
	for _, l := range v.Get("licenses").Items() {
		list = append(list, fmt.Sprintf("%s:%d", l.Get("name").Text(), l.Get("total").Int()))
	}
	return orDefault(strings.Join(list, ","), "(null)")
}

// gresTypes are the kinds of device that nodes have.
func gresTypes(nodes []fleet.Node) string {
	var kinds []string
	for i := range nodes {
		for _, one := range strings.Split(nodes[i].GRES, ",") {
			kind, _, _ := strings.Cut(one, ":")
			if kind != "" && !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	slices.Sort(kinds)
	return orDefault(strings.Join(kinds, ","), "(null)")
}
