package scontrol

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// changeJobs does one verb to a list of jobs.
func (s *command) changeJobs(word, verb string, args []string) error {
	special := false
	if word == "requeue" || word == "requeuehold" {
		var err error
		if args, special, err = splitState(word, args); err != nil {
			return err
		}
	}
	if len(args) == 0 {
		return plainErrorf("too few arguments for keyword:%s", word)
	}
	sel, err := parseSelection(args)
	if err != nil {
		return err
	}
	var o fastclient.Object
	o.Raw("select", fastclient.Select(sel))
	o.Text("verb", verb)
	o.True("hold", word == "requeuehold")
	o.True("special", special)
	if word == "uhold" || word == "holdu" {
		o.Raw("firm", []byte("false")) // so that its owner may release it
	}
	return s.sendChange(o.End())
}

// splitState takes State=SpecialExit, which is for requeuehold alone, and Incomplete, which has
// no meaning here, from the arguments.
func splitState(word string, args []string) (rest []string, special bool, err error) {
	for _, a := range args {
		name, value, named := strings.Cut(strings.ToLower(a), "=")
		switch {
		case named && name == "state" && word == "requeuehold" && (value == "specialexit" || value == "se"):
			special = true
		case named && name == "state":
			return nil, false, plainErrorf("Invalid job state specified: %s", a)
		case name != "incomplete":
			rest = append(rest, a)
		}
	}
	return rest, special, nil
}

// parseSelection reads job ids, or jobname=NAME.
func parseSelection(args []string) (*api.Select, error) {
	sel := &api.Select{}
	for _, a := range args {
		name, value, named := strings.Cut(a, "=")
		switch low := strings.ToLower(name); {
		case named && (low == "jobname" || low == "name"):
			sel.Names = append(sel.Names, value)
			continue
		case named && (low == "job" || low == "jobid"):
			a = value
		}
		for _, id := range slurmcmd.SplitFilter(a) {
			if _, err := slurmfmt.ParseJobID(id); err != nil {
				return nil, plainErrorf("Invalid job id specified for job %s\nslurm_suspend error: Invalid job id specified", id)
			}
			id, _, _ = strings.Cut(id, "+")
			sel.IDs = append(sel.IDs, id)
		}
	}
	return sel, nil
}

// sendChange asks for a change and reports the jobs that were not changed.
func (s *command) sendChange(body []byte) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	v, err := c.JSON("POST", "/v1/jobs/change", body)
	if err != nil {
		return err
	}
	for _, e := range v.Get("errors").Items() {
		s.Code = 1
		if !s.quiet {
			fmt.Fprintf(s.Err, "%s for job %s\n", inWords(e.Get("error")), e.Get("name").Text())
		}
	}
	if s.Code == 0 && v.Get("matched").Int() == 0 {
		return plainErrorf("Invalid job id specified")
	}
	return nil
}

// inWords is an error of one job in Slurm's words, with ours behind them.
func inWords(e fastclient.Value) string {
	p := api.Error{Status: int(e.Get("status").Int()), Title: e.Get("title").Text()}
	detail := e.Get("detail").Text()
	switch p.FaultKind() {
	case fault.NotFound:
		return "Invalid job id specified"
	case fault.Permission:
		return "Access/permission denied (" + detail + ")"
	case fault.Unsupported: // a requeue of a job that says --no-requeue
		return "Requested operation is presently disabled"
	}
	return detail
}
