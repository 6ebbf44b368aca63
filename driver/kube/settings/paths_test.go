package settings_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestReach: what a job names of files is in the pods, or is refused with the option that names
// it, so that the line of the script is found. Seen to fail with: below that takes /homes for a
// part of /home.
func TestReach(t *testing.T) {
	paths := []settings.Path{{Prefix: "/home", Volume: settings.Volume{Kind: settings.Claim, Name: "home"}}, {Prefix: "/data", Volume: settings.Volume{Kind: settings.NFS, Server: "s", Dir: "/d", ReadOnly: true}}, {Prefix: "/data/out", Volume: settings.Volume{Kind: settings.Host, Dir: "/o"}}, {Prefix: "/opt", Volume: settings.Volume{Kind: settings.OfImage}}}
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
		paths        []settings.Path
		rule         settings.WorkDirRule
		change       func(*job.Spec)
		option, says string // empty: it is taken
	}{
		"on a volume":                    {paths: paths, change: in("/home/ada")},
		"beside one":                     {paths: paths, change: in("/homes/ada"), option: "chdir", says: "/homes/ada is nowhere in the pods: the pool has /data, /data/out, /home, /opt"},
		"empty":                          {paths: paths, rule: settings.WorkDirEmpty, change: in("/w/ada")},
		"no volumes":                     {change: in("/w/ada")},
		"no volumes, refused":            {rule: settings.WorkDirRefused, change: in("/w/ada"), option: "chdir", says: "the pool has no volumes"},
		"named":                          {change: named("/w/ada"), option: "chdir", says: "/w/ada"},
		"named, of the image":            {paths: paths, change: named("/opt/train")},
		"named, everywhere":              {change: named("/tmp")},
		"named by the directory's name":  {change: func(s *job.Spec) { in("/w/ada")(s); s.Source.Given = map[string]string{"chdir": "/w/ada"} }, option: "chdir", says: "/w/ada"},
		"comes with no job":              {rule: settings.WorkDirUpload, change: in("/w/ada"), option: "chdir", says: "/w/ada is nowhere"},
		"made below /tmp":                {rule: settings.WorkDirUpload, change: in("/tmp/ada"), option: "chdir", says: "/tmp/ada is nowhere"},
		"in /tmp":                        {rule: settings.WorkDirUpload, change: in("/tmp")},
		"comes with the job":             {rule: settings.WorkDirUpload, paths: paths, change: laden("/w/ada", "/w/ada")},
		"below what comes":               {rule: settings.WorkDirUpload, paths: paths, change: laden("/w/ada/run", "/w/ada")},
		"beside what comes":              {rule: settings.WorkDirUpload, paths: paths, change: laden("/w/ada", "/w/bob"), option: "chdir", says: "/w/ada is nowhere"},
		"comes where none may":           {paths: paths, change: laden("/w/ada", "/w/ada"), option: "upload", says: "takes no working directory"},
		"comes, and is there":            {rule: settings.WorkDirUpload, paths: paths, change: laden("/home/ada", "/home/ada"), option: "upload", says: "by /home of the pool's paths"},
		"comes around a volume":          {rule: settings.WorkDirUpload, paths: []settings.Path{{Prefix: "/w/ada/data", Volume: settings.Volume{Kind: settings.Host, Dir: "/d"}}}, change: laden("/w/ada", "/w/ada"), option: "upload", says: "/w/ada/data of the pool's paths is in /w/ada"},
		"comes over the image":           {rule: settings.WorkDirUpload, change: laden("/usr/src", "/usr/src"), option: "upload", says: "/usr"},
		"comes over everything":          {rule: settings.WorkDirUpload, change: laden("/", "/"), option: "upload", says: "cannot stand"},
		"output in what comes":           {rule: settings.WorkDirUpload, change: func(s *job.Spec) { laden("/w/ada", "/w/ada")(s); out("/w/ada/x")(s) }},
		"output beside what comes":       {rule: settings.WorkDirUpload, change: func(s *job.Spec) { laden("/w/ada", "/w/ada")(s); out("/w/x")(s) }, option: "output", says: "/w/x is nowhere"},
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
		terms := settings.Terms{Paths: c.paths, WorkDir: c.rule}
		err := terms.CheckPaths(spec(c.change))
		var f *engine.FieldError
		switch {
		case c.option == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.option != "" && (!errors.As(err, &f) || !slices.Contains(f.Fields, c.option) || !strings.Contains(err.Error(), c.says) || fault.KindOf(err) != fault.Invalid || fault.Remedy(err) == ""):
			t.Errorf("%s: %v (%s; remedy %q)", name, err, fault.KindOf(err), fault.Remedy(err))
		}
	}
}
