package sbatch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/spec"
)

// again renders a job and reads what comes out.
func again(t testing.TB, s *job.Spec, script string, opts Options) (text string, back *job.Spec, warnings []spec.Warning) {
	t.Helper()
	out, warnings := Render(s, []byte(script))
	back, _, err := Parse(source(string(out)), opts)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out), back, warnings
}

// same compares what two headers ask for.
func same(a, b *job.Spec) string {
	x, y := *a, *b
	x.Source, y.Source = job.Source{}, job.Source{}
	// The spelling is kept, but for these: as scontrol would show them.
	x.Depends.Text, y.Depends.Text = "", ""
	return cmp.Diff(x, y)
}

// renderable lists one line for each thing that sbatch can say.
var renderable = []string{
	"-J 'a b'", `-J 'a"b\\c#d'`, "-J x\\'y", "-A team -q high", "-p gpu,long", "--comment='# no comment'", "--comment=' '",
	"-t 5", "-t 1-2:3:4", "-t 99-0", "-t 60 --time-min=7", "-b 2027-01-20T12:34:56", "--deadline=2027-01-20", "--deadline=now+2days -b now+1hour -t 90",
	"-H", "--nice", "--nice=-7", "--priority=12", "--requeue", "--no-requeue",
	"-d afterok:7:8_3,after:9+10:11", "-d singleton?afterany:5 --kill-on-invalid-dep=no", "-d 7_[1-3,9],8", "-d aftercorr:7 --kill-on-invalid-dep=yes",
	"-a 1-5:2%2", "-a 7,3,9-20", "-a 1-3 -o out", "-o %x-%j.out -e err -i in", "-o none -e none --open-mode=append", "--open-mode=truncate",
	"-D run", "-D /tmp", "--export=NONE", "--export=ALL,A=1", "--signal=USR1", "--signal=B:10@5", "--signal=33@0",
	"--mail-type=ALL,TIME_LIMIT_50 --mail-user=a@b,c", "--reservation=r1,r2", "-L a:2,b@s:3;c", "--container-image=docker://x/y:z",
	"-n 4", "-N 2", "-N 2-4", "-N 1-15:4", "-N2 -n5 -c3", "--ntasks-per-node=4 -N2", "-n8 -O", "-c2 --mincpus=8 -n2", "--contiguous -N2", "--switches=2 -N4", "--switches=1@10:00 -n2", "--switches=1@0 -N2", "-N4 --segment=2", "-n4 --spread-job", "-N2-4 --use-min-nodes", "-w n[1-3]", "-w n3,n1 -N4", "-x a[1-2],b",
	"--mem=0", "--mem=1G", "--mem=1025M", "--mem-per-cpu=1500 -c3", "--mem-per-gpu=3G -G2", "--tmp=7G", "--mem-per-cpu=2G --mincpus=8 -c2", "-O -n2 --mem-per-cpu=1G",
	"--exclusive", "-C a&(b|c)", "-C [a|b]", "-m cyclic", "-m plane=4", "-m block",
	"--gres=gpu", "--gres=gpu:h100:2,nvme:3,mps:10", "--gres=gpu:a100_1g.5gb:2", "--gres=gpu:1g.10gb", "--gpus=h100:2,a100:1", "-G8 --cpus-per-gpu=10 --mem-per-cpu=1G",
	"-n4 --tres-per-task=cpu:2,gres/gpu=1,mem=2G", "-n4 --tres-per-task=gres/mps:50,gres/nvme:2", "--gpus=4 --gpus-per-task=2", "-N1 --gres=gpu:4 --gpus-per-task=1",
	"--ntasks-per-gpu=2 -n 5", "--ntasks-per-gpu=2 --gpus-per-node=2 -N 2", "--gpus-per-socket=2 --sockets-per-node=2", "--tres-per-task=mem:3G -n2 -c2",
	"-n2\nhetjob\n-n3", "-n2 --mem-per-cpu=1G -p a\nhetjob\n-n3 --gres=gpu:1 -c4\nhetjob\n-N2 -C x --mem=1G", "-n2 --mem=1G\nhetjob\n-n3\nhetjob\n-N2 --mem=2G", "-n1 -x a -m cyclic\nhetjob\n-n2 -x b -m block", "-n1\nhetjob\n-n2 -d 7",
}

