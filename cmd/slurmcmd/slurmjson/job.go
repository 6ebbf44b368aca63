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
func Jobs(c *slurmcmd.Command, form string, list []jobs.Row) error {
	if err := CheckForm(form); err != nil {
		return err
	}
	doc := beginDocument("jobs")
	groups := map[int64]string{}
	for _, r := range list {
		doc.squeueJob(r, groups)
		if err := doc.flushLarge(c.Out, false); err != nil {
			return err
		}
	}
	doc.close(']')
	doc.setNumber("last_backfill", c.Now.Unix())
	doc.setNumber("last_update", c.Now.Unix())
	doc.writeMeta(c, []string{c.Name, "--json"})
	return doc.flushLarge(c.Out, true)
}

// JobStates writes the document of squeue --only-job-state.
func JobStates(c *slurmcmd.Command, form string, list []jobs.Row) error {
	if err := CheckForm(form); err != nil {
		return err
	}
	doc := beginDocument("jobs")
	for _, r := range list {
		doc.openValue("", '{')
		doc.stringField("job_id", string(r.AppendName(nil)))
		doc.jobStates("state", r)
		doc.close('}')
	}
	return doc.endDocument(c)
}

// squeueJob writes one element of jobs[], in Slurm's order.
func (w *w) squeueJob(r jobs.Row, groups map[int64]string) {
	state := r.Base()
	waits := state == job.Pending
	w.openValue("", '{')
	w.textField("account", r.Raw(column.Account))
	w.setNonZero("accrue_time", r.Int(column.Eligible))
	w.emptyStrings("admin_comment")
	w.textField("allocating_node", r.Raw(column.SubmitHost))
	w.arrayFields(r)
	w.rawField("association_id", "0")
	w.emptyStrings("batch_features")
	w.boolField("batch_flag", len(r.Raw(column.ScriptHash)) > 0)
	w.textField("batch_host", r.Raw(column.BatchHost))
	w.stringList("flags")
	w.emptyStrings("burst_buffer", "burst_buffer_state")
	w.stringField("cluster", r.Cluster)
	w.emptyStrings("cluster_features")
	w.textField("command", r.Script())
	w.textField("comment", r.Raw(column.Comment))
	w.emptyStrings("container", "container_id")
	w.boolField("contiguous", r.Is(column.Contiguous))
	w.rawField("core_spec", "0")
	w.rawField("thread_spec", "32766")
	w.unsetNumbers("cores_per_socket", "billable_tres")
	w.setNonZero("cpus_per_task", r.Int(column.CPUsPerTask))
	w.unsetNumbers("cpu_frequency_minimum", "cpu_frequency_maximum", "cpu_frequency_governor")
	w.emptyStrings("cpus_per_tres", "cron")
	w.setNumber("deadline", r.Int(column.Deadline))
	w.setNumber("delay_boot", 0)
	w.textField("dependency", r.Raw(column.Dependency))
	w.exitCode("derived_exit_code", r.Int(column.ExitStatus), r.Int(column.ExitSignal), !state.Final())
	w.setNumber("eligible_time", r.Int(column.Eligible))
	w.setNumber("end_time", r.End())
	w.textField("excluded_nodes", r.Raw(column.ExcNodes))
	w.exitCode("exit_code", r.Int(column.ExitStatus), r.Int(column.ExitSignal), !state.Final())
	w.emptyStrings("extra", "failed_node")
	w.textField("features", r.Raw(column.Features))
	w.emptyStrings("federation_origin", "federation_siblings_active", "federation_siblings_viable")
	w.stringList("gres_detail")
	gid := r.Int(column.GID)
	w.intField("group_id", gid)
	name, known := groups[gid]
	if !known {
		name = slurmcmd.GroupName(uint32(gid))
		groups[gid] = name
	}
	w.stringField("group_name", name)
	w.hetFields(r)
	w.jobResources(r, waits)
	w.stringList("job_size_str")
	w.jobStates("job_state", r)
	w.unsetNumbers("last_sched_evaluation")
	w.textField("licenses", r.Raw(column.Licenses))
	w.stringList("mail_type")
	w.emptyStrings("mail_user")
	w.setNumber("max_cpus", 0)
	w.setNumber("max_nodes", r.Int(column.NodesMax))
	w.emptyStrings("mcs_label", "memory_per_tres")
	w.textField("name", r.Raw(column.JobName))
	w.emptyStrings("network")
	w.textField("nodes", r.Nodes())
	w.intField("nice", r.Int(column.Nice))
	w.countFields(r)
	w.limitFields(r, waits)
	w.fileFields(r)
	w.close('}')
}

func (w *w) arrayFields(r jobs.Row) {
	array := r.Int(column.ArrayJob)
	w.setNumber("array_job_id", array)
	task := r.Raw(column.ArrayTask)
	index, err := strconv.ParseInt(string(task), 10, 64)
	w.numberField("array_task_id", array > 0 && err == nil, false, index)
	w.setNumber("array_max_tasks", r.Int(column.ArrayLimit))
	if array > 0 && err != nil {
		w.textField("array_task_string", task)
	} else {
		w.emptyStrings("array_task_string")
	}
}

func (w *w) hetFields(r jobs.Row) {
	if r.Part() < 0 {
		w.setNumber("het_job_id", 0)
		w.emptyStrings("het_job_id_set")
		w.setNumber("het_job_offset", 0)
		w.intField("job_id", r.Number())
		return
	}
	w.setNumber("het_job_id", r.Int(column.ID))
	w.stringField("het_job_id_set", r.Text(column.ID))
	w.setNumber("het_job_offset", int64(r.Part()))
	w.intField("job_id", r.Number())
}

