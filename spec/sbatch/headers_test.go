package sbatch

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/spec"
)

// header is one record of testdata/sbatch-headers.jsonl.gz: the #SBATCH lines of
// a public script and how sbatch's own argument rules take them.
type header struct {
	Source   string       `json:"source"`
	Shebang  string       `json:"shebang"`
	Lines    []string     `json:"lines"`
	Accepted bool         `json:"accepted"`
	Problems [][2]string  `json:"problems"`
	Options  [][2]*string `json:"options"`
}

func readHeaders(t testing.TB) []header {
	t.Helper()
	f, err := os.Open("testdata/sbatch-headers.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all []header
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var h header
		if err := json.Unmarshal(lines.Bytes(), &h); err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// script is the header as a batch script; its directives begin on line 2.
func (h header) script() spec.Source {
	return spec.Source{Name: "job.sbatch", Data: []byte("#!/bin/sh\n" + strings.Join(h.Lines, "\n") + "\ntrue\n")}
}

// wants lists the options and problems as the record has them.
func (h header) wants() (options, problems []string) {
	for _, o := range h.Options {
		if o[1] == nil {
			options = append(options, *o[0])
		} else {
			options = append(options, *o[0]+"="+*o[1])
		}
	}
	for _, p := range h.Problems {
		problems = append(problems, p[0]+" "+p[1])
	}
	return options, problems
}

// Every public header is read as sbatch reads it: the same options with the same
// values in the same order, and the same words refused.
func TestHeaders(t *testing.T) {
	headers := readHeaders(t)
	if len(headers) != 600 {
		t.Errorf("%d headers, want 600", len(headers))
	}
	for _, h := range headers {
		script, err := Read(h.script())
		if dos := strings.Contains(strings.Join(h.Lines, ""), "\r"); dos != (err != nil) {
			t.Errorf("%s: DOS line ends %v, but %v", h.Source, dos, err)
		}
		if err != nil { // the record is about the arguments alone
			script = readLines(h.script())
		}
		wantOptions, wantProblems := h.wants()
		var options, unknown, stray []string
		for _, component := range script.Components {
			for _, d := range component {
				o := d.Option
				if d.HasValue {
					o += "=" + d.Value
				}
				options = append(options, o)
			}
		}
		for _, p := range script.Problems {
			if p.Kind == StrayWord { // the record names these last, as getopt does
				stray = append(stray, "stray word "+p.Text)
			} else {
				unknown = append(unknown, map[ProblemKind]string{UnknownOption: "unknown-option", UnwantedArgument: "arg-not-allowed"}[p.Kind]+" "+p.Text)
			}
			if line := h.Lines[p.Line-2]; !strings.HasPrefix(line[p.Col-1:], strings.TrimSuffix(p.Text, "=L")) {
				t.Errorf("%s: %v %q is said to stand at column %d of %q", h.Source, p.Kind, p.Text, p.Col, line)
			}
		}
		problems := append(unknown, stray...)
		if diff := cmp.Diff(wantOptions, options); diff != "" {
			t.Errorf("%s: options differ (-want +got)\n%s", h.Source, diff)
		}
		if diff := cmp.Diff(wantProblems, problems); diff != "" {
			t.Errorf("%s: problems differ (-want +got)\n%s", h.Source, diff)
		}
		if accepted := len(script.Problems) == 0; accepted != h.Accepted {
			t.Errorf("%s: accepted %v, want %v", h.Source, accepted, h.Accepted)
		}
	}
}
