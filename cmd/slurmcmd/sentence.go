package slurmcmd

import (
	"errors"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// Slurm's sentences by what a job was refused for. Wrappers look for them.
var (
	sentenceOfReason = map[reason.Code]string{
		reason.NodeCount:   "Node count specification invalid",
		reason.TooLarge:    "Requested node configuration is not available",
		reason.Constraint:  "Requested node configuration is not available",
		reason.NodeList:    "Invalid node name specified",
		reason.Partition:   "Invalid partition name specified",
		reason.Licenses:    "Invalid license specification",
		reason.Reservation: "Requested reservation is invalid",
		reason.DependNever: "Job dependency problem",
		reason.NodeDown:    "Required node not available (down, drained or reserved)",
		reason.TimeLimit:   "Requested time limit is invalid (missing or exceeds some limit)",
	}
	sentenceOfOption = map[string]string{
		"--partition":   "Invalid partition name specified",
		"--licenses":    "Invalid license specification",
		"--account":     "Invalid account or account/partition combination specified",
		"--qos":         "Invalid qos specification",
		"--reservation": "Requested reservation is invalid",
		"--time":        "Requested time limit is invalid (missing or exceeds some limit)",
		"--array":       "Invalid job array specification",
		"--dependency":  "Job dependency problem",
	}
)

// sentenceOfLimit is Slurm's sentence for every limit of an account, a user or a QOS.
const sentenceOfLimit = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"

// SlurmSentence is what Slurm says of a job that is refused so, with ": " behind it; empty where
// Slurm has no sentence for it. The server's rules begin their messages with the option that
// they refuse.
func SlurmSentence(e *api.Error) string {
	sentence := ""
	if len(e.Reasons) > 0 {
		code := e.Reasons[0].Code
		if sentence = sentenceOfReason[code]; sentence == "" && code.Limit() != "" {
			sentence = sentenceOfLimit
		}
	}
	if sentence == "" {
		option := e.Detail
		if i := strings.IndexAny(option, "=:"); i >= 0 {
			option = option[:i]
		}
		if sentence = sentenceOfOption[option]; option == "--reservation" && e.FaultKind() == fault.Permission {
			sentence = "Access denied to requested reservation"
		}
	}
	if sentence != "" {
		sentence += ": "
	}
	return sentence
}

// AllocationError is the error of a job that srun was refused, in its words: Slurm's sentence
// first. Other errors stay as they are.
func AllocationError(err error) error {
	var e *api.Error
	if !errors.As(err, &e) {
		return err
	}
	sentence := SlurmSentence(e)
	if sentence == "" {
		return err
	}
	message, remedy := e.Detail, e.Remedy
	if len(e.Errors) > 0 {
		p := &e.Errors[0]
		message, remedy = Place(p.File, p.Line)+p.Message, p.Remedy
	}
	return fault.New(e.FaultKind(), "Unable to allocate resources: %s%s", sentence, message).Advise("%s", remedy)
}
