package step

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/agent/deviceenv"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/srunopt"
)

// het is a job of two components: 1 task on v1; 4 tasks of 2 CPUs on v2 and v3.
func het() *Alloc {
	a := uniform(3, 2, 4, 0)
	parts := a.Groups[0].Parts
	parts[0].Tasks, parts[0].CPUs = 1, 1
	a.Groups = []AllocGroup{{Tasks: 1, Parts: parts[:1]}, {Tasks: 4, CPUsPerTask: 2, Parts: parts[1:]}}
	a.Given["ntasks"] = "1"
	return a
}

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
			got := launch(t, het()).run(tc.script)
			if lines(got.out) != tc.out || strings.TrimSpace(got.err) != tc.err {
				t.Errorf("printed\n%s\nwant\n%s\nsaid %s", lines(got.out), tc.out, got.err)
			}
		})
	}
}

// TestCPUsOfTheJobWhereTheyFit: the job's --cpus-per-task holds for steps that can
// have it, and does not forbid others.
func TestCPUsOfTheJobWhereTheyFit(t *testing.T) {
	a := uniform(1, 2, 8, 0)
	q := ComponentRequest{Tasks: 2, CPUsPerTask: 4, Soft: true}
	for _, tc := range []struct {
		tasks, cpus int
		soft        bool
	}{{2, 8, true}, {1, 4, true}, {8, 8, true}, {3, 0, false}} {
		q.Tasks, q.Soft = tc.tasks, tc.soft
		info, err := layoutStep(a, allParts(a), Request{Components: []ComponentRequest{q}, Exact: true})
		if (err != nil) != (tc.cpus == 0) || err == nil && info.Parts[0].CPUs != tc.cpus {
			t.Errorf("%d tasks: %+v, %v; want %d CPUs", tc.tasks, info, err, tc.cpus)
		}
	}
}

func TestHintAfterAWhile(t *testing.T) {
	for want, options := range map[string]string{"--exact": "", "--gpus or --gres=none": "--exact", "with --overlap it shares": "--exact --gres=gpu:2 -n3"} {
		c := launch(t, oneNode())
		got := c.run(`srun -n1 sleep 600 & first=$!; until [ -e ` + c.logs + `/0.0.log ]; do sleep 0.01; done
			srun -n1 ` + options + ` true 2>said & second=$!
			until grep -qs "still waiting" said; do sleep 0.05; done; kill $second $first; wait 2>/dev/null; cat said`)
		if !strings.Contains(got.out, want) {
			t.Errorf("%s: said %s", options, got.out)
		}
	}
}

