package scontrol

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/reason"
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
	return s.sendChange(verb, "", o.End())
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

// sendChange asks for a change and reports the jobs that were not changed. sentence is what
// Slurm says of the field that is changed; empty: several are, or none.
func (s *command) sendChange(verb, sentence string, body []byte) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	v, err := c.JSON("POST", "/v1/jobs/change", body)
	if err != nil {
		if kind := fault.KindOf(err); sentence != "" && (kind == fault.Invalid || kind == fault.NotFound) {
			return fault.New(kind, "%s (%w)", sentence, err).Advise("%s", fault.Remedy(err))
		}
		return err
	}
	for _, e := range v.Get("errors").Items() {
		s.Code = 1
		if !s.quiet {
			name := e.Get("name").Text()
			fmt.Fprintf(s.Err, "%s for job %s\n", s.errorWords(e.Get("error"), verb, sentence, name), name)
		}
	}
	if s.Code == 0 && v.Get("matched").Int() == 0 {
		return plainErrorf("Invalid job id specified")
	}
	return nil
}

// errorWords is an error of one job in Slurm's words, with ours behind them.
func (s *command) errorWords(e fastclient.Value, verb, sentence, name string) string {
	p := api.Error{Status: int(e.Get("status").Int()), Title: e.Get("title").Text(), Detail: e.Get("detail").Text()}
	for _, r := range e.Get("reasons").Items() {
		p.Reasons = append(p.Reasons, reason.Reason{Code: reason.Code(r.Get("code").Text())})
	}
	words := strings.TrimSuffix(slurmcmd.SlurmSentence(&p), ": ")
	switch p.FaultKind() {
	case fault.NotFound:
		return "Invalid job id specified"
	case fault.Permission:
		words = "Access/permission denied"
	case fault.Unsupported: // a requeue of a job that says --no-requeue
		return "Requested operation is presently disabled"
	case fault.Conflict:
		if of := s.sentenceOfState(verb, name); of != "" {
			words = of
		}
	}
	if words == "" {
		words = sentence
	}
	if words == "" {
		return p.Detail
	}
	return words + " (" + p.Detail + ")"
}

// sentenceOfState is what Slurm says of a job whose state does not allow what was asked of it;
// empty: the state is not why.
func (s *command) sentenceOfState(verb, name string) string {
	c, err := s.Client()
	if err != nil {
		return ""
	}
	v, err := c.JSON("GET", "/v1/jobs/"+fastclient.Segment(name), nil)
	if err != nil {
		return ""
	}
	state := v.Get("state").Text()
	switch {
	case state == "PENDING" && (verb == "suspend" || verb == "resume" || verb == "requeue"):
		return "Job is pending execution"
	case state == "RUNNING" && verb == "resume":
		return "Job is not suspended"
	case state == "PENDING" || state == "RUNNING" || state == "SUSPENDED":
		return ""
	case verb == "hold" || verb == "release" || verb == "update":
		return "Job has already finished"
	}
	return "Job/step already completing or completed"
}
