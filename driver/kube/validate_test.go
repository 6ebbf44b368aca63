package kube

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	amount "github.com/coxswain-sched/coxswain/model/resource"
)

// TestReach: what a job names of files is in the pods, or is refused with the option that names
// it, so that the line of the script is found. Seen to fail with: below that takes /homes for a
// part of /home.
func TestReach(t *testing.T) {
	paths := []Path{{"/home", Volume{Kind: Claim, Name: "home"}}, {"/data", Volume{Kind: NFS, Server: "s", Dir: "/d", ReadOnly: true}}, {"/data/out", Volume{Kind: Host, Dir: "/o"}}, {"/opt", Volume{Kind: OfImage}}}
	spec := func(change func(*job.Spec)) *job.Spec {
		s := &job.Spec{WorkDir: "/home/ada", Source: job.Source{Submit: "/home/ada"}}
		change(s)
		return s
	}
	in := func(dir string) func(*job.Spec) {
		return func(s *job.Spec) { s.WorkDir, s.Source.Submit = dir, dir }
	}
	named := func(dir string) func(*job.Spec) { return func(s *job.Spec) { s.WorkDir = dir } }
	out := func(name string) func(*job.Spec) { return func(s *job.Spec) { s.Output.Stdout = name } }
	laden := func(dir, came string) func(*job.Spec) {
		return func(s *job.Spec) { in(dir)(s); s.Upload = &job.Upload{Dir: came} }
	}
	for name, c := range map[string]struct {
		paths        []Path
		rule         WorkDirRule
		change       func(*job.Spec)
		option, says string // empty: it is taken
	}{
		"on a volume":                    {paths: paths, change: in("/home/ada")},
		"beside one":                     {paths: paths, change: in("/homes/ada"), option: "chdir", says: "/homes/ada is nowhere in the pods: the pool has /data, /data/out, /home, /opt"},
		"empty":                          {paths: paths, rule: WorkDirEmpty, change: in("/w/ada")},
		"no volumes":                     {change: in("/w/ada")},
		"no volumes, refused":            {rule: WorkDirRefused, change: in("/w/ada"), option: "chdir", says: "the pool has no volumes"},
		"named":                          {change: named("/w/ada"), option: "chdir", says: "/w/ada"},
		"named, of the image":            {paths: paths, change: named("/opt/train")},
		"named, everywhere":              {change: named("/tmp")},
		"named by the directory's name":  {change: func(s *job.Spec) { in("/w/ada")(s); s.Source.Given = map[string]string{"chdir": "/w/ada"} }, option: "chdir", says: "/w/ada"},
		"comes with no job":              {rule: WorkDirUpload, change: in("/w/ada"), option: "chdir", says: "/w/ada is nowhere"},
		"made below /tmp":                {rule: WorkDirUpload, change: in("/tmp/ada"), option: "chdir", says: "/tmp/ada is nowhere"},
		"in /tmp":                        {rule: WorkDirUpload, change: in("/tmp")},
		"comes with the job":             {rule: WorkDirUpload, paths: paths, change: laden("/w/ada", "/w/ada")},
		"below what comes":               {rule: WorkDirUpload, paths: paths, change: laden("/w/ada/run", "/w/ada")},
		"beside what comes":              {rule: WorkDirUpload, paths: paths, change: laden("/w/ada", "/w/bob"), option: "chdir", says: "/w/ada is nowhere"},
		"comes where none may":           {paths: paths, change: laden("/w/ada", "/w/ada"), option: "upload", says: "takes no working directory"},
		"comes, and is there":            {rule: WorkDirUpload, paths: paths, change: laden("/home/ada", "/home/ada"), option: "upload", says: "by /home of the pool's paths"},
		"comes around a volume":          {rule: WorkDirUpload, paths: []Path{{Prefix: "/w/ada/data", Volume: Volume{Kind: Host, Dir: "/d"}}}, change: laden("/w/ada", "/w/ada"), option: "upload", says: "/w/ada/data of the pool's paths is in /w/ada"},
		"comes over the image":           {rule: WorkDirUpload, change: laden("/usr/src", "/usr/src"), option: "upload", says: "/usr"},
		"comes over everything":          {rule: WorkDirUpload, change: laden("/", "/"), option: "upload", says: "cannot stand"},
		"output in what comes":           {rule: WorkDirUpload, change: func(s *job.Spec) { laden("/w/ada", "/w/ada")(s); out("/w/ada/x")(s) }},
		"output beside what comes":       {rule: WorkDirUpload, change: func(s *job.Spec) { laden("/w/ada", "/w/ada")(s); out("/w/x")(s) }, option: "output", says: "/w/x is nowhere"},
		"output beside":                  {paths: paths, change: out("/logs/%j.out"), option: "output", says: "/logs/%j.out is nowhere"},
		"output on a volume":             {paths: paths, change: out("/home/%u/%j.out")},
		"output, nowhere":                {paths: paths, change: out("/dev/null")},
		"output climbs":                  {paths: paths, change: out("../../logs/x"), option: "output", says: "/logs/x is nowhere"},
		"output, read-only":              {paths: paths, change: out("/data/x"), option: "output", says: "/data is read-only"},
		"output, a volume in read-only":  {paths: paths, change: out("/data/out/x")},
		"error beside":                   {paths: paths, change: func(s *job.Spec) { s.Output.Stderr = "/logs/x" }, option: "error", says: "/logs/x"},
		"input, read-only":               {paths: paths, change: func(s *job.Spec) { s.Output.Stdin = "/data/x" }},
		"output in what is empty":        {change: func(s *job.Spec) { in("/w/ada")(s); out("log/x")(s) }},
		"output in what is empty, whole": {change: func(s *job.Spec) { in("/w/ada")(s); out("/w/ada/x")(s) }},
		"input in what is empty":         {change: func(s *job.Spec) { in("/w/ada")(s); s.Output.Stdin = "in" }, option: "input", says: "an empty directory stands in the place of /w/ada"},
	} {
		terms := Terms{Paths: c.paths, WorkDir: c.rule}
		err := terms.checkPaths(spec(c.change))
		var f *engine.FieldError
		switch {
		case c.option == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.option != "" && (!errors.As(err, &f) || !slices.Contains(f.Fields, c.option) || !strings.Contains(err.Error(), c.says) || fault.KindOf(err) != fault.Invalid || fault.Remedy(err) == ""):
			t.Errorf("%s: %v (%s; remedy %q)", name, err, fault.KindOf(err), fault.Remedy(err))
		}
	}
}

