package schedtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
)

// Transcript runs a scenario and returns it with the output that it has now.
//
// A scenario is text in paragraphs. A paragraph is commands, a line "----" and
// the output that follows from them: the decisions of one step of the core. Lines
// that begin with # say why and are kept. The commands:
//
//	node NAME [cpus=8] [mem=64] [disk=0] [.RESOURCE=0] [gpus=0] [type=h100] [mig=PROFILE] [links=pairs]
//	     [features=a,b] [parts=p,q] [path=spine/leaf] [state=down] [foreign=INDEX]
//	remove NAME            the node is reported no longer
//	policy JSON            the rules of the site, as account.Policy
//	flavor NAME [features=a,b] [type=h100]
//	account NAME [in=PARENT] [strict] [weight=1] [fair[=final,initial]] [within=WHOM]
//	        [reclaim=WHOM] [borrowing=WHOM] [max-priority=0] [when-borrow=next]
//	        [when-preempt=stop] [when-full=stop] [prefer=preempt] [FLAVOR:RESOURCE=NOMINAL[+BORROW][-LEND],…]…
//	                       an account with a quota: account.Quota says what the words mean
//	by quota…              who may stop others (account.Preemption.By)
//	submit ID[-ID] [prio=0] [at=0s] [limit=1h] [part=p,q] [qos=Q] [account=A] [user=U] [norequeue]
//	       [serve] [least=5m]
//	       GROUP [: GROUP]…
//	    GROUP: [nodes=2|1-3] [tasks=4|2-4] [per-node=2] [cpus=1] [mem=1] [gpus=1]
//	           [disk=1] [.RESOURCE=1] [node-gpus=8] [total-gpus=8] [type=h100] [profile=1g] [share=500]
//	           [on=a1,a2] [not=a3] [want=x|y|[x|y]] [exclusive] [contiguous] [allmem]
//	           [elastic] [subgroup=2]
//	end ID…                it is proved gone
//	begun ID…              all of it is there: it may grow
//	dropped ID NODE [settled]   what was added to it there is proved gone
//	withdraw ID, hold ID, release ID, extend ID DURATION
//	restore ID NODE INDEX… DURATION   it holds these devices already
//	runs ID in=FLAVOR,… [since=0s] [leaving] …   as submit, but it runs already, on the node that was named last
//	stopping ID            its end has been asked for
//	saved ID               it has reported a checkpoint
//	suspended ID           it is proved suspended, as was asked for
//	at DURATION            time since the start of the scenario
//	why ID                 every reason that holds it, now
//	feasible GROUP…        what is too large about it
//	like starts ID in FLAVOR,… [with TASKS+…] and …; stops ID …
//	                       what another scheduler does then; is it the same here?
//	scenario               all that was said before is forgotten
//
// Memory is in GiB.
func Transcript(text string) (string, error) {
	r := &runner{core: sched.New(sched.Config{})}
	var out strings.Builder
	lines := bufio.NewScanner(strings.NewReader(text))
	skip := false // the old output
	for lines.Scan() {
		line := lines.Text()
		switch {
		case line == "----":
			out.WriteString("----\n")
			out.WriteString(r.runStep())
			skip = true
		case line == "":
			skip = false
			out.WriteString("\n")
		case skip:
		default:
			out.WriteString(line + "\n")
			if err := r.runCommand(line); err != nil {
				return "", fmt.Errorf("%q: %w", line, err)
			}
		}
	}
	if err := r.core.Check(); err != nil {
		return "", err
	}
	return out.String(), nil
}

type runner struct {
	core   *sched.Core
	policy *account.Policy // as it will be; nil: none
	told   bool            // the core knows it
	plain  bool            // amounts of quotas have no unit
	now    time.Duration
	events []sched.Event
	asks   []func() string // after the step
	last   string          // node that was named last
	did    deeds           // of the last step
}

// runCommand reads one line and notes its events.
func (r *runner) runCommand(line string) error {
	words := strings.Fields(line)
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return nil
	}
	verb, args := words[0], words[1:]
	if verb == "scenario" {
		err := r.core.Check()
		*r = runner{core: sched.New(sched.Config{})}
		return err
	}
	if verb == "policy" {
		p := new(account.Policy)
		r.add(sched.PolicySet{Policy: p})
		return json.Unmarshal([]byte(strings.TrimPrefix(line, "policy")), p)
	}
	if len(args) == 0 {
		return fmt.Errorf("%s of what?", verb)
	}
	var err error
	switch verb {
	case "node":
		err = r.readNode(args)
	case "flavor":
		err = r.readFlavor(args)
	case "account":
		err = r.readAccount(args)
	case "by":
		r.buildPolicy().Preemption.By = args
	case "remove":
		r.add(sched.NodeRemoved{Name: args[0]})
	case "submit":
		err = r.readSubmit(args)
	case "feasible":
		var spec *job.Spec
		spec, _, err = parseSpec(args)
		r.asks = append(r.asks, func() string { return "feasible: " + formatReasons(r.core.Feasible(spec), "yes") + "\n" })
	case "at":
		r.now, err = time.ParseDuration(args[0])
	case "restore":
		err = r.readRestore(args)
	case "runs":
		err = r.startRunning(args)
	case "like":
		r.readLike(args)
	default:
		err = r.runJobCommand(verb, args)
	}
	return err
}

