package command

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

var _ site.Accountant = (*Site)(nil)

// spent are the fields asked of sacct for each step. Sizes are of the task that used most, or the
// average of all.
var spent = []string{
	"JobID", "JobName", "NTasks", "NodeList", "Submit", "Start", "End", "ExitCode", "UserCPU", "SystemCPU", "MinCPU", "MinCPUNode", "MinCPUTask",
	"AveRSS", "MaxRSS", "MaxRSSNode", "MaxRSSTask", "AveDiskRead", "MaxDiskRead", "MaxDiskReadNode", "MaxDiskReadTask", "AveDiskWrite", "MaxDiskWrite", "MaxDiskWriteNode", "MaxDiskWriteTask",
}

// Used is site.Accountant's, by sacct.
func (s *Site) Used(ctx context.Context, ids []uint32) ([]site.JobUse, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	out, err := s.runQuery(ctx, "sacct", "--noheader", "--parsable", "--delimiter="+sep, "--format="+strings.Join(spent, ","), "--jobs="+joinIDs(ids))
	switch {
	case err != nil && strings.Contains(err.Error(), "accounting storage is disabled"):
		return nil, fault.New(fault.Unsupported, "the cluster has no accounting (AccountingStorageType)")
	case err != nil:
		return nil, err
	}
	return parseUsed(string(out))
}

var _ site.Sampler = (*Site)(nil)

// spentNow are the fields asked of sstat for each step.
var spentNow = []string{"JobID", "NTasks", "AveCPU", "AveRSS"}

// UsedNow is site.Sampler's, by one sstat for all jobs. It asks the nodes of the jobs. That of a job which has just
// ended says so and goes on with the others.
func (s *Site) UsedNow(ctx context.Context, ids []uint32) ([]site.JobUse, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	config, err := s.runQuery(ctx, "scontrol", "show", "config")
	if err != nil {
		return nil, err
	}
	if by := configValue(config, "JobAcctGatherType"); by == "" || by == "(null)" || strings.HasSuffix(by, "/none") {
		return nil, fault.New(fault.Unsupported, "Slurm measures nothing while a job runs (JobAcctGatherType=%s)", cmp.Or(by, "none")).
			Advise("set JobAcctGatherType=jobacct_gather/cgroup in slurm.conf, and restart slurmctld and every slurmd")
	}
	r, err := s.run.Run(ctx, Call{Name: "sstat", Args: []string{"--noheader", "--parsable2", "--allsteps", "--format=" + strings.Join(spentNow, ","), "--jobs=" + joinIDs(ids)}, Env: epoch, User: s.as})
	if err != nil {
		return nil, noAnswerError("sstat", err)
	}
	all, err := parseUsedNow(string(r.Stdout))
	if err == nil && len(all) == 0 && r.Code != 0 && !strings.Contains(string(r.Stderr), "no steps running") {
		err = refusalError("sstat", &r)
	}
	return all, err
}

// parseUsedNow reads sstat's rows: of each step that runs.
func parseUsedNow(text string) ([]site.JobUse, error) {
	var all []site.JobUse
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		number, step, isStep := strings.Cut(fields[0], ".")
		id, err := strconv.ParseUint(number, 10, 32)
		if err != nil || len(fields) != len(spentNow) {
			return nil, fault.New(fault.Unavailable, "sstat answered %q, of which %d fields were expected", strings.TrimSpace(line), len(spentNow))
		}
		var u site.StepUse
		if !isStep || !numberStep(&u, step) {
			continue
		}
		u.Tasks, _ = strconv.Atoi(fields[1])
		u.Tasks = max(u.Tasks, 1)
		u.Running = u.Tasks
		if each, known := parseCPUTime(fields[2]); known {
			u.Sum.Known |= rusage.CPU
			u.Sum.User = each * time.Duration(u.Tasks)
		}
		if each, known := parseSize(fields[3]); known {
			u.Sum.Known |= rusage.Memory
			u.Sum.Memory = each * int64(u.Tasks)
			u.Sum.Now = u.Sum.Memory
		}
		i := slices.IndexFunc(all, func(j site.JobUse) bool { return j.ID == uint32(id) })
		if i < 0 {
			i = len(all)
			all = append(all, site.JobUse{ID: uint32(id)})
		}
		all[i].Steps = append(all[i].Steps, u)
	}
	return all, nil
}

// numberStep gives a step the number of its name; false: it is of a kind that has none here.
func numberStep(u *site.StepUse, step string) bool {
	switch step {
	case "batch":
		u.Step.Step = engine.BatchStep
		return true
	case "extern":
		u.Step.Step = engine.ExternStep
		return true
	}
	number, _, _ := strings.Cut(step, "+")
	n, err := strconv.Atoi(number)
	u.Step.Step = n
	return err == nil // "interactive" has none
}