// What sbatch can say is said again: the script that comes out means the same job,
// without a warning.
func TestRenderSaysItAgain(t *testing.T) {
	opts := Options{Dir: "/home/anna", Mail: true, Now: time.Date(2026, 11, 21, 13, 29, 8, 0, time.UTC)}
	for _, lines := range renderable {
		s := mustParse(t, lines, opts)
		text, back, warnings := again(t, s, "#!/bin/sh\n#SBATCH --old\ntrue\n", opts)
		if diff := same(s, back); diff != "" {
			t.Errorf("%s -want +got\n%s\n%s", lines, diff, text)
		}
		if len(warnings) > 0 && !strings.Contains(lines, "container-image") {
			t.Errorf("%s: %v\n%s", lines, warnings, text)
		}
	}
}

// The same for any mixture of them that sbatch takes.
func TestRenderAnything(t *testing.T) {
	opts := Options{Dir: "/home/anna", Mail: true, Now: time.Date(2026, 11, 21, 13, 29, 8, 0, time.UTC)}
	taken := 0
	rapid.Check(t, func(rt *rapid.T) {
		lines := strings.Join(rapid.SliceOfN(rapid.SampledFrom(renderable), 1, 5).Draw(rt, "lines"), "\n")
		s, _, err := parse(t, lines, opts)
		if err != nil {
			return // they contradict each other
		}
		taken++
		text, back, warnings := again(t, s, "#!/bin/sh\ntrue\n", opts)
		if diff := same(s, back); diff != "" || len(warnings) > 0 && !strings.Contains(lines, "container-image") {
			rt.Fatalf("%s -want +got\n%s\n%v\n%s", lines, diff, warnings, text)
		}
	})
	if taken < 20 {
		t.Errorf("only %d mixtures were taken", taken)
	}
}

// And for the headers of public scripts.
func TestRenderHeaders(t *testing.T) {
	opts := Options{Dir: "/d", Mail: true, Now: time.Date(2026, 11, 21, 13, 29, 8, 0, time.UTC)}
	n := 0
	for _, h := range readHeaders(t) {
		s, _, err := Parse(h.script(), opts)
		if err != nil {
			continue
		}
		n++
		text, back, warnings := again(t, s, string(h.script().Data), opts)
		if diff := same(s, back); diff != "" {
			t.Errorf("%s -want +got\n%s\n%s", h.Source, diff, text)
		}
		if len(warnings) > 0 && s.Image == "" {
			t.Errorf("%s: %v", h.Source, warnings)
		}
	}
	if n < 400 {
		t.Errorf("only %d headers", n)
	}
}

// Parsing equal headers gives equal jobs, whatever stands below them.
func TestEqualHeadersGiveEqualJobs(t *testing.T) {
	src, opts := typical()
	first, _, err := Parse(src, opts)
	if err != nil {
		t.Fatal(err)
	}
	other := src
	other.Data = append([]byte(nil), src.Data...)
	other.Data = append(other.Data, "\necho another\n"...)
	second, _, err := Parse(other, opts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("-first +second\n%s", diff)
	}
}

func TestRenderScript(t *testing.T) {
	s := mustParse(t, "-n2 -t 5", Options{ScriptArgs: []string{"a b", "c"}})
	s.Source.Given["hint"], s.Source.Given["spread-segments"], s.Source.Given["parsable"] = "nomultithread", "", ""
	out, warnings := Render(s, []byte("#!/bin/bash -l\n# mine\n#SBATCH -n2\n#SBATCH -t 5\n\nset -e\n#SBATCH late\ntrue\n"))
	if want := "#!/bin/bash -l\n#SBATCH --job-name=job.sbatch\n#SBATCH --time=00:05:00\n#SBATCH --hint=nomultithread\n#SBATCH --spread-segments\n#SBATCH --ntasks=2\n# mine\n\nset -e\n#SBATCH late\ntrue\n"; string(out) != want {
		t.Errorf("%s\nwant\n%s", out, want)
	}
	s.Env.Set = []string{"A=1"}
	if _, left := Render(s, nil); len(left) != 3 || left[0].Option != "--export-file" {
		t.Errorf("%v", left)
	}
	if len(warnings) != 1 || warnings[0].Message != "the script's arguments stand on sbatch's command line, behind the file: 'a b' c" {
		t.Errorf("%v", warnings)
	}
}

