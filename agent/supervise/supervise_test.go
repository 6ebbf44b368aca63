package supervise

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

func TestInterpreterLine(t *testing.T) {
	for line, want := range map[string][]string{
		"#!/bin/sh":                 {"/bin/sh"},
		"#! /bin/sh":                {"/bin/sh"},
		"#!/bin/sh -e":              {"/bin/sh", "-e"},
		"#!/bin/sh\t-e -u ":         {"/bin/sh", "-e -u"}, // one argument, as the kernel has it
		"#!  /usr/bin/env  python3": {"/usr/bin/env", "python3"},
		"#!/bin/sh\r":               nil,
		"#!":                        nil,
		"#!/no/such/shell":          nil,
		"echo":                      nil,
		"":                          nil,
	} {
		const name = "/a/script"
		var p program
		err := p.resolveScript([]byte(line+"\necho hello\n"), name, job.Program{Args: []string{"x"}})
		if want == nil {
			if err == nil {
				t.Errorf("%q: %q", line, p.args)
			}
			continue
		}
		if want := append(want, name, "x"); err != nil || !slices.Equal(p.args, want) || p.path != want[0] {
			t.Errorf("%q: %q, %v; want %q", line, p.args, err, want)
		}
	}
}

func TestOutputNames(t *testing.T) {
	l := &attempt.Launch{
		Ref: engine.Ref{Allocation: 1, Attempt: 1},
		Job: &job.Job{ID: 42, Spec: &job.Spec{
			Name: "n", Owner: job.Owner{User: "anna"}, Program: job.Program{ScriptName: "s.sh"},
		}},
		Nodes: []fleet.Node{{Name: "gpu1.example"}},
	}
	for pattern, want := range map[string]string{
		"%x-%j": "n-42", "%5j": "00042", "%u@%N": "anna@gpu1", "100%%": "100%", "%A_%a": "42_4294967294", "%q": "%q",
	} {
		if got := expandName(pattern, l); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
	l.Job.Array = &job.ArrayTask{Job: 40, Index: 2}
	l.Nodes[0].Name = "127.3.4.5"
	if got := expandName("%A_%a-%j-%N", l); got != "40_2-42-127.3.4.5" {
		t.Errorf("of an array: %s", got)
	}
}

// TestFolderNamedAfterTheJob: the first attempt waits for an output folder that is named after the job,
// since it cannot be made before the number is known, and for no other.
//
// Seen to fail with: no wait, and a wait for every folder.
func TestFolderNamedAfterTheJob(t *testing.T) {
	for pattern, want := range map[string][]string{
		"log/%j/out": {"/w/log/42"}, "/log/%x-%A/%t.out": {"/log/n-42"}, "log/%j.out": nil, "": nil, "100%%/out": nil,
	} {
		l := &attempt.Launch{
			Job:   &job.Job{ID: 42, Spec: &job.Spec{Name: "n", WorkDir: "/w", Output: job.Output{Stdout: pattern}}},
			Nodes: []fleet.Node{{Name: "v1"}},
		}
		if got := namedFolders(l); !slices.Equal(got, want) {
			t.Errorf("%q: waits for %q, want %q", pattern, got, want)
		}
	}
	for after, want := range map[time.Duration]time.Duration{0: 0, time.Second: time.Second, time.Hour: folderWait} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			awaitFolder(func() bool { return time.Since(began) >= after })
			if waited := time.Since(began); waited != want {
				t.Errorf("a folder that is made after %s was awaited for %s, want %s", after, waited, want)
			}
		})
	}
}

func TestDeadlines(t *testing.T) {
	now := time.Now()
	var d deadlines
	if !d.next().IsZero() {
		t.Error("a deadline out of nothing")
	}
	d.limit, d.kill = now.Add(2*time.Second), now.Add(time.Second)
	if !d.next().Equal(d.kill) {
		t.Errorf("next %s", d.next())
	}
	if takeIfDue(&d.kill, now) || !takeIfDue(&d.kill, now.Add(time.Second)) || takeIfDue(&d.kill, now.Add(time.Hour)) {
		t.Error("a deadline passes once, when it is time")
	}
}