func (r *runner) add(e sched.Event) { r.events = append(r.events, e) }

// runJobCommand reads the commands about jobs that are known already.
func (r *runner) runJobCommand(verb string, args []string) error {
	if verb == "extend" {
		id, err := parseID(args[0])
		if err != nil || len(args) < 2 {
			return fmt.Errorf("extend ID DURATION")
		}
		d, err := time.ParseDuration(args[1])
		r.add(sched.Extended{Job: id, Until: sched.Instant(d)})
		return err
	}
	if verb == "dropped" {
		id, err := parseID(args[0])
		if err != nil || len(args) < 2 {
			return fmt.Errorf("dropped ID NODE")
		}
		r.add(sched.Dropped{Job: id, Node: args[1], Settled: len(args) > 2})
		return nil
	}
	for _, a := range args {
		id, err := parseID(a)
		if err != nil {
			return err
		}
		switch verb {
		case "end":
			r.add(sched.Released{Job: id})
		case "withdraw":
			r.add(sched.Withdrawn{Job: id})
		case "hold":
			r.add(sched.Blocked{Job: id, Why: reason.Reason{Code: reason.HeldUser}})
		case "release":
			r.add(sched.Unblocked{Job: id})
		case "begun":
			r.add(sched.Begun{Job: id})
		case "stopping":
			r.add(sched.Stopping{Job: id})
		case "suspended":
			r.add(sched.Suspended{Job: id})
		case "saved":
			r.add(sched.Saved{Job: id, At: sched.Instant(r.now)})
		case "why":
			r.asks = append(r.asks, func() string {
				return fmt.Sprintf("why %d: %s\n", id, formatReasons(r.core.Reasons(sched.Instant(r.now), id), "it does not wait"))
			})
		default:
			return fmt.Errorf("no such command")
		}
	}
	return nil
}

func formatReasons(all []reason.Reason, none string) string {
	var words []string
	for _, x := range all {
		words = append(words, x.String())
	}
	if len(words) == 0 {
		return none
	}
	return strings.Join(words, "; ")
}

func (r *runner) runStep() string {
	var b strings.Builder
	if r.policy != nil && !r.told {
		p := *r.policy
		p.Flavors, p.Accounts = slices.Clone(p.Flavors), slices.Clone(p.Accounts)
		r.events = append([]sched.Event{sched.PolicySet{Policy: &p}}, r.events...)
		r.told = true
	}
	r.did = deeds{}
	for _, d := range r.core.Step(sched.Instant(r.now), r.events...) {
		r.did.noteDecision(d)
		switch d := d.(type) {
		case sched.Start:
			fmt.Fprintf(&b, "start %d: %s%s\n", d.Job, formatClaims(d.Claims), formatFlavors(d.Flavors)+formatUntil(" until ", d.Until))
		case sched.Preempt:
			fmt.Fprintf(&b, "preempt %d for %d: %s", d.Job, d.For, d.Mode)
			if d.Grace > 0 {
				fmt.Fprintf(&b, " within %s", d.Grace)
			}
			b.WriteString("\n")
		case sched.Resume:
			fmt.Fprintf(&b, "resume %d\n", d.Job)
		case sched.Grow:
			fmt.Fprintf(&b, "grow %d: %s\n", d.Job, formatClaims(d.Claims))
		case sched.Shrink:
			fmt.Fprintf(&b, "shrink %d by %s for %d", d.Job, d.Node, d.For)
			if d.Grace > 0 {
				fmt.Fprintf(&b, " within %s", d.Grace)
			}
			b.WriteString("\n")
		case sched.Wait:
			fmt.Fprintf(&b, "wait %d: %s\n", d.Job, r.waitReason(d))
		case sched.Promise:
			if len(d.Nodes) == 0 {
				fmt.Fprintf(&b, "promise %d: taken back\n", d.Job)
				continue
			}
			at := formatUntil("at ", d.At)
			if at == "" {
				at = "at a time that nobody knows"
			}
			fmt.Fprintf(&b, "promise %d: %s on %s\n", d.Job, at, strings.Join(d.Nodes, ","))
		}
	}
	for _, ask := range r.asks {
		b.WriteString(ask())
	}
	r.events, r.asks = nil, nil
	return b.String()
}

