package load

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"
)

const shifts = 3

// part is which part of a shift's hours and work is done: all of it with COX_LONG.
var part = func() time.Duration {
	if os.Getenv("COX_LONG") != "" {
		return 1
	}
	return 3
}()

// A day has three shifts; work comes in until submitEnd of each, what is left of it
// then is cancelled at cancelAll, and at quiet what is held is measured.
var (
	shift     = 8 * time.Hour / part
	submitEnd = shift - 50*time.Minute
	cancelAll = shift - 40*time.Minute
	quiet     = shift - 5*time.Minute
)

// op is something that a client does.
type op struct {
	at   time.Duration // from the morning on
	verb string
	user int
	text string // of a submission; of the second one of a chain: more
	more string
	draw uint64 // for what depends on the jobs that there are
}

// perShift is how often each verb comes in a shift.
var perShift = []struct {
	verb string
	n    int
}{
	{"submit", 4250},
	{"array", 175},
	{"gang", 150},
	{"chain", 250},
	{"cancel", 500},
	{"hold", 250},
	{"update", 200},
	{"requeue", 120},
	{"signal", 100},
	{"drain", 8},
	{"list", 900},
	{"columns", 600},
	{"job", 2000},
	{"why", 1200},
	{"logs", 600},
	{"script", 300},
	{"history", 300},
	{"nodes", 400},
	{"estimate", 200},
	{"metrics", 100},
	{"audit", 40},
	{"token", 12},
	{"watch", 150},
	{"wait", 120},
	{"follow", 60},
}

// drawTrace is the day's work in order of time. The same seed gives the same trace;
// the shifts are alike, not the same.
func drawTrace(seed uint64) []op {
	d := &drawing{rand.New(rand.NewPCG(seed, 0))}
	var ops []op
	for s := range shifts {
		from := time.Duration(s) * shift
		for _, v := range perShift {
			for range max(v.n/int(part), 8) {
				o := op{at: from + d.moment(), verb: v.verb, user: d.IntN(userCount), draw: d.Uint64()}
				d.fill(&o)
				ops = append(ops, o)
			}
		}
		ops = append(ops, op{at: from + cancelAll, verb: "cancel-all"})
	}
	slices.SortStableFunc(ops, func(a, b op) int { return cmp.Compare(a.at, b.at) })
	return ops
}

type drawing struct{ *rand.Rand }

// moment is a time within a shift: at any time, and more before noon.
func (d *drawing) moment() time.Duration {
	x := d.Float64()
	if d.IntN(5) < 2 {
		x = min(max(0.4+0.12*d.NormFloat64(), 0), 0.999)
	}
	return time.Duration(x * float64(submitEnd))
}

// seconds is a running time: half of them below the median, a few very long.
func (d *drawing) seconds(median float64) int {
	return int(min(median*math.Exp(d.NormFloat64()), 2*3600))
}

func (d *drawing) fill(o *op) {
	switch o.verb {
	case "submit", "estimate":
		o.text = d.script(d.single(), d.seconds(240))
	case "array":
		n := 4 + d.IntN(40)
		o.text = d.script(append(d.single(), fmt.Sprintf("--array=0-%d%%%d", n-1, 1+d.IntN(n))), d.seconds(150))
	case "gang":
		nodes := 1 + d.IntN(5)
		o.text = d.script([]string{fmt.Sprintf("--nodes=%d", nodes), "--ntasks-per-node=8", "--gpus-per-node=8", "--exclusive"}, d.seconds(360))
	case "chain":
		o.text, o.more = d.script(d.single(), d.seconds(120)), d.script(d.single(), d.seconds(120))
	}
}

func (d *drawing) single() []string {
	switch d.IntN(10) {
	case 0, 1, 2, 3:
		return []string{fmt.Sprintf("--cpus-per-task=%d", 1+d.IntN(8)), "--mem=4G"}
	case 4:
		return []string{"--gpus=2", "--cpus-per-task=8", "--mem=32G"}
	case 5:
		return []string{"--gpus=4", "--cpus-per-task=16", "--mem=64G", "--nice=100"}
	}
	return []string{"--gpus=1", "--cpus-per-task=4", "--mem=16G"}
}

// script is a batch script of some kilobytes, and says how it will end.
func (d *drawing) script(options []string, run int) string {
	exit, kind := 0, d.IntN(100)
	switch {
	case kind < 6:
		exit = 1 + d.IntN(3)
	case kind < 7:
		exit = exitOOM
	case kind < 8:
		exit = exitLaunch
	case kind < 9:
		exit = exitLost
	case kind < 11:
		exit = exitResists
	}
	limit := run/60 + 1 + d.IntN(60)
	if kind >= 97 {
		limit = max(run/120, 1) // it will not be enough
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/bash\n#SBATCH --job-name=%s-%d\n#SBATCH --time=%d\n", []string{"train", "eval", "sweep", "prep"}[d.IntN(4)], d.IntN(50), limit)
	if d.IntN(3) > 0 {
		b.WriteString("#SBATCH --requeue\n")
	}
	for _, o := range options {
		b.WriteString("#SBATCH " + o + "\n")
	}
	fmt.Fprintf(&b, "#fate %d %d %d\nset -euo pipefail\n", max(run, 1), 1+d.IntN(15), exit)
	for i := range 10 + d.IntN(30) {
		fmt.Fprintf(&b, "srun python train.py --stage=%d --seed=%d --data=/data/set-%03d\n", i, d.Uint32(), d.IntN(1000))
	}
	return b.String()
}

// environ is what a user's shell has: mostly the same.
func environ(o *op) []string {
	home := "/home/" + userName(o.user)
	env := []string{"HOME=" + home, "USER=" + userName(o.user), "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin"}
	for i := range 24 {
		env = append(env, fmt.Sprintf("MODULE_%02d=/opt/site/modules/%s/lib-%d.%d", i, userName(o.user), i, i*7))
	}
	if o.draw%3 == 0 {
		env = append(env, fmt.Sprintf("RUN_ID=%x", o.draw))
	}
	return env
}
