package slurmtest

import (
	"os"
	"strings"
	"testing"
)

// Scripts, variables and command lines are laid over each other alike. Each line of
// testdata/layers.txt is SCRIPT | VARIABLES | ARGUMENTS, and behind a tab why it is
// read otherwise.
func TestLayers(t *testing.T) {
	l := openLab(t)
	data, err := os.ReadFile("testdata/layers.txt")
	if err != nil {
		t.Fatal(err)
	}
	compared, refused := 0, 0
	for line := range strings.SplitSeq(strings.TrimSuffix(string(data), "\n"), "\n") {
		if line == "" || strings.HasPrefix(line, "## ") {
			continue
		}
		all, why, _ := strings.Cut(line, "\t")
		part := strings.Split(all, "|")
		if len(part) != 3 {
			t.Fatalf("%q has %d parts", line, len(part))
		}
		text := "#!/bin/sh\n#SBATCH " + strings.ReplaceAll(strings.TrimSpace(part[0]), "⏎", "\n") + "\ntrue\n"
		vars, args := strings.Fields(part[1]), strings.Fields(part[2])
		s, ours := l.parseWith(text, true, vars, args)
		got, r := l.with(vars).hold(t, text, args...)
		var diff []string
		switch {
		case r.code == 0 && len(ours) == 0:
			var n int
			n, diff = l.compare(t, s, got)
			compared += n
		case agree(complaint(t, r), ours):
			refused++
		default:
			diff = []string{"sbatch: " + complaint(t, r).String() + ", here: " + join(ours)}
		}
		switch {
		case why != "" && len(diff) == 0:
			t.Errorf("%q is listed as a difference, but there is none", all)
		case why != "":
			t.Logf("%q: %s: %s", all, strings.Join(diff, "; "), why)
		case len(diff) > 0:
			t.Errorf("%q: %s\n%s", all, strings.Join(diff, "; "), r.stderr)
		}
	}
	t.Logf("%d fields compared, %d lines refused by both", compared, refused)
}

// with is the lab with more variables.
func (l *lab) with(vars []string) *lab {
	return &lab{env: append(append([]string{}, l.env...), vars...), dir: l.dir}
}
