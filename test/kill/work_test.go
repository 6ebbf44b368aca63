package killtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/job"
)

// work is one submission and what is to become of it.
type work struct {
	name   string
	args   []string // options of sbatch
	lines  string   // the script, without its first line
	ranks  int      // 0: the batch script itself is the evidence
	tasks  int      // of an array; 0: none
	say    int      // lines that each rank prints
	exit   int      // exit code that is wanted
	silent bool     // it gives no evidence but its exit code

	stays  bool // it must not be requeued
	held   bool // released in the middle
	cancel bool // cancelled in the middle
	grace  float64
	after  *work // it depends on this one, and is submitted once that was answered

	wait  time.Duration // before it is released or cancelled
	gap   time.Duration // after it was handed in
	sent  bool
	id    job.ID
	acked bool
	err   error
}

// kinds make work. Everything random comes from rnd.
var kinds = []struct {
	name string
	make func(w *work, rnd *rand.Rand)
}{
	{"short", func(w *work, rnd *rand.Rand) { w.batch(rnd.IntN(6), ms(rnd.IntN(10))) }},
	{"fails", func(w *work, _ *rand.Rand) {
		w.batch(3, ms(5), "-exit", "3")
		w.exit = 3
	}},
	{"array", func(w *work, rnd *rand.Rand) {
		w.tasks = 2 + rnd.IntN(3)
		w.batch(3, ms(20))
		w.args = append(w.args, fmt.Sprintf("--array=0-%d", w.tasks-1))
	}},
	{"gang", func(w *work, rnd *rand.Rand) { w.gang(2+rnd.IntN(3), 1, 10, ms(20)) }},
	{"wide", func(w *work, _ *rand.Rand) { w.gang(2, 2, 10, ms(20)) }},
	{"device", func(w *work, rnd *rand.Rand) {
		w.batch(10, ms(20), "-devices")
		w.args = append(w.args, fmt.Sprintf("--gpus-per-node=%d", 1+rnd.IntN(2)))
	}},
	{"devices", func(w *work, _ *rand.Rand) {
		w.gang(2, 1, 10, ms(20), "-devices")
		w.args = append(w.args, "--gpus-per-node=1")
	}},
	{"chatty", func(w *work, _ *rand.Rand) { w.batch(2000, 0, "-width", "80") }},
	{"chorus", func(w *work, _ *rand.Rand) { w.gang(2, 1, 500, ms(0), "-width", "80") }},
	{"requeue", func(w *work, _ *rand.Rand) { w.batch(20, ms(30)) }},
	{"family", func(w *work, _ *rand.Rand) { // what prints outlives its parent, if nobody ends it
		w.batch(30, ms(30))
		w.lines = "setsid " + strings.TrimPrefix(w.lines, "exec ") + " &\nwait $!"
	}},
	{"stays", func(w *work, _ *rand.Rand) {
		w.batch(20, ms(30))
		w.stays = true
	}},
	{"staying gang", func(w *work, _ *rand.Rand) {
		w.gang(2, 1, 20, ms(30))
		w.stays = true
	}},
	{"cancelled", func(w *work, _ *rand.Rand) {
		w.batch(400, ms(20))
		w.cancel, w.grace = true, 30
	}},
	{"cancelled gang", func(w *work, _ *rand.Rand) {
		w.gang(3, 1, 400, ms(20))
		w.cancel, w.grace = true, 30
	}},
	{"deaf", func(w *work, _ *rand.Rand) {
		w.batch(400, ms(20), "-deaf")
		w.cancel, w.grace = true, 0.2
	}},
	{"held", func(w *work, _ *rand.Rand) {
		w.batch(3, ms(10))
		w.held = true
		w.args = append(w.args, "--hold")
	}},
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// batch makes the batch script the evidence.
func (w *work) batch(n int, pause time.Duration, flags ...string) {
	w.say = n
	w.lines = fmt.Sprintf("exec %s -n %d -pause %s %s batch", filepath.Join(bin, "evidence"), n, pause, strings.Join(flags, " "))
}

// gang makes ranks on several nodes the evidence.
func (w *work) gang(nodes, each, n int, pause time.Duration, flags ...string) {
	w.say, w.ranks = n, nodes*each
	w.lines = fmt.Sprintf("srun %s -n %d -pause %s %s rank", filepath.Join(bin, "evidence"), n, pause, strings.Join(flags, " "))
	w.args = append(w.args, fmt.Sprintf("--nodes=%d", nodes), fmt.Sprintf("--ntasks-per-node=%d", each))
}

// draw makes the work of a round.
func draw(rnd *rand.Rand, prefix string, n int) []*work {
	var out []*work
	for len(out) < n {
		name := func(kind string) string {
			return fmt.Sprintf("%s%02d-%s", prefix, len(out), strings.ReplaceAll(kind, " ", "-"))
		}
		if rnd.IntN(8) == 0 { // a chain
			var before *work
			for range 3 {
				w := &work{name: name("chain"), after: before}
				w.batch(3, ms(10))
				out, before = append(out, w), w
			}
			continue
		}
		k := kinds[rnd.IntN(len(kinds))]
		w := &work{name: name(k.name)}
		k.make(w, rnd)
		out = append(out, w)
	}
	return out
}

// output is the file that a task of the work prints to.
func (w *work) output(dir, task string) string {
	if w.tasks > 0 {
		return filepath.Join(dir, "out", w.name+"_"+task)
	}
	return filepath.Join(dir, "out", w.name)
}

// request is the submission.
func (w *work) request(dir string) *api.Submit {
	args := append([]string{"--job-name", w.name, "--cpus-per-task=1", "--open-mode=append"}, w.args...)
	if w.tasks > 0 {
		args = append(args, "--output", w.output(dir, "%a"))
	} else {
		args = append(args, "--output", w.output(dir, ""))
	}
	if w.stays {
		args = append(args, "--no-requeue")
	} else {
		args = append(args, "--requeue")
	}
	if w.after != nil {
		args = append(args, fmt.Sprintf("--dependency=afterok:%d", w.after.id))
	}
	return &api.Submit{
		Form: api.FormSbatch, File: "work.sh", Text: "#!/bin/sh\n" + w.lines + "\n", Args: args, Dir: dir,
		Environ: []string{"PATH=/usr/bin:/bin", "COX_KILL_DIR=" + dir, "COX_KILL_NAME=" + w.name},
	}
}

// submit hands the work in, once. Without an answer nobody knows what became of it.
func (w *work) submit(ctx context.Context, s *server, dir string) {
	r, err := s.c.Submit(ctx, w.request(dir))
	if w.err = err; err == nil {
		w.acked, w.id = true, r.ID
	}
}
