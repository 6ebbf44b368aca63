package ownlimit

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-sched/coxswain/model/rlimit"
)

// TestMain lets the test binary print the limits that it finds.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "print" {
		for _, l := range Read() {
			fmt.Println(l)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestLimitsOfTheCaller reads the limits that a shell set, and of open files what the shell set,
// not what Go made of it.
func TestLimitsOfTheCaller(t *testing.T) {
	out, err := exec.Command("sh", "-c", `ulimit -Sn 123 && ulimit -Sc 0 && ulimit -Ss 4096 && exec "$0" print`, os.Args[0]).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"NOFILE=123\n", "CORE=0\n", "STACK=4194304\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %s in\n%s", strings.TrimSpace(want), out)
		}
	}
	if n := strings.Count(string(out), "\n"); n != len(rlimit.Kinds) {
		t.Errorf("%d limits:\n%s", n, out)
	}
}

// TestBind keeps what would change something, within the hard limit.
func TestBind(t *testing.T) {
	own := Read()
	if got := Bind(own); len(got) != 0 {
		t.Errorf("own limits change %v", got)
	}
	var have syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &have); err != nil {
		t.Fatal(err)
	}
	nofile := rlimit.Limit{Kind: rlimit.Kinds[7], Soft: 77}
	if got := Bind([]rlimit.Limit{nofile}); len(got) != 1 || got[0] != nofile {
		t.Errorf("77 open files: %v", got)
	}
	nofile.Soft = rlimit.Unlimited
	for _, l := range Bind([]rlimit.Limit{nofile}) {
		if l.Soft != have.Max {
			t.Errorf("%v is above the hard limit %d", l, have.Max)
		}
	}
}
