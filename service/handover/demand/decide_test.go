package demand

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func span(d time.Duration) account.Duration { return account.Duration(d) }

func factor(f float64) *float64 { return &f }

// twoPools is a pool of jobs, whose jobs are requeued, and one of services, which count four times.
func twoPools() account.Handover {
	return account.Handover{Pools: []account.HandoverPool{
		{Name: "slurm", Min: 1, Requeue: true, Drain: span(10 * time.Minute)},
		{Name: "kube", Min: 1, Weight: factor(4), After: span(time.Minute)},
	}}
}

// idle is a machine of 8 GPUs with nothing on it.
func idle(name, pool string) Machine {
	return Machine{Name: name, Pool: pool, Could: []string{"slurm", "kube"}, Units: 8}
}

func busy(name, pool string, runs ...Run) Machine {
	m := idle(name, pool)
	m.Runs = runs
	return m
}

func endsIn(units int, d time.Duration) Run {
	return Run{Units: units, Ends: noon.Add(d), Requeue: true, Lost: int64(units) * 3600}
}

func replicas(n, units int) Want {
	return Want{Pool: "kube", Units: units, Count: n, Wait: -1, Service: "chat", Held: 12}
}

func jobs(n, units int, wait time.Duration) Want {
	return Want{Pool: "slurm", Units: units, Count: n, Wait: wait, Takes: 3 * time.Hour}
}

// moved names the moves of a decision: "n1>kube".
func moved(out Output) string {
	var list []string
	for _, m := range out.Moves {
		list = append(list, m.Machine+">"+m.To)
	}
	return strings.Join(list, " ")
}

