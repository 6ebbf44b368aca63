package intake

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec/route"
)

// TestDetect has the form of each kind of text. A form is the same for every command.
func TestDetect(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		// the end of the name decides, but for a first line #!
		{"a.yaml", "nodes 4", "native"},
		{"a.yml", "command", "native"},
		{"a.JSON", "[]", "native"},
		{"a.yaml", "#!/bin/sh", "sbatch"},
		{"a", "#!/usr/bin/env -S cox run\nname: x\n", "native"},
		{"dir.yaml/a", "#!/bin/sh", "sbatch"},
		// other names do not
		{"train.job", "name: x\ncommand: hostname\n", "native"},
		{"train.sbatch", "name: x\ncommand: hostname\n", "native"},
		{"a.sh", "name: x", "native"},
		{"a.sbatch", "export A=1\n", "sbatch"},
		// the content does
		{"-", "", "sbatch"},
		{"", "", "sbatch"},
		{"a", "#!/bin/sh\nname: x\n", "sbatch"},
		{"a", "\n#!/bin/sh\nname: x\n", "sbatch"},
		{"a", "#SBATCH -N1\nname: x\n", "sbatch"},
		{"a", "\n#SBATCH -N1\n", "sbatch"},
		{"a", "# a comment\n\nname: x\n", "native"},
		{"a", "# a comment\r\n\r\nname: x\r\n", "native"},
		{"a", "---\nname: x\n", "native"},
		{"a", "---\n", "sbatch"},
		{"a", "name: x\n#SBATCH -N1\n", "native"},
		{"-", "{\"name\": \"x\"}", "native"},
		{"a", "  {\"name\": \"x\"}", "native"},
		{"a", "echo hello: world\n", "sbatch"},
		{"a", "export A=b:c\n", "sbatch"},
		{"a", "./run a: b\n", "sbatch"},
		{"a", "a;b: c\n", "sbatch"},
		{"a", "\"name\": x\n", "sbatch"},
		{"a", "name\n", "sbatch"},
	} {
		if got := Detect(c.name, []byte(c.text)); got != c.want {
			t.Errorf("%s %q: %s, want %s", c.name, c.text, got, c.want)
		}
	}
}

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct {
		name         string
		text         Text
		o            Options
		want, remedy string
	}{
		{"an unknown form", Text{Form: "pbs", Name: "a"}, Options{}, `form: "pbs" is none of sbatch, native, manifest, command`, ""},
		{"no command", Text{Form: api.FormCommand}, Options{}, "there is no command to run", "cox submit -N2 -- hostname"},
		{"an empty command", Text{Form: api.FormCommand, Command: []string{""}}, Options{}, "there is no command to run", "cox submit -N2 -- hostname"},
		{"an option without counterpart beside the native form", Text{Form: api.FormNative, Name: "a.yaml", Data: []byte("command: a\n")}, Options{Args: []string{"--ntasks-per-gpu=2"}}, "--ntasks-per-gpu=2 has no counterpart in the native form", "cox convert a.yaml --to sbatch"},
		{"a variable without a value", Text{Form: api.FormNative, Name: "a.yaml", Data: []byte("command: a\n")}, Options{Set: []string{"A"}}, `--env "A" is not NAME=VALUE`, "write --env NAME=VALUE"},
		{"a manifest", Text{Form: api.FormNative, Name: "a.yaml", Data: []byte("apiVersion: v1\nkind: Pod\n")}, Options{}, "a.yaml: this is a manifest for Kubernetes, not a job in the native form", "leave --from out"},
		{"a script without #!", Text{Form: api.FormSbatch, Data: []byte("hostname\n")}, Options{}, "-:1", "make the first line: #!/bin/sh"},
		{"a wrong option", Text{Form: api.FormSbatch, Name: "a", Data: []byte("#!/bin/sh\n#SBATCH --time=x\n")}, Options{}, "a:2:", ""},
	} {
		r, err := Read(c.text, c.o)
		if r != nil || err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(fault.Remedy(err)+err.Error(), c.remedy) {
			t.Errorf("%s: %v; %s", c.name, err, fault.Remedy(err))
		}
	}
}

