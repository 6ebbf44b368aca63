package native

import (
	"slices"
	"strings"
)

// jobFields are the fields of a job as a whole, in the order in which Render writes
// them. topFields adds those of a group, for jobs with one.
var jobFields = []field[draft]{
	{name: "version", form: form{text: "v1", schema: func() schema { return schema{"const": "v1"} }}, doc: "the version of this form", also: []string{"apiVersion"}, set: setVersion},
	kindField,
	{name: "name", form: aText, doc: "name of the job; the file's name if not given", sbatch: "job-name", set: textField(func(d *draft) *string { return &d.spec.Name })},
	{name: "comment", form: aText, doc: "free text", sbatch: "comment", also: []string{"description"}, set: textField(func(d *draft) *string { return &d.spec.Comment })},
	{name: "account", form: aText, doc: "account that pays", sbatch: "account", also: []string{"project"}, set: textField(func(d *draft) *string { return &d.spec.Account })},
	{name: "qos", form: aText, doc: "quality of service", sbatch: "qos", set: textField(func(d *draft) *string { return &d.spec.QOS })},
	{name: "pool", form: aList, doc: "the pool that runs it; of several, the one that starts it first; any: any pool, the same as if not given, also where the site names one", also: []string{"cluster", "pools"}, set: func(p *parser, d *draft, v value) { d.spec.Pool = strings.Join(p.parseList(v), ",") }},
	{name: "partition", form: aList, doc: "partition to run in; of several, any", sbatch: "partition", also: []string{"partitions", "queue"}, set: func(p *parser, d *draft, v value) { d.spec.Partitions = p.parseList(v) }},
	{name: "reservation", form: aText, doc: "a reservation to run in", sbatch: "reservation", set: textField(func(d *draft) *string { return &d.spec.Reservation })},
	{name: "licenses", form: aList, doc: "licences to hold, name or name:count; a:2|b: the first of these that is free", sbatch: "licenses", also: []string{"licences"}, set: setLicenses},
	{name: "time", form: aDuration, doc: "limit of the run time", sbatch: "time", also: []string{"time_limit", "timelimit", "walltime", "timeout"}, set: func(p *parser, d *draft, v value) { d.spec.TimeLimit = p.parseDuration(v) }},
	{name: "time_min", form: aDuration, doc: "the limit may be lowered to this if the job can then start earlier", sbatch: "time-min", set: func(p *parser, d *draft, v value) { d.spec.TimeMin = p.parseDuration(v) }},
	{name: "begin", form: aWhen, doc: "not before this time", sbatch: "begin", also: []string{"start"}, set: func(p *parser, d *draft, v value) { d.spec.Begin = p.parseTime(v) }},
	{name: "deadline", form: aWhen, doc: "must have ended by this time", sbatch: "deadline", set: func(p *parser, d *draft, v value) { d.spec.Deadline = p.parseTime(v) }},
	{name: "hold", form: aBool, doc: "wait until it is released", sbatch: "hold", also: []string{"held"}, set: boolField(func(d *draft) *bool { return &d.spec.Held })},
	{name: "nice", form: aNumber(-maxNice, maxNice), doc: "is subtracted from the priority", sbatch: "nice", set: func(p *parser, d *draft, v value) { d.spec.Nice = p.parseNumber(v, -maxNice, maxNice) }},
	{name: "priority", form: aNumber(0, maxPriority), doc: "priority asked for; larger goes first", sbatch: "priority", set: func(p *parser, d *draft, v value) { d.spec.Priority = p.parseNumber(v, 0, maxPriority) }},
	{name: "depends", form: aDepends, doc: "conditions on other jobs; all of a list, any of a text with ?", sbatch: "dependency", also: []string{"depends_on", "after", "needs"}, set: setDepends},
	{name: "depends_fail", form: aBool, doc: "end the job if depends can never be met, instead of letting it wait", sbatch: "kill-on-invalid-dep", set: setDependsFail},
	{name: "array", form: aArray, doc: "run once for each index: 0-15, 1-9:2, 1,5,7; %4 or max_running: at most 4 at a time", sbatch: "array", also: []string{"indices"}, set: setArray},
	{name: "requeue", form: aBool, doc: "may run again from the start after a preemption or a lost node; left out: false", sbatch: "requeue", set: boolField(func(d *draft) *bool { return &d.spec.Requeue })},
	{name: "retries", form: aRetry, doc: "how often it runs again from the start after a failure ([retries.md](../explanation/retries.md))", also: []string{"retry", "restart", "restarts", "backoff_limit", "max_retries", "restart_policy"}, set: setRetries},
	{name: "rerun", form: aRerun, doc: "on which nodes it runs again after a failure or a requeue ([retries.md](../explanation/retries.md#on-which-nodes)): on those that it had, or on none on which it failed; if not given, on any", also: []string{"same_nodes", "exclude_failed", "rerun_on"}, set: setRerun},
	{name: "signal", form: form{text: "[B:]USR1[@seconds]", schema: scalarSchema}, doc: "signal to send this long before the time limit; B: only to the script", sbatch: "signal", set: setSignal},
	{name: "mail", form: aMail, doc: "when to send mail, and to whom", sbatch: "mail-type", also: []string{"mail_type", "mail_user", "email"}, set: setMail},
	{name: "notify", form: aNotify, doc: "webhook to tell of its beginning and end", also: []string{"webhook", "webhooks", "notifications", "callback"}, set: setNotify},
	{name: "image", form: aText, doc: "container image in which it runs ([containers.md](../how-to/containers.md)); a pool without a container runtime refuses it", also: []string{"container", "container_image"}, set: textField(func(d *draft) *string { return &d.spec.Image })},
	{name: "container_options", form: aContainer, doc: "how the container of image runs", also: []string{"container_opts"}, set: setContainer},
	{name: "kubernetes", form: aPod, doc: "what is asked of the pods it runs in; other pools than those of Kubernetes refuse it", also: []string{"pod", "pods", "k8s"}, set: setPod},
	{name: "workdir", form: aText, doc: "directory it runs in; that of the submission if not given", sbatch: "chdir", also: []string{"working_dir", "directory", "cwd"}, set: setWorkDir},
	{name: "output", form: aText, doc: "file of the output, with % patterns; none: nowhere", sbatch: "output", also: []string{"stdout", "log", "logs"}, set: fileName(func(d *draft) *string { return &d.spec.Output.Stdout })},
	{name: "error", form: aText, doc: "file of the error output; together with output if not given", sbatch: "error", also: []string{"stderr"}, set: fileName(func(d *draft) *string { return &d.spec.Output.Stderr })},
	{name: "input", form: aText, doc: "file of the standard input", sbatch: "input", also: []string{"stdin"}, set: fileName(func(d *draft) *string { return &d.spec.Output.Stdin })},
	{name: "append", form: aBool, doc: "add to the output files instead of replacing them; attempts after the first always do", sbatch: "open-mode", set: boolField(func(d *draft) *bool { return &d.spec.Output.Append })},
	{name: "env", form: aEnv, doc: "variables to set, NAME: value", also: []string{"environment", "variables"}, set: setEnv},
	{name: "secrets", form: aSecrets, doc: "values that the server keeps for you (`cox secret set`), as variables or files", also: []string{"secret"}, set: setSecrets},
	{name: "export", form: aList, doc: "variables to take from the submission's environment: all (the default), none, nil, or names; NAME=value sets one", sbatch: "export", also: []string{"inherit"}, set: setExport},
	{name: "kill_on_bad_exit", form: aBool, doc: "with command: one failed task ends the job (true if not given)", also: []string{"fail_fast"}, set: boolField(func(d *draft) *bool { return &d.spec.KillOnBadExit })},
	{name: "groups", form: form{text: "[{fields of a group}, …]", schema: listOf(objectSchema(groupFields), 1, maxGroups)}, doc: "several groups of different tasks that start together; each has the fields of a group", also: []string{"components", "tasks_groups", "hetjob"}, set: setGroups},
	{name: "together", form: aLevel, doc: "all nodes of all groups are in one domain of this level of the topology", set: func(p *parser, d *draft, v value) { d.spec.Within = p.parseLevel(v) }},
	{name: "together_for", form: aPatience, doc: "how long the job waits for together, as within_for", set: func(p *parser, d *draft, v value) { d.together = p.parsePatience(v) }},
	{name: "command", form: form{text: "text for sh -c, or [program, argument, …]", schema: aList.schema}, doc: "every task runs it", also: []string{"cmd", "run", "exec"}, set: setCommand},
	{name: "launcher", form: aLauncher, doc: "what starts command: torchrun on each node, mpirun, or a cluster of Ray; without it every task runs command ([launchers.md](../how-to/launchers.md))", also: []string{"runner", "distributed"}, set: setLauncher},
	{name: "script", form: form{text: "text, after |", schema: func() schema { return schema{"type": "string", "minLength": 1} }}, doc: "runs once, on the first node; starts tasks by srun. Without a first line #! it is for bash", sbatch: "wrap", also: []string{"batch"}, set: setScript},
	{name: "args", form: form{text: "[text, …]", schema: listOf(scalarSchema, 0, 0)}, doc: "arguments of the script", also: []string{"arguments", "script_args"}, set: setArgs},
}

