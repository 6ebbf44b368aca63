package clientstest

import (
	"encoding/csv"
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestSubmitit(t *testing.T) {
	t.Parallel()
	s := openSite(t, "submitit")
	s.compare("functions.txt", s.run("python", "functions.py")+s.states("JobName,State,ExitCode,AllocNodes"))
}

func TestParsl(t *testing.T) {
	t.Parallel()
	s := openSite(t, "parsl")
	s.compare("blocks.txt", s.run("python", "blocks.py")+s.states("State,ExitCode,AllocNodes"))
}

// Ranks of torch that srun and launcher: torchrun start; one that fails; two jobs at once at
// torchrun's one port.
func TestTorch(t *testing.T) {
	t.Parallel()
	s := openSite(t, "torch")
	s.run("sbatch", "ranks.sbatch")
	s.run(filepath.Join(binaries, "cox"), "submit", "launcher.yaml")
	if _, _, err := s.try(filepath.Join(binaries, "cox"), "submit", "--wait", "fails.yaml"); err == nil {
		t.Error("a job with a rank that failed ended well")
	}
	s.run("sbatch", "port.sbatch")
	s.run("sbatch", "port.sbatch")
	states := s.states("State,AllocNodes")
	s.compare("ranks.txt", s.run("sh", "-c", "cat ranks.out launcher.out port-4.out port-5.out | grep -v '^WARNING\\|^\\*\\|^Setting'")+states)
}

// launcher: ray: two clusters on the same nodes at once, the driver's exit code, ray job submit while
// the job runs, and Ray killed on one node. Nothing of them is left.
func TestRay(t *testing.T) {
	t.Parallel()
	s := openSite(t, "ray")
	cox := filepath.Join(binaries, "cox")
	s.run("env", "CODE=5", cox, "submit", "sum.yaml")
	s.run(cox, "submit", "sum.yaml")
	s.awaitEnds()
	s.run(cox, "submit", "stays.yaml")
	s.run("sh", "-c", "until [ -e stays ]; do sleep 0.1; done")
	address := regexp.MustCompile(`--address (\S+)`).FindStringSubmatch(s.run("cat", "stays.out"))[1]
	s.run(cox, "exec", "3", "--", "ray", "job", "submit", "--no-wait", "--address", address, "--", "touch", filepath.Join(s.dir, "submitted"))
	states := s.states("State,ExitCode,AllocNodes")
	s.compare("clusters.txt", s.run("sh", "-c", "cat sum-1.out sum-2.out stays.out | sed -n 's/:[0-9]\\{5\\}/:PORT/g; /^nodes /p; /^ray: /p; /^launcher: /p'")+states)
	if left := s.run("sh", "-c", "ps -ef | grep '/tmp/[c]ox-ray' || :"); left != "" {
		t.Errorf("Ray lives on:\n%s", left)
	}
}

func TestSnakemake(t *testing.T) {
	t.Parallel()
	s := openSite(t, "snakemake")
	_, said, err := s.try("snakemake", "--executor", "slurm", "--jobs", "4", "--keep-going", "--default-resources", "slurm_partition=local",
		"--slurm-no-account", "--slurm-init-seconds-before-status-checks", "5", "--slurm-efficiency-report", "--slurm-efficiency-report-path", "used")
	if code := exitCode(err); code != 1 {
		t.Errorf("snakemake ended with %d (%v), want 1: a rule fails", code, err)
	}
	// sacct has no reason for a step, as Slurm's has none.
	if want := "failed, SLURM status is: 'FAILED'. Reason: Unknown."; strings.Count(said, want) != 1 {
		t.Errorf("snakemake does not say of one job that it %s\n%s", want, said)
	}
	s.checkEfficiency(s.run("sh", "-c", "cat used/*.csv"))
	s.compare("Snakefile.txt", s.run("tail", "-n", "+1", "sum.txt", "ranks.txt", "retried.txt")+s.states("State,ExitCode,AllocNodes,AllocTRES"))
}

// checkEfficiency checks that the plugin's table of what jobs used has figures.
func (s *site) checkEfficiency(table string) {
	s.t.Helper()
	rows, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil || len(rows) < 2 {
		s.t.Fatalf("the table of efficiency: %v\n%s", err, table)
	}
	for _, name := range []string{"TotalCPU_sec", "MaxRSS_MB"} {
		at := slices.Index(rows[0], name)
		if at < 0 || !slices.ContainsFunc(rows[1:], func(row []string) bool { n, err := strconv.ParseFloat(row[at], 64); return err == nil && n > 0 }) {
			s.t.Errorf("the table of efficiency has no %s:\n%s", name, table)
		}
	}
}

// exitCode is the code that a program ended with, -1 where it did not end by itself.
func exitCode(err error) int {
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended):
		return ended.ExitCode()
	}
	return -1
}

func TestNextflow(t *testing.T) {
	t.Parallel()
	s := openSite(t, "nextflow")
	s.env = append(s.env, "NXF_HOME="+s.dir+"/.nextflow-home", "NXF_OFFLINE=true", "NXF_ANSI_LOG=false")
	out := s.run("java", "-cp", s.client+"/lib/*", "nextflow.cli.Launcher", "run", "main.nf")
	const label = `(?m)^(?:\[../......\] )?`
	for _, want := range []string{
		label + `sum 10$`,
		label + "attempt 2, 400 MB, GPU 0$",
		label + `NOTE: Process .RETRIED. terminated with an error exit status \(12\) -- Execution is retried \(1\)$`,
		label + `NOTE: Process .DOOMED. terminated with an error exit status \(3\) -- Error is ignored$`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("nextflow did not say %q:\n%s", want, out)
		}
	}
	s.compare("main.txt", s.states("State,ExitCode,AllocNodes,AllocTRES"))
}

func TestDaskJobqueue(t *testing.T) {
	t.Parallel()
	s := openSite(t, "dask-jobqueue")
	s.compare("cluster.txt", s.run("python", "cluster.py"))
}

func TestSimpleSlurm(t *testing.T) {
	t.Parallel()
	s := openSite(t, "simple-slurm")
	s.compare("scripts.txt", s.run("python", "scripts.py")+s.states("JobName,State,ExitCode,AllocTRES"))
}

func TestPSIJ(t *testing.T) {
	t.Parallel()
	s := openSite(t, "psij")
	s.compare("jobs.txt", s.run("python", "jobs.py")+s.states("State,ExitCode,AllocNodes"))
}

func TestExecutorlib(t *testing.T) {
	t.Parallel()
	s := openSite(t, "executorlib")
	s.run("sbatch", "--wait", "functions.sbatch")
	s.compare("functions.txt", s.run("cat", "functions.out")+s.states("JobName,State,ExitCode,AllocNodes"))
}

func TestToil(t *testing.T) {
	t.Parallel()
	s := openSite(t, "toil")
	out := s.run("python", "workflow.py", "--batchSystem", "slurm", "--slurmPartition", "local", "--retryCount", "1", "--statePollingWait", "1",
		"--disableProgress", "--workDir", s.dir, "./store")
	s.compare("workflow.txt", out+s.states("State,ExitCode,AllocTRES"))
}
