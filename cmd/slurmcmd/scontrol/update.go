package scontrol

import (
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// pair is FIELD=VALUE as given; plus and minus are FIELD+=VALUE and FIELD-=VALUE.
type pair struct{ name, value, raw string }

// parsePairs takes arguments apart; names are in lower case.
func parsePairs(args []string) ([]pair, error) {
	var out []pair
	for _, a := range args {
		name, value, ok := strings.Cut(a, "=")
		if !ok {
			return nil, plainErrorf("Update of this parameter is not supported: %s\nRequest aborted", a)
		}
		out = append(out, pair{strings.ToLower(strings.TrimRight(name, "+-")), value, a})
	}
	return out, nil
}

// updateEntity changes a job or a node.
func (s *command) updateEntity(args []string) error {
	list, err := parsePairs(args)
	if err != nil {
		return err
	}
	for _, p := range list {
		if p.name == "reservationname" || p.name == "reservation" { // before Nodes=, which says something of it
			return s.updateReservation(p.value, args)
		}
	}
	for i, p := range list {
		switch p.name {
		case "jobid", "job":
			return s.updateJob(p.value, append(list[:i:i], list[i+1:]...))
		case "jobname", "name":
			if len(list) > 1 && i == 0 && !hasKey(list, "jobid", "job") {
				return fault.New(fault.Unsupported, "update by JobName is not built yet").Advise("name the jobs: scontrol update JobId=7,8 …")
			}
		case "nodename", "node", "nodenames", "nodes":
			return s.updateNode(p.value, append(list[:i:i], list[i+1:]...))
		case "partitionname", "partition", "slurmctlddebug":
			return fault.New(fault.Unsupported, "update %s is not built yet", p.raw).
				Advise("partitions stand in the server's configuration: docs/reference/configuration.md")
		}
	}
	return plainErrorf("No valid entity in update command\n" +
		`Input line must include "NodeName", "PartitionName", "Reservation", "JobId", or "SlurmctldDebug"`)
}

func hasKey(list []pair, names ...string) bool {
	for _, p := range list {
		for _, n := range names {
			if p.name == n {
				return true
			}
		}
	}
	return false
}

// jobFields are what update JobId knows: each adds a field of api.Update.
var jobFields = map[string]func(u *fastclient.Object, value string, now time.Time) error{
	"timelimit":  func(u *fastclient.Object, v string, _ time.Time) error { return setRange(u, "time_limit", v) },
	"timemin":    func(u *fastclient.Object, v string, _ time.Time) error { return setRange(u, "time_min", v) },
	"partition":  setList("partitions"),
	"account":    setText("account"),
	"qos":        setText("qos"),
	"comment":    setText("comment"),
	"jobname":    setText("name"),
	"name":       setText("name"),
	"dependency": setText("depends"),
	"features":   setText("features"),
	"priority":   setNumber("priority"),
	"nice": func(u *fastclient.Object, v string, now time.Time) error {
		return setNumber("nice")(u, orDefault(v, "100"), now)
	},
	"arraytaskthrottle": setNumber("max_running"),
	"starttime":         setTime("begin"),
	"eligibletime":      setTime("begin"),
	"deadline":          setTime("deadline"),
	"reqnodelist":       setHosts("node_list"),
	"nodelist":          setHosts("node_list"),
	"excnodelist":       setHosts("exclude"),
	"numnodes":          setCount("nodes"),
	"minnodes":          setCount("nodes"),
	"requeue": func(u *fastclient.Object, v string, _ time.Time) error {
		u.Raw("requeue", []byte(strconv.FormatBool(v != "0")))
		return nil
	},
}

// sentenceOfField is what Slurm says where the new value of a field is refused.
var sentenceOfField = map[string]string{
	"timelimit": "Requested time limit is invalid (missing or exceeds some limit)", "timemin": "Invalid time-min specification (exceeds job's time or other limits)",
	"partition": "Invalid partition name specified", "account": "Invalid account or account/partition combination specified", "qos": "Invalid qos specification",
	"dependency": "Job dependency problem", "features": "Invalid feature specification", "starttime": "Invalid time specified", "deadline": "Invalid time specified",
	"numnodes": "Node count specification invalid", "minnodes": "Node count specification invalid",
	"reqnodelist": "Invalid node name specified", "nodelist": "Invalid node name specified", "excnodelist": "Invalid node name specified",
}

func orDefault(v, otherwise string) string {
	if v == "" {
		return otherwise
	}
	return v
}

func setText(field string) func(*fastclient.Object, string, time.Time) error {
	return func(u *fastclient.Object, v string, _ time.Time) error { u.SetText(field, v); return nil }
}

func setList(field string) func(*fastclient.Object, string, time.Time) error {
	return func(u *fastclient.Object, v string, _ time.Time) error {
		u.SetTexts(field, slurmcmd.Split(v))
		return nil
	}
}

func setNumber(field string) func(*fastclient.Object, string, time.Time) error {
	return func(u *fastclient.Object, v string, _ time.Time) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return fault.New(fault.Invalid, "not a whole number")
		}
		u.Int(field, n)
		return nil
	}
}

func setTime(field string) func(*fastclient.Object, string, time.Time) error {
	return func(u *fastclient.Object, v string, now time.Time) error {
		t, err := slurmfmt.ParseWhen(v, now)
		if err != nil {
			return err
		}
		u.SetText(field, t.UTC().Format(time.RFC3339))
		return nil
	}
}

