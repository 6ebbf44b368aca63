package killtest

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
)

// run is what one process of one attempt wrote down of itself.
type run struct {
	starts, ends int
	harmed       bool // its supervisor was killed or stopped
}

// facts are what processes wrote down: by task, attempt and rank.
type facts struct {
	runs    map[string]map[int]map[string]*run
	clashes []string
}

// read reads the evidence of a round.
func (h *harm) read(dir string) (*facts, error) {
	f := &facts{runs: map[string]map[int]map[string]*run{}}
	b, err := os.ReadFile(filepath.Join(dir, "evidence"))
	if os.IsNotExist(err) {
		return f, nil
	}
	for line := range strings.Lines(string(b)) {
		w := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		n, err := strconv.Atoi(w[min(2, len(w)-1)])
		if len(w) < 4 || err != nil {
			return f, fmt.Errorf("no evidence: %q", line)
		}
		r := f.of(w[1], n, w[3])
		switch w[0] {
		case "start":
			ref, _ := attempt.ParseRef(w[4])
			pid, _ := strconv.Atoi(w[5])
			r.starts++
			r.harmed = r.harmed || h.refs[ref] || h.pids[pid]
		case "end":
			r.ends++
		case "clash":
			f.clashes = append(f.clashes, strings.Join(w[1:], " "))
		}
	}
	return f, err
}

func (f *facts) of(task string, n int, rank string) *run {
	if f.runs[task] == nil {
		f.runs[task] = map[int]map[string]*run{}
	}
	if f.runs[task][n] == nil {
		f.runs[task][n] = map[string]*run{}
	}
	if f.runs[task][n][rank] == nil {
		f.runs[task][n][rank] = &run{}
	}
	return f.runs[task][n][rank]
}

// judge compares what the server says with what the jobs wrote.
func (r *round) judge() {
	f, err := r.h.read(r.dir)
	if err != nil {
		r.t.Error(err)
	}
	for _, c := range f.clashes {
		r.t.Errorf("a lock was held by another: %s", c)
	}
	jobs := r.jobs()
	for _, w := range r.works {
		if !w.sent {
			continue
		}
		found := jobs[w.name]
		switch want := max(1, w.tasks); {
		case w.acked && len(found) != want, !w.acked && len(found) != want && len(found) != 0:
			r.t.Errorf("%s (answered: %t): %d jobs, want %d", w.name, w.acked, len(found), want)
		case len(found) == 0 && f.runs[w.name] != nil:
			r.t.Errorf("%s is no job, but ran", w.name)
		}
		for _, j := range found {
			if bad := r.judgeJob(w, &j, f); len(bad) > 0 {
				r.t.Errorf("%s (%s): %s, %v, attempt %d, exit %+v, harmed %t, message %q: %s", w.name, j.Name, j.State, j.Flags,
					j.Attempt, j.Exit, r.h.jobs[j.ID], j.Message, strings.Join(bad, "; "))
			}
		}
	}
	if left := marked("COX_KILL_DIR=" + r.dir); len(left) > 0 {
		r.t.Errorf("everything has ended, but these live: %s", describe(left))
	}
	r.judgeNodes()
}

// jobs are the jobs of the round by the names of their work.
func (r *round) jobs() map[string][]api.Job {
	out := map[string][]api.Job{}
	prefix := r.prefix()
	for j, err := range r.s.c.History(r.t.Context(), client.HistoryQuery{From: r.from}) {
		if err != nil {
			r.t.Fatal(err)
		}
		if strings.HasPrefix(j.Spec.Name, prefix) {
			now, err := r.s.c.Job(r.t.Context(), j.Name)
			if err != nil {
				r.t.Fatal(err)
			}
			out[j.Spec.Name] = append(out[j.Spec.Name], *now)
		}
	}
	return out
}

func taskName(w *work, j *api.Job) (task, index string) {
	if j.Array == nil {
		return w.name, ""
	}
	index = strconv.Itoa(int(j.Array.Index))
	return w.name + "_" + index, index
}

