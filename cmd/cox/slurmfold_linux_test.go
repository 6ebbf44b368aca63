package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
)

// submitted is the number of a job for a pool.
func (s *slurmSite) submitted(t *testing.T, pool, file string, more ...string) string {
	t.Helper()
	out := s.ok(t, "submitted", slices.Concat([]string{"submit", "--pool", pool}, more, []string{file})...)
	return regexp.MustCompile(`\d+`).FindString(out)
}

// testFolded: a pool whose nodes slurmctld chooses. A gang runs there whole, and is shown on
// the nodes where it is; one for which Slurm has no room, because others have it, waits in
// Slurm's queue with Slurm's reason, can be taken back, and runs; what no node holds is refused
// before; what a person cancels in Slurm is cancelled.
func (s *slurmSite) testFolded(t *testing.T) {
	const pool = "slurm-f"
	s.addPool(t, pool, pool+` +slurm 2\S+ +up +4 +\d+/32`, append(s.byCommands(t), "--set", "root=true", "--shared", filepath.Join(s.dir, "locks-f"))...)

	hello := s.file(t, "hello-f.sh", "#SBATCH -N2 --ntasks-per-node=1 --gres=gpu:8\nsrun -l sh -c 'echo here is $SLURM_PROCID of $SLURM_NTASKS'\n")
	id := s.submitted(t, pool, hello)
	s.ok(t, "", "wait", id, "--quiet")
	s.ok(t, "here is 1 of 2", "logs", id)
	if out := s.ok(t, "16 GPUs", "show", id); strings.Contains(out, "@") || !strings.Contains(out, s.Nodes[0][:1]) {
		t.Errorf("it is not shown on the nodes where it was:\n%s", out)
	}
	r := s.cox(t, "submit", "--pool", pool, s.file(t, "large.sh", "#SBATCH -N5\ntrue\n"))
	if r.Code == 0 || !strings.Contains(r.Out+r.Err, "needs 5 nodes, only 4 qualify") {
		t.Errorf("five nodes of four: exit %d\n%s%s", r.Code, r.Out, r.Err)
	}

	other := strings.TrimSpace(s.Run(t, "sbatch", "--parsable", "--exclusive", "-N4", "-D", "/tmp", "-o", "/dev/null", "--wrap", "sleep 600"))
	id = s.submitted(t, pool, hello)
	s.eventually(t, `handed over to pool `+pool+` at \S+(?: \S+)? as its job \d+, where it waits: \(?(Resources|Priority)`, "why", id)
	s.sameAsShown(t, pool, hello, id)
	s.eventually(t, `(?m)^ *`+id+` .*PENDING`, "queue")
	s.ok(t, "", "hold", id)
	s.eventually(t, `held by`, "why", id)
	if mine := s.Run(t, "squeue", "-h", "-n", "hello-f.sh", "-o", "%i"); strings.TrimSpace(mine) != "" {
		t.Errorf("a job that was taken back is in Slurm's queue still: %s", mine)
	}
	s.ok(t, "", "release", id)
	s.eventually(t, `handed over to pool `+pool, "why", id)
	s.Run(t, "scancel", other)
	s.ok(t, "", "wait", id, "--quiet")
	s.ok(t, "here is 0 of 2", "logs", id)

	id = s.submitted(t, pool, s.file(t, "sleep-f.sh", "sleep 600\n"))
	s.eventually(t, `(?m)^ *`+id+` .*RUNNING`, "queue")
	s.Run(t, "scancel", "-n", "sleep-f.sh")
	s.cox(t, "wait", id, "--quiet").Check(t, 130, "", "")
	s.ok(t, "cancelled in Slurm by", "show", id)
	s.ok(t, "pool "+pool+" is gone", "pool", "remove", pool)
}

// sameAsShown: the script that Slurm has of a job is the one that --dry-run shows of its file, to
// the byte, but for the attempt's number and word.
func (s *slurmSite) sameAsShown(t *testing.T, pool, file, id string) {
	t.Helper()
	var shown api.Submitted
	if err := json.Unmarshal([]byte(s.ok(t, "", "submit", "--dry-run", "--pool", pool, "--format", "json", file)), &shown); err != nil || shown.Preview == nil || shown.ID != 0 {
		t.Fatalf("%+v, %v", shown, err)
	}
	there := regexp.MustCompile(`as its job (\d+)`).FindStringSubmatch(s.ok(t, "as its job", "why", id))[1]
	script := s.Run(t, "scontrol", "write", "batch_script", there, "-")
	script = regexp.MustCompile(`\d+\.1-\w+\.`).ReplaceAllString(script, "0.0-TOKEN.")
	script = regexp.MustCompile(`attempt \d+\.1 `).ReplaceAllString(script, "attempt 0.0 ")
	if want := shown.Preview.Script; strings.TrimRight(script, "\n") != strings.TrimRight(want, "\n") {
		t.Errorf("shown was\n%s\nSlurm has\n%s", want, script)
	}
	record := s.Run(t, "scontrol", "show", "job", there)
	for _, option := range shown.Preview.Options[0] {
		name, value, _ := strings.Cut(strings.TrimPrefix(option, "--"), "=")
		field := map[string]string{"job-name": "JobName", "output": "StdOut"}[name]
		if name == "output" {
			value = strings.ReplaceAll(value, "%j", there)
		}
		if field != "" && !strings.Contains(record, field+"="+value+"\n") {
			t.Errorf("%s is not %s in\n%s", field, value, record)
		}
	}
}