func setHosts(field string) func(*fastclient.Object, string, time.Time) error {
	return func(u *fastclient.Object, v string, _ time.Time) error {
		names, err := hostlist.Expand(v)
		if err != nil {
			return err
		}
		u.SetTexts(field, names)
		return nil
	}
}

func setCount(field string) func(*fastclient.Object, string, time.Time) error {
	return func(u *fastclient.Object, v string, _ time.Time) error {
		low, high, ranged := strings.Cut(v, "-")
		a, err := strconv.Atoi(low)
		b := a
		if ranged && err == nil {
			b, err = strconv.Atoi(high)
		}
		if err != nil {
			return fault.New(fault.Invalid, "neither a number nor a range such as 2-4")
		}
		var o fastclient.Object
		o.Int("min", int64(a))
		o.Int("max", int64(b))
		u.Raw(field, o.End())
		return nil
	}
}

func setRange(u *fastclient.Object, field, v string) error {
	d, err := slurmfmt.ParseTimeLimit(v)
	if err != nil {
		return err
	}
	u.Float(field, d.Seconds())
	return nil
}

func (s *command) updateJob(ids string, fields []pair) error {
	sel, err := parseSelection([]string{ids})
	if err != nil {
		return plainErrorf("Invalid job id specified for job %s", ids)
	}
	var u fastclient.Object
	for _, f := range fields {
		add, ok := jobFields[f.name]
		if !ok {
			return plainErrorf("Update of this parameter is not supported: %s\nRequest aborted", f.raw)
		}
		if f.name == "timelimit" && (strings.HasPrefix(f.value, "+") || strings.HasPrefix(f.value, "-") && f.value != "-1" || strings.HasSuffix(strings.SplitN(f.raw, "=", 2)[0], "+") || strings.HasSuffix(strings.SplitN(f.raw, "=", 2)[0], "-")) {
			err = s.changeTimeLimit(&u, sel.IDs, f)
		} else {
			err = add(&u, f.value, s.Now)
		}
		if err != nil {
			return plainErrorf("Invalid %s: %v\nRequest aborted", f.raw, err)
		}
	}
	if u.Len() == 0 {
		return plainErrorf("No changes specified")
	}
	var o fastclient.Object
	o.Raw("select", fastclient.Select(sel))
	o.Text("verb", "update")
	o.Raw("update", u.End())
	sentence := ""
	if len(fields) == 1 {
		sentence = sentenceOfField[fields[0].name]
	}
	return s.sendChange("update", sentence, o.End())
}

// changeTimeLimit changes a time limit by an amount: TimeLimit+=10, TimeLimit=-5.
func (s *command) changeTimeLimit(u *fastclient.Object, ids []string, f pair) error {
	if len(ids) != 1 {
		return fault.New(fault.Invalid, "a relative limit needs one job")
	}
	name, value, _ := strings.Cut(f.raw, "=")
	down := strings.HasSuffix(name, "-") || strings.HasPrefix(value, "-")
	d, err := slurmfmt.ParseTimeLimit(strings.TrimLeft(value, "+-"))
	if err != nil {
		return err
	}
	c, err := s.Client()
	if err != nil {
		return err
	}
	v, err := c.JSON("GET", "/v1/jobs/"+fastclient.Segment(ids[0]), nil)
	if err != nil {
		return err
	}
	now := time.Duration(v.Get("spec").Get("time_limit").Int())
	if now == 0 {
		return fault.New(fault.Invalid, "the job has no time limit")
	}
	if down {
		d = -d
	}
	u.Float("time_limit", max(now+d, time.Minute).Seconds())
	return nil
}

// updateNode drains nodes or takes them back.
func (s *command) updateNode(nodes string, fields []pair) error {
	if nodes == "" {
		return plainErrorf("Invalid node name specified")
	}
	var state, reason string
	for _, f := range fields {
		switch f.name {
		case "state":
			state = strings.ToLower(f.value)
		case "reason":
			reason = f.value
		case "comment", "extra", "weight", "features", "gres", "activefeatures", "availablefeatures":
			return fault.New(fault.Unsupported, "update NodeName … %s is not built yet", f.raw)
		default:
			return plainErrorf("Update of this parameter is not supported: %s\nRequest aborted", f.raw)
		}
	}
	verb := ""
	switch state {
	case "drain", "drng", "drained", "draining":
		verb = "drain"
		if reason == "" {
			return plainErrorf("You must specify a reason when DOWNING or DRAINING a node. Request denied")
		}
	case "resume", "undrain", "idle":
		verb = "resume"
	case "":
		return plainErrorf("No changes specified")
	case "down", "fail", "failing", "future", "power_down", "power_up", "cancel_reboot":
		return fault.New(fault.Unsupported, "State=%s is not built yet", state).
			Advise("State=DRAIN keeps new work off; what runs there: scancel -w %s", nodes)
	default:
		return plainErrorf("Invalid input: State=%s\nRequest aborted", state)
	}
	names, err := hostlist.Expand(nodes)
	if err != nil {
		return plainErrorf("Invalid node name specified: %v", err)
	}
	var o fastclient.Object
	o.SetTexts("nodes", names)
	o.Text("verb", verb)
	o.Text("reason", reason)
	c, err := s.Client()
	if err != nil {
		return err
	}
	_, err = c.JSON("POST", "/v1/nodes/change", o.End())
	if slurmcmd.IsNotFound(err) {
		return plainErrorf("Invalid node name specified (%v)", err)
	}
	return err
}
