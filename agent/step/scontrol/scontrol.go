package scontrol

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// Main is scontrol with its arguments (without the command's name), as far
// as it concerns host lists and the allocation that it runs in. The result is its
// exit code.
func Main(args []string, stdio step.Stdio) int {
	out, err := runScontrol(args, os.Getenv, stdio.Err)
	if _, werr := io.WriteString(stdio.Out, out); err == nil && werr != nil {
		err = werr
	}
	if err != nil {
		fmt.Fprintf(stdio.Err, "scontrol: error: %v\n", err)
		return 1
	}
	return 0
}

// scontrolOptions are the options that may stand before the command.
type scontrolOptions struct{ oneLine, details bool }

// runScontrol answers one command.
func runScontrol(args []string, env func(string) string, warn io.Writer) (string, error) {
	var o scontrolOptions
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch args[0] {
		case "-o", "--oneliner":
			o.oneLine = true
		case "-d", "--details":
			o.details = true
		case "-a", "--all", "-Q", "--quiet", "-v", "--verbose", "--local":
		case "-V", "--version":
			return "scontrol of coxswain, as slurm 24.11\n", nil
		case "-h", "--help":
			return scontrolHelp, nil
		default:
			return "", fmt.Errorf("%s: not built yet; scontrol here knows: show hostnames, hostlist, hostlistsorted, job", args[0])
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return scontrolHelp, nil
	}
	word := strings.ToLower(args[0])
	switch {
	case strings.HasPrefix("show", word) && len(word) >= 2:
		return runShow(args[1:], o, env, warn)
	case word == "wait_job":
		return "", nil // an allocation's nodes are ready before anything runs in it
	case word == "version":
		return "scontrol of coxswain, as slurm 24.11\n", nil
	case word == "help":
		return scontrolHelp, nil
	}
	return "", fmt.Errorf("%s: not built yet inside a job; scontrol here knows: show hostnames, hostlist, hostlistsorted, job", args[0])
}

const scontrolHelp = `scontrol [OPTIONS] COMMAND
  show hostnames [LIST]       the names of a list, one a line; default: this job's nodes
  show hostlist NAMES         the short form of names, in their order
  show hostlistsorted NAMES   the short form of names, sorted
  show job [ID]               this job
  -o, --oneliner              a job on one line
`

// runShow answers "show ENTITY [ID]"; ENTITY may be abbreviated and hold the id after
// an equals sign.
func runShow(args []string, o scontrolOptions, env func(string) string, warn io.Writer) (string, error) {
	if len(args) == 0 {
		return "", errors.New("too few arguments for keyword:show")
	}
	if len(args) > 2 { // as many as a shell made of a list with blanks: Slurm reads none of them
		return "", errors.New("too many arguments for keyword:show")
	}
	entity, id, _ := strings.Cut(args[0], "=")
	if len(args) > 1 {
		id = args[1]
	}
	entity = strings.ToLower(entity)
	switch {
	case strings.HasPrefix("hostnames", entity) && len(entity) >= 5:
		if len(args) == 1 && id == "" {
			if id = env("SLURM_JOB_NODELIST"); id == "" {
				id = env("SLURM_NODELIST")
			}
			if id == "" {
				fmt.Fprintln(warn, "scontrol: error: host list is empty")
				return "", nil
			}
		}
		return hostNames(id)
	case strings.HasPrefix("hostlist", entity) && len(entity) >= 5:
		return hostList(id, false)
	case strings.HasPrefix("hostlistsorted", entity) && len(entity) >= 9:
		return hostList(id, true)
	case slices.Contains([]string{"j", "jo", "job", "jobs", "jobid"}, entity):
		a, err := step.LoadOwn("")
		if err != nil {
			return "", err
		}
		if id != "" && id != a.Job.String() && !isArrayTask(a, id) {
			return "", fmt.Errorf("show job %s: only the own job %s can be shown from inside (not built yet: others)", id, a.Job)
		}
		return showJob(a, o), nil
	}
	return "", fmt.Errorf("show %s: not built yet inside a job; scontrol here knows: show hostnames, hostlist, hostlistsorted, job", entity)
}

// isArrayTask reports whether an id such as 8_5 names the allocation's array task.
func isArrayTask(a *step.Alloc, id string) bool {
	return a.Array != nil && id == fmt.Sprintf("%d_%d", a.Array.Job, a.Array.Index)
}

// hostNames prints the names of a list, one a line.
func hostNames(list string) (string, error) {
	names, err := namesOf(list)
	if err != nil || len(names) == 0 {
		return "", err
	}
	return strings.Join(names, "\n") + "\n", nil
}

// hostList prints names in short form, duplicates kept.
func hostList(list string, sorted bool) (string, error) {
	if list == "" {
		return "", errors.New("invalid encode argument")
	}
	names, err := namesOf(list)
	if err != nil {
		return "", err
	}
	if sorted {
		slices.SortStableFunc(names, hostlist.Compare)
	}
	return hostlist.CompressInOrder(names) + "\n", nil
}

// namesOf expands a list, or the lines of a file if it begins with a slash.
func namesOf(list string) ([]string, error) {
	if strings.HasPrefix(list, "/") {
		text, err := os.ReadFile(list)
		if err != nil {
			return nil, err
		}
		list = strings.Join(strings.Fields(string(text)), ",")
	}
	return hostlist.Expand(list)
}
