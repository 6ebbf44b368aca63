package rest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// description is a job as slurmrestd takes it: names of fields, and their values.
type description map[string]any

// option is how one of sbatch's is said.
type option struct {
	name string // of the field from v0.0.40 on; empty: it has none
	old  string // of the field at v0.0.38; empty: it has none
	set  func(d description, name, value string) error
}

// options are those of sbatch that slurmrestd has a field for, which reads a script as
// text alone: no directive counts that is not said here. v0.0.38 understands values as
// sbatch does.
var options = map[string]option{
	"account":             {"account", "account", asText},
	"acctg-freq":          {"account_gather_frequency", "account_gather_frequency", asText},
	"array":               {"array", "array", asText},
	"batch":               {"batch_features", "batch_features", asText},
	"begin":               {"begin_time", "begin_time", asMoment},
	"chdir":               {"current_working_directory", "current_working_directory", asText},
	"cluster-constraint":  {"cluster_constraint", "cluster_constraint", asText},
	"comment":             {"comment", "comment", asText},
	"constraint":          {"constraints", "constraints", asText},
	"contiguous":          {"contiguous", "", asYes},
	"core-spec":           {"core_specification", "core_specification", asNumber},
	"cpus-per-gpu":        {"cpus_per_tres", "cpus_per_gpu", perGPU},
	"cpus-per-task":       {"cpus_per_task", "cpus_per_task", asCPUsPerTask},
	"deadline":            {"deadline", "deadline", asPlainMoment},
	"dependency":          {"dependency", "dependency", asText},
	"distribution":        {"distribution", "distribution", asText},
	"error":               {"standard_error", "standard_error", asText},
	"exclude":             {"excluded_nodes", "exclude_nodes", asHosts},
	"exclusive":           {"shared", "exclusive", asExclusive},
	"extra":               {"extra", "", asText},
	"gpus":                {"tres_per_job", "gpus", asGPUs},
	"gpus-per-node":       {"tres_per_node", "gpus_per_node", asGPUs},
	"gpus-per-socket":     {"tres_per_socket", "gpus_per_socket", asGPUs},
	"gpus-per-task":       {"tres_per_task", "gpus_per_task", asGPUsPerTask},
	"gres":                {"tres_per_node", "gres", asGRES},
	"gres-flags":          {"flags", "gres_flags", asGRESFlags},
	"hold":                {"hold", "hold", asYes},
	"input":               {"standard_input", "standard_input", asText},
	"job-name":            {"name", "name", asText},
	"kill-on-invalid-dep": {"flags", "kill_on_invalid_dependency", asKillInvalid},
	"licenses":            {"licenses", "licenses", asText},
	"mail-type":           {"mail_type", "mail_type", asMail},
	"mail-user":           {"mail_user", "mail_user", asText},
	"mcs-label":           {"mcs_label", "mcs_label", asText},
	"mem":                 {"memory_per_node", "memory_per_node", asMiB},
	"mem-per-cpu":         {"memory_per_cpu", "memory_per_cpu", asMiB},
	"mem-per-gpu":         {"memory_per_tres", "memory_per_gpu", memoryPerGPU},
	"mincpus":             {"minimum_cpus_per_node", "minimum_cpus_per_node", asNumber},
	"network":             {"network", "", asText},
	"nice":                {"nice", "nice", asNice},
	"no-requeue":          {"requeue", "no_requeue", asNo},
	"nodelist":            {"required_nodes", "nodelist", asHosts},
	"nodes":               {"nodes", "nodes", asNodes},
	"ntasks":              {"tasks", "tasks", asNumber},
	"ntasks-per-core":     {"tasks_per_core", "tasks_per_core", asNumber},
	"ntasks-per-node":     {"tasks_per_node", "tasks_per_node", asNumber},
	"ntasks-per-socket":   {"tasks_per_socket", "tasks_per_socket", asNumber},
	"open-mode":           {"open_mode", "open_mode", asOpenMode},
	"output":              {"standard_output", "standard_output", asText},
	"overcommit":          {"overcommit", "", asYes},
	"oversubscribe":       {"shared", "oversubscribe", asOversubscribe},
	"partition":           {"partition", "partition", asText},
	"prefer":              {"prefer", "prefer", asText},
	"priority":            {"priority", "priority", asCount},
	"qos":                 {"qos", "qos", asText},
	"requeue":             {"requeue", "requeue", asYes},
	"reservation":         {"reservation", "reservation", asText},
	"segment":             {"segment_size", "", asCount},
	"signal":              {"", "signal", asSignal},
	"sockets-per-node":    {"sockets_per_node", "sockets_per_node", asNumber},
	"spread-job":          {"flags", "spread_job", asFlag("SPREAD_JOB")},
	"switches":            {"required_switches", "", asSwitches},
	"thread-spec":         {"thread_specification", "thread_specification", asNumber},
	"threads-per-core":    {"threads_per_core", "threads_per_core", asNumber},
	"time":                {"time_limit", "time_limit", asMinutes},
	"time-min":            {"time_minimum", "time_minimum", asMinutes},
	"tmp":                 {"temporary_disk_per_node", "temporary_disk_per_node", asPlainMiB},
	"use-min-nodes":       {"flags", "minimum_nodes", asFlag("PREFER_MINIMUM_NODE_COUNT")},
	"wait-all-nodes":      {"wait_all_nodes", "wait_all_nodes", asYesNo},
	"wckey":               {"wckey", "wckey", asText},
}

