package slurmjson

import (
	"strconv"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// JobColumns are what Jobs needs.
func JobColumns() []jobs.Col {
	return []jobs.Col{
		jobs.ID, jobs.Name, jobs.ArrayJob, jobs.ArrayTask, jobs.ArrayLimit, jobs.HetSize, jobs.JobName, jobs.User, jobs.UID, jobs.GID,
		jobs.Account, jobs.QOS, jobs.Partition, jobs.State, jobs.Flags, jobs.Reason, jobs.ReasonText, jobs.Priority, jobs.Nice, jobs.Submitted, jobs.Eligible,
		jobs.Started, jobs.Ended, jobs.Deadline, jobs.StartsBy, jobs.TimeLimit, jobs.TimeMin, jobs.Attempt, jobs.ExitStatus,
		jobs.ExitSignal, jobs.NodesMin, jobs.NodesMax, jobs.NodeList, jobs.ReqNodes, jobs.ExcNodes, jobs.BatchHost, jobs.Tasks, jobs.CPUs,
		jobs.CPUsPerTask, jobs.TasksPerNode, jobs.Memory, jobs.MemoryPerCPU, jobs.GRES, jobs.TRES, jobs.Features, jobs.Licenses,
		jobs.Reservation, jobs.Dependency, jobs.Requeue, jobs.Contiguous, jobs.Exclusive, jobs.Comment, jobs.Command, jobs.WorkDir,
		jobs.Stdin, jobs.Stdout, jobs.Stderr, jobs.SubmitHost, jobs.ScriptHash,
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
	w.text("account", r.Raw(jobs.Account))
	w.some("accrue_time", r.Int(jobs.Eligible))
	w.empty("admin_comment")
	w.text("allocating_node", r.Raw(jobs.SubmitHost))
	w.array(r)
	w.raw("association_id", "0")
	w.empty("batch_features")
	w.bool("batch_flag", len(r.Raw(jobs.ScriptHash)) > 0)
	w.text("batch_host", r.Raw(jobs.BatchHost))
	w.list("flags")
	w.empty("burst_buffer", "burst_buffer_state")
	w.str("cluster", jobs.Cluster)
	w.empty("cluster_features")
	w.text("command", r.Script())
	w.text("comment", r.Raw(jobs.Comment))
	w.empty("container", "container_id")
	w.bool("contiguous", r.Is(jobs.Contiguous))
	w.raw("core_spec", "0")
	w.raw("thread_spec", "32766")
	w.unset("cores_per_socket", "billable_tres")
	w.some("cpus_per_task", r.Int(jobs.CPUsPerTask))
	w.unset("cpu_frequency_minimum", "cpu_frequency_maximum", "cpu_frequency_governor")
	w.empty("cpus_per_tres", "cron")
	w.set("deadline", r.Int(jobs.Deadline))
	w.set("delay_boot", 0)
	w.text("dependency", r.Raw(jobs.Dependency))
	w.exit("derived_exit_code", r.Int(jobs.ExitStatus), r.Int(jobs.ExitSignal), !state.Final())
	w.set("eligible_time", r.Int(jobs.Eligible))
	w.set("end_time", r.End())
	w.text("excluded_nodes", r.Raw(jobs.ExcNodes))
	w.exit("exit_code", r.Int(jobs.ExitStatus), r.Int(jobs.ExitSignal), !state.Final())
	w.empty("extra", "failed_node")
	w.text("features", r.Raw(jobs.Features))
	w.empty("federation_origin", "federation_siblings_active", "federation_siblings_viable")
	w.list("gres_detail")
	gid := r.Int(jobs.GID)
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
	w.text("licenses", r.Raw(jobs.Licenses))
	w.list("mail_type")
	w.empty("mail_user")
	w.set("max_cpus", 0)
	w.set("max_nodes", r.Int(jobs.NodesMax))
	w.empty("mcs_label", "memory_per_tres")
	w.text("name", r.Raw(jobs.JobName))
	w.empty("network")
	w.text("nodes", r.Nodes())
	w.int("nice", r.Int(jobs.Nice))
	w.counts(r)
	w.limits(r, waits)
	w.files(r)
	w.close('}')
}

func (w *w) array(r jobs.Row) {
	array := r.Int(jobs.ArrayJob)
	w.set("array_job_id", array)
	task := r.Raw(jobs.ArrayTask)
	index, err := strconv.ParseInt(string(task), 10, 64)
	w.number("array_task_id", array > 0 && err == nil, false, index)
	w.set("array_max_tasks", r.Int(jobs.ArrayLimit))
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
	w.set("het_job_id", r.Int(jobs.ID))
	w.str("het_job_id_set", r.Text(jobs.ID))
	w.set("het_job_offset", int64(r.Part()))
	w.int("job_id", r.Number())
}

// resources writes what the job holds.
func (w *w) resources(r jobs.Row, waits bool) {
	if waits || len(r.Raw(jobs.NodeList)) == 0 {
		w.raw("job_resources", "null")
		return
	}
	w.open("job_resources", '{')
	w.list("select_type", "CPU", "MEMORY")
	w.open("nodes", '{')
	w.int("count", r.Int(jobs.NodesMin))
	w.list("select_type", "AVAILABLE")
	w.text("list", r.Raw(jobs.NodeList))
	w.bool("whole", r.Is(jobs.Exclusive))
	w.list("allocation")
	w.close('}')
	w.int("cpus", r.Int(jobs.CPUs))
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
	w.some("tasks_per_node", r.Int(jobs.TasksPerNode))
	w.unset("tasks_per_socket")
	w.set("tasks_per_board", 0)
	w.set("cpus", r.Int(jobs.CPUs))
	w.set("node_count", max(r.Int(jobs.NodesMin), 1))
	w.set("tasks", max(r.Int(jobs.Tasks), 1))
	w.text("partition", r.Raw(jobs.Partition))
	w.empty("prefer")
	n, perCPU := r.Memory()
	w.number("memory_per_cpu", perCPU, false, pick(perCPU, n>>20))
	w.number("memory_per_node", !perCPU, false, pick(!perCPU, n>>20))
	w.set("minimum_cpus_per_node", max(r.Int(jobs.CPUsPerTask), 1)*max(r.Int(jobs.TasksPerNode), 1))
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
	w.set("priority", r.Int(jobs.Priority))
	w.list("priority_by_partition")
	w.list("profile", "NOT_SET")
	if qos := r.Raw(jobs.QOS); len(qos) > 0 {
		w.text("qos", qos)
	} else {
		w.str("qos", "normal")
	}
	w.bool("reboot", false)
	w.text("required_nodes", r.Raw(jobs.ReqNodes))
	w.raw("required_switches", "0")
	w.bool("requeue", r.Is(jobs.Requeue))
	w.set("resize_time", 0)
	w.int("restart_cnt", r.Restarts())
	w.text("resv_name", r.Raw(jobs.Reservation))
	w.empty("scheduled_nodes", "selinux_context")
	if r.Is(jobs.Exclusive) {
		w.list("shared", "none")
	} else {
		w.list("shared")
	}
	w.raw("sockets_per_board", "0")
	w.unset("sockets_per_node")
	w.set("start_time", r.Start())
	w.text("state_description", pickText(waits, r.Raw(jobs.ReasonText)))
	w.str("state_reason", r.ReasonWord())
}

func pickText(yes bool, v []byte) []byte {
	if yes {
		return v
	}
	return nil
}

func (w *w) files(r jobs.Row) {
	w.text("standard_input", r.Raw(jobs.Stdin))
	w.text("standard_output", r.Raw(jobs.Stdout))
	w.text("standard_error", r.Raw(jobs.Stderr))
	w.set("submit_time", r.Int(jobs.Submitted))
	w.set("suspend_time", 0)
	w.empty("system_comment")
	limit := r.Int(jobs.TimeLimit)
	w.number("time_limit", limit > 0, limit == 0, limit/60)
	w.some("time_minimum", r.Int(jobs.TimeMin)/60)
	w.unset("threads_per_core")
	w.empty("tres_bind", "tres_freq", "tres_per_job")
	w.text("tres_per_node", r.Raw(jobs.GRES))
	w.empty("tres_per_socket", "tres_per_task")
	w.text("tres_req_str", r.Raw(jobs.TRES))
	if r.Base() == job.Pending {
		w.empty("tres_alloc_str")
	} else {
		w.text("tres_alloc_str", r.Raw(jobs.TRES))
	}
	w.int("user_id", r.Int(jobs.UID))
	w.text("user_name", r.Raw(jobs.User))
	w.raw("maximum_switch_wait_time", "0")
	w.empty("wckey")
	w.text("current_working_directory", r.Raw(jobs.WorkDir))
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
