package slurm_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	"github.com/coxswain-sched/coxswain/driver/slurm/sbatchargs"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// looked is a stage that says of itself what a look asks for.
type looked struct {
	stage

	is   site.Cluster
	way  site.Look
	me   site.Person
	fail error // of Cluster
	no   error // of a job that is tried
	bare bool  // srun has no pyxis
}

func (l *looked) HasSrunOption(_ context.Context, option string) (bool, error) {
	return !l.bare && option == "--container-image", nil
}
func (l *looked) Cluster(context.Context) (site.Cluster, error) { return l.is, l.fail }
func (l *looked) Look(context.Context) (*site.Look, error)      { return &l.way, nil }
func (l *looked) Me(context.Context) (site.Person, error)       { return l.me, nil }
func (l *looked) Person(_ context.Context, name string) (site.Person, error) {
	return site.Person{Name: name, UID: 1000}, nil
}
func (l *looked) Try(context.Context, *site.Submission) error { return l.no }

// sound is a cluster with which nothing is wrong.
func sound() *looked {
	l := &looked{
		is:  site.Cluster{Name: "stage", Version: "24.11.5", MinAge: 5 * time.Minute, Accounts: true, Comments: true, Tracks: true, Limits: true},
		way: site.Look{Way: "a stage", Clock: true, Settings: map[string]string{"ProctrackType": "proctrack/cgroup", "TaskPlugin": "task/cgroup"}},
		me:  site.Person{Name: "coxsvc", UID: 900, Operator: true},
	}
	l.nodes = []site.Node{{Name: "a1", Available: true, GRES: "gpu:h100:8", Path: []string{"spine", "leaf1"}}, {Name: "a2", Available: true, GRES: "gpu:h100:8", Path: []string{"spine", "leaf2"}}}
	l.stock = &fleet.Inventory{}
	l.stock.Partitions = []fleet.Partition{{Name: "main", Default: true, State: "UP", Nodes: "a[1-2]"}, {Name: "night", State: "DOWN", Nodes: "a1"}}
	return l
}

// check is what a look at a stage finds, one a line.
func check(t *testing.T, l *looked, change func(*slurm.Config)) (string, error) {
	t.Helper()
	dir := t.TempDir()
	cfg := slurm.Config{Root: filepath.Join(dir, "state"), Pool: "b", Site: l, Room: lockdir.OpenLater(filepath.Join(dir, "locks"), func(context.Context) (lockdir.Directory, error) { return lockdir.Open(filepath.Join(dir, "locks")) }), Privileged: true, Identity: slurm.Identity{Mode: slurm.AsOwner}}
	if change != nil {
		change(&cfg)
	}
	e, err := slurm.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	found, err := e.(engine.Checker).Check(t.Context())
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "locks", "check-*")); len(left) > 0 {
		t.Errorf("the look has left %q", left)
	}
	var b strings.Builder
	for _, f := range found {
		b.WriteString(string(f.State) + " " + f.What + ": " + strings.ReplaceAll(f.Text, dir, "DIR") + "\n")
		if f.State == engine.Missing && f.Mend == "" {
			t.Errorf("%s: %s: nothing would mend it", f.What, f.Text)
		}
	}
	return b.String(), err
}

func TestCheckOfASoundCluster(t *testing.T) {
	got, err := check(t, sound(), nil)
	want := `found way in: a stage
found version: Slurm 24.11.5, which is supported
found identity: jobs run as their owners (owner); the cluster is watched as coxsvc
found rights: a job would be taken
found rights: coxsvc may change and suspend everybody's jobs
found partitions: main, night; jobs that name none go to main
found gres: 16 × gpu:h100 on 2 of 2 nodes
found topology: 2 leaves
found accounting: slurmdbd answers for jobs that slurmctld has forgotten
found processes: proctrack/cgroup: none of a job's is lost
found limits: task/cgroup
found MinJobAge: slurmctld knows jobs for 5m0s after their end
found clock: slurmctld's is ours
found containers: srun has pyxis (--container-image)
found locks: DIR/locks: files are created there, and exclusively; that the nodes have it too, cox verify b shows
`
	if err != nil || got != want {
		t.Errorf("a sound cluster: %v\n%s\nwant\n%s", err, got, want)
	}
}

