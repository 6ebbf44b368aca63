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
func Account(c *face.Command, form string, list []jobs.Row) error {
	if err := CheckForm(form); err != nil {
		return err
	}
	doc := begin("jobs")
	groups := map[int64]string{}
	for _, r := range list {
		doc.record(r, groups)
		if err := doc.flush(c.Out, false); err != nil {
			return err
		}
	}
	return doc.end(c)
}

// record writes one element of sacct's jobs[].
func (w *w) record(r jobs.Row, groups map[int64]string) {
	state := r.Base()
	w.open("", '{')
	w.text("account", r.Raw(column.Account))
	w.open("comment", '{')
	w.empty("administrator")
	w.text("job", r.Raw(column.Comment))
	w.empty("system")
	w.close('}')
	w.int("allocation_nodes", max(r.Int(column.NodesMin), 1))
	w.recordArray(r)
	w.open("association", '{')
	w.text("account", r.Raw(column.Account))
	w.str("cluster", jobs.Cluster)
	w.empty("partition")
	w.text("user", r.Raw(column.User))
	w.int("id", 0)
	w.close('}')
	w.empty("block")
	w.str("cluster", jobs.Cluster)
	w.text("constraints", r.Raw(column.Features))
	w.empty("container")
	w.exit("derived_exit_code", r.Int(column.ExitStatus), r.Int(column.ExitSignal), !state.Final())
	w.recordTimes(r)
	w.exit("exit_code", r.Int(column.ExitStatus), r.Int(column.ExitSignal), !state.Final())
	w.empty("extra", "failed_node")
	w.list("flags")
	gid := r.Int(column.GID)
	if _, ok := groups[gid]; !ok {
		groups[gid] = face.GroupName(uint32(gid))
	}
	w.str("group", groups[gid])
	w.open("het", '{')
	w.int("job_id", pick(r.Part() >= 0, r.Int(column.ID)))
	w.number("job_offset", r.Part() >= 0, false, int64(max(r.Part(), 0)))
	w.close('}')
	w.int("job_id", r.Int(column.ID))
	w.text("name", r.Raw(column.JobName))
	w.text("licenses", r.Raw(column.Licenses))
	w.raw("mcs", `{"label":""}`)
	if nodes := r.Nodes(); len(nodes) > 0 {
		w.text("nodes", nodes)
	} else {
		w.str("nodes", "None assigned")
	}
	w.text("partition", r.Raw(column.Partition))
	w.bool("hold", r.Has("HELD"))
	w.set("priority", r.Int(column.Priority))
	w.text("qos", r.Raw(column.QOS))
	w.open("required", '{')
	w.int("CPUs", r.Int(column.CPUs))
	n, perCPU := r.Memory()
	w.number("memory_per_cpu", perCPU, false, pick(perCPU, n>>20))
	w.number("memory_per_node", !perCPU, false, pick(!perCPU, n>>20))
	w.close('}')
	w.empty("kill_request_user")
	w.int("restart_cnt", r.Restarts())
	w.open("reservation", '{')
	w.int("id", 0)
	w.text("name", r.Raw(column.Reservation))
	w.close('}')
	w.text("script", nil)
	w.text("stdin_expanded", r.Raw(column.Stdin))
	w.text("stdout_expanded", r.Raw(column.Stdout))
	w.text("stderr_expanded", r.Raw(column.Stderr))
	w.open("state", '{')
	w.states("current", r)
	w.str("reason", r.ReasonWord())
	w.close('}')
	w.steps(r)
	w.text("submit_line", r.Raw(column.Command))
	w.open("tres", '{')
	w.list("allocated")
	w.list("requested")
	w.close('}')
	w.empty("used_gres")
	w.text("user", r.Raw(column.User))
	w.raw("wckey", `{"wckey":"","flags":[]}`)
	w.text("working_directory", r.Raw(column.WorkDir))
	w.close('}')
}

func (w *w) recordArray(r jobs.Row) {
	w.open("array", '{')
	w.int("job_id", r.Int(column.ArrayJob))
	w.open("limits", '{')
	w.open("max", '{')
	w.open("running", '{')
	w.int("tasks", r.Int(column.ArrayLimit))
	w.close('}')
	w.close('}')
	w.close('}')
	task := r.Text(column.ArrayTask)
	n, err := strconv.ParseInt(task, 10, 64)
	w.number("task_id", err == nil, false, n)
	w.str("task", "")
	w.close('}')
}

const noTime = `{"seconds":0,"microseconds":0}`

func (w *w) recordTimes(r jobs.Row) {
	w.open("time", '{')
	w.int("elapsed", r.Elapsed())
	w.int("eligible", r.Int(column.Eligible))
	w.int("end", r.Int(column.Ended))
	w.raw("planned", `{"set":false,"infinite":false,"number":0}`)
	w.int("start", pick(r.Base() != job.Pending, r.Int(column.Started)))
	w.int("submission", r.Int(column.Submitted))
	w.int("suspended", 0)
	w.raw("system", noTime)
	limit := r.Int(column.TimeLimit)
	w.number("limit", limit > 0, limit == 0, limit/60)
	w.raw("total", noTime)
	w.raw("user", noTime)
	w.close('}')
}

// steps writes the batch script as a step, if it ran.
func (w *w) steps(r jobs.Row) {
	w.open("steps", '[')
	if len(r.Raw(column.ScriptHash)) > 0 && r.Int(column.Started) > 0 && r.Base() != job.Pending && r.Part() <= 0 {
		w.open("", '{')
		w.open("time", '{')
		w.int("elapsed", r.Elapsed())
		w.set("end", r.Int(column.Ended))
		w.set("start", r.Int(column.Started))
		w.int("suspended", 0)
		w.close('}')
		w.exit("exit_code", r.Int(column.ExitStatus), r.Int(column.ExitSignal), !r.Base().Final())
		w.open("nodes", '{')
		w.int("count", 1)
		w.str("range", r.Text(column.BatchHost))
		w.list("list", r.Text(column.BatchHost))
		w.close('}')
		w.raw("tasks", `{"count":1}`)
		w.states("state", r)
		w.open("step", '{')
		w.str("id", r.Text(column.Name)+".batch")
		w.str("name", "batch")
		w.close('}')
		w.close('}')
	}
	w.close(']')
}
