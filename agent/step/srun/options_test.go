package srun

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/agent/step/place"
	"github.com/coxswain-sched/coxswain/agent/step/steptest"
	"github.com/coxswain-sched/coxswain/model/srunopt"
)

func TestHeterogeneousSteps(t *testing.T) {
	const say = ` sh -c 'echo $SLURMD_NODENAME $SLURM_LOCALID/$SLURM_NODEID $SLURM_NTASKS $SLURM_JOB_NODELIST'`
	for name, tc := range map[string]struct{ script, out, err string }{
		"the first component alone": {`srun -l` + say, "0: v1 0/0 1 v1", ""},
		"both":                      {`srun -l --het-group=0,1` + say, "0: v1 0/0 5 v[1-3]\n1: v2 0/1 5 v[1-3]\n2: v2 1/1 5 v[1-3]\n3: v3 0/2 5 v[1-3]\n4: v3 1/2 5 v[1-3]", ""},
		"the second":                {`srun -l --het-group=1` + say, "0: v2 0/0 4 v[2-3]\n1: v2 1/0 4 v[2-3]\n2: v3 0/1 4 v[2-3]\n3: v3 1/1 4 v[2-3]", ""},
		"a program each":            {`srun sh -c 'echo a $SLURMD_NODENAME' : -n2 -N2 sh -c 'echo b $SLURMD_NODENAME'`, "a v1\nb v2\nb v3", ""},
		"one that is not there":     {`srun --het-group=2 true`, "", "srun: error: Invalid --het-group value: 2: the job has 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := launch(t, steptest.Het()).run(tc.script)
			if lines(got.out) != tc.out || strings.TrimSpace(got.err) != tc.err {
				t.Errorf("printed\n%s\nwant\n%s\nsaid %s", lines(got.out), tc.out, got.err)
			}
		})
	}
}

func TestHintAfterAWhile(t *testing.T) {
	for want, options := range map[string]string{"--exact": "", "--gpus or --gres=none": "--exact", "with --overlap it shares": "--exact --gres=gpu:2 -n3"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel() // the hint comes after some seconds
			c := launch(t, oneNode())
			got := c.run(`srun -n1 sleep 600 & first=$!; until [ -e ` + c.logs + `/0.0.log ]; do sleep 0.01; done
			srun -n1 ` + options + ` true 2>said & second=$!
			until grep -qs "still waiting" said; do sleep 0.05; done; kill $second $first; wait 2>/dev/null; cat said`)
			if !strings.Contains(got.out, want) {
				t.Errorf("%s: said %s", options, got.out)
			}
		})
	}
}

// TestOptionsNeverPanic reads random command lines, and completes those that can be
// read.
func TestOptionsNeverPanic(t *testing.T) {
	words := []string{"-", "--", ":", "-n", "-N", "-c", "2", "0", "-1", "x", "1-2", "2-1", "--gpus", "--gres=gpu:1", "--gres=none", "--gpus-per-task=1", "-l", "-K", "-K1", "-W0", "-t1:00", "-w", "v1", "v[1-2]", "v[", "-x", "-m", "plane=2", "plane=", "block,pack", "--het-group=0", "--het-group=0-1,9", "-o", "%t", "none", "-i1", "--export=A=1", "--multi-prog", "--gpu-bind=map_gpu:0*3,1", "--gpu-bind=single", "--tres-per-task=cpu:2,gres/gpu:1", "--ntasks-per-gpu=1", "--cpu-bind=none", "--nt", "-O", "true", "--distribution", "--ntasks=", "--mpi=list"}
	a := steptest.Uniform(2, 2, 2, 1)
	rapid.Check(t, func(r *rapid.T) {
		args := rapid.SliceOfN(rapid.SampledFrom(words), 0, 8).Draw(r, "args")
		var parsed []*options
		for _, w := range splitComponents(args) {
			o := newOptions()
			if parseSrun(o, w) != nil {
				return
			}
			parsed = append(parsed, o)
		}
		var environ []string
		for _, v := range append(srunopt.Variables(), srunopt.Variable{Name: "SLURM_STEP_GRES"}) {
			if value := rapid.SampledFrom([]string{"", "", "", "1", "2", "x"}).Draw(r, v.Name); value != "" {
				environ = append(environ, v.Name+"="+value)
			}
		}
		p, err := completePlan(a, parsed, environ)
		if err != nil {
			return
		}
		if info, _, err := place.NewAllocator(a).Create(p.request); err == nil && info.Tasks == 0 {
			r.Fatalf("%q makes a step without tasks", args)
		}
	})
}

// TestHonouredOptionsAreSet: every option that the table says is honoured in a step is set.
func TestHonouredOptionsAreSet(t *testing.T) {
	for _, o := range srunopt.All() {
		if err := newOptions().setOption(o.Name(), "1"); errors.Is(err, errNoSetter) == (o.Step == srunopt.Honoured) {
			t.Errorf("--%s: %+v, %v", o.Long, o, err)
		}
	}
}

func TestShellWords(t *testing.T) {
	for line, want := range map[string][]string{
		`a  b	c`:           {"a", "b", "c"},
		`'a b' "c d" e\ f`: {"a b", "c d", "e f"},
		`a # b`:            {"a"},
		`a#b ""`:           {"a#b", ""},
		`"it's" '\n'`:      {"it's", `\n`},
		``:                 nil,
	} {
		if got, err := shellWords(line); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v", line, got, err)
		}
	}
	if _, err := shellWords(`a "b`); err == nil {
		t.Error("an open quote is taken")
	}
}