// waitReason is why a job waits, with how many are before it: that is no part of the
// decision.
func (r *runner) waitReason(d sched.Wait) reason.Reason {
	if d.Why.Code == reason.Priority && d.Why.Ahead == 0 {
		for _, x := range r.core.Reasons(sched.Instant(r.now), d.Job) {
			if x.Code == reason.Priority {
				return x
			}
		}
	}
	return d.Why
}

func formatFlavors(flavors []string) string {
	if len(flavors) == 0 {
		return ""
	}
	return " in " + strings.Join(flavors, ",")
}

func formatUntil(word string, t sched.Instant) string {
	if t == 0 {
		return ""
	}
	return word + time.Duration(t).String()
}

// formatClaims prints "a1 tasks 2 gpu 0 1; a2 tasks 1 gpu 3(500)".
func formatClaims(all []fleet.Claim) string {
	var out []string
	for _, c := range all {
		s := fmt.Sprintf("%s tasks %d", c.Node, c.Tasks)
		if c.Whole {
			s += " whole"
		}
		for i, d := range c.Devices {
			if i == 0 {
				s += " gpu"
			}
			s += " " + strconv.Itoa(d.Index)
			if d.Bytes > 0 {
				s += fmt.Sprintf("(%dG)", d.Bytes/resource.GiB)
			} else if d.Share != resource.WholeDevice {
				s += fmt.Sprintf("(%d)", d.Share)
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

func (r *runner) readNode(args []string) error {
	r.last = args[0]
	n := fleet.Node{Name: args[0], State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(8), Memory: 64 * resource.GiB}}
	gpus, kind, mig, links, foreign, memory := 0, "h100", "", "", -1, resource.Amount(0)
	for _, a := range args[1:] {
		key, value, _ := strings.Cut(a, "=")
		number, _ := strconv.Atoi(value)
		switch key {
		case "cpus":
			n.Capacity.CPU = resource.CPUs(number)
		case "mem":
			n.Capacity.Memory = resource.Amount(number) * resource.GiB
		case "disk":
			n.Capacity.Disk = resource.Amount(number) * resource.GiB
		case "gpu_memory": // in GiB
			memory = resource.Amount(number) * resource.GiB
		case "gpus":
			gpus = number
		case "type":
			kind = value
		case "mig":
			mig = value
		case "links":
			links = value
		case "foreign":
			foreign = number
		case "features":
			n.Features = strings.Split(value, ",")
		case "parts":
			n.Parts = strings.Split(value, ",")
		case "path":
			n.Path = strings.Split(value, "/")
		case "state":
			n.State = fleet.NodeState(value)
		default:
			name, named := strings.CutPrefix(key, ".")
			if !named {
				return fmt.Errorf("a node has no %s", key)
			}
			n.Capacity = n.Capacity.With(name, resource.Amount(number))
		}
	}
	for i := range gpus {
		d := fleet.Device{Index: i, Kind: "gpu", Type: kind, NUMA: -1, Profile: mig, Memory: memory}
		if i == foreign {
			d.Foreign = resource.GiB
		}
		if links == "pairs" {
			d.Links = []fleet.Link{{Peer: i ^ 1, Kind: fleet.LinkDirect}}
		}
		n.Devices = append(n.Devices, d)
	}
	r.add(sched.NodeSet{Node: n})
	return nil
}

func (r *runner) readSubmit(args []string) error {
	first, last, ranged := strings.Cut(args[0], "-")
	from, err := parseID(first)
	if err != nil {
		return err
	}
	to := from
	if ranged {
		if to, err = parseID(last); err != nil {
			return err
		}
	}
	at, rest, err := r.readInstant("at", args[1:])
	if err != nil {
		return err
	}
	spec, prio, err := parseSpec(rest)
	if err != nil {
		return err
	}
	for id := from; id <= to; id++ {
		r.add(sched.Submitted{Job: id, Spec: spec, Priority: prio, At: at})
	}
	return nil
}

func (r *runner) readRestore(args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("restore ID NODE INDEX… DURATION")
	}
	id, err := parseID(args[0])
	if err != nil {
		return err
	}
	c := fleet.Claim{Node: args[1], Tasks: 1}
	for _, a := range args[2 : len(args)-1] {
		i, err := strconv.Atoi(a)
		if err != nil {
			return err
		}
		c.Devices = append(c.Devices, fleet.DeviceClaim{Index: i, Share: resource.WholeDevice})
	}
	d, err := time.ParseDuration(args[len(args)-1])
	r.add(sched.Restored{Job: id, Claims: []fleet.Claim{c}, Until: sched.Instant(d)})
	return err
}

func parseID(s string) (job.ID, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	return job.ID(n), err
}

func parseSpec(args []string) (*job.Spec, int64, error) {
	s := &job.Spec{Groups: make([]job.TaskGroup, 1), Requeue: true}
	prio := 0
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		var err error
		switch key {
		case ":":
			s.Groups = append(s.Groups, job.TaskGroup{})
		case "prio":
			prio, err = strconv.Atoi(value)
		case "limit":
			s.TimeLimit, err = time.ParseDuration(value)
		case "least":
			s.TimeMin, err = time.ParseDuration(value)
		case "serve":
			s.Serve = &job.Serve{Ports: []job.Port{{Name: "http"}}}
		case "qos":
			s.QOS = value
		case "account":
			s.Account = value
		case "user":
			s.Owner.User = value
		case "norequeue":
			s.Requeue = false
		case "part":
			s.Partitions = strings.Split(value, ",")
		default:
			err = parseGroup(&s.Groups[len(s.Groups)-1], key, value)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	for i := range s.Groups {
		if g := &s.Groups[i]; g.Tasks.Want == 0 && g.Nodes == (job.Range{}) {
			g.Tasks.Want = 1
		}
	}
	return s, int64(prio), nil
}

func parseGroup(g *job.TaskGroup, key, value string) error {
	lo, hi := readSpan(value)
	switch key {
	case "nodes":
		g.Nodes = job.Range{Min: lo, Max: hi}
	case "tasks":
		g.Tasks.Want = hi
		if lo < hi {
			g.Tasks.Min = lo
		}
	case "per-node":
		g.TasksPerNode = lo
	case "cpus":
		g.PerTask.CPU = resource.CPUs(lo)
	case "mem":
		g.PerTask.Memory = resource.Amount(lo) * resource.GiB
	case "disk":
		g.PerTask.Disk = resource.Amount(lo) * resource.GiB
	case "gpus":
		g.PerTask.Devices = append(g.PerTask.Devices, resource.DeviceRequest{Count: lo})
	case "node-gpus":
		g.PerNode.Devices = append(g.PerNode.Devices, resource.DeviceRequest{Count: lo})
	case "total-gpus":
		g.Total.Devices = append(g.Total.Devices, resource.DeviceRequest{Count: lo})
	case "type", "profile", "share", "bytes": // of the devices named before it
		for _, list := range [][]resource.DeviceRequest{g.PerTask.Devices, g.PerNode.Devices, g.Total.Devices} {
			if len(list) > 0 {
				refineRequest(&list[len(list)-1], key, value)
			}
		}
	case "on":
		g.NodeList = strings.Split(value, ",")
	case "not":
		g.Exclude = strings.Split(value, ",")
	case "want":
		g.Constraint = readConstraint(value)
	case "exclusive":
		g.Exclusive = true
	case "contiguous":
		g.Contiguous = true
	case "allmem":
		g.AllMemory = true
	case "elastic":
		g.Elastic = true
	case "subgroup":
		g.Subgroup = lo
	default:
		name, named := strings.CutPrefix(key, ".")
		if !named {
			return fmt.Errorf("a group has no %s", key)
		}
		g.PerTask.Vector = g.PerTask.With(name, resource.Amount(lo))
	}
	return nil
}

func refineRequest(r *resource.DeviceRequest, key, value string) {
	n, _ := strconv.Atoi(value)
	switch key {
	case "type":
		r.Type = value
	case "profile":
		r.Profile = value
	case "share":
		r.Share = resource.Share(n)
	case "bytes": // in GiB
		r.Bytes = resource.Amount(n) * resource.GiB
	}
}

// readConstraint reads "x", "x&y", "x|y" and "[x|y]".
func readConstraint(text string) job.Constraint {
	c := job.Constraint{Text: text, Same: strings.HasPrefix(text, "[")}
	for _, a := range strings.Split(strings.Trim(text, "[]"), "|") {
		c.Alternatives = append(c.Alternatives, strings.Split(a, "&"))
	}
	return c
}

// readSpan reads "4" and "2-4".
func readSpan(text string) (lo, hi int) {
	a, b, ranged := strings.Cut(text, "-")
	lo, _ = strconv.Atoi(a)
	hi = lo
	if ranged {
		hi, _ = strconv.Atoi(b)
	}
	return lo, hi
}
