package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// TestLinkedPackages: what costs start-up time stays out of this binary.
func TestLinkedPackages(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range strings.Fields(string(out)) {
		for _, costly := range []string{"net/http", "crypto/tls", "github.com/spf13", "charm.land", "modernc.org", "github.com/danielgtaylor", "log/syslog", "html/template", "text/template", "google.golang.org"} {
			if p == costly || strings.HasPrefix(p, costly+"/") {
				t.Errorf("%s is linked", p)
			}
		}
	}
}

// maxInit is how much all packages together may take to initialise, ms. It is about
// 0.5 on the machine that this was written on.
const maxInit = 2.0

// TestStart: initialisation stays short. The least of several starts counts, since
// the machine may be busy.
func TestStart(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "cox-slurm")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	least, worst := 1e9, ""
	for range 10 {
		cmd := exec.Command(bin, "squeue", "--version")
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		var errs strings.Builder
		cmd.Stderr = &errs
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		sum, n := 0.0, 0
		for _, l := range strings.Split(errs.String(), "\n") {
			// init encoding/json @0.85 ms, 0.006 ms clock, 32 bytes, 2 allocs
			if f := strings.Fields(l); len(f) > 5 && f[0] == "init" {
				ms, err := strconv.ParseFloat(f[4], 64)
				if err != nil {
					t.Fatal(l)
				}
				sum += ms
				n++
			}
		}
		if n < 5 {
			t.Fatalf("only %d packages are traced:\n%s", n, errs.String())
		}
		if sum < least {
			least, worst = sum, errs.String()
		}
	}
	if least > maxInit {
		t.Errorf("packages initialise in %.2f ms, more than %.1f:\n%s", least, maxInit, worst)
	}
}

// TestNames: the binary is chosen by its name or its first argument.
func TestNames(t *testing.T) {
	for _, name := range slurmfmt.Commands {
		if _, ok := call(name, []string{"--version"}); !ok {
			t.Errorf("%s is not known", name)
		}
	}
	if _, ok := call("ls", nil); ok {
		t.Error("ls is taken for a command")
	}
}

// TestOwnScontrol: which questions need no server.
func TestOwnScontrol(t *testing.T) {
	t.Setenv("SLURM_JOB_ID", "7")
	for line, want := range map[string]bool{
		"show hostnames n[1-2]": true, "show hostlist n1,n2": true, "sho hostlistsorted n1": true, "-o show hostname": true,
		"show job": true, "show job 7": true, "show job=7": true, "-d show job 7": true, "wait_job 7": true,
		"show job 8": false, "show node": false, "hold 7": false, "": false, "-M x show job": false, "update job=7": false,
	} {
		if got := ownScontrol(strings.Fields(line), true); got != want {
			t.Errorf("scontrol %s: %v, want %v", line, got, want)
		}
	}
	if ownScontrol([]string{"show", "job", "7"}, false) {
		t.Error("outside of a job show job needs the server")
	}
}
