// Command cox-pod is the first process of every pod of an attempt: see package
// agent/podagent, of which it is the wiring. It is one static binary without a
// Kubernetes client.
//
//	cox-pod run [files] [secrets] [startup]  be a member; COX_POD_INDEX says which. The words say what comes with the attempt
//	cox-pod started        exit 0 once the start barrier is open: the startup probe
//	cox-pod tell JSON      a signal or a stop for the attempt, in the pod of member 0
//	cox-pod ask JSON       a question to the attempt, in the pod of member 0
//	cox-pod receive        take the job's working directory from standard input, in the pod of member 0
//	cox-pod probe COMMAND  run a command as the tasks are run, and exit as it does: a probe of a job that serves
//	cox-pod serves {ready | alive} JSON  such a probe, once the startup probe has passed
//	cox-pod exec           run a command beside the tasks, as frames on its input say
//	cox-ssh                under this name: a server of SSH for one connection (package sshserver)
//	cox-pod install DIR    copy itself and cox-slurm into DIR, with srun and its like
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/agent/sshserver"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func main() {
	if filepath.Base(os.Args[0]) == sshserver.Name {
		os.Exit(sshserver.Main())
	}
	os.Exit(dispatch(os.Args[1:]))
}

func dispatch(args []string) int {
	at, err := podagent.PlaceOf(os.Getenv)
	if err != nil {
		return said(err)
	}
	switch {
	case len(args) > 0 && args[0] == "run" && knowsAll(args[1:]):
		return podagent.Run(at, os.Getenv(podagent.IndexEnv))
	case len(args) == 1 && args[0] == "started":
		if podagent.Started(at) != nil {
			return 1
		}
		return 0
	case len(args) == 2 && args[0] == "tell":
		return said(podagent.Tell(at, []byte(args[1])))
	case len(args) == 2 && args[0] == "ask":
		return said(podagent.Ask(at, []byte(args[1]), os.Stdout))
	case len(args) == 1 && args[0] == "exec":
		return said(podagent.Beside(at, os.Getenv(podagent.IndexEnv), os.Stdin, os.Stdout))
	case len(args) == 3 && args[0] == "serves":
		return said(podagent.Serves(at, os.Getenv(podagent.IndexEnv), args[1], args[2]))
	case len(args) > 1 && args[0] == "probe":
		return said(podagent.Probe(at, os.Getenv(podagent.IndexEnv), args[1:]))
	case len(args) == 1 && args[0] == "receive":
		return said(podagent.Receive(at, os.Stdin))
	case len(args) == 2 && args[0] == "install":
		return said(podagent.Install(args[1]))
	}
	fmt.Fprintln(os.Stderr, "usage: cox-pod {run [files] [secrets] [startup] | started | tell JSON | ask JSON | probe COMMAND | serves {ready | alive} JSON | exec | receive | install DIR}")
	return 2
}

// knowsAll reports whether these words name what this cox-pod can take with an attempt.
func knowsAll(words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains([]string{"files", "secrets", "startup"}, w) })
}

// said prints an error with its remedy, and returns the exit code of its kind.
func said(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "cox-pod: %s\n", podagent.Message(err))
	return fault.KindOf(err).ExitCode()
}
