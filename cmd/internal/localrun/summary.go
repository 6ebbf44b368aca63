package localrun

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// The exit codes of cox run for a job that did not end by its own exit.
const (
	exitTimeout     = 124 // as timeout(1)
	exitOutOfMemory = 137 // as a shell reports SIGKILL
	exitCancelled   = 130 // as a shell reports SIGINT
	exitNodeFail    = 75
)

// ExitCode is the exit code of cox run for a job: the job's own where it has one.
func ExitCode(j *job.Job) int {
	switch j.State {
	case job.Completed:
		return 0
	case job.Timeout, job.Deadline:
		return exitTimeout
	case job.OutOfMemory:
		return exitOutOfMemory
	case job.Cancelled:
		return exitCancelled
	case job.NodeFail, job.Lost, job.BootFail:
		return exitNodeFail
	}
	return max(j.Exit.Shell(), 1)
}

// printSummary prints how a job ended.
func printSummary(s *screen, v *state.View, written []string, words func(log string) string) {
	j := &v.Job
	wait, ran := time.Duration(0), time.Duration(0)
	if !j.Started.IsZero() {
		wait, ran = max(j.Started.Sub(j.Submitted), 0), max(j.Ended.Sub(j.Started), 0)
	}
	head := fmt.Sprintf("job %s %s", j.Name(), j.State)
	if !j.Started.IsZero() {
		head += fmt.Sprintf(" in %.1f s, waited %.1f s", ran.Seconds(), wait.Seconds())
	}
	s.printNote("done     %s%s", head, endReason(v))
	if first := firstFailure(v.Report.Tasks); first != nil {
		if line := words(first.Log); line != "" {
			s.printNote("first    rank %d: %s", first.Rank, line)
		}
	}
	if len(v.Claims) > 0 {
		s.printNote("used     %s", usageText(v, ran))
	}
	if ranks := groupRanks(v.Report.Tasks); ranks != "" {
		s.printNote("ranks    %s", ranks)
	}
	if files := listFiles(written); files != "" {
		s.printNote("files    %s", files)
	}
}

// endReason is the reason of an end that was not a success.
func endReason(v *state.View) string {
	if v.Job.State == job.Completed {
		return ""
	}
	if v.Report.Message != "" {
		return ": " + v.Report.Message
	}
	switch v.Job.State {
	case job.Cancelled:
		return ""
	case job.Timeout:
		return fmt.Sprintf(": its time limit of %s was reached", v.Job.Spec.TimeLimit)
	}
	return ": " + v.Job.Exit.String()
}

// usageText is what the job held, and for how long: "4 nodes v[1-4], 8 GPUs × 12.4 s = 99 GPU-seconds".
func usageText(v *state.View, ran time.Duration) string {
	var names []string
	var cpu resource.Amount
	var gpus float64
	for _, c := range v.Claims {
		if !slices.Contains(names, c.Node) {
			names = append(names, c.Node)
		}
		cpu = cpu.Add(c.Take.CPU)
		for _, d := range c.Devices {
			gpus += float64(d.Share) / float64(resource.WholeDevice)
		}
	}
	text := fmt.Sprintf("%s %s, %s", plural(len(names), "node"), compressNames(names), cpuText(cpu))
	if gpus > 0 {
		text += fmt.Sprintf(", %g GPUs × %.1f s = %.1f GPU-seconds", gpus, ran.Seconds(), gpus*ran.Seconds())
	}
	return text
}

func cpuText(a resource.Amount) string {
	if a == resource.OneCPU {
		return "1 CPU"
	}
	return resource.FormatCPU(a) + " CPUs"
}

// manyJobs is how many jobs are told of one by one; of more, those that failed
// are, and all are counted.
const manyJobs = 8

// tallyStates counts jobs by how they ended: "1000 jobs: 998 × COMPLETED, 2 × FAILED".
func tallyStates(views []*state.View) string {
	count := map[job.State]int{}
	for _, v := range views {
		count[v.Job.State]++
	}
	var parts []string
	for _, s := range job.States() {
		if count[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d × %s", count[s], s))
		}
	}
	return fmt.Sprintf("%d jobs: %s", len(views), strings.Join(parts, ", "))
}

// groupRanks groups the ranks of every step by how they ended: "8 × exit 0".
func groupRanks(tasks []engine.TaskReport) string {
	byExit := map[job.ExitCode][]engine.TaskReport{}
	var exits []job.ExitCode
	for _, t := range tasks {
		if t.Step == engine.BatchStep {
			continue
		}
		if _, ok := byExit[t.Exit]; !ok {
			exits = append(exits, t.Exit)
		}
		byExit[t.Exit] = append(byExit[t.Exit], t)
	}
	slices.SortFunc(exits, func(a, b job.ExitCode) int { return cmp.Compare(a.Shell(), b.Shell()) })
	var parts []string
	for _, e := range exits {
		text := fmt.Sprintf("%d × %s", len(byExit[e]), e)
		if !e.OK() {
			text += " (" + nameRanks(byExit[e]) + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// nameRanks names at most a few ranks with their nodes.
func nameRanks(tasks []engine.TaskReport) string {
	const most = 4
	var names []string
	for i, t := range tasks {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(tasks)-most))
			break
		}
		names = append(names, fmt.Sprintf("%s.%d", t.Node, t.Rank))
	}
	return strings.Join(names, ", ")
}

// firstFailure is the task that ended badly first, by time; those that were
// stopped because of another do not count.
func firstFailure(tasks []engine.TaskReport) *engine.TaskReport {
	var first *engine.TaskReport
	for i := range tasks {
		t := &tasks[i]
		if t.Step == engine.BatchStep || t.Running || t.Exit.OK() || t.Cause == engine.Stopped {
			continue
		}
		if first == nil || t.Ended.Before(first.Ended) {
			first = t
		}
	}
	return first
}

// lastLine is the last line with text of a rank's log.
func lastLine(path string) string {
	if path == "" {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return ""
	}
	b := make([]byte, min(st.Size(), maxLine)) // a log may be larger than memory
	n, err := f.ReadAt(b, st.Size()-int64(len(b)))
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	b = bytes.TrimSpace(b[:n])
	return string(b[bytes.LastIndexByte(b, '\n')+1:])
}

// listFiles lists output files by the name that is shortest from here, with sizes.
func listFiles(paths []string) string {
	here, _ := os.Getwd()
	var parts []string
	for _, p := range paths {
		st, err := os.Stat(p)
		if err != nil || !st.Mode().IsRegular() {
			continue
		}
		name := p
		if rel, err := filepath.Rel(here, p); err == nil && !strings.HasPrefix(rel, "..") {
			name = rel
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", name, resource.FormatBytes(resource.Amount(st.Size()))))
	}
	return strings.Join(parts, ", ")
}

func compressNames(names []string) string { return hostlist.Compress(names) }

func signalName(s os.Signal) string {
	if n, ok := s.(syscall.Signal); ok && n == syscall.SIGINT {
		return "Ctrl-C"
	}
	return s.String()
}