// judgeJob returns what is wrong with a job.
func (r *round) judgeJob(w *work, j *api.Job, f *facts) (bad []string) {
	say := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	task, index := taskName(w, j)
	last := int(j.Attempt)
	r.again += max(0, last-1)
	whole, lost := 0, false
	for n, ranks := range f.runs[task] {
		ended := 0
		for rank, p := range ranks {
			if p.starts != 1 || p.ends > 1 {
				say("attempt %d rank %s started %d times, ended %d times", n, rank, p.starts, p.ends)
			}
			ended += p.ends
		}
		if ended == max(1, w.ranks) {
			whole++
		}
		harmed := harmed(ranks)
		lost = lost || harmed
		if n > last || n < last && !harmed && !r.h.jobs[j.ID] {
			say("attempt %d ran, and nothing was done to it", n)
		}
	}
	lost = lost || r.h.jobs[j.ID]
	ran := f.runs[task][last]
	switch j.State {
	case "COMPLETED", "FAILED":
		never := slices.Contains(j.Flags, "LAUNCH_FAILED")
		switch {
		case never && w.stays && lost && ran == nil:
		case never || j.Exit.Status != w.exit || j.Exit.Signal != 0:
			say("exit %d is wanted", w.exit)
		case w.silent:
		case ends(ran) != max(1, w.ranks):
			say("%d of %d ranks of the last attempt came to their end", ends(ran), max(1, w.ranks))
		case whole != 1 && !lost:
			say("it ran %d times to its end", whole)
		}
	case "CANCELLED":
		if !w.cancel {
			say("nobody cancelled it")
		}
	case "NODE_FAIL":
		if !w.stays || !lost {
			say("nothing was done to it, or it should have run again")
		}
	default:
		say("this is no end for it")
	}
	for n, ranks := range f.runs[task] {
		bad = append(bad, r.judgeLines(w, task, index, n, ranks)...)
	}
	return bad
}

func ends(ranks map[string]*run) (n int) {
	for _, p := range ranks {
		n += p.ends
	}
	return n
}

func harmed(ranks map[string]*run) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(ranks)), func(p *run) bool { return p.harmed })
}

// judgeLines looks for every line that the processes of an attempt printed.
func (r *round) judgeLines(w *work, task, index string, n int, ranks map[string]*run) (bad []string) {
	file, err := os.Open(w.output(r.dir, index))
	if err != nil {
		return []string{err.Error()}
	}
	defer file.Close()
	last := map[string]int{}
	for in := bufio.NewScanner(file); in.Scan(); {
		var name, rank string
		var attempt, i, of int
		if c, _ := fmt.Sscanf(in.Text(), "@ %s %d %s %d/%d", &name, &attempt, &rank, &i, &of); c != 5 || name != task || !strings.HasSuffix(in.Text(), ".") {
			continue // what srun and the shell say; a line that is missing is noticed by its number
		}
		if attempt != n {
			continue
		}
		if i != last[rank]+1 {
			bad = append(bad, fmt.Sprintf("attempt %d rank %s: line %d follows line %d", n, rank, i, last[rank]))
		}
		last[rank] = i
	}
	for rank, p := range ranks {
		want := 0
		if b, err := os.ReadFile(filepath.Join(r.dir, "said", fmt.Sprintf("%s.%d.%s", task, n, rank))); err == nil {
			want, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		}
		if p.ends > 0 {
			want = w.say
		}
		if rank != "b" && harmed(ranks) {
			continue // what a supervisor had in hand is lost with it
		}
		if last[rank] < want {
			bad = append(bad, fmt.Sprintf("attempt %d rank %s: it printed %d lines, %d are in its file", n, rank, want, last[rank]))
		}
	}
	return bad
}

// judgeNodes looks whether everything is free.
func (r *round) judgeNodes() {
	nodes, err := r.s.c.Nodes(r.t.Context())
	if err != nil {
		r.t.Error(err)
		return
	}
	for _, n := range nodes.Nodes {
		if len(n.Jobs) > 0 || n.CPUsUsed != 0 || n.State != "up" {
			r.t.Errorf("everything has ended, but node %s is %s, %v used by %v", n.Name, n.State, n.CPUsUsed, n.Jobs)
		}
		for _, d := range n.Devices {
			if len(d.Jobs) > 0 {
				r.t.Errorf("everything has ended, but device %d of %s is held by %v", d.Index, n.Name, d.Jobs)
			}
		}
	}
}
