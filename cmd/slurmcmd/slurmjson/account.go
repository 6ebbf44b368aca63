package slurmjson

import (
	"strconv"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/model/job"
)

// AccountColumns are what Account needs.
func AccountColumns() []jobs.Col { return JobColumns() }

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
	w.text("account", r.Raw(jobs.Account))
	w.open("comment", '{')
	w.empty("administrator")
	w.text("job", r.Raw(jobs.Comment))
	w.empty("system")
	w.close('}')
	w.int("allocation_nodes", max(r.Int(jobs.NodesMin), 1))
	w.recordArray(r)
	w.open("association", '{')
	w.text("account", r.Raw(jobs.Account))
	w.str("cluster", jobs.Cluster)
	w.empty("partition")
	w.text("user", r.Raw(jobs.User))
	w.int("id", 0)
	w.close('}')
	w.empty("block")
	w.str("cluster", jobs.Cluster)
	w.text("constraints", r.Raw(jobs.Features))
	w.empty("container")
	w.exit("derived_exit_code", r.Int(jobs.ExitStatus), r.Int(jobs.ExitSignal), !state.Final())
	w.recordTimes(r)
	w.exit("exit_code", r.Int(jobs.ExitStatus), r.Int(jobs.ExitSignal), !state.Final())
	w.empty("extra", "failed_node")
	w.list("flags")
	gid := r.Int(jobs.GID)
	if _, ok := groups[gid]; !ok {
		groups[gid] = face.GroupName(uint32(gid))
	}
	w.str("group", groups[gid])
	w.open("het", '{')
	w.int("job_id", pick(r.Part() >= 0, r.Int(jobs.ID)))
	w.number("job_offset", r.Part() >= 0, false, int64(max(r.Part(), 0)))
	w.close('}')
	w.int("job_id", r.Int(jobs.ID))
	w.text("name", r.Raw(jobs.JobName))
	w.text("licenses", r.Raw(jobs.Licenses))
	w.raw("mcs", `{"label":""}`)
	if nodes := r.Nodes(); len(nodes) > 0 {
		w.text("nodes", nodes)
	} else {
		w.str("nodes", "None assigned")
	}
	w.text("partition", r.Raw(jobs.Partition))
	w.bool("hold", r.Has("HELD"))
	w.set("priority", r.Int(jobs.Priority))
	w.text("qos", r.Raw(jobs.QOS))
	w.open("required", '{')
	w.int("CPUs", r.Int(jobs.CPUs))
	n, perCPU := r.Memory()
	w.number("memory_per_cpu", perCPU, false, pick(perCPU, n>>20))
	w.number("memory_per_node", !perCPU, false, pick(!perCPU, n>>20))
	w.close('}')
	w.empty("kill_request_user")
	w.int("restart_cnt", r.Restarts())
	w.open("reservation", '{')
	w.int("id", 0)
	w.text("name", r.Raw(jobs.Reservation))
	w.close('}')
	w.text("script", nil)
	w.text("stdin_expanded", r.Raw(jobs.Stdin))
	w.text("stdout_expanded", r.Raw(jobs.Stdout))
	w.text("stderr_expanded", r.Raw(jobs.Stderr))
	w.open("state", '{')
	w.states("current", r)
	w.str("reason", r.ReasonWord())
	w.close('}')
	w.steps(r)
	w.text("submit_line", r.Raw(jobs.Command))
	w.open("tres", '{')
	w.list("allocated")
	w.list("requested")
	w.close('}')
	w.empty("used_gres")
	w.text("user", r.Raw(jobs.User))
	w.raw("wckey", `{"wckey":"","flags":[]}`)
	w.text("working_directory", r.Raw(jobs.WorkDir))
	w.close('}')
}

func (w *w) recordArray(r jobs.Row) {
	w.open("array", '{')
	w.int("job_id", r.Int(jobs.ArrayJob))
	w.open("limits", '{')
	w.open("max", '{')
	w.open("running", '{')
	w.int("tasks", r.Int(jobs.ArrayLimit))
	w.close('}')
	w.close('}')
	w.close('}')
	task := r.Text(jobs.ArrayTask)
	n, err := strconv.ParseInt(task, 10, 64)
	w.number("task_id", err == nil, false, n)
	w.str("task", "")
	w.close('}')
}

const noTime = `{"seconds":0,"microseconds":0}`

func (w *w) recordTimes(r jobs.Row) {
	w.open("time", '{')
	w.int("elapsed", r.Elapsed())
	w.int("eligible", r.Int(jobs.Eligible))
	w.int("end", r.Int(jobs.Ended))
	w.raw("planned", `{"set":false,"infinite":false,"number":0}`)
	w.int("start", pick(r.Base() != job.Pending, r.Int(jobs.Started)))
	w.int("submission", r.Int(jobs.Submitted))
	w.int("suspended", 0)
	w.raw("system", noTime)
	limit := r.Int(jobs.TimeLimit)
	w.number("limit", limit > 0, limit == 0, limit/60)
	w.raw("total", noTime)
	w.raw("user", noTime)
	w.close('}')
}

// steps writes the batch script as a step, if it ran.
func (w *w) steps(r jobs.Row) {
	w.open("steps", '[')
	if len(r.Raw(jobs.ScriptHash)) > 0 && r.Int(jobs.Started) > 0 && r.Base() != job.Pending && r.Part() <= 0 {
		w.open("", '{')
		w.open("time", '{')
		w.int("elapsed", r.Elapsed())
		w.set("end", r.Int(jobs.Ended))
		w.set("start", r.Int(jobs.Started))
		w.int("suspended", 0)
		w.close('}')
		w.exit("exit_code", r.Int(jobs.ExitStatus), r.Int(jobs.ExitSignal), !r.Base().Final())
		w.open("nodes", '{')
		w.int("count", 1)
		w.str("range", r.Text(jobs.BatchHost))
		w.list("list", r.Text(jobs.BatchHost))
		w.close('}')
		w.raw("tasks", `{"count":1}`)
		w.states("state", r)
		w.open("step", '{')
		w.str("id", r.Text(jobs.Name)+".batch")
		w.str("name", "batch")
		w.close('}')
		w.close('}')
	}
	w.close(']')
}
