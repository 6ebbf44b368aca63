package srun

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/internal/exectest"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

func TestMain(m *testing.M) { plane.Main(m, nil) }

// shell runs scripts of a user who has Slurm's names in his PATH.
type shell struct {
	t    *testing.T
	dir  string
	path string
	env  []string
}

// newShell starts a server of four nodes with two CPUs and two GPUs each.
func newShell(t *testing.T) *shell {
	p := plane.New(t, func(c *config.Config) { c.Room.CPUs, c.Room.GPUsPerNode = 2, 2 }).Start()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(p.Dir, "names")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range slurmfmt.Commands {
		if err := os.Symlink(self, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return &shell{t: t, dir: p.Dir, path: bin, env: []string{"COX_SERVER=unix://" + p.Config.Listen.Socket, "TMPDIR=" + t.TempDir()}}
}

// command makes the command of a script in a folder of its own. A script that hangs fails the test.
func (s *shell) command(t *testing.T, script string) (*exec.Cmd, *output) {
	o := &output{grown: make(chan struct{}, 1)}
	cmd := exectest.Command(t, o, "bash", "-c", script)
	cmd.Dir = t.TempDir()
	cmd.Env = append(append(os.Environ(), s.env...), "PATH="+s.path+":"+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = o, o
	return cmd, o
}

// output gathers what a script prints.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	grown chan struct{}
}

// Write appends.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.grown <- struct{}{}:
	default:
	}
	return o.text.Write(b)
}

// String is what was printed so far.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await waits until the script has printed a text.
func (o *output) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(3 * time.Minute)
	for !strings.Contains(o.String(), text) {
		select {
		case <-o.grown:
		case <-late:
			t.Fatalf("%q is not printed:\n%s", text, o)
		}
	}
}