// jobResources writes what the job holds.
func (w *w) jobResources(r jobs.Row, waits bool) {
	if waits || len(r.Raw(column.NodeList)) == 0 {
		w.rawField("job_resources", "null")
		return
	}
	w.openValue("job_resources", '{')
	w.stringList("select_type", "CPU", "MEMORY")
	w.openValue("nodes", '{')
	w.intField("count", r.Int(column.NodesMin))
	w.stringList("select_type", "AVAILABLE")
	w.textField("list", r.Raw(column.NodeList))
	w.boolField("whole", r.Is(column.Exclusive))
	w.stringList("allocation")
	w.close('}')
	w.intField("cpus", r.Int(column.CPUs))
	w.unsetNumbers("threads_per_core")
	w.close('}')
}

// jobStates writes the base state and the flags that Slurm has.
func (w *w) jobStates(name string, r jobs.Row) {
	base := r.Base()
	if base == job.Lost {
		base = job.NodeFail
	}
	if long, _ := r.StateWords(); long != base.String() {
		w.stringList(name, base.String(), long)
		return
	}
	w.stringList(name, base.String())
}

func (w *w) countFields(r jobs.Row) {
	w.unsetNumbers("tasks_per_core", "tasks_per_tres")
	w.setNonZero("tasks_per_node", r.Int(column.TasksPerNode))
	w.unsetNumbers("tasks_per_socket")
	w.setNumber("tasks_per_board", 0)
	w.setNumber("cpus", r.Int(column.CPUs))
	w.setNumber("node_count", max(r.Int(column.NodesMin), 1))
	w.setNumber("tasks", max(r.Int(column.Tasks), 1))
	w.textField("partition", r.Raw(column.Partition))
	w.emptyStrings("prefer")
	n, perCPU := r.Memory()
	w.numberField("memory_per_cpu", perCPU, false, valueIf(perCPU, n>>20))
	w.numberField("memory_per_node", !perCPU, false, valueIf(!perCPU, n>>20))
	w.setNumber("minimum_cpus_per_node", max(r.Int(column.CPUsPerTask), 1)*max(r.Int(column.TasksPerNode), 1))
	w.setNumber("minimum_tmp_disk_per_node", 0)
	w.rawField("power", `{"flags":[]}`)
}

func valueIf(yes bool, n int64) int64 {
	if yes {
		return n
	}
	return 0
}

func (w *w) limitFields(r jobs.Row, waits bool) {
	w.setNumber("preempt_time", 0)
	w.setNumber("preemptable_time", 0)
	w.setNumber("pre_sus_time", 0)
	w.boolField("hold", r.Has("HELD"))
	w.setNumber("priority", r.Priority())
	w.stringList("priority_by_partition")
	w.stringList("profile", "NOT_SET")
	if qos := r.Raw(column.QOS); len(qos) > 0 {
		w.textField("qos", qos)
	} else {
		w.stringField("qos", "normal")
	}
	w.boolField("reboot", false)
	w.textField("required_nodes", r.Raw(column.ReqNodes))
	w.rawField("required_switches", "0")
	w.boolField("requeue", r.Is(column.Requeue))
	w.setNumber("resize_time", 0)
	w.intField("restart_cnt", r.Restarts())
	w.textField("resv_name", r.Raw(column.Reservation))
	w.emptyStrings("scheduled_nodes", "selinux_context")
	if r.Is(column.Exclusive) {
		w.stringList("shared", "none")
	} else {
		w.stringList("shared")
	}
	w.rawField("sockets_per_board", "0")
	w.unsetNumbers("sockets_per_node")
	w.setNumber("start_time", r.Start())
	w.textField("state_description", pickText(waits, r.Raw(column.ReasonText)))
	w.stringField("state_reason", r.ReasonWord())
}

func pickText(yes bool, v []byte) []byte {
	if yes {
		return v
	}
	return nil
}

func (w *w) fileFields(r jobs.Row) {
	w.textField("standard_input", r.Raw(column.Stdin))
	w.textField("standard_output", r.Raw(column.Stdout))
	w.textField("standard_error", r.Raw(column.Stderr))
	w.setNumber("submit_time", r.Int(column.Submitted))
	w.setNumber("suspend_time", 0)
	w.emptyStrings("system_comment")
	limit := r.Int(column.TimeLimit)
	w.numberField("time_limit", limit > 0, limit == 0, limit/60)
	w.setNonZero("time_minimum", r.Int(column.TimeMin)/60)
	w.unsetNumbers("threads_per_core")
	w.emptyStrings("tres_bind", "tres_freq", "tres_per_job")
	w.textField("tres_per_node", r.Raw(column.GRES))
	w.emptyStrings("tres_per_socket", "tres_per_task")
	w.textField("tres_req_str", r.Raw(column.TRES))
	if r.Base() == job.Pending {
		w.emptyStrings("tres_alloc_str")
	} else {
		w.textField("tres_alloc_str", r.Raw(column.TRES))
	}
	w.intField("user_id", r.Int(column.UID))
	w.textField("user_name", r.Raw(column.User))
	w.rawField("maximum_switch_wait_time", "0")
	w.emptyStrings("wckey")
	w.textField("current_working_directory", r.Raw(column.WorkDir))
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
