package sbatch

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommand(t *testing.T) {
	for _, c := range []struct {
		args, environ, options, script string
		want                           CommandOptions
	}{
		{"job.sh a -n 2", "", "", "job.sh a -n 2", CommandOptions{}},
		{"-n 2 --parsable job.sh -N 3", "", "-n 2 --parsable", "job.sh -N 3", CommandOptions{Parsable: true}},
		{"-HWn2 -t 5 job.sh", "", "-HWn2 -t 5", "job.sh", CommandOptions{Wait: true}},
		{"--time 5 --nice --nice=3 job.sh", "", "--time 5 --nice --nice=3", "job.sh", CommandOptions{}},
		{"--deadl 5 --exclusive user", "", "--deadl 5 --exclusive", "user", CommandOptions{}},
		{"--container-image x job.sh", "", "--container-image x", "job.sh", CommandOptions{}},
		{"-n1 : -n2 job.sh", "", "-n1 : -n2", "job.sh", CommandOptions{}},
		{"-vvQ --test-only -- -job.sh x", "", "-vvQ --test-only", "-job.sh x", CommandOptions{Verbose: 2, Quiet: true, TestOnly: true}},
		{"- a", "", "", "- a", CommandOptions{}},
		{"--wrap=ls -M a,b", "", "--wrap=ls -M a,b", "", CommandOptions{Wrapped: true, Wrap: "ls", Clusters: []string{"a", "b"}}},
		{"--wrap=", "", "--wrap=", "", CommandOptions{Wrapped: true}},
		{"-h --usage -V", "", "-h --usage -V", "", CommandOptions{Help: true, Usage: true, Version: true}},
		{"job.sh", "SBATCH_WAIT=1 SBATCH_DEBUG=1 SBATCH_CLUSTERS=x", "", "job.sh", CommandOptions{Wait: true, Verbose: 1, Clusters: []string{"x"}}},
		{"job.sh", "SBATCH_WAIT=0", "", "job.sh", CommandOptions{}},
	} {
		got, err := Command(strings.Fields(c.args), strings.Fields(c.environ))
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
		}
		if o, s := strings.Join(got.Options, " "), strings.Join(got.Script, " "); o != c.options || s != c.script {
			t.Errorf("%s: options %q, script %q; want %q, %q", c.args, o, s, c.options, c.script)
		}
		if diff := cmp.Diff(c.want, got.CommandOptions); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.args, diff)
		}
	}
	_, err := Command([]string{"--wrap=ls", "job.sh"}, nil)
	if err == nil || !strings.Contains(err.Error(), "--wrap and a script exclude each other") {
		t.Errorf("--wrap and a script: %v", err)
	}
}

// What a script's own lines ask of the command: some count, as in sbatch.
func TestCommandOptionsOfAScript(t *testing.T) {
	src := source("#!/bin/sh\n#SBATCH --parsable --wait -Q -v --wrap=ls\n#SBATCH --test-only\ntrue\n")
	r, err := ParseAll(src, Options{Dir: "/d", Args: []string{"-v"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(CommandOptions{Parsable: true, Wait: true, TestOnly: true, Verbose: 1}, r.Command); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