// A job of another form: what sbatch cannot say is named, and the rest is there.
func TestRenderWarns(t *testing.T) {
	direct := &job.Spec{
		Name: "x\ny", TimeLimit: 90 * time.Second, KillOnBadExit: true, WorkDir: "/w", Output: job.Output{Stdout: "slurm-%j.out"},
		Program: job.Program{Kind: job.Direct, Args: []string{"python", "it's.py", "--lr=0.1", ""}}, Source: job.Source{Submit: "/w"},
		Env: job.Environment{Set: []string{"A=1", "B=it's"}},
		Groups: []job.TaskGroup{
			{
				Name: "learners", Tasks: job.Count{Want: 4, Min: 2}, Nodes: job.Range{Min: 2, Max: 2}, CPUsPerTask: 1,
				PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(1)}, Devices: []resource.DeviceRequest{{Kind: "fpga", Count: 1}}},
				PerNode: resource.Requirements{Vector: resource.Vector{Memory: 3 * resource.MiB}},
			},
			{Tasks: job.Count{Want: 1}, PerTask: resource.Requirements{Vector: resource.Vector{CPU: 500}}},
		},
	}
	out, warnings := Render(direct, nil)
	for _, want := range []string{"\nexport A=1\nexport B='it'\\''s'\nsrun --kill-on-bad-exit=1 python 'it'\\''s.py' --lr=0.1 ''\n", "#SBATCH hetjob\n", "#SBATCH --nodes=2\n", "#SBATCH --mem=3M\n", "# group learners\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	var got []string
	for _, w := range warnings {
		got = append(got, w.String())
	}
	for _, want := range []string{
		"--job-name cannot be said", "time limit has no exact counterpart: 90000000000 becomes 120000000000", "--ntasks has no least number", "--gres has no device of the kind fpga",
		"group 0 has no name", "group 1: per task has no exact counterpart", "group 1: per node has no exact counterpart",
	} {
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("no warning that %q:\n%s", want, strings.Join(got, "\n"))
		}
	}
}

// The script that comes out is for people: one option a line, long names, in order.
func ExampleRender() {
	s, _, _ := Parse(spec.Source{Name: "train.sbatch", Data: []byte("#!/bin/bash\n#SBATCH -Jtrain -N4 --gres=gpu:h100:8 -t1-0 -d afterok:7\nsrun train\n")}, Options{Dir: "/home/anna"})
	out, _ := Render(s, []byte("#!/bin/bash\nsrun train\n"))
	fmt.Print(string(out))
	// Output:
	// #!/bin/bash
	// #SBATCH --job-name=train
	// #SBATCH --time=1-00:00:00
	// #SBATCH --dependency=afterok:7
	// #SBATCH --nodes=4
	// #SBATCH --gres=gpu:h100:8
	// srun train
}

// TestRenderRequeue: whether a job may be requeued is written where sbatch's default would have it
// otherwise, or where the script said it; what is read again is the same.
//
// Seen to fail with: --no-requeue left out of native jobs.
func TestRenderRequeue(t *testing.T) {
	for _, k := range []struct {
		form    string
		given   string
		requeue bool
		want    string
	}{
		{"sbatch", "", true, ""},
		{"sbatch", "requeue", true, "#SBATCH --requeue\n"},
		{"sbatch", "no-requeue", false, "#SBATCH --no-requeue\n"},
		{"native", "requeue", true, "#SBATCH --requeue\n"},
		{"native", "", false, "#SBATCH --no-requeue\n"},
	} {
		s := mustParse(t, "", Options{})
		s.Requeue, s.Source.Form, s.Source.Given = k.requeue, k.form, map[string]string{}
		if k.given != "" {
			s.Source.Given[k.given] = ""
		}
		text, warnings := Render(s, []byte("#!/bin/sh\ntrue\n"))
		if got := strings.Contains(string(text), "requeue"); len(warnings) > 0 || got != (k.want != "") || !strings.Contains(string(text), k.want) {
			t.Errorf("%+v: %v\n%s", k, warnings, text)
		}
	}
}