// variable is what differs from run to run: times and job numbers.
var variable = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|(STEP |StepId=|[Jj]ob )\d+`)

// lines are the sorted lines of an output without what differs from run to run.
func lines(text string) []string {
	text = variable.ReplaceAllStringFunc(text, func(s string) string { return strings.TrimRight(s, "0123456789-T:") })
	out := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	slices.Sort(out)
	return out
}

// TestSrunOutside: what srun prints and how it ends where it makes its own allocation. The
// lines of both streams are compared without their order. The outcomes are those of Slurm.
func TestSrunOutside(t *testing.T) {
	s := newShell(t)
	for name, c := range map[string]struct{ script, want string }{
		"here-document": {"srun -n1 bash <<'EOF'\necho it ran\nEOF\necho $?", "0\nit ran"},
		"pipe":          {"seq 100000 | srun tail -n1", "100000"},
		"pipe to all":   {"echo in | srun -n2 -l cat", "0: in\n1: in"},
		"input file":    {"echo in > f; srun cat < f; srun -i f cat; srun -i none cat", "in\nin"},
		"input to one":  {"echo in | srun -n2 -i 1 -l cat", "1: in"},
		"output of one": {"srun -n2 -o 1 sh -c 'echo rank $SLURM_PROCID'", "rank 1"},
		"files by task": {"srun -n2 -o f.%t sh -c 'echo rank $SLURM_PROCID'; cat f.0 f.1", "rank 0\nrank 1"},
		"one file":      {"srun -n2 -o f sh -c 'echo rank $SLURM_PROCID'; cat f; ls", "f\nrank 0\nrank 1"},
		"labels":        {"srun -n2 --labe echo x", "0: x\n1: x"},
		"programs":      {"printf '0 echo a\\n1 echo b %%t\\n' > f; srun -n2 --multi-prog f", "a\nb 1"},
		"step":          {"srun -N2 sh -c 'echo $SLURM_STEP_ID $SLURM_PROCID $SLURM_NNODES $SLURM_NTASKS ${ENVIRONMENT-none}'", "0 0 2 2 none\n0 1 2 2 none"},
		"no such file":  {"srun /nonexistent; echo $?", "2\nsrun: error: v1: task 0: Exited with exit code 2\nsrun: error: v1: task 0: execve(): /nonexistent: No such file or directory"},
		"highest code":  {"srun -n3 sh -c 'exit $SLURM_PROCID' 2>/dev/null; echo $?", "2"},
		"signal":        {"srun sh -c 'kill -SEGV $$'; echo $?", "139\nsrun: error: v1: task 0: Segmentation fault"},
		"no kill":       {"srun -n2 sh -c 'if [ $SLURM_PROCID = 1 ]; then exit 3; fi; for i in 1 2 3 4; do sleep 0.1; done; echo survivor' 2>/dev/null; echo $?", "3\nsurvivor"},
		"kill":          {"srun -K -n2 sh -c '[ $SLURM_PROCID = 1 ] && exit 3; exec sleep 100' 2>/dev/null; echo $?", "3"},
		"wait":          {"srun -W1 -n2 sh -c '[ $SLURM_PROCID = 1 ] || exec sleep 100' 2>/dev/null; echo $?", "143"},
		"directory":     {"mkdir d; srun -D d sh -c 'basename $PWD'", "d"},
		"export":        {"A=1 srun --export=ALL,B=2 sh -c 'echo $A$B'; A=1 srun --export=B=2 /bin/sh -c 'echo $A$B'", "12\n2"},
		"umask, limits": {"umask 027; ulimit -f 100; srun bash -c 'umask; ulimit -f'", "0027\n100"},
		"variables":     {"SLURM_NTASKS=2 SLURM_LABELIO= SLURM_TIMELIMIT=7 SLURM_JOB_NAME=n srun sh -c 'squeue -h -j $SLURM_JOB_ID -o \"%l %j\"'", "0: 7:00 n\n1: 7:00 n"},
		"outranked":     {"SLURM_NTASKS=2 SLURM_MEM_PER_NODE=1 srun -n1 --mem-per-cpu=10 echo x", "x"},
		"partition":     {"SLURM_PARTITION=nosuch srun true 2>&1 | grep -c nosuch", "1"},
		"bad variable":  {"SLURM_WAIT=x srun true; echo $?; SLURM_EXIT_ERROR=9 SLURM_WAIT=x srun true 2>/dev/null; echo $?", "1\n9\nsrun: error: Invalid numeric value \"x\" for --wait."},
		"bad option":    {"srun --wait=x true; echo $?", "1\nsrun: error: Invalid numeric value \"x\" for --wait."},
		"test only":     {"srun --test-only -n2 touch ran; echo $?; ls", "0\nsrun: Job 0 to start at 2026-01-01T00:00:00 using 2 processors on nodes v1 in partition local"},
		"components":    {"sbatch -Q -W -o o -n1 --mem=50 : -n1 --mem=60 --gpus-per-node=1 --wrap 'srun -l echo a : echo b; env | grep -E \"(MEM|GPUS)_PER_NODE\"' 2>&1; cat o", "0: a\n1: b\nSLURM_GPUS_PER_NODE_HET_GROUP_1=1\nSLURM_MEM_PER_NODE=50\nSLURM_MEM_PER_NODE_HET_GROUP_0=50\nSLURM_MEM_PER_NODE_HET_GROUP_1=60"},
		"whole nodes":   {"for o in '' -c2 -n1 '-N2 -c1'; do sbatch -Q -W --exclusive $o -o o --wrap 'echo $SLURM_TASKS_PER_NODE'; cat o; done", "1\n1\n2\n2(x2)"},
		"late folder":   {`j=$(sbatch --parsable -o log/%j/o --wrap 'echo hi'); while [ "$(squeue -h -o %T -j $j)" = PENDING ]; do sleep 0.02; done; mkdir -p log/$j; while [ -n "$(squeue -h -j $j)" ]; do sleep 0.02; done; cat log/$j/o`, "hi"},
		"immediate":     {"J=$(sbatch --parsable -N4 --exclusive -o /dev/null --wrap 'sleep 100'); srun -Q -I true; echo $?; scancel $J", "1\nsrun: error: Unable to allocate resources: Requested nodes are busy"},
		"one by one":    {"printf '1\\n2\\n' | while read n; do srun -i none echo got $n; done", "got 1\ngot 2"},
		"reader gone":   {"srun sh -c 'yes | head -n 100000' | head -n1; echo ${PIPESTATUS[0]}", "0\ny"},
		"colon":         {"srun true : true; echo $?", "1\nsrun:   sbatch with srun inside\nsrun: error: several components (:) outside of a job are not built yet"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, out := s.command(t, c.script)
			_ = cmd.Run()
			if got, want := lines(out.String()), lines(c.want); !slices.Equal(got, want) {
				t.Errorf("%s\nprints:\n%s\nwant:\n%s", c.script, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
	if left, _ := filepath.Glob(filepath.Join(strings.TrimPrefix(s.env[1], "TMPDIR="), "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestSignals: what reaches the program of an srun outside of a job, and how srun ends then.
func TestSignals(t *testing.T) {
	s := newShell(t)
	const program = `trap 'echo got it; exit 4' USR1; trap 'echo told; exit 5' INT TERM; echo ready $SLURM_JOB_ID; while :; do sleep 0.02; done`
	job := regexp.MustCompile(`ready (\d+)`)
	for name, c := range map[string]struct {
		options string
		act     func(t *testing.T, srun *os.Process, id string)
		want    string // a part of what is printed
		code    int
		state   string // of the job, as sacct has it
	}{
		"scancel -s":       {"", func(t *testing.T, _ *os.Process, id string) { s.run(t, "scancel -s USR1 "+id) }, "got it", 4, "FAILED 4:0"},
		"scancel":          {"", func(t *testing.T, _ *os.Process, id string) { s.run(t, "scancel "+id) }, "slurmstepd: error: *** STEP", 5, "CANCELLED"},
		"to srun":          {"", func(_ *testing.T, p *os.Process, _ string) { _ = p.Signal(syscall.SIGUSR1) }, "got it", 4, "FAILED 4:0"},
		"interrupt":        {"--quit-on-interrupt", func(_ *testing.T, p *os.Process, _ string) { _ = p.Signal(syscall.SIGINT) }, "sending Ctrl-C to StepId", 5, "FAILED 5:0"},
		"terminate":        {"", func(_ *testing.T, p *os.Process, _ string) { _ = p.Signal(syscall.SIGTERM) }, "CANCELLED AT", 5, "FAILED 5:0"},
		"kill":             {"", func(_ *testing.T, p *os.Process, _ string) { _ = p.Kill() }, "", -1, "FAILED 1:0"},
		"before the limit": {"-t1 --signal=USR1@59", func(*testing.T, *os.Process, string) {}, "got it", 4, "FAILED 4:0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, out := s.command(t, `exec srun -Q `+c.options+` bash -c "$PROGRAM"`)
			cmd.Env = append(cmd.Env, "PROGRAM="+program)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			out.await(t, "ready")
			id := job.FindStringSubmatch(out.String())[1]
			c.act(t, cmd.Process, id)
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != c.code || !strings.Contains(out.String(), c.want) {
				t.Errorf("exit %d, want %d and %q:\n%s", got, c.code, c.want, out)
			}
			if got := s.run(t, "until sacct -X -n -P -o state,exitcode -j "+id+" | grep -v RUNNING; do sleep 0.05; done"); !strings.HasPrefix(strings.ReplaceAll(got, "|", " "), c.state) {
				t.Errorf("the job is %q, want %q", got, c.state)
			}
		})
	}
}

// run runs a script and returns what it prints.
func (s *shell) run(t *testing.T, script string) string {
	t.Helper()
	cmd, out := s.command(t, script)
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v\n%s", script, err, out)
	}
	return out.String()
}

// TestStepOfAnotherJob: --jobid and SLURM_JOB_ID run a step in a job that runs, from outside.
func TestStepOfAnotherJob(t *testing.T) {
	s := newShell(t)
	id := strings.TrimSpace(s.run(t, "sbatch --parsable -N2 -n2 -o /dev/null --wrap 'while :; do sleep 0.05; done'; while [ -z \"$(squeue -h -t R)\" ]; do sleep 0.02; done"))
	for script, want := range map[string]string{
		"echo in | srun --jobid=$J --overlap -l sh -c 'cat; echo $SLURM_JOB_ID'":                                                                        "0: " + id + "\n0: in\n1: " + id + "\n1: in",
		"cd /; SLURM_JOB_ID=$J A=b srun --overlap -N1 -n1 sh -c 'pwd; echo $A'":                                                                         "/\nb",
		"srun --jobid=$J -r1 -N1 -n1 --overlap sh -c 'echo $SLURMD_NODENAME'":                                                                           "v2",
		"sbatch -Q -W -n1 -o o --wrap 'srun --jobid=$J --overlap -N1 -n1 sh -c \"echo \\$SLURM_JOB_ID\"; srun sh -c \"echo \\$SLURM_JOB_NAME\"'; cat o": id + "\nwrap",
		"srun --jobid=999 true; echo $?": "1\nsrun: error: Unable to confirm allocation for job : Invalid job id specified",
	} {
		cmd, out := s.command(t, script)
		cmd.Env = append(cmd.Env, "J="+id)
		_ = cmd.Run()
		if got, want := lines(out.String()), lines(want); !slices.Equal(got, want) {
			t.Errorf("%s\nprints:\n%s\nwant:\n%s", script, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	s.run(t, "scancel "+id)
}
