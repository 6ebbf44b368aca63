// Package demo shows what the core does and why, by small simulations whose
// output is meant to be read. Nothing in it is scripted: every line comes from
// what the production core decided.
package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sim/sim"
)

const (
	gpus  = 8                // of the machine
	ranks = 5                // of each crew, one GPU each
	work  = 10 * time.Minute // of a crew that is complete
)

// crews are the two training jobs.
var crews = [...]string{"red", "blue"}

// Deadlock shows two training jobs of 5 GPUs each on 8 GPUs: first placed rank by
// rank, where each gets 4 and waits for ever, then admitted as whole gangs. It
// returns an error if w does, or if the simulation did not end as it says.
func Deadlock(w io.Writer) error {
	p := &printer{w: w}
	p.printLine("Two training jobs, red and blue, of %d ranks with one GPU each, on one machine with %d GPUs.", ranks, gpus)
	p.printLine("A rank computes only while all %d ranks of its job run; each job needs %s of computing.", ranks, clockText(work))
	p.printLine("")
	if err := oneByOne(p); err != nil {
		return err
	}
	p.printLine("")
	if err := runGangs(p); err != nil {
		return err
	}
	p.printLine("")
	p.printLine("Coxswain always does the second: no rank gets anything before the whole gang fits.")
	return p.err
}

// oneByOne places the ranks as jobs of their own, in the order in which two
// controllers that work side by side hand them over: red, blue, red, blue.
func oneByOne(p *printer) error {
	p.printLine("rank by rank (each rank is placed as soon as a GPU is free for it)")
	s := sim.New(sched.Config{}, gpuMachine())
	for r := range ranks {
		for c := range crews {
			s.Submit(sim.Job{ID: rankJob(c, r), Spec: gpuSpec(1), Work: work, Peers: c + 1})
		}
	}
	out := s.Run()
	held := s.Idle()
	p.printDevices(out, func(id job.ID) string { return crews[(id-1)%2][:1] })
	for c, name := range crews {
		n := 0
		for _, id := range held {
			if int(id-1)%2 == c {
				n++
			}
		}
		p.printLine("  %-5s holds %d GPUs and waits for rank %d: %s", name, n, n, waitReason(s, rankJob(c, n)))
	}
	done := 0
	for _, o := range out {
		if o.Ended {
			done++
		}
	}
	if len(held) != gpus || done != 0 {
		return fmt.Errorf("deadlock demo: %d GPUs held and %d ranks ended, expected %d and none", len(held), done, gpus)
	}
	p.printLine("  after %s nothing is left that could happen: %d GPUs held, none computing, for ever", clockText(s.Now), len(held))
	return nil
}

// runGangs submits the same ranks as two gangs.
func runGangs(p *printer) error {
	p.printLine("whole gangs (all %d ranks start together or none)", ranks)
	s := sim.New(sched.Config{}, gpuMachine())
	s.Watch = func(now time.Duration, events []sched.Event, decisions []sched.Decision) {
		for _, e := range events {
			if r, ok := e.(sched.Released); ok {
				p.printLine("  %-7s %-5s done", clockText(now), crews[r.Job-1])
			}
		}
		for _, d := range decisions {
			switch d := d.(type) {
			case sched.Start:
				p.printLine("  %-7s %-5s starts on GPUs %s", clockText(now), crews[d.Job-1], deviceIndices(d.Claims))
			case sched.Wait:
				p.printLine("  %-7s %-5s waits and holds nothing: %s", clockText(now), crews[d.Job-1], d.Why)
			}
		}
	}
	for c := range crews {
		s.Submit(sim.Job{ID: job.ID(c + 1), Spec: gpuSpec(ranks), Work: work})
	}
	for _, o := range s.Run() {
		if !o.Ended {
			return fmt.Errorf("deadlock demo: the gang of job %d did not end", o.Job)
		}
	}
	p.printLine("  after %s both are done, one after the other", clockText(s.Now))
	return nil
}

func gpuMachine() []fleet.Node {
	n := fleet.Node{Name: "node1", State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(16), Memory: 64 * resource.GiB}}
	for i := range gpus {
		n.Devices = append(n.Devices, fleet.Device{Index: i, Kind: "gpu", Type: "h100", NUMA: -1, Declared: true})
	}
	return []fleet.Node{n}
}

// gpuSpec asks for so many tasks with one GPU each.
func gpuSpec(tasks int) *job.Spec {
	return &job.Spec{Groups: []job.TaskGroup{{
		Tasks:   job.Count{Want: tasks},
		PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.OneCPU}, Devices: []resource.DeviceRequest{{Count: 1}}},
	}}}
}

// rankJob numbers the ranks in the order of their submission.
func rankJob(crew, r int) job.ID { return job.ID(r*len(crews) + crew + 1) }

// waitReason says why a job waits.
func waitReason(s *sim.Sim, id job.ID) string {
	for _, r := range s.Core.Reasons(sched.Instant(s.Now), id) {
		if r.Code == reason.Resources {
			return r.String()
		}
	}
	return "for no reason that the core knows"
}

func deviceIndices(claims []fleet.Claim) string {
	var out []string
	for _, c := range claims {
		for _, d := range c.Devices {
			out = append(out, fmt.Sprint(d.Index))
		}
	}
	return strings.Join(out, " ")
}

func clockText(d time.Duration) string {
	if d%time.Minute == 0 && d > 0 {
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%g s", d.Seconds())
}

// printer writes lines and keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printLine(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, strings.TrimRight(format, " ")+"\n", args...)
	}
}

// printDevices draws who holds each GPU.
func (p *printer) printDevices(out []sim.Outcome, letter func(job.ID) string) {
	var top, low [gpus]string
	for i := range gpus {
		top[i], low[i] = fmt.Sprint(i), "·"
	}
	for _, o := range out {
		for _, c := range o.Claims {
			for _, d := range c.Devices {
				low[d.Index] = letter(o.Job)
			}
		}
	}
	p.printLine("  GPU     %s", strings.Join(top[:], " "))
	p.printLine("  held by %s        r red, b blue", strings.Join(low[:], " "))
}