// TestReadBesideOptions: options, variables and an image of the submission count with every form
// of text, and are not what the text alone asks for.
func TestReadBesideOptions(t *testing.T) {
	o := Options{Args: []string{"-N2", "-t", "10", "--gpus-per-node=4"}, Set: []string{"A=b c"}, Image: "i:1", Dir: "/"}
	for _, text := range []Text{
		{Form: api.FormNative, Name: "a.yaml", Data: []byte("command: a\ntime: 4h\nnodes: 8\ngpus: 1\nenv: {B: c}\n")},
		{Form: api.FormSbatch, Name: "a.sbatch", Data: []byte("#!/bin/sh\n#SBATCH -N 8 -t 4:00:00 --gpus-per-node=1 --container-image=j:2\n")},
		{Form: api.FormCommand, Command: []string{"a"}},
	} {
		r, err := Read(text, o)
		if err != nil {
			t.Fatalf("%s: %v", text.Form, err)
		}
		g := &r.Spec.Groups[0]
		if g.Nodes.Min != 2 || r.Spec.TimeLimit != 10*time.Minute || len(g.PerNode.Devices) != 1 || g.PerNode.Devices[0].Count != 4 || g.Total.DeviceCount() > 0 {
			t.Errorf("%s: %+v, %s", text.Form, g, r.Spec.TimeLimit)
		}
		if r.Spec.Image != "i:1" || r.Spec.Source.Given["container-image"] != "" || !slices.Contains(r.Spec.Env.Set, "A=b c") {
			t.Errorf("%s: image %q, variables %q", text.Form, r.Spec.Image, r.Spec.Env.Set)
		}
		if text.Form == api.FormNative && (r.own.Groups[0].Nodes.Min != 8 || r.own.Image != "") {
			t.Errorf("what the text alone asks for: %+v", r.own)
		}
		if e := r.errorAt("no", "", []string{"nodes"}); !strings.Contains(e.Error(), "command line: --nodes=2: no") {
			t.Errorf("%s: the place of what is refused: %v", text.Form, e)
		}
	}
}

func TestReadAloneRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"x.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\n", "it has no spec"},
		{"x.yaml", "gpuss: 1\ncommand: a\n", "did you mean gpus?"},
		{"x.yaml", "a: [\n", ""},
		{"x.sh", "#!/bin/sh\n#SBATCH --time=x\n", "--time"},
	} {
		r, err := ReadAlone(Text{Form: Detect(c.name, []byte(c.text)), Name: c.name, Data: []byte(c.text)}, now)
		if r != nil || err == nil || !strings.Contains(err.Error()+fault.Remedy(err), c.want) {
			t.Errorf("%s %q: %v; %s", c.name, c.text, err, fault.Remedy(err))
		}
	}
}

// shown are the facts that somebody stated.
func shown(t *testing.T, r *Request) (out []route.Fact) {
	t.Helper()
	f, err := r.Facts()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range f.All() {
		if x.Origin != route.Assumed {
			out = append(out, x)
		}
	}
	return out
}

// TestFactsAreOfTheTextAlone: options around a text change the job and none of its facts, which
// are those of the text read for advice. The request stays as it is.
//
// Seen to fail where facts are taken from the job with its options.
func TestFactsAreOfTheTextAlone(t *testing.T) {
	files, err := filepath.Glob("../../spec/route/testdata/*.job")
	if err != nil || len(files) < 4 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".job")
		text := Text{Form: Detect(name, data), Name: name, Data: data}
		alone, err := ReadAlone(text, now)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		want := shown(t, alone)
		for _, o := range []Options{
			{Dir: "/a"},
			{Dir: "/a", Environ: []string{"A=1", "HOME=/home/anna"}},
			{Dir: "/a", Args: []string{"-N7", "--ntasks-per-node=2", "--comment=c"}},
			{Dir: "/a", Environ: []string{"SBATCH_QOS=low", "SBATCH_TIMELIMIT=10"}},
		} {
			if text.Form == api.FormNative && len(o.Args) > 0 {
				continue
			}
			o.Now, o.ScriptArgs = now, []string{"--lr", "1"}
			r, err := Read(text, o)
			if err != nil {
				t.Fatalf("%s %v: %v", file, o, err)
			}
			before := *r.Spec
			if diff := cmp.Diff(want, shown(t, r)); diff != "" {
				t.Errorf("%s %v: facts (-alone +with options)\n%s", file, o, diff)
			}
			again, err := Read(text, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []*job.Spec{again.Spec, &before} {
				if diff := cmp.Diff(s, r.Spec); diff != "" {
					t.Errorf("%s %v: the facts changed the job\n%s", file, o, diff)
				}
			}
			if diff := cmp.Diff(again.Warnings, r.Warnings); diff != "" {
				t.Errorf("%s %v: the facts changed the warnings\n%s", file, o, diff)
			}
		}
	}
}

