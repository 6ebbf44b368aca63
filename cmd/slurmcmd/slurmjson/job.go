package slurmjson

import (
	"strconv"

	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// JobColumns are what Jobs needs.
func JobColumns() []column.Column {
	return []column.Column{
		column.ID, column.Name, column.ArrayJob, column.ArrayTask, column.ArrayLimit, column.HetSize, column.JobName, column.User, column.UID, column.GID,
		column.Account, column.QOS, column.Partition, column.State, column.Flags, column.Reason, column.ReasonText, column.Priority, column.Nice, column.Submitted, column.Eligible,
		column.Started, column.Ended, column.Deadline, column.StartsBy, column.TimeLimit, column.TimeMin, column.Attempt, column.ExitStatus,
		column.ExitSignal, column.NodesMin, column.NodesMax, column.NodeList, column.ReqNodes, column.ExcNodes, column.BatchHost, column.Tasks, column.CPUs,
		column.CPUsPerTask, column.TasksPerNode, column.Memory, column.MemoryPerCPU, column.GRES, column.TRES, column.Features, column.Licenses,
		column.Reservation, column.Dependency, column.Requeue, column.Contiguous, column.Exclusive, column.Comment, column.Command, column.WorkDir,
		column.Stdin, column.Stdout, column.Stderr, column.SubmitHost, column.ScriptHash,
	}
}

// Jobs writes squeue's document.
func Jobs(c *face.Command, form string, list []jobs.Row) error {
	if err := CheckForm(form); err != nil {
		return err
	}
	doc := begin("jobs")
	groups := map[int64]string{}
	for _, r := range list {
		doc.job(r, groups)
		if err := doc.flush(c.Out, false); err != nil {
			return err
		}
	}
	doc.close(']')
	doc.set("last_backfill", c.Now.Unix())
	doc.set("last_update", c.Now.Unix())
	doc.tail(c, []string{c.Name, "--json"})
	return doc.flush(c.Out, true)
}

// job writes one element of jobs[], in Slurm's order.
func (w *w) job(r jobs.Row, groups map[int64]string) {
	state := r.Base()
	waits := state == job.Pending
	w.open("", '{')
	w.text("account", r.Raw(column.Account))
	w.some("accrue_time", r.Int(column.Eligible))
	w.empty("admin_comment")
	w.text("allocating_node", r.Raw(column.SubmitHost))
	w.array(r)
	w.raw("association_id", "0")
	w.empty("batch_features")
	w.bool("batch_flag", len(r.Raw(column.ScriptHash)) > 0)
	w.text("batch_host", r.Raw(column.BatchHost))
	w.list("flags")
	w.empty("burst_buffer", "burst_buffer_state")
	w.str("cluster", jobs.Cluster)
	w.empty("cluster_features")
	w.text("command", r.Script())
	w.text("comment", r.Raw(column.Comment))
	w.empty("container", "container_id")
	w.bool("contiguous", r.Is(column.Contiguous))
	w.raw("core_spec", "0")
	w.raw("thread_spec", "32766")
	w.unset("cores_per_socket", "billable_tres")
	w.some("cpus_per_task", r.Int(column.CPUsPerTask))
	w.unset("cpu_frequency_minimum", "cpu_frequency_maximum", "cpu_frequency_governor")
	w.empty("cpus_per_tres", "cron")
	w.set("deadline", r.Int(column.Deadline))
	w.set("delay_boot", 0)
	w.text("dependency", r.Raw(column.Dependency))
	w.exit("derived_exit_code", r.Int(column.ExitStatus), r.Int(column.ExitSignal), !state.Final())
	w.set("eligible_time", r.Int(column.Eligible))
	w.set("end_time", r.End())
	w.text("excluded_nodes", r.Raw(column.ExcNodes))
	w.exit("exit_code", r.Int(column.ExitStatus), r.Int(column.ExitSignal), !state.Final())
	w.empty("extra", "failed_node")
	w.text("features", r.Raw(column.Features))
	w.empty("federation_origin", "federation_siblings_active", "federation_siblings_viable")
	w.list("gres_detail")
	gid := r.Int(column.GID)
	w.int("group_id", gid)
	name, known := groups[gid]
	if !known {
		name = face.GroupName(uint32(gid))
		groups[gid] = name
	}
	w.str("group_name", name)
	w.het(r)
	w.resources(r, waits)
	w.list("job_size_str")
	w.states("job_state", r)
	w.unset("last_sched_evaluation")
	w.text("licenses", r.Raw(column.Licenses))
	w.list("mail_type")
	w.empty("mail_user")
	w.set("max_cpus", 0)
	w.set("max_nodes", r.Int(column.NodesMax))
	w.empty("mcs_label", "memory_per_tres")
	w.text("name", r.Raw(column.JobName))
	w.empty("network")
	w.text("nodes", r.Nodes())
	w.int("nice", r.Int(column.Nice))
	w.counts(r)
	w.limits(r, waits)
	w.files(r)
	w.close('}')
}

func (w *w) array(r jobs.Row) {
	array := r.Int(column.ArrayJob)
	w.set("array_job_id", array)
	task := r.Raw(column.ArrayTask)
	index, err := strconv.ParseInt(string(task), 10, 64)
	w.number("array_task_id", array > 0 && err == nil, false, index)
	w.set("array_max_tasks", r.Int(column.ArrayLimit))
	if array > 0 && err != nil {
		w.text("array_task_string", task)
	} else {
		w.empty("array_task_string")
	}
}

func (w *w) het(r jobs.Row) {
	if r.Part() < 0 {
		w.set("het_job_id", 0)
		w.empty("het_job_id_set")
		w.set("het_job_offset", 0)
		w.int("job_id", r.Number())
		return
	}
	w.set("het_job_id", r.Int(column.ID))
	w.str("het_job_id_set", r.Text(column.ID))
	w.set("het_job_offset", int64(r.Part()))
	w.int("job_id", r.Number())
}

// resources writes what the job holds.
func (w *w) resources(r jobs.Row, waits bool) {
	if waits || len(r.Raw(column.NodeList)) == 0 {
		w.raw("job_resources", "null")
		return
	}
	w.open("job_resources", '{')
	w.list("select_type", "CPU", "MEMORY")
	w.open("nodes", '{')
	w.int("count", r.Int(column.NodesMin))
	w.list("select_type", "AVAILABLE")
	w.text("list", r.Raw(column.NodeList))
	w.bool("whole", r.Is(column.Exclusive))
	w.list("allocation")
	w.close('}')
	w.int("cpus", r.Int(column.CPUs))
	w.unset("threads_per_core")
	w.close('}')
}

// states writes the base state and the flags that Slurm has.
func (w *w) states(name string, r jobs.Row) {
	base := r.Base()
	if base == job.Lost {
		base = job.NodeFail
	}
	if long, _ := r.StateWords(); long != base.String() {
		w.list(name, base.String(), long)
		return
	}
	w.list(name, base.String())
}

func (w *w) counts(r jobs.Row) {
	w.unset("tasks_per_core", "tasks_per_tres")
	w.some("tasks_per_node", r.Int(column.TasksPerNode))
	w.unset("tasks_per_socket")
	w.set("tasks_per_board", 0)
	w.set("cpus", r.Int(column.CPUs))
	w.set("node_count", max(r.Int(column.NodesMin), 1))
	w.set("tasks", max(r.Int(column.Tasks), 1))
	w.text("partition", r.Raw(column.Partition))
	w.empty("prefer")
	n, perCPU := r.Memory()
	w.number("memory_per_cpu", perCPU, false, pick(perCPU, n>>20))
	w.number("memory_per_node", !perCPU, false, pick(!perCPU, n>>20))
	w.set("minimum_cpus_per_node", max(r.Int(column.CPUsPerTask), 1)*max(r.Int(column.TasksPerNode), 1))
	w.set("minimum_tmp_disk_per_node", 0)
	w.raw("power", `{"flags":[]}`)
}

func pick(yes bool, n int64) int64 {
	if yes {
		return n
	}
	return 0
}

func (w *w) limits(r jobs.Row, waits bool) {
	w.set("preempt_time", 0)
	w.set("preemptable_time", 0)
	w.set("pre_sus_time", 0)
	w.bool("hold", r.Has("HELD"))
	w.set("priority", r.Int(column.Priority))
	w.list("priority_by_partition")
	w.list("profile", "NOT_SET")
	if qos := r.Raw(column.QOS); len(qos) > 0 {
		w.text("qos", qos)
	} else {
		w.str("qos", "normal")
	}
	w.bool("reboot", false)
	w.text("required_nodes", r.Raw(column.ReqNodes))
	w.raw("required_switches", "0")
	w.bool("requeue", r.Is(column.Requeue))
	w.set("resize_time", 0)
	w.int("restart_cnt", r.Restarts())
	w.text("resv_name", r.Raw(column.Reservation))
	w.empty("scheduled_nodes", "selinux_context")
	if r.Is(column.Exclusive) {
		w.list("shared", "none")
	} else {
		w.list("shared")
	}
	w.raw("sockets_per_board", "0")
	w.unset("sockets_per_node")
	w.set("start_time", r.Start())
	w.text("state_description", pickText(waits, r.Raw(column.ReasonText)))
	w.str("state_reason", r.ReasonWord())
}

func pickText(yes bool, v []byte) []byte {
	if yes {
		return v
	}
	return nil
}

func (w *w) files(r jobs.Row) {
	w.text("standard_input", r.Raw(column.Stdin))
	w.text("standard_output", r.Raw(column.Stdout))
	w.text("standard_error", r.Raw(column.Stderr))
	w.set("submit_time", r.Int(column.Submitted))
	w.set("suspend_time", 0)
	w.empty("system_comment")
	limit := r.Int(column.TimeLimit)
	w.number("time_limit", limit > 0, limit == 0, limit/60)
	w.some("time_minimum", r.Int(column.TimeMin)/60)
	w.unset("threads_per_core")
	w.empty("tres_bind", "tres_freq", "tres_per_job")
	w.text("tres_per_node", r.Raw(column.GRES))
	w.empty("tres_per_socket", "tres_per_task")
	w.text("tres_req_str", r.Raw(column.TRES))
	if r.Base() == job.Pending {
		w.empty("tres_alloc_str")
	} else {
		w.text("tres_alloc_str", r.Raw(column.TRES))
	}
	w.int("user_id", r.Int(column.UID))
	w.text("user_name", r.Raw(column.User))
	w.raw("maximum_switch_wait_time", "0")
	w.empty("wckey")
	w.text("current_working_directory", r.Raw(column.WorkDir))
}

func signalName(n int64) string {
	if n <= 0 {
		return ""
	}
	for _, name := range []string{"HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM", "XCPU", "STOP", "CONT"} {
		if s, err := slurmfmt.ParseSignalName(name); err == nil && int64(s) == n {
			return "SIG" + name
		}
	}
	return strconv.FormatInt(n, 10)
}
