package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bySSH are the settings by which the server reaches the lab through its login node.
func (s *slurmSite) bySSH(t *testing.T) []string {
	t.Helper()
	login := s.SSH(t)
	host, _, _ := strings.Cut(login.Login, " ")
	out := []string{"--ssh", host, "--set", "conf=" + s.Conf, "--set", "ssh_config=none"}
	for i, o := range login.Options {
		switch {
		case o == "-p":
			out = append(out, "--set", "ssh_port="+login.Options[i+1])
		case o == "-i":
			out = append(out, "--set", "ssh_key="+login.Options[i+1])
		case strings.HasPrefix(o, "UserKnownHostsFile="):
			out = append(out, "--set", "ssh_known_hosts="+strings.TrimPrefix(o, "UserKnownHostsFile="))
		}
	}
	return out
}

// byREST are the settings by which it is reached through slurmrestd alone.
func (s *slurmSite) byREST(t *testing.T) []string {
	t.Helper()
	return []string{"--rest", s.REST(), "--set", "token_key=" + filepath.Join(s.Dir, "jwt.key"), "--set", "user=root"}
}

// testAdvised: beside a pool that is reached over SSH, what names no pool goes where the advice
// says. A gang too large for the virtual nodes here runs there, and the reason stands wherever
// somebody looks; what is small stays here; what no pool holds is refused, and each pool says
// why. Then what both kinds of access find is shown, over SSH and by slurmrestd alone.
func (s *slurmSite) testAdvised(t *testing.T) {
	const pool = "slurm-s"
	s.addPool(t, pool, pool+` +slurm 2\S+ +up +4 `, append(s.bySSH(t), "--set", "root=true", "--set", "identity=owner", "--shared", filepath.Join(s.dir, "locks-s"))...)

	large := s.file(t, "large-s.sh", "#SBATCH -N4 --ntasks-per-node=1\necho here\nsrun -l hostname\n")
	s.ok(t, "✓ pool "+pool+": gangs served (strict); expected to start at once; cox submit chooses it\n         ✗ pool local: cannot run it: needs 4 nodes, only 2 qualify\n", "advise", large)
	r := s.cox(t, "submit", large)
	if want := "pool      " + pool + ", slurm is advised: coupled, 4 nodes, bare metal\n"; r.Code != 0 || r.Err != want {
		t.Fatalf("exit %d\n%swant %s%s", r.Code, r.Err, want, r.Out)
	}
	id, _, _ := strings.Cut(r.Out, " ")
	s.ok(t, "", "wait", id, "--quiet")
	s.ok(t, "here", "logs", id)
	s.ok(t, "pool      "+pool+", slurm is advised", "show", id)

	gpus := s.file(t, "gpus-s.sh", "#SBATCH --gres=gpu:h100:1\ntrue\n")
	if r := s.cox(t, "submit", "--wait", gpus); r.Code != 0 || !strings.Contains(r.Err, "pool      "+pool+", the first that can run it\n          not local: needs 1 gpu:h100") {
		t.Errorf("exit %d\n%s%s", r.Code, r.Out, r.Err)
	}
	small := s.file(t, "small-s.sh", "true\n")
	if r := s.cox(t, "submit", "--wait", small); r.Code != 0 || !strings.Contains(r.Err, "pool      local, the first that can run it\n") {
		t.Errorf("exit %d\n%s%s", r.Code, r.Out, r.Err)
	}
	r = s.cox(t, "submit", s.file(t, "huge-s.sh", "#SBATCH -N5\nsrun true\n"))
	if r.Code != 2 || !strings.Contains(r.Err, "--nodes=5: needs 5 nodes, only 2 qualify") || !strings.Contains(r.Err, "pool "+pool+": needs 5 nodes, only 4 qualify") {
		t.Errorf("five nodes: exit %d\n%s%s", r.Code, r.Out, r.Err)
	}

	held := s.ok(t, "submitted", "submit", "--hold", large)
	id, _, _ = strings.Cut(held, " ")
	s.ok(t, "in pool "+pool+": slurm is advised", "why", id)
	s.ok(t, id, "cancel", id)
	s.eventually(t, `main\* +UP`, "pool", "show", pool)
	s.ok(t, "pool "+pool+" is gone", "pool", "remove", pool)

	s.ok(t, "pool slurm-r added", slices.Concat([]string{"pool", "add", "slurm-r", "--engine", "slurm", "--shared", filepath.Join(s.dir, "locks-r")}, s.byREST(t))...)
	s.eventually(t, `main\*? +UP`, "pool", "show", "slurm-r")
	s.ok(t, "pool slurm-r is gone", "pool", "remove", "slurm-r")
}
