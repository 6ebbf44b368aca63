package model

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store"
)

// Sentences of a story. "attempt 12.1" is the first attempt of its job, on the
// allocation 12.

func (f Now) String() string { return "it is " + f.At.UTC().Format("2006-01-02 15:04:05.000") }

func (f Jumped) String() string { return fmt.Sprintf("the clock is set by %s", f.By) }

func (f Machine) String() string {
	n := f.Node
	text := fmt.Sprintf("node %s is %s", n.Name, n.State)
	if n.Why != "" {
		text += " (" + n.Why + ")"
	}
	text += fmt.Sprintf(": %d CPUs, %d MiB", n.Capacity.CPU/1000, n.Capacity.Memory>>20)
	if k := len(n.Devices); k > 0 {
		text += fmt.Sprintf(", %d devices", k)
	}
	return text
}

func (f Launched) String() string {
	return fmt.Sprintf("the engine takes attempt %s of job %d on %s", f.Ref, f.Job, formatClaims(f.Claims))
}

func (f Began) String() string   { return fmt.Sprintf("attempt %s begins on %s", f.Ref, f.Node) }
func (f Barrier) String() string { return fmt.Sprintf("attempt %s has begun everywhere", f.Ref) }

func (f Failed) String() string {
	return fmt.Sprintf("the launch of attempt %s fails on %s", f.Ref, f.Node)
}

func (f Vanished) String() string {
	if f.Node == "" {
		return fmt.Sprintf("nothing of attempt %s lives any more", f.Ref)
	}
	return fmt.Sprintf("nothing of attempt %s lives any more on %s", f.Ref, f.Node)
}

func (f Paused) String() string {
	if f.On {
		return fmt.Sprintf("attempt %s is suspended", f.Ref)
	}
	return fmt.Sprintf("attempt %s goes on", f.Ref)
}

func (f Amnesia) String() string { return "the engine starts again and remembers nothing" }

func (f Led) String() string { return fmt.Sprintf("%s takes the lead with epoch %d", f.Who, f.Epoch) }

func (f Appending) String() string {
	return fmt.Sprintf("leader %d writes %s", f.Epoch, formatRecords(f.Records))
}

func (f Durable) String() string {
	return fmt.Sprintf("durable, by leader %d: %s", f.Epoch, formatRecords(f.Records))
}

func (f Appended) String() string {
	if f.Err != nil {
		return fmt.Sprintf("leader %d is told that its write failed: %v", f.Epoch, f.Err)
	}
	return fmt.Sprintf("leader %d hears that the journal is written up to %d", f.Epoch, f.Last)
}

func (f Opened) String() string {
	return fmt.Sprintf("the control plane opens with epoch %d", f.Epoch)
}

func (f Closed) String() string {
	return strings.TrimSuffix(fmt.Sprintf("the control plane of epoch %d is no more: %s", f.Epoch, f.Why), ": ")
}

func (f Called) String() string {
	return fmt.Sprintf("leader %d calls %s of attempt %s", f.Epoch, f.Verb, f.Ref)
}

func (f Heard) String() string {
	if f.Refused {
		return fmt.Sprintf("leader %d hears that the launch of attempt %s is refused", f.Epoch, f.Ref)
	}
	if f.Report == nil {
		return fmt.Sprintf("leader %d hears that the engine has no attempt %s", f.Epoch, f.Ref)
	}
	return fmt.Sprintf("leader %d hears that attempt %s is %s", f.Epoch, f.Ref, describeReport(f.Report))
}

// describeReport is what a report says, in some words.
func describeReport(r *engine.Report) string {
	text := r.Phase.String()
	if r.Phase == engine.Ended {
		text += fmt.Sprintf(" (%s, %s)", r.Cause, r.Exit)
	}
	if r.Phase == engine.Ended && !r.Gone {
		text += ", which is not proved"
	}
	if r.Uncertain {
		text += ", or not: nobody can tell"
	}
	return fmt.Sprintf("%s (version %d)", text, r.Version)
}

func (f Asked) String() string {
	r := f.Request
	switch r.Verb {
	case Submit:
		return fmt.Sprintf("request %d asks leader %d to run %s", f.N, r.Epoch, describeSpec(r.Spec))
	case Drain, Undrain:
		return fmt.Sprintf("request %d asks leader %d to %s %s", f.N, r.Epoch, r.Verb, joinNames(r.Nodes))
	case Rule:
		return fmt.Sprintf("request %d asks leader %d for the rules %s", f.N, r.Epoch, r.Text)
	case SetLimit:
		return fmt.Sprintf("request %d asks leader %d to let %d tasks of %s run at once", f.N, r.Epoch, r.Limit, formatIDs(r.Jobs))
	}
	return fmt.Sprintf("request %d asks leader %d to %s %s", f.N, r.Epoch, r.Verb, formatIDs(r.Jobs))
}

