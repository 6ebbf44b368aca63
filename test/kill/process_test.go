package killtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// supervisor is one, as /proc shows it.
type supervisor struct {
	pid int
	dir string // of its seat
}

// processes calls f with every process and its arguments.
func processes(f func(pid int, args []string)) {
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			continue
		}
		if b, err := os.ReadFile(name + "/cmdline"); err == nil && len(b) > 0 {
			f(pid, strings.Split(strings.TrimRight(string(b), "\x00"), "\x00"))
		}
	}
}

// supervisors are those of a state directory, by age of their numbers.
func supervisors(state string) (out []supervisor) {
	processes(func(pid int, args []string) {
		if len(args) > 2 && args[1] == "supervise" && strings.HasPrefix(args[2], state+"/") {
			out = append(out, supervisor{pid, args[2]})
		}
	})
	return out
}

// marked are the processes whose environment has a variable.
func marked(variable string) (pids []int) {
	mark := []byte("\x00" + variable + "\x00")
	processes(func(pid int, _ []string) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && bytes.Contains(append([]byte{0}, b...), mark) && state(pid) != 'Z' {
			pids = append(pids, pid)
		}
	})
	return pids
}

// describe names processes.
func describe(pids []int) string {
	var out []string
	for _, pid := range pids {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		out = append(out, fmt.Sprintf("%d (%c) %s", pid, state(pid), strings.ReplaceAll(strings.TrimRight(string(b), "\x00"), "\x00", " ")))
	}
	return strings.Join(out, "; ")
}

// state is a process's state as in /proc/PID/stat; 'X' if there is none.
func state(pid int) byte {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if i := bytes.LastIndexByte(b, ')'); err == nil && i > 0 && len(b) > i+2 {
		return b[i+2]
	}
	return 'X'
}

// freeze stops a process and waits until it has. It reports whether it is there.
func freeze(pid int) bool {
	if unix.Kill(pid, unix.SIGSTOP) != nil {
		return false
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		switch state(pid) {
		case 'T':
			return true
		case 'X', 'Z':
			return false
		}
	}
	return false
}

// sits is the attempt that sits at a supervisor, by its journal.
func (s supervisor) sits() (ref engine.Ref, ok bool) {
	f, err := os.Open(filepath.Join(s.dir, "journal"))
	if err != nil {
		return ref, false
	}
	defer f.Close()
	in := bufio.NewReader(f)
	for {
		line, err := in.ReadBytes('\n')
		var r attempt.Record
		if err != nil || json.Unmarshal(line, &r) != nil {
			return ref, ok
		}
		if r.Kind == attempt.KindTake {
			ref, ok = r.Ref, true
		}
	}
}

// launched maps attempts to jobs, as far as the engine's log still has them.
func launched(state string) map[engine.Ref]job.ID {
	out := map[engine.Ref]job.ID{}
	f, err := os.Open(attempt.LogOf(filepath.Join(state, "engine")))
	if err != nil {
		return out
	}
	defer f.Close()
	in := bufio.NewReader(f)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return out
		}
		var e struct {
			Kind   attempt.EntryKind `json:"kind"`
			Ref    engine.Ref        `json:"ref"`
			Launch struct {
				Job struct {
					ID job.ID `json:"id"`
				} `json:"job"`
			} `json:"launch"`
		}
		if json.Unmarshal(line, &e) == nil && e.Kind == attempt.EntryLaunch {
			out[e.Ref] = e.Launch.Job.ID
		}
	}
}

// sweep kills what is left of a state directory.
func sweep(dir string) {
	for range 100 { // what is killed may have started something
		var left []int
		for _, s := range supervisors(dir) {
			left = append(left, s.pid)
		}
		processes(func(pid int, _ []string) {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			if err == nil && bytes.Contains(b, []byte(attempt.MarkVariable+"="+dir+"/")) && state(pid) != 'Z' {
				left = append(left, pid)
			}
		})
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(pollEvery)
	}
}