// TestCheckFinds: each thing that is wrong is found, and nothing else changes its state.
func TestCheckFinds(t *testing.T) {
	options := func(opts ...string) func(*slurm.Config) { return func(c *slurm.Config) { c.Options = opts } }
	for name, tt := range map[string]struct {
		of   func(*looked)
		cfg  func(*slurm.Config)
		want string
	}{
		"old":             {func(l *looked) { l.is.Version = "20.11.9" }, nil, "missing version: Slurm 20.11.9 is older than 22.05"},
		"untried":         {func(l *looked) { l.is.Version = "25.05.1" }, nil, "warning version: Slurm 25.05.1 was not tried"},
		"REST alone":      {func(l *looked) { l.way.Lacks, l.way.Settings = "suspending jobs", nil }, nil, "warning way in: slurmrestd alone cannot tell or do: suspending jobs"},
		"refused":         {func(l *looked) { l.no = fault.New(fault.Invalid, "sbatch: Invalid account") }, nil, "missing rights: a job would be refused: sbatch: Invalid account"},
		"no operator":     {func(l *looked) { l.me.Operator = false }, nil, "missing rights: coxsvc is no operator of Slurm"},
		"may not suspend": {func(l *looked) { l.me.Operator = false }, func(c *slurm.Config) { c.Privileged = false }, "warning rights: coxsvc is no operator of Slurm: jobs are not suspended"},
		"could suspend":   {func(*looked) {}, func(c *slurm.Config) { c.Privileged = false }, "warning rights: coxsvc may suspend jobs, and the pool does not"},
		"no partition":    {func(l *looked) { l.stock.Partitions = nil }, nil, "missing partitions: there is none"},
		"no default":      {func(l *looked) { l.stock.Partitions[0].Default = false }, nil, "missing partitions: main, night, and none is the default"},
		"unknown":         {func(*looked) {}, options("--partition=gpu"), "missing partitions: there is no gpu"},
		"closed":          {func(*looked) {}, options("--partition=night"), "warning partitions: night is DOWN: jobs wait"},
		"closed default":  {func(l *looked) { l.stock.Partitions[0].State = "DRAIN" }, nil, "warning partitions: main is DRAIN: jobs wait"},
		"no reservation":  {func(*looked) {}, options("--reservation=r"), "missing reservation: there is no r"},
		"ended": {func(l *looked) {
			l.stock.Reservations = []fleet.Reservation{{Name: "r", End: time.Now().Add(-time.Hour)}}
		}, options("--reservation=r"), "missing reservation: r has ended"},
		"no GPU":        {func(l *looked) { l.nodes[0].GRES, l.nodes[1].GRES = "", "(null)" }, nil, "warning gres: no node has GPUs"},
		"drained":       {func(l *looked) { n := &l.nodes[1]; n.Drained, n.State, n.Reason = true, "idle+drain", "fan" }, nil, "warning nodes: a2: idle+drain fan"},
		"nowhere":       {func(l *looked) { l.nodes[0].Path, l.nodes[1].Path = nil, nil }, nil, "warning topology: where nodes lie is not known"},
		"one nowhere":   {func(l *looked) { l.nodes[1].Path = nil }, nil, "warning topology: 1 leaf, and 1 node in none"},
		"no accounting": {func(l *looked) { l.is.Accounts = false }, nil, "warning accounting: there is none"},
		"no comments":   {func(l *looked) { l.is.Comments = false }, nil, "warning accounting: it does not keep comments"},
		"uid runs as root": {func(l *looked) {
			l.me = site.Person{Name: "root", Operator: true}
			l.way.Settings["AuthType"], l.way.Settings["AuthInfo"] = "auth/slurm", "use_client_ids"
		}, func(c *slurm.Config) { c.Identity.Mode = slurm.AsUID }, "missing identity: this Slurm (AuthInfo=use_client_ids) runs what root submits with sbatch --uid as root"},
		"jobs are private": {func(l *looked) { l.me.Operator, l.way.Settings["PrivateData"] = false, "jobs,users" }, nil, "missing identity: Slurm shows coxsvc no jobs of others (PrivateData=jobs,users)"},
		"descendants":      {func(l *looked) { l.is.Tracks, l.way.Settings["ProctrackType"] = false, "proctrack/linuxproc" }, nil, "warning processes: proctrack/linuxproc follows descendants"},
		"no limits":        {func(l *looked) { l.is.Limits, l.way.Settings["TaskPlugin"] = false, "task/none" }, nil, "warning limits: TaskPlugin=task/none keeps no job"},
		"forgets":          {func(l *looked) { l.is.MinAge = 2 * time.Second }, nil, "warning MinJobAge: slurmctld forgets jobs 2s after their end"},
		"ahead":            {func(l *looked) { l.way.Ahead = time.Minute }, nil, "warning clock: slurmctld's is 1m0s ahead of ours"},
		"behind":           {func(l *looked) { l.way.Ahead = -time.Hour }, nil, "warning clock: slurmctld's is 1h0m0s behind ours"},
		"token": {func(l *looked) {
			l.way.Token = &site.Token{From: "key /k", Life: time.Hour, Left: time.Minute, Renewed: true}
		}, nil, "found token: from key /k, good for 1h0m0s, and renewed"},
		"token of a file":  {func(l *looked) { l.way.Token = &site.Token{From: "file /t", Left: time.Minute, Renewed: true} }, nil, "found token: from file /t, which has to be written anew within 1m0s"},
		"token, given":     {func(l *looked) { l.way.Token = &site.Token{From: "somebody", Left: time.Minute} }, nil, "warning token: from somebody; it runs out in 1m0s, and nobody renews it"},
		"no pyxis":         {func(l *looked) { l.bare = true }, nil, "warning containers: srun has no pyxis"},
		"pyxis is said":    {func(l *looked) { l.bare = true }, func(c *slurm.Config) { c.Containers = sbatchargs.Pyxis }, "missing containers: container_runtime is pyxis, and srun has no"},
		"podman":           {func(l *looked) { l.bare = true }, func(c *slurm.Config) { c.Containers = sbatchargs.Podman }, "found containers: srun starts podman for jobs"},
		"no images":        {func(l *looked) { l.bare = true }, func(c *slurm.Config) { c.Containers = sbatchargs.NoContainers }, "found containers: jobs that name an image are refused"},
		"no lock":          {func(*looked) {}, func(c *slurm.Config) { c.Room = broken{c.Room, errors.New("disk full")} }, "missing locks: DIR/locks: disk full"},
		"locks on nodes":   {func(*looked) {}, func(c *slurm.Config) { c.Room, c.Placed = lockdir.OnNodes("/var/tmp"), true }, "warning locks: in /var/tmp on each node: the server cannot look there"},
		"locks that share": {func(*looked) {}, func(c *slurm.Config) { c.Room = broken{c.Room, nil} }, "missing locks: DIR/locks: a file was created twice"},
	} {
		l := sound()
		tt.of(l)
		got, err := check(t, l, tt.cfg)
		if err != nil || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %v\n%s\nwant %s", name, err, got, tt.want)
		}
		if strings.HasPrefix(tt.want, "found") != (strings.Count(got, "warning ")+strings.Count(got, "missing ") == 0) {
			t.Errorf("%s: other things are found, or nothing:\n%s", name, got)
		}
	}
}