// TestDecide: one machine of services, and their demand, in each case with something that decides.
//
// Seen to fail for each case with the line of the decision taken out that it is about.
func TestDecide(t *testing.T) {
	long := endsIn(8, 20*time.Hour)
	long.Lost = 8 * 10 * 3600
	fixed := Run{Units: 8, Ends: noon.Add(20 * time.Hour)}
	replica := Run{Units: 8, Replica: true}
	for _, c := range []struct {
		name     string
		rules    func(h *account.Handover)
		machines []Machine
		waiting  []Want
		lasts    time.Duration // the lack of both pools; 0: long enough
		needs    map[string][]Need
		want     string
		why      string // of the pool that gets nothing, in part
		reason   string // of the first move, in part
	}{
		{
			name:     "an idle machine goes where replicas wait",
			machines: []Machine{idle("n1", "slurm"), idle("n2", "slurm"), busy("n3", "kube", replica)},
			waiting:  []Want{replicas(1, 8)},
			want:     "n1>kube",
			reason:   "kube lacks 8 GPUs for 1 job (replicas of chat, for which 12 requests wait) since 10m; n1 of slurm is idle; 1 machine: gain 115200, cost 0 GPU-seconds in 1h",
		},
		{
			name:     "nothing is lacked where there is room",
			machines: []Machine{idle("n1", "slurm"), idle("n2", "slurm"), busy("n3", "kube", Run{Units: 4, Replica: true})},
			waiting:  []Want{replicas(1, 4)},
		},
		{
			name:     "the lack has not lasted",
			machines: []Machine{idle("n1", "slurm"), idle("n2", "slurm"), busy("n3", "kube", replica)},
			waiting:  []Want{replicas(1, 8)},
			lasts:    30 * time.Second,
			why:      "it has lacked machines for 30s, and gets one after 1m",
		},
		{
			name:     "the minimum of the giver",
			machines: []Machine{idle("n1", "slurm"), busy("n3", "kube", replica)},
			waiting:  []Want{replicas(1, 8)},
			why:      "slurm has only its minimum of 1 machine",
		},
		{
			name:     "the maximum of the receiver",
			rules:    func(h *account.Handover) { h.Pools[1].Max = 1 },
			machines: []Machine{idle("n1", "slurm"), idle("n2", "slurm"), busy("n3", "kube", replica)},
			waiting:  []Want{replicas(1, 8)},
			why:      "it has its maximum of 1 machine",
		},
		{
			name:     "below the minimum nothing is weighed",
			rules:    func(h *account.Handover) { h.Pools[1].Min = 2; h.Pools[0].Cost = 1 << 40 },
			machines: []Machine{idle("n1", "slurm"), idle("n2", "slurm"), busy("n3", "kube", replica)},
			want:     "n1>kube",
			reason:   "kube has 1 machine of its minimum of 2",
		},
		{
			name:     "a cost above the gain",
			rules:    func(h *account.Handover) { h.Pools[0].Cost = 115201 },
			machines: []Machine{idle("n1", "slurm"), idle("n2", "slurm"), busy("n3", "kube", replica)},
			waiting:  []Want{replicas(1, 8)},
			why:      "the best move, of n1 from slurm, gains 115200 GPU-seconds and costs 115201",
		},
		{
			name:     "the machine whose jobs end soon, not the one whose jobs lose much",
			machines: []Machine{busy("n1", "slurm", long), busy("n2", "slurm", endsIn(8, 5*time.Minute)), busy("n3", "kube", replica)},
			waiting:  []Want{replicas(1, 8)},
			want:     "n2>kube",
			reason:   "n2 of slurm is empty in 5m",
		},
		{
			name:     "a requeue that loses less than it gains",
			machines: []Machine{busy("n1", "slurm", long), busy("n2", "slurm", endsIn(8, 2*time.Hour)), busy("n3", "kube", replica)},
			waiting:  []Want{replicas(1, 8)},
			want:     "n2>kube",
			reason:   "n2 of slurm is empty in 0s, with jobs requeued that lose 28800 GPU-seconds",
		},
		{
			name:     "no requeue where the rules do not allow it",
			rules:    func(h *account.Handover) { h.Pools[0].Requeue = false },
			machines: []Machine{busy("n1", "slurm", long), busy("n2", "slurm", endsIn(8, 2*time.Hour)), busy("n3", "kube", replica)},
			waiting:  []Want{replicas(1, 8)},
			why:      "what runs on machines of slurm does not end within 10m",
		},
		{
			name:     "no requeue of a job that may not be requeued",
			machines: []Machine{busy("n1", "slurm", fixed), busy("n2", "slurm", fixed), busy("n3", "kube", replica)},
			waiting:  []Want{replicas(1, 8)},
			why:      "what runs on machines of slurm does not end within 10m",
		},
		{
			name:     "jobs that wait weigh less than replicas, and count as cost",
			machines: []Machine{idle("n1", "slurm"), idle("n2", "slurm"), busy("n3", "kube", replica)},
			waiting:  []Want{replicas(1, 8), jobs(2, 8, -1)},
			want:     "n1>kube",
			reason:   "gain 115200, cost 28800 GPU-seconds",
		},
		{
			name:     "an idle machine of services goes to jobs",
			machines: []Machine{busy("n1", "slurm", long), idle("n2", "kube"), idle("n3", "kube")},
			waiting:  []Want{jobs(3, 8, 10*time.Hour)},
			want:     "n2>slurm",
			reason:   "slurm lacks 24 GPUs for 3 jobs since 10m; n2 of kube is idle; 1 machine: gain 28800, cost 0 GPU-seconds in 1h",
		},
		{
			name:     "jobs that start soon anyway lack nothing",
			machines: []Machine{busy("n1", "slurm", long), idle("n2", "kube"), idle("n3", "kube")},
			waiting:  []Want{jobs(3, 8, 30*time.Second)},
		},
		{
			name:     "what services needed half an hour ago they keep",
			machines: []Machine{busy("n1", "slurm", long), idle("n2", "kube"), idle("n3", "kube")},
			waiting:  []Want{jobs(3, 8, 10*time.Hour)},
			needs:    map[string][]Need{"kube": {{noon.Add(-30 * time.Minute), 16}}},
			why:      "gains 28800 GPU-seconds and costs 115200",
		},
		{
			name:     "what services needed two hours ago they give",
			machines: []Machine{busy("n1", "slurm", long), idle("n2", "kube"), idle("n3", "kube")},
			waiting:  []Want{jobs(3, 8, 10*time.Hour)},
			needs:    map[string][]Need{"kube": {{noon.Add(-2 * time.Hour), 16}}},
			want:     "n2>slurm",
		},
		{
			name:     "a job of two machines gets two, or none",
			machines: []Machine{busy("n1", "slurm", long), idle("n2", "kube"), idle("n3", "kube"), idle("n4", "kube")},
			waiting:  []Want{jobs(1, 16, 10*time.Hour)},
			want:     "n2>slurm n3>slurm",
		},
		{
			name:     "one machine does not help a job of two",
			machines: []Machine{busy("n1", "slurm", long), idle("n2", "kube"), idle("n3", "kube")},
			waiting:  []Want{jobs(1, 16, 10*time.Hour)},
			why:      "1 machine would not help",
		},
		{
			name:     "one more machine, beside one that is idle",
			machines: []Machine{idle("n1", "slurm"), idle("n2", "kube"), idle("n3", "kube")},
			waiting:  []Want{jobs(1, 16, 10*time.Hour)},
			want:     "n2>slurm",
		},
		{
			name:     "a machine on the way counts",
			machines: []Machine{idle("n1", "slurm"), idle("n2", "slurm"), busy("n3", "kube", replica), {Name: "n4", Pool: "slurm", To: "kube", Could: []string{"slurm", "kube"}, Units: 8}},
			waiting:  []Want{replicas(1, 8)},
		},
		{
			name:     "a machine that came lately stays",
			machines: []Machine{func() Machine { m := idle("n1", "slurm"); m.Came = noon.Add(-59 * time.Minute); return m }(), idle("n2", "slurm"), busy("n3", "kube", replica)},
			waiting:  []Want{replicas(1, 8)},
			want:     "n2>kube",
		},
		{
			name:     "a machine whose hand-over was walked back is left alone",
			machines: []Machine{func() Machine { m := idle("n1", "slurm"); m.Tried = noon.Add(-9 * time.Minute); return m }(), idle("n2", "slurm"), busy("n3", "kube", replica)},
			waiting:  []Want{replicas(1, 8)},
			want:     "n2>kube",
		},
		{
			name:     "a machine that does not answer is left alone",
			machines: []Machine{func() Machine { m := idle("n1", "slurm"); m.Away = true; return m }(), idle("n2", "slurm"), busy("n3", "kube", replica)},
			waiting:  []Want{replicas(1, 8)},
			want:     "n2>kube",
		},
		{
			name:     "a machine that the pool does not have as a node",
			machines: []Machine{{Name: "n1", Pool: "slurm", Could: []string{"slurm"}, Units: 8}, {Name: "n2", Pool: "slurm", Could: []string{"slurm"}, Units: 8}, busy("n3", "kube", replica)},
			waiting:  []Want{replicas(1, 8)},
			why:      "kube does not have the machines of slurm as nodes",
		},
		{
			name:     "replicas move within their pool",
			machines: []Machine{busy("n1", "slurm", long), busy("n2", "kube", Run{Units: 4, Replica: true}), busy("n3", "kube", Run{Units: 4, Replica: true})},
			waiting:  []Want{jobs(3, 8, 10*time.Hour)},
			want:     "n2>slurm",
			reason:   "n2 of kube is empty in 5m",
		},
		{
			name:     "pools that do not exchange",
			rules:    func(h *account.Handover) { h.Pools[1].Exchange = []string{"other"} },
			machines: []Machine{idle("n1", "slurm"), idle("n2", "slurm"), busy("n3", "kube", replica)},
			waiting:  []Want{replicas(1, 8)},
			why:      "no other pool has machines that it exchanges with it",
		},
	} {
		rules := twoPools()
		if c.rules != nil {
			c.rules(&rules)
		}
		if c.lasts == 0 {
			c.lasts = 10 * time.Minute
		}
		since := noon.Add(-c.lasts)
		out := Decide(&Input{
			Now: noon, Rules: rules, Unit: "GPU", Machines: c.machines, Waiting: c.waiting,
			Memory: Memory{Lacks: map[string]time.Time{"slurm": since, "kube": since}, Needs: c.needs},
		})
		why := ""
		for _, p := range out.Pools {
			why += p.Why
		}
		if got := moved(out); got != c.want || !strings.Contains(why, c.why) || c.why == "" && why != "" {
			t.Errorf("%s: moves %q, want %q; why %q, want %q", c.name, got, c.want, why, c.why)
		}
		if len(out.Moves) > 0 && !strings.Contains(out.Moves[0].Reason, c.reason) {
			t.Errorf("%s: reason %q, want %q in it", c.name, out.Moves[0].Reason, c.reason)
		}
	}
}

