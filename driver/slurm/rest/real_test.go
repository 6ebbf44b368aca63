package rest_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/rest"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// more has accounting keep comments, by which it is searched.
const more = "Licenses=matlab:4\nAccountingStoreFlags=job_comment"

// clusters are the versions of Slurm that the package is tested with, and what their
// slurmrestd offers.
var clusters = map[string]struct {
	lab      lab.Config
	versions []string
}{
	"22.05": {lab.Config{More: more}, []string{"v0.0.38"}},
	"24.11": {lab.Config{More: more, Modern: true}, []string{"v0.0.42", "v0.0.41", "v0.0.40"}},
}

// reach reaches a cluster's slurmrestd in a version; empty: in the best.
func reach(t *testing.T, l *lab.Lab, cfg rest.Config) *rest.Site {
	t.Helper()
	cfg.URL = l.REST()
	if cfg.Tokens == nil {
		cfg.Tokens = &rest.Key{Path: filepath.Join(l.Dir, "jwt.key")}
	}
	s, err := rest.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestReal runs everything on real clusters, in each version of slurmrestd's.
func TestReal(t *testing.T) {
	for name, c := range clusters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := lab.Start(t, c.lab)
			for _, version := range c.versions {
				s := reach(t, l, rest.Config{Version: version})
				t.Run(version, func(t *testing.T) {
					t.Run("Job", func(t *testing.T) { testJob(t, s, version) })
					t.Run("Refused", func(t *testing.T) { testRefused(t, s) })
					t.Run("Signals", func(t *testing.T) { testSignals(t, s, version) })
					t.Run("Update", func(t *testing.T) { testUpdate(t, l, s, version) })
					t.Run("Components", func(t *testing.T) { testComponents(t, s) })
					t.Run("Nodes", func(t *testing.T) { testNodes(t, l, s) })
					if version == c.versions[0] || os.Getenv("COX_LONG") != "" {
						t.Run("Options", func(t *testing.T) { testOptions(t, l, s, version) })
					}
				})
			}
			t.Run("Best", func(t *testing.T) { testBest(t, l, c.versions[0]) })
			t.Run("Tokens", func(t *testing.T) { testTokens(t, l) })
			t.Run("Hangs", func(t *testing.T) { testHangs(t, l) })
			t.Run("Restarts", func(t *testing.T) { testRestarts(t, l) })
		})
	}
}

func await(t *testing.T, s *rest.Site, id uint32, until func(*site.Job) bool) *site.Job {
	t.Helper()
	var last []site.Job
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		all, err := s.Jobs(t.Context(), []uint32{id, 4_000_000})
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 1 && all[0].ID == id && until(&all[0]) {
			return &all[0]
		}
		last = all
	}
	t.Fatalf("job %d did not come so far: %+v", id, last)
	return nil
}

