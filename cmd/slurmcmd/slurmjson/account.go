package slurmjson

import (
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// AccountColumns are what Account needs.
func AccountColumns() []column.Column { return append(JobColumns(), column.Steps, column.Used) }

// Account writes sacct's document.
func Account(c *slurmcmd.Command, form string, list []jobs.Row) error {
	if err := CheckForm(form); err != nil {
		return err
	}
	doc := beginDocument("jobs")
	groups := map[int64]string{}
	for _, r := range list {
		doc.sacctJob(r, groups)
		if err := doc.flushLarge(c.Out, false); err != nil {
			return err
		}
	}
	return doc.endDocument(c)
}

// sacctJob writes one element of sacct's jobs[].
func (w *w) sacctJob(r jobs.Row, groups map[int64]string) {
	state := r.Base()
	w.openValue("", '{')
	w.textField("account", r.Raw(column.Account))
	w.openValue("comment", '{')
	w.emptyStrings("administrator")
	w.textField("job", r.Raw(column.Comment))
	w.emptyStrings("system")
	w.close('}')
	w.intField("allocation_nodes", max(r.Int(column.NodesMin), 1))
	w.recordArray(r)
	w.openValue("association", '{')
	w.textField("account", r.Raw(column.Account))
	w.stringField("cluster", r.Cluster)
	w.emptyStrings("partition")
	w.textField("user", r.Raw(column.User))
	w.intField("id", 0)
	w.close('}')
	w.emptyStrings("block")
	w.stringField("cluster", r.Cluster)
	w.textField("constraints", r.Raw(column.Features))
	w.emptyStrings("container")
	derived := jobs.DerivedExit(r.Steps())
	w.exitCode("derived_exit_code", int64(derived.Status), int64(derived.Signal), !state.Final())
	w.recordTimes(r)
	w.exitCode("exit_code", r.Int(column.ExitStatus), r.Int(column.ExitSignal), !state.Final())
	w.emptyStrings("extra", "failed_node")
	w.stringList("flags")
	gid := r.Int(column.GID)
	if _, ok := groups[gid]; !ok {
		groups[gid] = slurmcmd.GroupName(uint32(gid))
	}
	w.stringField("group", groups[gid])
	w.openValue("het", '{')
	w.intField("job_id", valueIf(r.Part() >= 0, r.Int(column.ID)))
	w.numberField("job_offset", r.Part() >= 0, false, int64(max(r.Part(), 0)))
	w.close('}')
	w.intField("job_id", r.Int(column.ID))
	w.textField("name", r.Raw(column.JobName))
	w.textField("licenses", r.Raw(column.Licenses))
	w.rawField("mcs", `{"label":""}`)
	if nodes := r.Nodes(); len(nodes) > 0 {
		w.textField("nodes", nodes)
	} else {
		w.stringField("nodes", "None assigned")
	}
	w.textField("partition", r.Raw(column.Partition))
	w.boolField("hold", r.Has("HELD"))
	w.setNumber("priority", r.Priority())
	w.textField("qos", r.Raw(column.QOS))
	w.openValue("required", '{')
	w.intField("CPUs", r.Int(column.CPUs))
	n, perCPU := r.Memory()
	w.numberField("memory_per_cpu", perCPU, false, valueIf(perCPU, n>>20))
	w.numberField("memory_per_node", !perCPU, false, valueIf(!perCPU, n>>20))
	w.close('}')
	w.stringField("kill_request_user", slurmcmd.UserName(r.Text(column.CancelledBy)))
	w.intField("restart_cnt", r.Restarts())
	w.openValue("reservation", '{')
	w.intField("id", 0)
	w.textField("name", r.Raw(column.Reservation))
	w.close('}')
	w.textField("script", nil)
	w.textField("stdin_expanded", r.Raw(column.Stdin))
	w.textField("stdout_expanded", r.Raw(column.Stdout))
	w.textField("stderr_expanded", r.Raw(column.Stderr))
	w.openValue("state", '{')
	w.jobStates("current", r)
	w.stringField("reason", r.ReasonWord())
	w.close('}')
	w.accountSteps(r)
	w.textField("submit_line", r.Raw(column.Command))
	w.openValue("tres", '{')
	w.stringList("allocated")
	w.stringList("requested")
	w.close('}')
	w.emptyStrings("used_gres")
	w.textField("user", r.Raw(column.User))
	w.rawField("wckey", `{"wckey":"","flags":[]}`)
	w.textField("working_directory", r.Raw(column.WorkDir))
	w.close('}')
}

func (w *w) recordArray(r jobs.Row) {
	w.openValue("array", '{')
	w.intField("job_id", r.Int(column.ArrayJob))
	w.openValue("limits", '{')
	w.openValue("max", '{')
	w.openValue("running", '{')
	w.intField("tasks", r.Int(column.ArrayLimit))
	w.close('}')
	w.close('}')
	w.close('}')
	task := r.Text(column.ArrayTask)
	n, err := strconv.ParseInt(task, 10, 64)
	w.numberField("task_id", err == nil, false, n)
	w.stringField("task", "")
	w.close('}')
}

func (w *w) recordTimes(r jobs.Row) {
	w.openValue("time", '{')
	w.intField("elapsed", r.Elapsed())
	w.intField("eligible", r.Int(column.Eligible))
	w.intField("end", r.Int(column.Ended))
	w.rawField("planned", `{"set":false,"infinite":false,"number":0}`)
	w.intField("start", valueIf(r.Base() != job.Pending, r.Int(column.Started)))
	w.intField("submission", r.Int(column.Submitted))
	w.intField("suspended", 0)
	limit := r.Int(column.TimeLimit)
	w.numberField("limit", limit > 0, limit == 0, limit/60)
	w.cpuTimes(r.Used().Total)
	w.close('}')
}

// cpuTimes writes what was used of CPU time.
func (w *w) cpuTimes(u rusage.Use) {
	of := func(name string, d time.Duration) {
		w.openValue(name, '{')
		w.intField("seconds", int64(d/time.Second))
		w.intField("microseconds", int64(d%time.Second/time.Microsecond))
		w.close('}')
	}
	of("system", u.System)
	of("total", u.CPUTime())
	of("user", u.User)
}

// accountSteps writes the steps of a job.
func (w *w) accountSteps(r jobs.Row) {
	w.openValue("steps", '[')
	if r.Part() <= 0 && r.Int(column.Started) > 0 && r.Base() != job.Pending {
		hasScript := len(r.Raw(column.ScriptHash)) > 0
		steps := r.Steps()
		if len(steps) == 0 && hasScript { // of an engine that does not name its tasks
			steps = []api.Step{{ID: "batch", Name: "batch"}}
		}
		for i := range steps {
			if steps[i].ID != "batch" || hasScript {
				w.accountStep(r, &steps[i])
			}
		}
	}
	w.close(']')
}

// accountStep writes one step. The batch script has the times, the state and the exit code of the job.
func (w *w) accountStep(r jobs.Row, s *api.Step) {
	batch := s.ID == "batch"
	start, end, elapsed := r.Int(column.Started), r.Int(column.Ended), r.Elapsed()
	nodes, count := s.Nodes, int64(max(s.Count, 1))
	if nodes == "" {
		nodes = r.Text(column.BatchHost)
	}
	if !batch && !s.Started.IsZero() {
		start, end = s.Started.Unix(), 0
		elapsed = max(r.Now-start, 0)
		if !s.Ended.IsZero() {
			end = s.Ended.Unix()
			elapsed = max(end-start, 0)
		}
	}
	w.openValue("", '{')
	w.openValue("time", '{')
	w.intField("elapsed", elapsed)
	w.setNumber("end", end)
	w.setNumber("start", start)
	w.intField("suspended", 0)
	if s.Used != nil {
		w.cpuTimes(s.Used.Sum)
	}
	w.close('}')
	if batch {
		w.exitCode("exit_code", r.Int(column.ExitStatus), r.Int(column.ExitSignal), !r.Base().Final())
	} else {
		w.exitCode("exit_code", int64(s.Exit.Status), int64(s.Exit.Signal), s.State == job.Running.String())
	}
	w.openValue("nodes", '{')
	w.intField("count", count)
	w.stringField("range", nodes)
	w.stringList("list", hostNames(nodes)...)
	w.close('}')
	w.openValue("tasks", '{')
	w.intField("count", int64(max(s.Tasks, 1)))
	w.close('}')
	if batch {
		w.jobStates("state", r)
	} else {
		w.stringList("state", s.State)
	}
	w.openValue("step", '{')
	w.stringField("id", r.Text(column.Name)+"."+s.ID)
	w.stringField("name", s.Name)
	w.close('}')
	w.stepResources(s)
	w.close('}')
}

func hostNames(list string) []string {
	names, err := hostlist.Expand(list)
	if err != nil {
		return []string{list}
	}
	return names
}

// stepResources writes what a step used, in Slurm's lists of trackable resources. What is not known
// is left out.
func (w *w) stepResources(s *api.Step) {
	w.openValue("tres", '{')
	w.openValue("requested", '{')
	var u rusage.Step
	if s.Used != nil {
		u = *s.Used
	}
	tasks := int64(max(u.Tasks, 1))
	list := func(name string, memory, cpu, disk *rusage.Extreme) {
		w.openValue(name, '[')
		for _, x := range []struct {
			kind, name string
			id         int64
			value      *rusage.Extreme
		}{{"cpu", "", 1, cpu}, {"mem", "", 2, memory}, {"fs", "disk", 6, disk}} {
			if x.value == nil {
				continue
			}
			w.openValue("", '{')
			w.stringField("type", x.kind)
			w.stringField("name", x.name)
			w.intField("id", x.id)
			w.intField("count", x.value.Value)
			w.intField("task", int64(x.value.Task))
			w.stringField("node", x.value.Node)
			w.close('}')
		}
		w.close(']')
	}
	whole := func(q rusage.Quantity, n int64) *rusage.Extreme {
		if !u.Sum.Has(q) {
			return nil
		}
		return &rusage.Extreme{Value: n}
	}
	const perMilli = int64(time.Millisecond) // CPU time is in milliseconds here
	least := u.MinCPU
	if least != nil {
		in := *least
		in.Value /= perMilli
		least = &in
	}
	cpu := int64(u.Sum.CPUTime()) / perMilli
	list("max", u.MaxMemory, nil, u.MaxRead)
	list("min", nil, least, nil)
	list("average", whole(rusage.Memory, u.Sum.Memory/tasks), whole(rusage.CPU, cpu/tasks), whole(rusage.IO, u.Sum.Read/tasks))
	list("total", whole(rusage.Memory, u.Sum.Memory), whole(rusage.CPU, cpu), whole(rusage.IO, u.Sum.Read))
	w.close('}')
	w.close('}')
}
