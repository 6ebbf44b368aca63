package compat

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// agreed is the least part of slurmctld's decisions that the core has to make alike.
const agreed = 0.98

// TestAgreesWithSlurm asks the core for each decision that a real slurmctld made. The
// differences that are left stand in docs/explanation/compat-slurm.md.
func TestAgreesWithSlurm(t *testing.T) {
	var same, other [2]int // of the main scheduler, of backfill
	for _, c := range recorded(t) {
		for _, d := range judge(t, c) {
			i := 0
			if d.backfill {
				i = 1
			}
			if d.ours == d.theirs {
				same[i]++
				continue
			}
			other[i]++
			t.Logf("case %d, round %d: slurmctld %s, the core %s", c.Seed, d.round, d.theirs, d.ours)
		}
	}
	all := same[0] + same[1] + other[0] + other[1]
	t.Logf("%d decisions of slurmctld's main scheduler, %d made alike; %d of backfill, %d made alike",
		same[0]+other[0], same[0], same[1]+other[1], same[1])
	if part := float64(same[0]+same[1]) / float64(all); part < agreed {
		t.Errorf("the core agrees in %.1f %% of %d decisions, less than %.0f", part*100, all, agreed*100)
	}
}

func recorded(t *testing.T) (out []*Case) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no records in testdata: %v", err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var c Case
			if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			out = append(out, &c)
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// verdict is one decision of both, as text.
type verdict struct {
	round        int
	ours, theirs string
	backfill     bool
}

// player is a case as far as it has been played.
type player struct {
	t       *testing.T
	c       *Case
	specs   []*job.Spec
	running map[int]sched.Restored
	waiting map[int]bool
	now     sched.Instant
}

// judge plays a case. Whatever the core says, what slurmctld did is what happens.
func judge(t *testing.T, c *Case) (out []verdict) {
	p := &player{t: t, c: c, running: map[int]sched.Restored{}, waiting: map[int]bool{}, now: sched.Instant(1000 * time.Hour)}
	for _, j := range c.Jobs {
		p.specs = append(p.specs, specOf(t, j))
	}
	for no, r := range c.Rounds {
		for _, j := range r.Ends {
			delete(p.running, j)
		}
		for _, j := range r.Comes {
			p.waiting[j] = true
		}
		for rest := r.Starts; ; {
			back := len(rest) > 0 && rest[0].Backfill || len(rest) == 0 && c.isBackfillOnly()
			ours := p.ask(back)
			n := 0
			for n < len(ours) && n < len(rest) && text(ours[n]) == text(rest[n]) {
				out = append(out, verdict{no, text(ours[n]), text(rest[n]), rest[n].Backfill})
				p.apply(rest[n])
				n++
			}
			switch {
			case n < len(rest): // ours is another one, or none
				d := verdict{no, "starts nothing", text(rest[n]), rest[n].Backfill}
				if n < len(ours) {
					d.ours = text(ours[n])
				}
				// Having looked anew after some starts, backfill may go on.
				if n == 0 || n < len(ours) {
					out = append(out, d)
					p.apply(rest[n])
					n++
				}
			case n < len(ours):
				out = append(out, verdict{no, text(ours[n]), "starts nothing", back})
			}
			if rest = rest[n:]; len(rest) == 0 {
				break
			}
		}
		p.now += sched.Instant(12 * time.Second)
	}
	return out
}

// ask lists what the core starts now.
func (p *player) ask(backfill bool) (out []Start) {
	policy := &account.Policy{Compat: "slurm"}
	if backfill {
		policy.Compat = "slurm-backfill"
	}
	for _, part := range p.c.Partitions {
		policy.Partitions = append(policy.Partitions, account.Partition{Name: part.Name, Tier: int32(part.Tier)})
	}
	events := []sched.Event{sched.PolicySet{Policy: policy}}
	for _, n := range p.c.Nodes {
		events = append(events, sched.NodeSet{Node: p.c.fleetNode(n)})
	}
	for i := range p.c.Jobs {
		if r, ok := p.running[i]; ok {
			events = append(events, r)
		}
		if p.waiting[i] {
			events = append(events, sched.Submitted{Job: job.ID(i + 1), Spec: p.specs[i], Priority: int64(p.c.Jobs[i].Priority), At: sched.Instant(i)})
		}
	}
	core := sched.New(sched.Config{})
	for _, d := range core.Step(p.now, events...) {
		if d, ok := d.(sched.Start); ok {
			s := Start{Job: int(d.Job) - 1}
			for _, c := range d.Claims {
				s.Nodes = append(s.Nodes, c.Node)
			}
			out = append(out, s)
		}
	}
	if err := core.Check(); err != nil {
		p.t.Fatalf("case %d: %v", p.c.Seed, err)
	}
	return out
}

// apply lets slurmctld's decision happen. The claims are those that the core takes on
// these nodes.
func (p *player) apply(s Start) {
	spec := *p.specs[s.Job]
	spec.Groups = slices.Clone(spec.Groups)
	core := sched.New(sched.Config{})
	events := []sched.Event{sched.PolicySet{Policy: &account.Policy{Compat: "slurm"}}}
	for _, n := range p.c.Nodes {
		if !slices.Contains(s.Nodes, n.Name) {
			spec.Groups[0].Exclude = append(spec.Groups[0].Exclude, n.Name)
		}
		events = append(events, sched.NodeSet{Node: p.c.fleetNode(n)})
	}
	for i := range p.c.Jobs {
		if r, ok := p.running[i]; ok {
			events = append(events, r)
		}
	}
	id := job.ID(s.Job + 1)
	events = append(events, sched.Submitted{Job: id, Spec: &spec})
	for _, d := range core.Step(p.now, events...) {
		if d, ok := d.(sched.Start); ok {
			p.running[s.Job] = sched.Restored{Job: id, Spec: p.specs[s.Job], Claims: d.Claims, Began: p.now, Until: d.Until}
			delete(p.waiting, s.Job)
			return
		}
	}
	p.t.Fatalf("case %d: slurmctld started job %d on %v, and there is no room for it: %v\n%v", p.c.Seed, s.Job, s.Nodes, p.c.Jobs[s.Job], p.running)
}

func text(s Start) string {
	nodes := slices.Clone(s.Nodes)
	slices.Sort(nodes)
	return fmt.Sprintf("starts job %d on %s", s.Job, strings.Join(nodes, ","))
}

func specOf(t *testing.T, j Job) *job.Spec {
	s, _, err := sbatch.Parse(spec.Source{Name: "case", Data: []byte("#!/bin/sh\ntrue\n")}, sbatch.Options{Args: j.Args})
	if err != nil {
		t.Fatalf("%v: %v", j.Args, err)
	}
	return s
}

// fleetNode is a node for the core.
func (c *Case) fleetNode(n Node) fleet.Node {
	out := fleet.Node{
		Name: n.Name, State: fleet.Up, Features: n.Features,
		Capacity: resource.Vector{CPU: resource.CPUs(n.CPUs), Memory: resource.Amount(n.Memory) * resource.MiB},
	}
	for _, p := range c.Partitions {
		if slices.Contains(p.Nodes, n.Name) {
			out.Parts = append(out.Parts, p.Name)
		}
	}
	for i, l := range c.Leaves {
		if slices.Contains(l, n.Name) {
			out.Path = []string{"spine", fmt.Sprintf("leaf%d", i+1)}
		}
	}
	for g := range n.GPUs {
		out.Devices = append(out.Devices, fleet.Device{Index: g, Kind: "gpu", Type: n.GPUType})
	}
	return out
}