// shared is a directory that the jobs of a cluster can write into.
func shared(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func testJob(t *testing.T, s *rest.Site, version string) {
	ctx, dir := t.Context(), shared(t)
	c, err := s.Cluster(ctx)
	if err != nil || c.Version == "" {
		t.Fatalf("%+v, %v", c, err)
	}
	script := "#!/bin/bash\n#SBATCH -N 2 --time=5 -J nothing\n#SBATCH --mem=200M\n" +
		"[ \"$1 $SAID\" = \"a b it's\" ] || exit 9\ncp \"$0\" copy; echo \"\xe9 <&> \\\\ \\\"\"; env >environment; exit 3\n"
	sub := &site.Submission{
		Script: []byte(script), Args: []string{"a b"}, Env: []string{"SAID=it's", "PATH=/usr/bin:/bin", "LATIN=\xe9"}, Dir: dir,
		Options: []string{"--comment=cox:x:1:1.1 of | \"mine\" <é>", "--output=" + dir + "/out", "--job-name=one two"},
	}
	id, err := s.Submit(ctx, sub)
	if err != nil {
		t.Fatal(err)
	}
	j := await(t, s, id, func(j *site.Job) bool { return j.State.Final() })
	if j.State != site.Failed || j.Exit.Status != 3 || len(j.Nodes) != 2 || j.Comment != "cox:x:1:1.1 of | \"mine\" <é>" || j.User == "" || j.Started.IsZero() || j.Ended.Before(j.Started) || j.Submitted.IsZero() {
		t.Errorf("%+v", j)
	}
	if version != "v0.0.38" && read(t, dir+"/copy") != script {
		t.Errorf("the script arrived as %q", read(t, dir+"/copy"))
	}
	if out := read(t, dir+"/out"); out != "\xe9 <&> \\ \"\n" {
		t.Errorf("it printed %q", out)
	}
	env := strings.Split(read(t, dir+"/environment"), "\n")
	for _, want := range []string{"LATIN=\xe9", "SLURM_SUBMIT_DIR=" + dir, "SLURM_JOB_NAME=one two", "SLURM_JOB_NUM_NODES=2"} {
		if !slices.Contains(env, want) {
			t.Errorf("no %q in its environment", want)
		}
	}
	mine, err := s.Of(ctx, j.User)
	if err != nil || !slices.ContainsFunc(mine, func(o site.Job) bool { return o.ID == id && o.Comment == j.Comment }) {
		t.Errorf("its user's jobs: %v", err)
	}
	past := func(ask func() ([]site.Job, error)) {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) { // accounting lags behind
			past, err := ask()
			if fault.KindOf(err) == fault.Unsupported {
				t.Logf("%v", err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(past, func(p site.Job) bool { return p.ID == id && p.State == site.Failed })
			if i >= 0 && past[i].Comment == j.Comment && past[i].Submitted.Equal(j.Submitted) && (past[i].Exit.Status == 3 || version == "v0.0.38" && past[i].Exit.Status == 1) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("accounting says %+v", past)
			}
		}
	}
	past(func() ([]site.Job, error) { return s.Past(ctx, []uint32{id, 4_000_000}) })
	past(func() ([]site.Job, error) { return s.PastOf(ctx, j.User, j.Submitted.Add(-time.Minute)) })
	if all, err := s.Past(ctx, []uint32{4_000_000}); fault.KindOf(err) != fault.Unsupported && (err != nil || len(all) != 0) {
		t.Errorf("accounting, of an unknown job: %+v, %v", all, err)
	}
}

func testRefused(t *testing.T, s *rest.Site) {
	ctx := t.Context()
	if all, err := s.Jobs(ctx, []uint32{4_000_000}); err != nil || len(all) != 0 {
		t.Errorf("an unknown job: %+v, %v", all, err)
	}
	many := make([]uint32, 500)
	for i := range many {
		many[i] = uint32(4_000_000 + i)
	}
	if all, err := s.Jobs(ctx, many); err != nil || len(all) != 0 {
		t.Errorf("unknown jobs: %+v, %v", all, err)
	}
	if err := s.End(ctx, 4_000_000); err != nil {
		t.Errorf("the end of an unknown job: %v", err)
	}
	if err := s.Signal(ctx, 4_000_000, 10, site.ToAll); err != nil {
		t.Errorf("a signal to an unknown job: %v", err)
	}
	sh := []byte("#!/bin/sh\n")
	if _, err := s.Submit(ctx, &site.Submission{Script: sh, Options: []string{"--partition=nix"}}); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "2000") {
		t.Errorf("a partition that is not there: %v", err)
	}
	if _, err := s.Submit(ctx, &site.Submission{Script: []byte("#!/bin/sh\n#SBATCH --nix\n")}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("an option that is not there: %v", err)
	}
	if _, err := s.Submit(ctx, &site.Submission{Script: []byte("#!/bin/sh\n#SBATCH --bb=x\n")}); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("an option that cannot be said: %v", err)
	}
	if err := s.Suspend(ctx, 4_000_000, true); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("suspended: %v", err)
	}
}