func TestEstimateWaits(t *testing.T) {
	in := &Input{Now: noon, Machines: []Machine{
		busy("n1", "slurm", endsIn(4, time.Hour), endsIn(4, 2*time.Hour)), busy("n2", "slurm", endsIn(6, 3*time.Hour)), idle("n3", "kube"),
	}, Waiting: []Want{jobs(1, 2, -1), jobs(1, 4, -1), jobs(2, 4, -1), {Pool: "kube", Units: 8, Count: 1, Wait: -1}, jobs(1, 2, 7*time.Minute), jobs(1, 64, -1)}}
	EstimateWaits(in)
	for i, want := range []time.Duration{0, time.Hour, 3 * time.Hour, 0, 7 * time.Minute, -1} {
		if got := in.Waiting[i].Wait; got != want {
			t.Errorf("%d: %v, want %v", i, got, want)
		}
	}
}

// TestAPoolThatGivesBeginsAnew: a pool whose work waits gives a machine to one whose work counts more, and
// has to lack machines for its time again.
//
// Seen to fail without the reset, and without the rule that a pool does not get and give at once.
func TestAPoolThatGivesBeginsAnew(t *testing.T) {
	since := noon.Add(-time.Hour)
	rules := twoPools()
	rules.Pools = append(rules.Pools, account.HandoverPool{Name: "spare"})
	short := endsIn(8, 5*time.Minute)
	in := &Input{
		Now: noon, Rules: rules, Unit: "GPU",
		Machines: []Machine{busy("n1", "slurm", short), busy("n2", "slurm", short), busy("n3", "kube", Run{Units: 8, Replica: true}), {Name: "n4", Pool: "spare", Could: []string{"slurm"}, Units: 8}},
		Waiting:  []Want{jobs(4, 8, -1), replicas(1, 8)},
		Memory:   Memory{Lacks: map[string]time.Time{"slurm": since, "kube": since}},
	}
	out := Decide(in)
	if got := moved(out); got != "n1>kube" {
		t.Errorf("moves %s: slurm gets none while it gives one", got)
	}
	if at, lacks := out.Memory.Lacks["slurm"]; lacks {
		t.Errorf("slurm lacks machines since %v", at)
	}
	if at, lacks := out.Memory.Lacks["kube"]; lacks {
		t.Errorf("kube lacks machines since %v, though one comes", at)
	}
}