// TestUploadRoom: the directory that comes with a job has a bound in the pods, which the kubelet
// knows and the crew: that of the settings, or 10 GiB, or what the pod has of disks by what the job
// asks for, if that is more.
//
// Seen to fail with: no bound; what the job asks for not looked at; what a node has taken for what the
// pod of each of its tasks has; what is said of tasks not looked at.
func TestUploadRoom(t *testing.T) {
	for what, x := range map[string]struct {
		set, disk, want int64
		each            int64 // of each of a node's two tasks
		apart           bool  // these have a pod each
	}{
		"nothing is said":              {0, 0, 10 << 30, 0, false},
		"by the settings":              {3 << 30, 0, 3 << 30, 0, false},
		"the job asks for more":        {3 << 30, 5 << 30, 5 << 30, 0, false},
		"the job asks for less":        {3 << 30, 1 << 30, 3 << 30, 0, false},
		"by task, in one pod":          {3 << 30, 1 << 30, 9 << 30, 4 << 30, false},
		"a pod for each task":          {3 << 30, 10 << 30, 5 << 30, 0, true},
		"a pod for each task, by task": {3 << 30, 0, 4 << 30, 4 << 30, true},
		"a pod for each task, by both": {3 << 30, 4 << 30, 6 << 30, 4 << 30, true},
		"a pod for each task, less":    {3 << 30, 5 << 30, 3 << 30, 0, true},
	} {
		s := newStand(t, "n1")
		e := s.open(func(c *Config) { c.Terms.WorkDir, c.Terms.UploadRoom = WorkDirUpload, x.set })
		l := launchOn(1, "n1")
		l.Job.Spec.Upload, l.Job.Spec.WorkDir = &job.Upload{Dir: "/w/ada", Size: 1, Digest: "d"}, "/w/ada"
		g := &l.Job.Spec.Groups[0]
		g.PerNode.Disk, g.PerTask.Disk, g.Tasks.Want = amount.Amount(x.disk), amount.Amount(x.each), 2
		l.Job.Spec.Pod = &job.Pod{PerTask: x.apart}
		nodes, err := e.nodesOf(t.Context(), l.Claims, "default")
		if err != nil {
			t.Fatal(err)
		}
		a := e.renderAttempt(l.Ref, &order{Job: l.Job, Claims: l.Claims, Script: l.Script, Nodes: nodes, Namespace: "default"})
		got := int64(0)
		for _, v := range a.Pods("")[0].Spec.Volumes {
			if v.Name == "upload" && v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil {
				got = v.EmptyDir.SizeLimit.Value()
			}
		}
		if got != x.want || a.UploadRoom != x.want {
			t.Errorf("%s: the volume has %d, the crew %d, want %d", what, got, a.UploadRoom, x.want)
		}
	}
}