// topFields are the fields of a job, workFields those with its schedule, documentFields those of a
// service too.
var (
	topFields      = allFields()
	workFields     = append(slices.Clip(topFields), scheduleField)
	documentFields = slices.Concat(workFields, serviceFields)
)

func allFields() []field[draft] {
	out := slices.Clone(jobFields)
	for _, f := range groupFields {
		if f.name == "name" {
			continue
		}
		set := f.set
		out = append(out, field[draft]{name: f.name, form: f.form, doc: f.doc, sbatch: f.sbatch, also: f.also, set: func(p *parser, d *draft, v value) {
			d.flat.given[f.name] = v
			set(p, &d.flat, v)
		}})
	}
	return out
}

// Bounds, which are Slurm's.
const (
	maxNice     = 2147483645
	maxPriority = 1<<32 - 2
	maxGroups   = 128
)

// Forms of single fields.
var (
	aDepends   = form{text: "afterok:7, [afterok:7, singleton]", schema: aList.schema}
	aArray     = form{text: "0-15%4, {indices, max_running}", schema: anyOf(aWhen.schema, objectSchema(arrayFields))}
	aMail      = form{text: "end,fail, [end, fail], {types, to}", schema: anyOf(aList.schema, objectSchema(mailFields))}
	aContainer = form{text: "{mounts, …}", schema: objectSchema(containerFields)}
	aPod       = form{text: "{shm, …}", schema: objectSchema(podFields)}
	aEnv       = form{text: "{NAME: value, …}", schema: envSchema}
)