func TestNewAlloc(t *testing.T) {
	gpu := func(i int, typ string) fleet.Device {
		return fleet.Device{Index: i, Kind: "gpu", Type: typ, UUID: "GPU-" + typ}
	}
	nodes := []fleet.Node{
		{Name: "v1", Address: "127.0.0.11", Capacity: resource.Vector{CPU: resource.CPUs(8), Memory: 4 * resource.GiB}, Path: []string{"s1", "leaf2"}, Parts: []string{"main"}, Devices: []fleet.Device{gpu(0, "h100"), gpu(1, "h100")}},
		{Name: "v2", Capacity: resource.Vector{CPU: resource.CPUs(4)}, Devices: []fleet.Device{gpu(0, "mi300x"), {Index: 1, Kind: "gpu", Declared: true}, {Index: 2, Kind: "gpu", Profile: "1g.10gb", UUID: "MIG-x"}}},
	}
	claims := []fleet.Claim{
		{Node: "v1", Group: 0, Tasks: 2, Take: resource.Vector{CPU: 2500, Memory: resource.GiB}, Devices: []fleet.DeviceClaim{{Index: 1, Share: resource.WholeDevice}}},
		{Node: "v1", Group: 0, Tasks: 1, Take: resource.Vector{CPU: 1000}, Devices: []fleet.DeviceClaim{{Index: 0, Share: 500}}},
		{Node: "v2", Group: 1, Tasks: 1, Whole: true, Devices: []fleet.DeviceClaim{{Index: 0}, {Index: 1}, {Index: 2}}},
		{Node: "v1", Group: 1, Tasks: 1, Take: resource.Vector{CPU: 1}},
	}
	j := &job.Job{ID: 7, Attempt: 2, Spec: &job.Spec{
		Groups: []job.TaskGroup{{CPUsPerTask: 1}, {TasksPerNode: 1}}, Program: job.Program{Kind: job.Batch, ScriptName: "train.sh", Args: []string{"x"}},
		WorkDir: "/w", TimeLimit: time.Hour, Source: job.Source{Given: map[string]string{"reservation": "r"}},
	}}
	at := Place{Dir: t.TempDir(), Socket: func(i int) string { return "/s" + string(rune('0'+i)) }}
	a, err := NewAlloc(j, claims, nodes, at, time.Unix(100, 0))
	if err != nil {
		t.Fatal(err)
	}
	dev := func(i int, typ, uuid string, share int, shown deviceenv.Device) AllocDevice {
		return AllocDevice{Index: i, Kind: "gpu", Type: typ, UUID: uuid, Share: share, Shown: shown}
	}
	want := []AllocGroup{
		{Tasks: 3, CPUsPerTask: 1, Parts: []Part{{Node: 0, Tasks: 3, CPUs: 4, MemoryMB: 1024, Devices: []AllocDevice{
			dev(0, "h100", "GPU-h100", 500, deviceenv.Device{Vendor: deviceenv.NVIDIA}), dev(1, "h100", "GPU-h100", 1000, deviceenv.Device{Vendor: deviceenv.NVIDIA, Index: 1}),
		}}}},
		{Tasks: 2, TasksPerNode: 1, Parts: []Part{
			{Node: 1, Tasks: 1, CPUs: 4, Whole: true, Devices: []AllocDevice{
				dev(0, "mi300x", "GPU-mi300x", 0, deviceenv.Device{Vendor: deviceenv.AMD}), dev(1, "", "", 0, deviceenv.Device{Vendor: deviceenv.Declared, Index: 1}),
				dev(2, "", "MIG-x", 0, deviceenv.Device{Vendor: deviceenv.NVIDIA, Index: 2, Instance: "MIG-x"}),
			}},
			{Node: 0, Tasks: 1, CPUs: 1},
		}},
	}
	if !reflect.DeepEqual(a.Groups, want) {
		got, _ := json.MarshalIndent(a.Groups, "", " ")
		t.Errorf("groups\n%s", got)
	}
	if a.Name != "train.sh" || a.Partition != "main" || a.SubmitDir != "/w" || a.Reservation != "r" || a.Nodes[0].Path != "s1.leaf2" || a.Nodes[1].Socket != "/s1" || a.Attempt != 2 {
		t.Errorf("allocation %+v", a)
	}
	if err := a.Save(); err != nil {
		t.Fatal(err)
	}
	if back, err := Load(a.File()); err != nil || !reflect.DeepEqual(back.Groups, a.Groups) || !reflect.DeepEqual(back.Nodes, a.Nodes) {
		t.Errorf("read back %+v, %v", back, err)
	}
	for _, bad := range [][]fleet.Claim{nil, {{Node: "v9"}}, {{Node: "v1", Group: 5}}, {{Node: "v1", Group: 0}}} {
		if _, err := NewAlloc(j, bad, nodes, at, time.Time{}); err == nil {
			t.Errorf("claims %+v are accepted", bad)
		}
	}
}

func TestLoadRefusesWhatIsNoAllocation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "alloc.json")
	for _, text := range []string{"", "x", "{}", `{"nodes":[{}],"groups":[{"parts":[{"node":1}]}]}`, `{"nodes":[{}],"groups":[{"parts":[{"node":0},{"node":0}]}]}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if a, err := Load(file); err == nil {
			t.Errorf("%q is read as %+v", text, a)
		}
	}
	if _, err := Load(file + ".not"); err == nil {
		t.Error("a file that is not there is read")
	}
}

// TestOptionsNeverPanic reads random command lines, and completes those that can be
// read.
func TestOptionsNeverPanic(t *testing.T) {
	words := []string{"-", "--", ":", "-n", "-N", "-c", "2", "0", "-1", "x", "1-2", "2-1", "--gpus", "--gres=gpu:1", "--gres=none", "--gpus-per-task=1", "-l", "-K", "-K1", "-W0", "-t1:00", "-w", "v1", "v[1-2]", "v[", "-x", "-m", "plane=2", "plane=", "block,pack", "--het-group=0", "--het-group=0-1,9", "-o", "%t", "none", "-i1", "--export=A=1", "--multi-prog", "--gpu-bind=map_gpu:0*3,1", "--gpu-bind=single", "--tres-per-task=cpu:2,gres/gpu:1", "--ntasks-per-gpu=1", "--cpu-bind=none", "--nt", "-O", "true", "--distribution", "--ntasks=", "--mpi=list"}
	a := uniform(2, 2, 2, 1)
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
		p, err := completePlan(a, parsed, func(string) string { return rapid.SampledFrom([]string{"", "1", "2", "x"}).Draw(r, "environment") })
		if err != nil {
			return
		}
		if info, err := layoutStep(a, allParts(a), p.request); err == nil && info.Tasks == 0 {
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