// TestStrict: what would only be warned of is refused, in each form and wherever it stands.
func TestStrict(t *testing.T) {
	for _, c := range []struct {
		text Text
		o    Options
		want string // of the warning and of the refusal; empty: neither
	}{
		{Text{Form: api.FormSbatch, Name: "a.sh", Data: []byte("#!/bin/sh\n#SBATCH --hint=nomultithread\n")}, Options{}, "a.sh:2: --hint has no effect here"},
		{Text{Form: api.FormSbatch, Name: "a.sh", Data: []byte("#!/bin/sh\n#SBATCH --uenv=x\n")}, Options{}, "a.sh:2: --uenv"},
		{Text{Form: api.FormSbatch, Name: "a.sh", Data: []byte("#!/bin/sh\n#SBATCH -N1\n")}, Options{}, ""},
		{Text{Form: api.FormSbatch, Name: "a.sh", Data: []byte("#!/bin/sh\n")}, Options{Environ: []string{"SBATCH_PROFILE=all"}}, "SBATCH_PROFILE has no effect here"},
		{Text{Form: api.FormSbatch, Name: "a.sh", Data: []byte("#!/bin/sh\n")}, Options{Args: []string{"--hint=nomultithread"}}, "--hint has no effect here"},
		{Text{Form: api.FormNative, Name: "a.yaml", Data: []byte("command: hostname\nmail: end\n")}, Options{}, "a.yaml:2: mail has no effect here"},
		{Text{Form: api.FormNative, Name: "a.yaml", Data: []byte("command: hostname\n")}, Options{Environ: []string{"SBATCH_PARTITION=gpu", "HOME=/"}}, "SBATCH_PARTITION has no effect here"},
		{Text{Form: api.FormNative, Name: "a.yaml", Data: []byte("command: hostname\n")}, Options{Environ: []string{"HOME=/"}}, ""},
		{Text{Form: api.FormCommand, Command: []string{"hostname"}}, Options{Args: []string{"--hint=nomultithread"}}, "--hint has no effect here"},
	} {
		c.o.Dir, c.o.Now = "/", now
		r, err := Read(c.text, c.o)
		if err != nil {
			t.Errorf("%s: %v", c.text.Data, err)
			continue
		}
		warned := ""
		for _, w := range r.Warnings {
			warned += w.String() + "\n"
		}
		if c.want == "" && warned != "" || !strings.Contains(warned, c.want) {
			t.Errorf("%s%v: warned of %q, want %q", c.text.Data, c.o.Args, warned, c.want)
		}
		c.o.Strict = true
		if _, err := Read(c.text, c.o); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%v, strict: %v, want %q", c.text.Data, c.o.Args, err, c.want)
		}
	}
}

// TestRerunBesideTheText: the option outranks the text; a word that there is not, and a service, are
// refused.
//
// Seen to fail with: a service that takes it.
func TestRerunBesideTheText(t *testing.T) {
	o := Options{Owner: job.Owner{User: "u"}, Dir: "/w", Rerun: job.RerunSameNodes}
	text := Text{Form: api.FormNative, Name: "a.yaml", Data: []byte("rerun: exclude-failed\ncommand: hostname\n")}
	if r, err := Read(text, o); err != nil || r.Spec.Rerun != job.RerunSameNodes {
		t.Errorf("%+v, %v", r, err)
	}
	text.Data = []byte("kind: service\nname: chat\nports: [http]\ncommand: hostname\n")
	if _, err := Read(text, o); err == nil || !strings.Contains(err.Error(), "--same-nodes: each new replica") {
		t.Error(err)
	}
	o.Rerun = "elsewhere"
	if _, err := Read(text, o); err == nil || !strings.Contains(err.Error(), `"elsewhere"`) {
		t.Error(err)
	}
}
