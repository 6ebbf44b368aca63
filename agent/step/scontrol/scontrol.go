package scontrol

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/model/getopt"
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
		prefix := "scontrol: error: "
		if keyword := (*keywordError)(nil); errors.As(err, &keyword) {
			prefix = ""
		}
		fmt.Fprintf(stdio.Err, "%s%v\n", prefix, err)
		return 1
	}
	return 0
}

// scontrolOptions are the options that have an effect here.
type scontrolOptions struct{ oneLine, details, help, version, cluster bool }

// table lists scontrol's options. Those of clusters and of what is shown beside the job have no
// effect on host lists and the own job.
var table = getopt.List{
	{Long: "all", Short: 'a'},
	{Long: "clusters", Short: 'M', Arg: getopt.Required},
	{Long: "cluster", Arg: getopt.Required, Same: "clusters"},
	{Long: "details", Short: 'd'},
	{Long: "federation"},
	{Long: "future", Short: 'F'},
	{Long: "help", Short: 'h'},
	{Long: "hide"},
	{Long: "json", Arg: getopt.Optional},
	{Long: "local"},
	{Long: "oneliner", Short: 'o'},
	{Long: "quiet", Short: 'Q'},
	{Long: "sibling"},
	{Long: "uid", Short: 'u', Arg: getopt.Required},
	{Long: "usage", Same: "help"},
	{Long: "verbose", Short: 'v'},
	{Long: "version", Short: 'V'},
	{Long: "yaml", Arg: getopt.Optional},
}

// isServed reports whether an option can be taken without a server.
func isServed(name string) bool { return name != "json" && name != "yaml" && name != "uid" }

// Words are the command and its arguments, without options. cluster reports whether a cluster
// was named, served whether every option is one that needs no server.
func Words(args []string) (words []string, cluster, served bool) {
	words, o, err := parseOptions(args)
	return words, o.cluster, err == nil
}

// parseOptions takes the options from a command line.
func parseOptions(args []string) (words []string, o scontrolOptions, err error) {
	scan := getopt.New(table, args)
	for {
		it := scan.Next()
		switch it.Kind {
		case getopt.End:
			return words, o, nil
		case getopt.Terminator:
			return append(words, args[it.Next:]...), o, nil
		case getopt.Plain:
			words = append(words, args[it.Word])
			continue
		case getopt.Found:
		default:
			return nil, o, it.Err()
		}
		name := it.Option.Canonical()
		if !isServed(name) {
			return nil, o, fmt.Errorf("--%s: not built yet; scontrol here knows: show hostnames, hostlist, hostlistsorted, job", name)
		}
		switch name {
		case "oneliner":
			o.oneLine = true
		case "details":
			o.details = true
		case "help":
			o.help = true
		case "clusters":
			o.cluster = true
		case "version":
			o.version = true
		}
	}
}

// keywordError is a mistake in a command's words, which Slurm prints without a prefix.
type keywordError struct{ text string }

// Error is the text.
func (e *keywordError) Error() string { return e.text }

// runScontrol answers one command.
func runScontrol(args []string, env func(string) string, warn io.Writer) (string, error) {
	args, o, err := parseOptions(args)
	switch {
	case err != nil:
		return "", err
	case o.version:
		return "scontrol of coxswain, as slurm 24.11\n", nil
	case o.help:
		return scontrolHelp, nil
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
		return "", &keywordError{"too few arguments for keyword:show"}
	}
	if len(args) > 2 { // as many as a shell made of a list with blanks: Slurm reads none of them
		return "", &keywordError{"too many arguments for keyword:show"}
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
