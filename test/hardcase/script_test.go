package hardcase

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

// The command line outranks SBATCH_… variables, and these the #SBATCH lines; of a flag
// that comes twice the last one holds; a blank line between directives ends nothing, the
// first command does; what has no effect is said on standard error and nowhere else.
func TestHardCase_36_precedence(t *testing.T) {
	p := plane.New(t, nodes(1, 0)).Start()
	script := p.Write("job.sh", `#!/bin/sh
#SBATCH --time=10
#SBATCH --job-name=first --job-name=last

#SBATCH --hold
#SBATCH --output=/dev/null
true
#SBATCH --time=99
#SBATCH --no-such-option
`)
	for _, tt := range []struct {
		env, args []string
		want      time.Duration
	}{
		{nil, nil, 10 * time.Minute},
		{[]string{"SBATCH_TIMELIMIT=20"}, nil, 20 * time.Minute},
		{[]string{"SBATCH_TIMELIMIT=20"}, []string{"--time=30"}, 30 * time.Minute},
		{nil, []string{"--time=30", "-t", "40"}, 40 * time.Minute},
		{[]string{"SBATCH_TIMELIMIT=20", "SBATCH_JOB_NAME=other"}, []string{"-t40", "--time=50", "--job-name=last"}, 50 * time.Minute},
	} {
		out, errs, code := p.Run(tt.env, "sbatch", append(tt.args, script)...)
		id, ok := strings.CutPrefix(strings.TrimSpace(out), "Submitted batch job ")
		if code != 0 || !ok {
			t.Fatalf("%v %v: exit %d\n%s%s", tt.env, tt.args, code, out, errs)
		}
		j := p.Get(id)
		if j.Spec.TimeLimit != tt.want || j.Spec.Name != "last" || j.Why == nil || j.Why.Code != "held-user" {
			t.Errorf("%v %v: %s, %q, %+v", tt.env, tt.args, j.Spec.TimeLimit, j.Spec.Name, j.Why)
		}
		if !strings.Contains(errs, "job.sh:8: #SBATCH is not read here") {
			t.Errorf("nothing is said of the directive after the first command:\n%s", errs)
		}
	}
}

// Four GPUs are asked for in five ways, with a type and without: the plan, the ledger,
// the job and the bill have four.
func TestHardCase_37_fiveWays(t *testing.T) {
	p := plane.New(t, func(c *config.Config) { nodes(1, 8)(c); c.Room.GPUType = "h100" }).Start()
	ways := [][]string{
		{"--gres=gpu:%s4"},
		{"--gpus=%s4"},
		{"--gpus-per-node=%s4"},
		{"--gpus-per-task=%s2", "--ntasks=2"},
		{"--gpus-per-socket=%s4", "--sockets-per-node=1"},
	}
	for _, kind := range []string{"", "h100:"} {
		for _, way := range ways {
			out := p.Dir + "/seen"
			args := append([]string{"--output=" + out, fmt.Sprintf(way[0], kind)}, way[1:]...)
			got, err := p.TrySubmit("echo $CUDA_VISIBLE_DEVICES $SLURM_GPUS_ON_NODE", args...)
			if err != nil {
				t.Fatal(err)
			}
			j := p.Ends(got.ID.String(), "COMPLETED")
			if len(j.Claims) != 1 || len(j.Claims[0].Devices) != 4 {
				t.Errorf("%q: the ledger has %+v", args, j.Claims)
			}
			seen, err := os.ReadFile(out)
			devices, n, _ := strings.Cut(strings.TrimSpace(string(seen)), " ")
			if err != nil || strings.Count(devices, ",") != 3 || n != "4" {
				t.Errorf("%q: the job sees %q, %v", args, seen, err)
			}
			bill, errs, _ := p.Run(nil, "sacct", "-X", "-n", "-P", "-o", "AllocTRES", "-j", j.Name)
			if !strings.Contains(","+strings.TrimSpace(bill)+",", ",gres/gpu=4,") {
				t.Errorf("%q: the bill says %q %s", args, bill, errs)
			}
		}
	}
}

// A job that prints much is told to stop, and prints a last line before it exits: the
// line is stored, of the batch script and of a rank.
func TestHardCase_50_lastLine(t *testing.T) {
	p := plane.New(t, nodes(1, 0)).Start()
	diary := p.Diary("diary")
	chatty := func(who string) string {
		return "trap 'echo the last line of " + who + "; exit 0' TERM; " + diary.Note("$$") + "; i=0; while :; do i=$((i+1)); echo " + who + " line $i of many, many lines that it prints; done"
	}
	p.Write("rank.sh", chatty("a rank"))
	for who, script := range map[string]string{"the script": chatty("the script"), "a rank": "srun sh rank.sh"} {
		before := len(diary.Lines())
		job := p.Submit(script, "--output=out."+strings.ReplaceAll(who, " ", "."), "--error=/dev/null") // srun says there that it is told to end
		diary.Await(before + 1)
		p.Until(job, "runs", func(j *api.Job) bool { return !j.Started.IsZero() })
		grace := 600.0
		p.Change(api.VerbCancel, job, func(c *api.Change) { c.Grace = &grace })
		p.Ends(job, "CANCELLED")
		b, err := os.ReadFile(p.Dir + "/out." + strings.ReplaceAll(who, " ", "."))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		n := 0
		for _, l := range lines {
			if l == who+" line "+strconv.Itoa(n+1)+" of many, many lines that it prints" {
				n++
			}
		}
		if last := lines[len(lines)-1]; last != "the last line of "+who || n != len(lines)-1 {
			t.Errorf("of %s: %d lines, %d in order, then %q; the last is %q", who, len(lines), n, lines[n:min(len(lines), n+3)], last)
		}
	}
}