func testSignals(t *testing.T, s *rest.Site, version string) {
	ctx, dir := t.Context(), shared(t)
	run := func(script string) uint32 {
		t.Helper()
		id, err := s.Submit(ctx, &site.Submission{Script: []byte(script), Env: []string{"PATH=/usr/bin:/bin"}, Dir: dir, Options: []string{"--output=" + dir + "/out.%j"}})
		if err != nil {
			t.Fatal(err)
		}
		await(t, s, id, func(j *site.Job) bool { return j.State == site.Running && !j.Completing })
		return id
	}
	ready := func(file string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			if _, err := os.Stat(dir + "/" + file); err == nil {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("no %s", file)
			}
		}
	}
	id := run("#!/bin/sh\nsleep 600\n")
	if err := s.End(ctx, id); err != nil {
		t.Fatal(err)
	}
	if j := await(t, s, id, func(j *site.Job) bool { return j.State.Final() }); j.State != site.Cancelled {
		t.Errorf("ended: %+v", j)
	}
	id = run("#!/bin/bash\ntrap 'exit 7' USR1\ntouch ready.1\nfor i in {1..6000}; do sleep 0.1; done\n")
	ready("ready.1")
	if err := s.Signal(ctx, id, 10, site.ToAll); err != nil {
		t.Fatal(err)
	}
	if j := await(t, s, id, func(j *site.Job) bool { return j.State.Final() }); j.Exit.Status != 7 {
		t.Errorf("signalled: %+v", j)
	}
	id = run("#!/bin/bash\ntrap '' TERM\ntouch ready.2\nfor i in {1..6000}; do sleep 0.1; done\n")
	ready("ready.2")
	err := s.Kill(ctx, id)
	if version == "v0.0.38" {
		if fault.KindOf(err) != fault.Unsupported || fault.KindOf(s.Signal(ctx, id, 10, site.ToBatch)) != fault.Unsupported {
			t.Errorf("killed at once: %v", err)
		}
		if err := s.End(ctx, id); err != nil {
			t.Error(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if j := await(t, s, id, func(j *site.Job) bool { return j.State.Final() }); j.Exit.Signal != 9 || j.Ended.Sub(j.Started) > 20*time.Second {
		t.Errorf("killed: %+v", j)
	}
}

// testUpdate: a job that waits is given another comment, is held and let go.
func testUpdate(t *testing.T, l *lab.Lab, s *rest.Site, version string) {
	ctx := t.Context()
	id, err := s.Submit(ctx, &site.Submission{Script: []byte("#!/bin/sh\nsleep 600\n"), Env: []string{"PATH=/usr/bin:/bin"}, Options: []string{"--output=/dev/null", "--begin=2030-01-01T00:00:00"}})
	if err != nil {
		t.Fatal(err)
	}
	text := "cox:x:2:2.1 of \"mine\""
	if version == "v0.0.38" {
		if err := s.Update(ctx, id, site.Change{Hold: true}); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("held: %v", err)
		}
		if err := s.Update(ctx, id, site.Change{Comment: &text}); err != nil {
			t.Errorf("another comment: %v", err)
		}
		s = reach(t, l, rest.Config{Version: version, Commands: l.Command()})
	}
	if err := s.Update(ctx, id, site.Change{Comment: &text, Hold: true}); err != nil {
		t.Fatal(err)
	}
	if j := await(t, s, id, func(*site.Job) bool { return true }); !j.Held || j.State != site.Pending || j.Comment != text {
		t.Errorf("held: %+v", j)
	}
	if err := s.Update(ctx, id, site.Change{Release: true}); err != nil {
		t.Fatal(err)
	}
	if j := await(t, s, id, func(*site.Job) bool { return true }); j.Held || j.State != site.Pending || j.Comment != text {
		t.Errorf("released: %+v", j)
	}
	if err := s.End(ctx, id); err != nil {
		t.Error(err)
	}
}

// testComponents: a heterogeneous job has a record for each component, found by the first's
// number.
func testComponents(t *testing.T, s *rest.Site) {
	ctx := t.Context()
	id, err := s.Submit(ctx, &site.Submission{
		Script: []byte("#!/bin/sh\n#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n3\nsleep 600\n"), Env: []string{"PATH=/usr/bin:/bin"},
		Options: []string{"--output=/dev/null", "--comment=first"}, Components: [][]string{{"--nodes=2", "--comment=second"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []site.Job
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if all, err = s.Jobs(ctx, []uint32{id}); err != nil {
			t.Fatal(err)
		}
		if len(all) == 2 && all[0].State == site.Running && all[1].State == site.Running {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", all)
		}
	}
	for _, j := range all {
		if first := j.ID == id; j.Het != id || (j.Comment == "first") != first || len(j.Nodes) != map[bool]int{true: 1, false: 2}[first] {
			t.Errorf("%+v", j)
		}
	}
	if err := s.End(ctx, id); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if all, err = s.Jobs(ctx, []uint32{id}); err != nil {
			t.Fatal(err)
		}
		if len(all) == 2 && all[0].State == site.Cancelled && all[1].State == site.Cancelled {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", all)
		}
	}
}

func testNodes(t *testing.T, l *lab.Lab, s *rest.Site) {
	l.Run(t, "scontrol", "update", "nodename="+l.Nodes[0], `comment={"namespace":"slurm","podName":"a","node":"kube-7"}`)
	l.Run(t, "scontrol", "update", "nodename="+l.Nodes[1], `extra={"namespace":"slurm","podName":"b","node":"kube-8"}`)
	nodes, err := s.Nodes(t.Context())
	if err != nil || len(nodes) < 2 || nodes[0].CPUs == 0 || nodes[0].Sockets == 0 || nodes[0].Memory == 0 || len(nodes[0].Parts) == 0 || !nodes[0].Available || !strings.HasPrefix(nodes[0].GRES, "gpu:h100:8") || !slices.Contains(nodes[0].Features, "lab") {
		t.Errorf("%+v, %v", nodes, err)
	}
	for i, n := range nodes {
		want := [...]string{"pod slurm/a on kube-7 (Slinky)", "pod slurm/b on kube-8 (Slinky)"}
		if p, ok := n.Pod(); ok != (i < 2) || ok && p.String() != want[i] {
			t.Errorf("%s is in %s, %v", n.Name, p, ok)
		}
	}
}

// A controller that does not answer costs a deadline. The context ends before that.
func TestNobodyAnswers(t *testing.T) {
	s, err := rest.New(rest.Config{URL: "http://127.0.0.1:9", Tokens: rest.Given("x"), User: "nobody"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := s.Cluster(ctx); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// testBest: without a version, the newest is spoken.
func testBest(t *testing.T, l *lab.Lab, want string) {
	s := reach(t, l, rest.Config{})
	c, err := s.Cluster(t.Context())
	if err != nil || !c.Accounts || !c.Booted.IsZero() && time.Since(c.Booted) > time.Hour { // 22.05 does not say it at first
		t.Errorf("%+v, %v", c, err)
	}
	if err := s.Suspend(t.Context(), 1, true); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("%v", err)
	}
	if err := s.Kill(t.Context(), 4_000_000); (fault.KindOf(err) == fault.Unsupported) != (want == "v0.0.38") {
		t.Errorf("%s: killed at once: %v", want, err)
	}
}

// testTokens: one for each user from a command, one of another user's refused, one that has
// run out told from a job that is not there.
func testTokens(t *testing.T, l *lab.Lab) {
	ctx := t.Context()
	words := append(slices.Clone(l.Inside), "scontrol", "token", "username=%u", "lifespan=60")
	s := reach(t, l, rest.Config{Tokens: &rest.Command{Words: words, Env: l.Env}})
	if _, err := s.Cluster(ctx); err != nil {
		t.Fatal(err)
	}
	id, err := s.Submit(ctx, &site.Submission{Script: []byte("#!/bin/sh\nsleep 600\n"), Options: []string{"--output=/dev/null"}, Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	own := append(slices.Clone(l.Inside), "sh", "-c", "[ %u = nobody ] && exec scontrol token username=nobody lifespan=60")
	theirs := reach(t, l, rest.Config{User: "nobody", Tokens: &rest.Command{Words: own, Env: l.Env}})
	if err := theirs.End(ctx, id); fault.KindOf(err) != fault.Permission {
		t.Errorf("nobody ended a job of root's: %v", err)
	}
	if err := s.End(ctx, id); err != nil {
		t.Error(err)
	}
	id, err = s.Submit(ctx, &site.Submission{Script: []byte("#!/bin/sh\nsleep 600\n"), User: "nobody", Dir: "/", Options: []string{"--output=/dev/null"}, Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	if j := await(t, s, id, func(*site.Job) bool { return true }); j.User != "nobody" {
		t.Errorf("submitted as nobody: %+v", j)
	}
	if err := reach(t, l, rest.Config{User: "daemon"}).End(ctx, id); err != nil { // as its owner
		t.Error(err)
	}
	await(t, s, id, func(j *site.Job) bool { return j.State == site.Cancelled || j.Completing })
	for what, token := range map[string]rest.Issuer{
		"no token": rest.Given("abc"), "of another key": &rest.Key{Path: "/etc/hostname"}, "over": &rest.Key{Path: filepath.Join(l.Dir, "jwt.key"), Life: time.Nanosecond},
	} {
		bad := reach(t, l, rest.Config{Tokens: token})
		if all, err := bad.Jobs(ctx, []uint32{id, 4_000_000}); fault.KindOf(err) != fault.Unavailable || all != nil {
			t.Errorf("%s: jobs %v, %v", what, all, err)
		}
		if all, err := bad.Past(ctx, []uint32{id}); fault.KindOf(err) != fault.Unavailable || all != nil {
			t.Errorf("%s: the past %v, %v", what, all, err)
		}
		if _, err := bad.Submit(ctx, &site.Submission{Script: []byte("#!/bin/sh\n")}); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: submitted: %v", what, err)
		}
		if err := bad.End(ctx, id); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: ended: %v", what, err)
		}
	}
}

// testHangs: a controller that does not answer costs each call its deadline, and the next
// one answers again.
func testHangs(t *testing.T, l *lab.Lab) {
	s := reach(t, l, rest.Config{Deadline: 2 * time.Second})
	if _, err := s.Cluster(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.Freeze(t, "slurmctld")
	frozen := true
	defer func() {
		if frozen {
			l.Thaw(t, "slurmctld")
		}
	}()
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			if all, err := s.Jobs(t.Context(), []uint32{4_000_000}); fault.KindOf(err) != fault.Unavailable {
				t.Errorf("of a controller that hangs: %v, %v", all, err)
			}
		})
	}
	wg.Wait()
	if _, err := s.Of(t.Context(), "root"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("of a controller that hangs: %v", err)
	}
	l.Thaw(t, "slurmctld")
	frozen = false
	again(t, s)
}

// again waits until a cluster answers.
func again(t *testing.T, s *rest.Site) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		var all []site.Job
		if all, err = s.Jobs(t.Context(), []uint32{4_000_000}); err == nil {
			if len(all) != 0 {
				t.Errorf("an unknown job: %v", all)
			}
			return
		}
	}
	t.Fatalf("it does not answer again: %v", err)
}

// testRestarts: what is down is no news, whichever it is.
func testRestarts(t *testing.T, l *lab.Lab) {
	s := reach(t, l, rest.Config{Deadline: 5 * time.Second})
	again(t, s)
	for _, name := range []string{"slurmrestd", "slurmctld"} {
		l.Kill(t, name)
		if all, err := s.Jobs(t.Context(), []uint32{4_000_000}); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s is down: %v, %v", name, all, err)
		}
		if _, err := s.Submit(t.Context(), &site.Submission{Script: []byte("#!/bin/sh\n"), Options: []string{"--output=/dev/null"}}); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s is down: submitted: %v", name, err)
		}
		l.Begin(t, name)
		again(t, s)
	}
	l.Kill(t, "slurmdbd")
	if all, err := s.Past(t.Context(), []uint32{4_000_000}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("slurmdbd is down: %v, %v", all, err)
	}
	l.Begin(t, "slurmdbd")
}
