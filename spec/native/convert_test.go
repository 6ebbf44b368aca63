package native

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// alike compares what two texts ask for, without where it was read.
func alike(a, b *job.Spec) string {
	x, y := *a, *b
	x.Source, y.Source = job.Source{}, job.Source{}
	x.Env.Export = exportWord(x.Env.Export) // sbatch takes them in either case
	x.Program.ScriptName, y.Program.ScriptName = "", ""
	return cmp.Diff(x, y, cmp.Transformer("utc", func(t time.Time) string { return t.UTC().String() }))
}

// TestPublicScriptsInThisForm: the directives of public sbatch scripts can all be
// said here, and mean the same.
func TestPublicScriptsInThisForm(t *testing.T) {
	f, err := os.Open("../sbatch/testdata/sbatch-headers.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	taken, bad := 0, 0
	for lines.Scan() {
		var h struct {
			Source string   `json:"source"`
			Lines  []string `json:"lines"`
		}
		if err := json.Unmarshal(lines.Bytes(), &h); err != nil {
			t.Fatal(err)
		}
		script := []byte("#!/bin/sh\n" + strings.Join(h.Lines, "\n") + "\ntrue\n")
		s, _, err := sbatch.Parse(spec.Source{Name: "job.sbatch", Data: script}, sbatch.Options{Dir: "/home/ada", Now: now, Mail: true})
		if err != nil {
			continue
		}
		taken++
		out, warnings := Render(s, script)
		back, again, _, err := Parse(spec.Source{Name: "job.yaml", Data: out}, options())
		if err != nil {
			t.Errorf("%s: %v\n%s", h.Source, err, out)
			bad++
			continue
		}
		back.Owner = s.Owner
		if diff := alike(s, back); diff != "" || len(warnings) > 0 || string(again) != "#!/bin/sh\n"+comments(h.Lines)+"true\n" {
			t.Errorf("%s: %v\n%s\n%s\n%s", h.Source, warnings, diff, strings.Join(h.Lines, "\n"), out)
			bad++
		}
		if bad > 5 {
			t.Fatal("and perhaps more")
		}
	}
	if taken < 450 {
		t.Errorf("only %d scripts were compared", taken)
	}
}

// comments are the lines that are no directives, with one empty line less at the top.
func comments(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		if !strings.HasPrefix(l, "#SBATCH") && (strings.TrimSpace(l) != "" || b.Len() > 0) {
			b.WriteString(l + "\n")
		}
	}
	return b.String()
}

// TestRenderedTextIsRead: what Render writes of odd directives is read, and means the same.
func TestRenderedTextIsRead(t *testing.T) {
	for _, option := range []string{
		"--gres=tmpspace:512G", "--gres=gpu:1,nvme:2T", "--gres=disk:8000000T", "--export=ALL,", "--export=,A", "--export=ALL,A=1,", `--export=A="x,y",`, "--export=NONE",
		"--array=1-4%2,7", "-B 2:4:2", "--gres=gpu:a100=2", "--nodes=2-8:2", "-w n[1-4] -N 2", "-N 2 --ntasks-per-node=2 -n 8", "--tres-per-task=gres/fpga:2G",
		"--comment='a: b # c'", "-J '%x'", "--open-mode=append -o 'a b.out'", "-C '[a|b]'", "--signal=B:USR1@60", "--switches=1@10",
	} {
		script := []byte("#!/bin/sh\n#SBATCH " + option + "\ntrue\n")
		s, _, err := sbatch.Parse(spec.Source{Name: "job.sbatch", Data: script}, sbatch.Options{Dir: "/home/ada", Now: now, Mail: true})
		if err != nil {
			t.Errorf("%s: %v", option, err)
			continue
		}
		out, warnings := Render(s, script)
		back, _, _, err := Parse(spec.Source{Name: "job.yaml", Data: out}, options())
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, %v\n%s", option, err, warnings, out)
			continue
		}
		back.Owner = s.Owner
		if diff := alike(s, back); diff != "" {
			t.Errorf("%s: %s", option, diff)
		}
	}
}

func TestDirectivesStayOut(t *testing.T) {
	for from, want := range map[string]string{
		"#!/bin/sh\n#SBATCH -N2\n# why\n#SBATCH -n2\n\nsrun a\n#SBATCH late\n": "#!/bin/sh\n# why\n\nsrun a\n#SBATCH late\n",
		"#!/bin/sh\n#SBATCH -N2\n\n\nsrun a":                                   "#!/bin/sh\nsrun a",
		"#!/bin/sh\n\nsrun a\n":                                                "#!/bin/sh\n\nsrun a\n",
	} {
		if got := string(withoutDirectives([]byte(from))); got != want {
			t.Errorf("%q became %q, want %q", from, got, want)
		}
	}
}

// TestThereAndBack: a job in this form as an sbatch script and back asks for the
// same, as far as sbatch can say it.
func TestThereAndBack(t *testing.T) {
	var files []string
	for _, pattern := range []string{"testdata/good/*.yaml", "../../examples/*.yaml"} {
		list, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, list...)
	}
	whole := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, script, _, err := Parse(spec.Source{Name: file, Data: data}, options())
		if strings.HasPrefix(string(data), "kind: service") || strings.Contains(string(data), "\nkind: service\n") {
			continue // a service is no job; TestService reads it
		}
		if err != nil {
			t.Fatal(err)
		}
		asBatch, lost := sbatch.Render(s, script)
		back, _, err := sbatch.Parse(spec.Source{Name: "job.sbatch", Data: asBatch}, sbatch.Options{Dir: "/home/ada", Owner: s.Owner, Now: now, Mail: true})
		if err != nil {
			t.Errorf("%s: %v\n%s", file, err, asBatch)
			continue
		}
		out, warnings := Render(back, asBatch)
		again, _, _, err := Parse(spec.Source{Name: file, Data: out}, options())
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v %v\n%s", file, err, warnings, out)
			continue
		}
		if len(lost) > 0 || s.Program.Kind == job.Direct {
			continue // a command becomes a script that starts it
		}
		whole++
		if diff := alike(s, again); diff != "" {
			t.Errorf("%s: nothing was said to be lost, but\n%s\n%s", file, diff, asBatch)
		}
	}
	if whole < 2 {
		t.Errorf("only %d of %d files go there and back whole", whole, len(files))
	}
}