// idle are options that concern the sbatch command, or the environment, which is given
// whole here.
var idle = []string{"export", "export-file", "get-user-env", "help", "ignore-pbs", "parsable", "propagate", "quiet", "test-only", "usage", "verbose", "version", "wait", "wrap"}

// memory are options of which the last level that has any counts.
var memory = []string{"mem", "mem-per-cpu", "mem-per-gpu"}

// joinOptions joins the directives of a script with options, which outrank them, in an order that
// does not change.
func joinOptions(values map[string]string, opts []string) (names []string, err error) {
	first := true
	for _, o := range opts {
		name, value, _ := strings.Cut(strings.TrimPrefix(o, "--"), "=")
		if !strings.HasPrefix(o, "--") || name == "" {
			return nil, fault.New(fault.Invalid, "%q is no option of sbatch's: --NAME=VALUE", o)
		}
		if first && slices.Contains(memory, name) {
			for _, m := range memory {
				delete(values, m)
			}
			first = false
		}
		switch name {
		case "no-requeue":
			delete(values, "requeue")
		case "requeue":
			delete(values, "no-requeue")
		}
		values[name] = value
	}
	for name := range values {
		if !slices.Contains(idle, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// scriptDirectives reads a script's, of each component.
func scriptDirectives(script []byte) ([]map[string]string, error) {
	s, err := sbatch.Read(spec.Source{Name: "the job's script", Data: script})
	if err != nil {
		return nil, fault.New(fault.Invalid, "%w", err)
	}
	if len(s.Problems) > 0 {
		p := s.Problems[0]
		return nil, fault.New(fault.Invalid, "line %d of the job's script: %s %s", p.Line, p.Kind, p.Text)
	}
	var all []map[string]string
	for _, component := range s.Components {
		values := map[string]string{}
		for i := range component {
			d := &component[i]
			if d.Plugin {
				return nil, fault.New(fault.Unsupported, "line %d of the job's script: --%s is an option of a site's plugin, which slurmrestd does not have", d.Line, d.Option)
			}
			values[d.Option] = d.Value
		}
		all = append(all, values)
	}
	return all, nil
}

// describeJob makes a description of what is asked of sbatch, for each component of the job.
func describeJob(sub *site.Submission, version string) ([]description, error) {
	values, err := scriptDirectives(sub.Script)
	if err != nil {
		return nil, err
	}
	opts := append([][]string{sub.Options}, sub.Components...)
	if len(values) > len(opts) {
		return nil, fault.New(fault.Invalid, "the job's script has %d components, and %d are submitted", len(values), len(opts))
	}
	all := make([]description, len(opts))
	for i := range opts {
		of := map[string]string{}
		if i < len(values) {
			of = values[i]
		}
		if all[i], err = describeComponent(of, opts[i], version); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// describeComponent makes the description of one.
func describeComponent(values map[string]string, opts []string, version string) (description, error) {
	names, err := joinOptions(values, opts)
	if err != nil {
		return nil, err
	}
	d := description{}
	for _, name := range names {
		o, known := options[name]
		value := values[name]
		field := o.name
		if version == old {
			field = o.old
		}
		if !known || field == "" && (version == old || name != "signal") {
			return nil, fault.New(fault.Unsupported, "slurmrestd %s cannot be told --%s", version, name).Advise("leave it out, or reach the cluster by its commands")
		}
		if version == old {
			err = asSbatch(d, name, field, value)
		} else {
			err = o.set(d, field, value)
		}
		if err != nil {
			return nil, fault.New(fault.Invalid, "--%s=%s: %w", name, value, err)
		}
	}
	return d, nil
}

// asSbatch says a value as v0.0.38 takes it: in sbatch's own words, but for some. Its
// description of itself is wrong of exclusive and of requeue, which cannot be false.
func asSbatch(d description, name, field, value string) error {
	d[field] = value
	switch name {
	case "hold", "requeue", "no-requeue", "oversubscribe", "spread-job", "use-min-nodes":
		d[field] = true
	case "kill-on-invalid-dep":
		d[field] = value == "yes"
	case "exclusive":
		d[field] = cmp.Or(value, "exclusive")
	case "nice":
		d[field] = cmp.Or(value, "100")
	case "wait-all-nodes":
		return asNumber(d, field, value)
	case "nodes": // one number is a minimum to it
		return asNodes(d, field, value)
	case "signal":
		s, err := slurmfmt.ParseSignal(value)
		if err == nil && s.BatchOnly {
			err = fmt.Errorf("slurmrestd %s cannot have the signal sent to the script alone", old)
		}
		return err
	}
	return nil
}

func asText(d description, name, value string) error {
	d[name] = value
	return nil
}

func asYes(d description, name, _ string) error {
	d[name] = true
	return nil
}

func asNo(d description, name, _ string) error {
	d[name] = false
	return nil
}

func asYesNo(d description, name, value string) error {
	d[name] = value == "1"
	return nil
}

func asNumber(d description, name, value string) error {
	n, err := strconv.ParseInt(value, 10, 32)
	d[name] = n
	return err
}

func asNice(d description, name, value string) error { return asNumber(d, name, cmp.Or(value, "100")) }

// setNumber is a number in the form that may also be infinite, or not set.
func setNumber(n int64) map[string]any { return map[string]any{"set": true, "number": n} }

func asCount(d description, name, value string) error {
	n, err := strconv.ParseInt(value, 10, 32)
	d[name] = setNumber(n)
	return err
}

func asMinutes(d description, name, value string) error {
	limit, err := slurmfmt.ParseTimeLimit(value)
	d[name] = setNumber(int64(limit / time.Minute))
	if limit == 0 {
		d[name] = map[string]any{"infinite": true}
	}
	return err
}

func asMoment(d description, name, value string) error {
	at, err := slurmfmt.ParseWhen(value, time.Now())
	d[name] = setNumber(at.Unix())
	return err
}

func asPlainMoment(d description, name, value string) error {
	at, err := slurmfmt.ParseWhen(value, time.Now())
	d[name] = at.Unix()
	return err
}

func asMiB(d description, name, value string) error {
	n, err := slurmfmt.ParseMemory(value)
	d[name] = setNumber(n >> 20)
	return err
}

func asPlainMiB(d description, name, value string) error {
	n, err := slurmfmt.ParseMemory(value)
	d[name] = n >> 20
	return err
}

func asHosts(d description, name, value string) error {
	all, err := hostlist.Expand(value)
	d[name] = all
	return err
}

func asNodes(d description, name, value string) error {
	if !strings.ContainsAny(value, "-,:") {
		value += "-" + value
	}
	d[name] = value
	return nil
}

func asExclusive(d description, name, value string) error {
	switch value {
	case "":
		value = "none"
	case "user", "mcs", "topo":
	default:
		return fmt.Errorf("it is none of user, mcs, topo")
	}
	d[name] = []string{value}
	return nil
}

func asOversubscribe(d description, name, _ string) error {
	d[name] = []string{"oversubscribe"}
	return nil
}

func asOpenMode(d description, name, value string) error {
	switch {
	case strings.HasPrefix(value, "a"), strings.HasPrefix(value, "A"):
		d[name] = []string{"APPEND"}
	case strings.HasPrefix(value, "t"), strings.HasPrefix(value, "T"):
		d[name] = []string{"TRUNCATE"}
	default:
		return fmt.Errorf("it is neither append nor truncate")
	}
	return nil
}

// addTRES adds to a list of resources: --gres and --gpus-per-node share a field.
func addTRES(d description, name, text string) {
	if had, _ := d[name].(string); had != "" {
		text = had + "," + text
	}
	d[name] = text
}

func asGRES(d description, name, value string) error {
	for part := range strings.SplitSeq(value, ",") {
		if part = strings.TrimSpace(part); part != "" && part != "none" {
			addTRES(d, name, "gres/"+strings.TrimPrefix(part, "gres/"))
		}
	}
	return nil
}

func asGPUs(d description, name, value string) error {
	for part := range strings.SplitSeq(value, ",") {
		addTRES(d, name, "gres/gpu:"+strings.TrimSpace(part))
	}
	return nil
}

func asCPUsPerTask(d description, name, value string) error {
	addTRES(d, "tres_per_task", "cpu="+value) // as sbatch says it too
	return asNumber(d, name, value)
}

func asGPUsPerTask(d description, name, value string) error {
	total := 0
	for part := range strings.SplitSeq(value, ",") {
		kind, count, typed := strings.Cut(strings.TrimSpace(part), ":")
		if !typed {
			kind, count = "", kind
		}
		n, err := strconv.Atoi(count)
		if err != nil {
			return err
		}
		total += n
		addTRES(d, name, strings.TrimSuffix("gres/gpu:"+kind, ":")+"="+count)
	}
	d["tres_bind"] = fmt.Sprintf("gres/gpu:per_task:%d", total)
	return nil
}

func perGPU(d description, name, value string) error {
	addTRES(d, name, "gres/gpu:"+value)
	return nil
}

func memoryPerGPU(d description, name, value string) error {
	n, err := slurmfmt.ParseMemory(value)
	addTRES(d, name, "gres/gpu:"+strconv.FormatInt(n>>20, 10))
	return err
}

func addFlag(d description, name, word string) {
	all, _ := d[name].([]string)
	d[name] = append(all, word)
}

func asFlag(word string) func(description, string, string) error {
	return func(d description, name, _ string) error {
		addFlag(d, name, word)
		return nil
	}
}

func asGRESFlags(d description, name, value string) error {
	switch value {
	case "enforce-binding":
		addFlag(d, name, "GRES_BINDING_ENFORCED")
	case "disable-binding":
		addFlag(d, name, "GRES_BINDING_DISABLED")
	default:
		return fmt.Errorf("slurmrestd has no flag of that name")
	}
	return nil
}

func asKillInvalid(d description, name, value string) error {
	addFlag(d, name, map[bool]string{true: "KILL_INVALID_DEPENDENCY", false: "NO_KILL_INVALID_DEPENDENCY"}[value == "yes"])
	return nil
}

func asMail(d description, name, value string) error {
	words := map[string]string{"TIME_LIMIT": "TIME=100%", "TIME_LIMIT_90": "TIME=90%", "TIME_LIMIT_80": "TIME=80%", "TIME_LIMIT_50": "TIME=50%", "INVALID_DEPEND": "INVALID_DEPENDENCY"}
	var all []string
	for part := range strings.SplitSeq(strings.ToUpper(value), ",") {
		switch part = strings.TrimSpace(part); {
		case part == "NONE":
		case part == "ALL":
			all = append(all, "BEGIN", "END", "FAIL", "INVALID_DEPENDENCY", "REQUEUE", "STAGE_OUT")
		case words[part] != "":
			all = append(all, words[part])
		default:
			all = append(all, part)
		}
	}
	d[name] = all
	return nil
}

func asSignal(d description, _, value string) error {
	s, err := slurmfmt.ParseSignal(value)
	if err != nil {
		return err
	}
	d["kill_warning_signal"] = strconv.Itoa(s.Number)
	d["kill_warning_delay"] = setNumber(int64(s.Before / time.Second))
	if s.BatchOnly {
		d["kill_warning_flags"] = []string{"BATCH_JOB"}
	}
	return nil
}

func asSwitches(d description, name, value string) error {
	count, wait, timed := strings.Cut(value, "@")
	n, err := strconv.ParseInt(count, 10, 32)
	if err != nil {
		return err
	}
	d[name] = setNumber(n)
	if timed {
		limit, err := slurmfmt.ParseDuration(wait)
		d["wait_for_switch"] = int64(limit / time.Second)
		return err
	}
	return nil
}