// describeSpec describes a specification.
func describeSpec(s *job.Spec) string {
	if s == nil {
		return "something"
	}
	text := fmt.Sprintf("%q", s.Name)
	for i, g := range s.Groups {
		if i > 0 {
			text += " and"
		}
		text += fmt.Sprintf(" of %d tasks", g.Tasks.Want)
		if g.Nodes.Min > 0 {
			text += fmt.Sprintf(" on %d nodes", g.Nodes.Min)
		}
		if c := g.PerTask.CPU; c > 0 {
			text += fmt.Sprintf(", %d CPUs each", c/1000)
		}
		if d := g.PerTask.DeviceCount() + g.PerNode.DeviceCount(); d > 0 {
			text += fmt.Sprintf(", %d devices", d)
		}
	}
	if s.Array != nil {
		text += fmt.Sprintf(", as an array of %d", len(s.Array.Indices))
		if s.Array.MaxRunning > 0 {
			text += fmt.Sprintf(" of which %d run at once", s.Array.MaxRunning)
		}
	}
	if s.Requeue {
		text += ", again if it is lost"
	}
	return text
}

func (f Answered) String() string {
	switch {
	case f.Err != nil:
		return fmt.Sprintf("request %d is answered: %s: %v", f.N, fault.KindOf(f.Err), f.Err)
	case f.First != 0:
		return fmt.Sprintf("request %d is answered: job %d", f.N, f.First)
	}
	for _, err := range f.Errs {
		if err != nil {
			return fmt.Sprintf("request %d is answered, with: %v", f.N, err)
		}
	}
	return fmt.Sprintf("request %d is answered: done", f.N)
}

func (f Sight) String() string {
	var parts []string
	for _, j := range f.Jobs {
		if j.State.Final() {
			continue
		}
		text := fmt.Sprintf("job %d %s", j.ID, j.State)
		switch {
		case j.Ref != (engine.Ref{}):
			text += " as " + j.Ref.String()
		case j.Why.Code != "":
			text += " (" + string(j.Why.Code) + ")"
		}
		parts = append(parts, text)
	}
	return fmt.Sprintf("leader %d shows: %s", f.Epoch, orNothing(strings.Join(parts, ", ")))
}

func (f Twice) String() string   { return f.What + ", twice" }
func (Rested) String() string    { return "minutes went by without a fault" }
func (f Settled) String() string { return "everything has settled; " + f.Sight.String() }

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

func formatIDs(ids []job.ID) string {
	var list []string
	for _, id := range ids {
		list = append(list, id.String())
	}
	if len(list) == 1 {
		return "job " + list[0]
	}
	return "jobs " + orNothing(strings.Join(list, ", "))
}

func formatClaims(claims []fleet.Claim) string {
	var list []string
	for _, c := range claims {
		list = append(list, c.Node)
	}
	return joinNames(list)
}

// formatRecords names records: "17 allocation-held of job 3".
func formatRecords(recs []store.Record) string {
	var list []string
	for _, r := range recs {
		text := r.Kind
		if r.Seq > 0 {
			text = fmt.Sprintf("%d %s", r.Seq, text)
		}
		if r.Job > 0 {
			text += fmt.Sprintf(" of job %d", r.Job)
		}
		list = append(list, text)
	}
	return orNothing(strings.Join(list, ", "))
}

// formatFlags names those that follow from the journal.
func formatFlags(f job.Flags) string {
	var list []string
	for _, x := range []struct {
		flag job.Flags
		name string
	}{
		{job.Configuring, "not started"},
		{job.Requeued, "to run again"},
		{job.Held, "held"},
		{job.HeldAdmin, "held by an administrator"},
		{job.HeldFailed, "held after failures"},
		{job.LaunchFailed, "not launched"},
		{job.Stopping, "to be ended"},
		{job.Uncertain, "uncertain"},
	} {
		if f&x.flag != 0 {
			list = append(list, x.name)
		}
	}
	if len(list) == 0 {
		return "nothing special"
	}
	return strings.Join(list, ", ")
}