// broken is a directory of locks that creates no file, or each as often as it is asked to.
type broken struct {
	lockdir.Directory

	err error
}

func (b broken) Take(_ context.Context, _, text string) (bool, string, error) {
	return true, text, b.err
}

// TestCheckOfSilence: what does not answer is an error, and no finding.
func TestCheckOfSilence(t *testing.T) {
	l := sound()
	l.fail = fault.New(fault.Unavailable, "no answer")
	if got, err := check(t, l, nil); fault.KindOf(err) != fault.Unavailable || got != "" {
		t.Errorf("found %q, %v", got, err)
	}
}

// TestLater: a directory that cannot be opened is tried again by the next call.
func TestLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "locks")
	tries := 0
	r := lockdir.OpenLater(dir, func(context.Context) (lockdir.Directory, error) {
		if tries++; tries == 1 {
			return nil, os.ErrPermission
		}
		return lockdir.Open(dir)
	})
	if _, err := r.List(t.Context()); !errors.Is(err, os.ErrPermission) || r.Dir() != dir {
		t.Errorf("%s: %v", r.Dir(), err)
	}
	if mine, _, err := r.Take(t.Context(), "a", "x"); err != nil || !mine {
		t.Errorf("%v, %v", mine, err)
	}
	if marks, err := r.Look(t.Context(), []string{"a"}); err != nil || len(marks) != 1 {
		t.Errorf("%v, %v", marks, err)
	}
	if err := r.Remove(t.Context(), "a"); err != nil || tries != 2 {
		t.Errorf("%v after %d tries", err, tries)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.List(ctx); err == nil {
		t.Error("a call whose time is over was answered")
	}
}
