package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// startServer starts a real server in the background: server [ARG of cox up…]. It is
// ended with the script, and so is all that it started.
func startServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: server [ARG…]")
	}
	state := ts.MkAbs("state")
	ts.Defer(func() { endAll(ts) })
	ts.Check(ts.Exec("cox", append([]string{"up", "-d", "--state-dir", state, "--tcp", "none"}, args...)...))
	ts.Setenv("COX_SERVER", "unix://"+filepath.Join(state, "cox.sock"))
}

// endAll kills what the script's commands began and what still lives.
func endAll(ts *testscript.TestScript) {
	for range 100 { // what is killed may have started something
		pids := left(ts)
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				ts.Logf("kill %d: %v", pid, err)
			}
		}
	}
}

// left are the processes that the script's commands began.
func left(ts *testscript.TestScript) (pids []int) {
	mark := "HOME=" + ts.Getenv("HOME") + "\x00"
	procs, err := filepath.Glob("/proc/[0-9]*/environ")
	ts.Check(err)
	for _, p := range procs {
		env, err := os.ReadFile(p)
		if err != nil || !strings.Contains(string(env)+"\x00", mark) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// eventually runs a command until its output matches a pattern: eventually PATTERN
// COMMAND [ARG…]. It is for what follows by itself: the history a moment after a job.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually PATTERN COMMAND [ARG…]")
	}
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	deadline := time.Now().Add(2 * time.Minute)
	for {
		err := ts.Exec(args[1], args[2:]...)
		if err == nil && want.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no match for %q: %v\n%s", args[0], err, ts.ReadFile("stdout"))
		}
		time.Sleep(20 * time.Millisecond) // there is no event to wait for
	}
}
