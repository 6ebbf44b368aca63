package slurmjson

import (
	"strconv"

	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/model/job"
)

// AccountColumns are what Account needs.
func AccountColumns() []column.Column { return JobColumns() }

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
	w.exitCode("derived_exit_code", r.Int(column.ExitStatus), r.Int(column.ExitSignal), !state.Final())
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
	w.batchStep(r)
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

const noTime = `{"seconds":0,"microseconds":0}`

func (w *w) recordTimes(r jobs.Row) {
	w.openValue("time", '{')
	w.intField("elapsed", r.Elapsed())
	w.intField("eligible", r.Int(column.Eligible))
	w.intField("end", r.Int(column.Ended))
	w.rawField("planned", `{"set":false,"infinite":false,"number":0}`)
	w.intField("start", valueIf(r.Base() != job.Pending, r.Int(column.Started)))
	w.intField("submission", r.Int(column.Submitted))
	w.intField("suspended", 0)
	w.rawField("system", noTime)
	limit := r.Int(column.TimeLimit)
	w.numberField("limit", limit > 0, limit == 0, limit/60)
	w.rawField("total", noTime)
	w.rawField("user", noTime)
	w.close('}')
}

// batchStep writes the batch script as a step, if it ran.
func (w *w) batchStep(r jobs.Row) {
	w.openValue("steps", '[')
	if len(r.Raw(column.ScriptHash)) > 0 && r.Int(column.Started) > 0 && r.Base() != job.Pending && r.Part() <= 0 {
		w.openValue("", '{')
		w.openValue("time", '{')
		w.intField("elapsed", r.Elapsed())
		w.setNumber("end", r.Int(column.Ended))
		w.setNumber("start", r.Int(column.Started))
		w.intField("suspended", 0)
		w.close('}')
		w.exitCode("exit_code", r.Int(column.ExitStatus), r.Int(column.ExitSignal), !r.Base().Final())
		w.openValue("nodes", '{')
		w.intField("count", 1)
		w.stringField("range", r.Text(column.BatchHost))
		w.stringList("list", r.Text(column.BatchHost))
		w.close('}')
		w.rawField("tasks", `{"count":1}`)
		w.jobStates("state", r)
		w.openValue("step", '{')
		w.stringField("id", r.Text(column.Name)+".batch")
		w.stringField("name", "batch")
		w.close('}')
		w.close('}')
	}
	w.close(']')
}