// parseUsed reads sacct's rows: of each job, and below it those of its steps.
func parseUsed(text string) ([]site.JobUse, error) {
	var all []site.JobUse
	at := map[uint32]int{}
	fields := strings.Split(text, sep)
	for ; len(fields) > len(spent); fields = fields[len(spent):] {
		row := map[string]string{}
		for i, name := range spent {
			row[name] = strings.TrimSpace(fields[i])
		}
		job, step, isStep := strings.Cut(row["JobID"], ".")
		number, component, _ := strings.Cut(job, "+")
		id, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return nil, fault.New(fault.Unavailable, "sacct answered %q, which is no number of a job", row["JobID"])
		}
		i, known := at[uint32(id)]
		switch {
		case !isStep && component != "" && component != "0": // of a heterogeneous job
		case !isStep && parseTime(row["End"]).IsZero():
		case !isStep:
			at[uint32(id)] = len(all)
			all = append(all, site.JobUse{ID: uint32(id), Submitted: parseTime(row["Submit"])})
		case known:
			use, ok, err := parseStepUse(step, row)
			if err != nil {
				return nil, fault.New(fault.Unavailable, "step %s, as sacct has it: %w", row["JobID"], err)
			}
			if ok {
				all[i].Steps = append(all[i].Steps, use)
			}
		}
	}
	return all, nil
}

// parseStepUse reads the row of a step; false: it is of a kind that has no number here.
func parseStepUse(step string, row map[string]string) (u site.StepUse, ok bool, err error) {
	if !numberStep(&u, step) {
		return u, false, nil
	}
	u.Name, u.Started, u.Ended = row["JobName"], parseTime(row["Start"]), parseTime(row["End"])
	u.Tasks, _ = strconv.Atoi(row["NTasks"])
	u.Tasks = max(u.Tasks, 1)
	if u.Nodes, err = expandHosts(row["NodeList"]); err != nil {
		return u, false, err
	}
	status, signal, _ := strings.Cut(row["ExitCode"], ":")
	u.Exit.Status, _ = strconv.Atoi(status)
	u.Exit.Signal, _ = strconv.Atoi(signal)
	user, knowsUser := parseCPUTime(row["UserCPU"])
	system, knowsSystem := parseCPUTime(row["SystemCPU"])
	_, gathered := parseSize(row["AveRSS"])
	if knowsUser && knowsSystem && (gathered || user+system > 0) { // jobacct_gather/none says 0
		u.Sum.Known |= rusage.CPU
		u.Sum.User, u.Sum.System = user, system
	}
	if least, known := parseCPUTime(row["MinCPU"]); known && gathered {
		u.MinCPU = extremeOf(row, "MinCPU", int64(least))
	}
	if each, known := parseSize(row["AveRSS"]); known {
		u.Sum.Known |= rusage.Memory
		u.Sum.Memory = each * int64(u.Tasks)
	}
	read, knowsRead := parseSize(row["AveDiskRead"])
	written, knowsWritten := parseSize(row["AveDiskWrite"])
	if knowsRead && knowsWritten {
		u.Sum.Known |= rusage.IO
		u.Sum.Read, u.Sum.Written = read*int64(u.Tasks), written*int64(u.Tasks)
	}
	for name, to := range map[string]**rusage.Extreme{"MaxRSS": &u.MaxMemory, "MaxDiskRead": &u.MaxRead, "MaxDiskWrite": &u.MaxWritten} {
		if n, known := parseSize(row[name]); known && (n > 0 || name == "MaxRSS") {
			*to = extremeOf(row, name, n)
		}
	}
	return u, true, nil
}

func extremeOf(row map[string]string, name string, value int64) *rusage.Extreme {
	task, _ := strconv.Atoi(row[name+"Task"])
	return &rusage.Extreme{Value: value, Node: row[name+"Node"], Task: max(task, 0)}
}

// parseCPUTime reads Slurm's [D-][HH:]MM:SS[.mmm]; false: it is empty.
func parseCPUTime(text string) (time.Duration, bool) {
	days, clock, hasDays := strings.Cut(text, "-")
	if !hasDays {
		days, clock = "0", text
	}
	n, err := strconv.Atoi(days)
	if err != nil || n > mostDays { // Slurm prints 213503982334-14:25:51 for what it does not know
		return 0, false
	}
	seconds := float64(n)
	parts := strings.Split(clock, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return 0, false
	}
	if len(parts) == 2 {
		parts = append([]string{"0"}, parts...)
	}
	for i, base := range []float64{24, 60, 60} {
		f, err := strconv.ParseFloat(parts[i], 64)
		if err != nil {
			return 0, false
		}
		seconds = seconds*base + f
	}
	return time.Duration(seconds*1000+0.5) * time.Millisecond, true
}

// mostDays is more CPU time than a task has: a century.
const mostDays = 36500

// parseSize reads Slurm's amount of bytes: 1234K, 1.50M; false: it is empty.
func parseSize(text string) (int64, bool) {
	unit := int64(1)
	for i, letter := range "KMGTP" {
		if number, ok := strings.CutSuffix(text, string(letter)); ok {
			text, unit = number, 1<<(10*(i+1))
			break
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f < 0 {
		return 0, false
	}
	return int64(f * float64(unit)), true
}
