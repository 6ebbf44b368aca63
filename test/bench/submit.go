package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/fastclient"
)

// clients is how many submit at once.
const clients = 16

// restPath is where slurmrestd takes jobs.
const restPath = "/slurm/v0.0.38/job/submit"

// noiseText is text that does not repeat, so that no script is like another.
func noiseText(n int) string {
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "# %016x %016x\n", rand.Uint64(), rand.Uint64())
	}
	return b.String()[:n]
}

// work is a job to submit over HTTP.
type work struct {
	held   bool
	script string // without the first line
	plain  bool   // few variables
	nodes  int    // 0: not said
	gpus   int    // a node
}

// bodyFor is the request in a side's own form.
func (w *work) bodyFor(s side) []byte {
	text := "#!/bin/sh\n" + w.script
	env := s.userEnviron()
	if w.plain {
		env = env[:5]
	}
	if s.sideName() == "cox" {
		args := []string{"--output=/dev/null"}
		if w.held {
			args = append(args, "--hold")
		}
		if w.nodes > 0 {
			args = append(args, fmt.Sprintf("--nodes=%d", w.nodes), fmt.Sprintf("--gres=gpu:%d", w.gpus), "--time=60")
		}
		return fastclient.Submit(&api.Submit{Form: api.FormSbatch, File: "bench.sh", Text: text, Args: args, Environ: env, Dir: "/tmp", Host: "bench"})
	}
	var vars fastclient.Object
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		vars.SetText(name, value)
	}
	var j fastclient.Object
	j.Text("name", "bench")
	j.True("hold", w.held)
	j.Text("standard_output", "/dev/null")
	j.Text("current_working_directory", "/tmp")
	j.Raw("environment", vars.End())
	if w.nodes > 0 {
		j.Raw("nodes", []byte(strconv.Itoa(w.nodes)))
		j.Text("gpus_per_node", strconv.Itoa(w.gpus))
		j.Raw("time_limit", []byte("60"))
	}
	var o fastclient.Object
	o.Raw("job", j.End())
	o.Text("script", text)
	return o.End()
}

func (b *bench) connectTo(s side) (*fastclient.Client, string) {
	if s.sideName() == "cox" {
		return b.cox.newClient(), "/v1/jobs"
	}
	return b.slurm.newClient(), restPath
}

// submitAll submits n jobs by 16 clients that keep their connections, and returns how
// long that took and the time of each request. made makes job i.
func (b *bench) submitAll(s side, n int, made func(i int) work) (time.Duration, sample) {
	bodies := make([][]byte, n)
	for i := range bodies {
		w := made(i)
		bodies[i] = w.bodyFor(s)
	}
	var next atomic.Int64
	var mu sync.Mutex
	var all sample
	var failed atomic.Pointer[string]
	var wg sync.WaitGroup
	begin := time.Now()
	for range clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c, path := b.connectTo(s)
			defer c.Close()
			var took sample
			for {
				i := int(next.Add(1)) - 1
				if i >= n || failed.Load() != nil {
					break
				}
				at := time.Now()
				if err := postJSON(c, path, bodies[i]); err != nil {
					text := fmt.Sprintf("%s: submission %d: %v", s.sideName(), i, err)
					failed.Store(&text)
					break
				}
				took.addDuration(time.Since(at))
			}
			mu.Lock()
			all = append(all, took...)
			mu.Unlock()
		}()
	}
	wg.Wait()
	if text := failed.Load(); text != nil {
		panic(*text)
	}
	return time.Since(begin), all
}

func postJSON(c *fastclient.Client, path string, body []byte) error {
	r, err := c.Do("POST", path, "", body)
	if err != nil {
		return err
	}
	text, err := r.All()
	if err == nil && r.Status/100 != 2 {
		err = fmt.Errorf("status %d: %.300s", r.Status, text)
	}
	return err
}

// benchSubmissions is part d.
func (b *bench) benchSubmissions() {
	n := b.scaledSize(4000)
	t := table{title: fmt.Sprintf("(d) Submissions of distinct 4 KB scripts with a full environment, %d clients, %d a round (held)", clients, n)}
	rate, p50, p99, cpu := b.newSamples(), b.newSamples(), b.newSamples(), b.newSamples()
	b.cox.startFresh()
	for range b.rounds {
		for _, s := range b.presentSides() {
			before := s.usedCPU()
			took, each := b.submitAll(s, n, func(i int) work { return work{held: true, script: fmt.Sprintf("# %d\n", i) + noiseText(4<<10)} })
			cpu[s.sideName()].addFigure(float64(s.usedCPU()-before) / 1e6 / float64(n))
			rate[s.sideName()].addFigure(float64(n) / took.Seconds())
			p50[s.sideName()].addFigure(each.medianValue())
			p99[s.sideName()].addFigure(each.quantileAt(0.99))
			clearJobs(s)
		}
	}
	t.addBySide("submissions a second (ours durable; Slurm's not for seconds)", rate)
	t.addBySide("p50, ms", p50)
	t.addBySide("p99, ms", p99)
	t.addBySide("CPU of the daemons a submission, ms", cpu)
	t.printTable()
}
