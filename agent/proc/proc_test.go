package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	const rest = " S 42 7 9 0 -1 4194304 577 0 0 0 0 0 0 0 20 0 8 0 123456 1000 200"
	for _, name := range []string{"cox", "a b", "a) R (b", "", "((("} {
		got, err := parseStat("17 (" + name + ")" + rest)
		want := Stat{PID: 17, Name: name, State: 'S', Parent: 42, Session: 9, Start: 123456, Pages: 200}
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", name, got, err, want)
		}
	}
	for _, line := range []string{"", "17 cox S 1", "17 (cox", "17 (cox) S 1 2", "x (cox)" + rest} {
		if got, err := parseStat(line); err == nil {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

func TestProcessesOfATest(t *testing.T) {
	// Another run of this test may be beside it, or its last process be about to go.
	mark := fmt.Sprintf("COX_TEST_MARK=of this test %d.%d", os.Getpid(), time.Now().UnixNano())
	// A shell with a child, and a child of that in a session of its own.
	cmd := exec.Command("sh", "-c", "setsid sleep 600 & echo; wait")
	cmd.Env = append(os.Environ(), mark)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // the child is there
		t.Fatal(err)
	}
	me, err := Read(cmd.Process.Pid)
	if err != nil || me.Parent != os.Getpid() || me.Dead() {
		t.Errorf("%+v, %v", me, err)
	}
	if !Alive(me.PID, me.Start) || Alive(me.PID, me.Start+1) {
		t.Error("a process is its number and its start")
	}
	below, err := Descendants(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	marked, err := Marked(mark)
	if err != nil {
		t.Fatal(err)
	}
	pids := func(all []Stat) (out []int) {
		for _, s := range all {
			out = append(out, s.PID)
		}
		return out
	}
	if len(marked) != 2 || !slices.Contains(pids(marked), me.PID) {
		t.Errorf("marked %+v", marked)
	}
	for _, s := range marked {
		if !slices.Contains(pids(below), s.PID) {
			t.Errorf("%+v is not among the descendants %v", s, pids(below))
		}
		if p, err := os.FindProcess(s.PID); err == nil {
			_ = p.Kill()
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it was killed")
	}
	if _, err := Read(me.PID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read of a dead process: %v", err)
	}
	if Alive(me.PID, me.Start) {
		t.Error("it is dead")
	}
}

func TestBootID(t *testing.T) {
	if id, err := BootID(); err != nil || len(id) != 36 {
		t.Errorf("%q, %v", id, err)
	}
}
