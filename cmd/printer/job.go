package printer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Job is the card of one job: the answer first, then a fact a line, then what can
// be done next.
//
// first is what matters of the output of a job that failed, empty where that is not known.
func Job(p Page, j *api.Job, first string) string {
	c := card{p: p}
	c.head("%s", jobHeadline(p, j))
	if j.Spec != nil {
		c.fact("asks", jobRequest(j))
		c.fact("of", ownerText(j))
		printPoolChoice(&c, j)
		c.fact("moves", movesText(p, j))
	}
	if j.Why != nil && j.State == "PENDING" {
		c.fact("why", p.localizeTimes(j.Why.String()))
	}
	if !j.StartsBy.IsZero() && j.State == "PENDING" {
		c.fact("starts", "by "+p.Time(j.StartsBy))
	}
	c.fact("flags", strings.Join(j.Flags, " "))
	c.fact("holds", jobHoldings(j))
	for _, i := range j.Idle {
		c.fact("idle", idleText(p, i))
	}
	c.fact("ranks", groupRanks(j.Tasks))
	c.fact("message", j.Message)
	if j.Failure != "" {
		c.fact("failure", failureText(j.Failure, strings.Join(j.FailedOn, ",")))
	}
	c.fact("first", first)
	for i, a := range j.Past {
		c.fact([]string{"before", ""}[min(i, 1)], pastText(p, a))
	}
	c.fact("times", jobTimes(p, j))
	printUsage(&c, j)
	if j.Spec != nil {
		printSource(&c, j.Spec)
	}
	c.fact("files", strings.Join(j.Files, ", "))
	c.fact("next", nextCommands(j))
	return c.b.String()
}

// jobHeadline is "7 train RUNNING for 41 s of 4 h".
func jobHeadline(p Page, j *api.Job) string {
	name := j.Name
	if j.Spec != nil {
		name += " " + j.Spec.Name
	}
	name += " " + j.State
	r := QueueRowOf(j)
	switch {
	case j.State == "PENDING":
		name += " for " + Duration(r.timeSpent(p.Now))
	case !j.Started.IsZero() && j.Ended.IsZero():
		name += " for " + Duration(r.timeSpent(p.Now))
		if r.Limit > 0 {
			name += " of " + Duration(r.Limit)
		}
	case !j.Started.IsZero():
		name += " after " + Duration(r.timeSpent(p.Now))
		if j.State != "COMPLETED" && !j.Exit.OK() {
			name += ", " + j.Exit.String()
		}
	}
	if j.Attempt > 1 {
		name += fmt.Sprintf(", attempt %d", j.Attempt)
	}
	return name
}

// jobRequest is what one job asks for: of an array, what one task does.
func jobRequest(j *api.Job) string {
	if j.Array == nil || j.Spec.Array == nil {
		return Ask(j.Spec)
	}
	one := *j.Spec
	one.Array = nil
	text := fmt.Sprintf("%s; task %d of array %s", Ask(&one), j.Array.Index, j.Array.Job)
	if n := j.Array.MaxRunning; n > 0 {
		text += fmt.Sprintf(", of which %d run at a time", n)
	}
	return text
}

func ownerText(j *api.Job) string {
	s := j.Spec
	parts := append([]string{s.Owner.User}, joinPresent(
		"account", s.Account, "qos", s.QOS, "partition", strings.Join(s.Partitions, ","), "pool", j.Pool, "reservation", s.Reservation)...)
	if j.State == "PENDING" {
		parts = append(parts, fmt.Sprintf("priority %d", j.Priority))
	}
	return strings.Join(parts, ", ")
}

// printPoolChoice says why a job is in its pool that named none.
func printPoolChoice(c *card, j *api.Job) {
	if j.Spec.Chosen == nil {
		return
	}
	c.fact("pool", cmp.Or(j.Pool, j.Spec.Pool)+", "+j.Spec.Chosen.Why)
	c.poolWaits(cmp.Or(j.Pool, j.Spec.Pool), j.Spec.Chosen)
}

// notifyText is "https://hooks.example.org/… on end, fail": the rest of the URL is a secret.
func notifyText(n *job.Notify) string {
	if n == nil {
		return ""
	}
	on := n.On
	if len(on) == 0 {
		on = job.NotifyEvents
	}
	return n.Hidden().Webhook + " on " + strings.Join(on, ", ")
}

// retriesText is "up to 3; on 75, oom; the first after 30 s".
func retriesText(r *job.Retries) string {
	if r == nil {
		return ""
	}
	after := job.RetryOnError
	if len(r.On) > 0 {
		after = strings.Join(r.On, ", ")
	}
	pause := "no pause"
	if r.Backoff > 0 {
		pause = "the first after " + Duration(r.Backoff)
	}
	return fmt.Sprintf("up to %d; on %s; %s", r.Count, after, pause)
}

// pastText is "attempt 1 on v1: exit 3 after 12 s, at 12:01; then retry 1".
func pastText(p Page, a api.PastAttempt) string {
	text := fmt.Sprintf("attempt %d", a.Attempt)
	if a.Nodes != "" {
		text += " on " + a.Nodes
	}
	text += ": " + a.Cause
	if a.Cause == "exited" {
		text = strings.TrimSuffix(text, a.Cause) + a.Exit.String()
	}
	if !a.Started.IsZero() {
		text += " after " + Duration(a.Ended.Sub(a.Started))
	}
	text += ", at " + p.Time(a.Ended)
	if a.Failure != "" {
		text += ", " + failureText(a.Failure, a.FailedOn)
	}
	if a.Retry > 0 {
		text += fmt.Sprintf("; then retry %d", a.Retry)
	}
	if a.Message != "" {
		text += ": " + a.Message
	}
	return text
}

// failureText is "failure of the node (v1)".
func failureText(of, nodes string) string {
	text := "failure of the " + of
	if nodes != "" {
		text += " (" + nodes + ")"
	}
	return text
}

// idleText is "v1: holds 8 GPUs, no process since 12:01".
func idleText(p Page, i api.Idle) string {
	text := fmt.Sprintf("%s: holds %s, ", Hosts([]string{i.Node}), Count(i.Devices, "GPU"))
	if i.Processes == 0 {
		return text + "no process since " + p.Time(i.Since)
	}
	return text + Count(i.Processes, "process") + " without CPU time since " + p.Time(i.Since)
}

func jobHoldings(j *api.Job) string {
	if len(j.Claims) == 0 {
		return ""
	}
	nodes, gpus, cpus, memory := sumClaims(j.Claims)
	text := fmt.Sprintf("%s: %s", Hosts(nodes), Number(cpus)+" CPUs")
	if memory > 0 {
		text += ", " + Bytes(memory)
	}
	if gpus > 0 {
		text += ", " + Count(gpus, "GPU")
	}
	if len(nodes) == 1 && len(j.Claims[0].Devices) > 0 {
		text += fmt.Sprintf(" (device %s)", joinNumbers(j.Claims[0].Devices))
	}
	if !j.Ended.IsZero() {
		text += ", given back"
	}
	return text
}

func joinNumbers(ns []int) string {
	parts := make([]string, len(ns))
	for i, n := range ns {
		parts[i] = fmt.Sprint(n)
	}
	return strings.Join(parts, ",")
}

// groupRanks groups the tasks of the job's steps by how they are: "7 running, 1 × exit 1 (5 on v6)".
func groupRanks(tasks []api.Task) string {
	type how struct {
		running bool
		exit    job.ExitCode
	}
	groups := map[how][]api.Task{}
	var order []how
	for _, t := range tasks {
		if t.Step < 0 {
			continue
		}
		h := how{t.Running, t.Exit}
		if _, ok := groups[h]; !ok {
			order = append(order, h)
		}
		groups[h] = append(groups[h], t)
	}
	slices.SortFunc(order, func(a, b how) int {
		return cmp.Or(-cmp.Compare(fmt.Sprint(a.running), fmt.Sprint(b.running)), cmp.Compare(a.exit.Shell(), b.exit.Shell()))
	})
	var parts []string
	for _, h := range order {
		n := len(groups[h])
		switch {
		case h.running:
			parts = append(parts, fmt.Sprintf("%d running", n))
		case h.exit.OK():
			parts = append(parts, fmt.Sprintf("%d × %s", n, h.exit))
		default:
			parts = append(parts, fmt.Sprintf("%d × %s (%s)", n, h.exit, nameRanks(groups[h])))
		}
	}
	return strings.Join(parts, ", ")
}

// nameRanks names a few ranks with their nodes.
func nameRanks(tasks []api.Task) string {
	const most = 4
	var names []string
	for i, t := range tasks {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(tasks)-most))
			break
		}
		name := fmt.Sprintf("rank %d on %s", t.Rank, t.Node)
		if t.Cause != "" && t.Cause != "exited" {
			name += ", " + t.Cause
		}
		names = append(names, name)
	}
	return strings.Join(names, "; ")
}

func jobTimes(p Page, j *api.Job) string {
	var parts []string
	add := func(what string, t time.Time) {
		if !t.IsZero() {
			parts = append(parts, what+" "+p.Time(t))
		}
	}
	add("submitted", j.Submitted)
	if j.Eligible.Sub(j.Submitted) > time.Second {
		add("eligible", j.Eligible)
	}
	add("started", j.Started)
	add("ended", j.Ended)
	if !j.Started.IsZero() {
		parts = append(parts, "waited "+Duration(j.Started.Sub(j.Submitted)))
	}
	return strings.Join(parts, ", ")
}

// printSource prints where the work came from and how it runs.
func printSource(c *card, s *job.Spec) {
	c.fact("runs", commandText(s))
	if s.Program.Lease > 0 {
		c.fact("lease", "ends when its client is not heard of for "+s.Program.Lease.String())
	}
	if s.Upload != nil {
		c.fact("in", "a copy of "+s.WorkDir+", which came with the job")
	} else {
		c.fact("in", s.WorkDir)
	}
	if s.Source.Host != "" {
		c.fact("from", "host "+s.Source.Host)
	}
	c.fact("depends", s.Depends.String())
	if !s.Begin.IsZero() {
		c.fact("begin", "not before "+c.p.Time(s.Begin))
	}
	if !s.Deadline.IsZero() {
		c.fact("deadline", c.p.Time(s.Deadline))
	}
	c.fact("retries", retriesText(s.Retries))
	c.fact("notify", notifyText(s.Notify))
	c.fact("image", s.Image)
	if s.Provenance != nil {
		c.fact("digest", s.Provenance.Image)
	}
	c.fact("licenses", s.Licenses)
	c.fact("comment", s.Comment)
	if s.Provenance != nil && s.Provenance.Git != nil {
		g := s.Provenance.Git
		text := g.Commit[:min(len(g.Commit), 12)]
		if g.Branch != "" {
			text += " on " + g.Branch
		}
		if g.Dirty {
			text += ", with changes that are not committed"
		}
		c.fact("git", text)
	}
}

func commandText(s *job.Spec) string {
	if s.Program.Kind == job.BareAllocation {
		return "nothing: an allocation for steps"
	}
	words := s.Program.Args
	if s.Program.Kind.HasScript() {
		name := s.Source.File
		if name == "" || name == "-" {
			name = s.Program.ScriptName
		}
		if name == "" {
			name = "a script from standard input"
		}
		words = append([]string{name}, words...)
	}
	return strings.ReplaceAll(strings.TrimRight(strings.Join(words, " "), "\n"), "\n", " ⏎ ") // each line of a text for sh -c is seen as one
}

// nextCommands names the commands that help with a job in its state.
func nextCommands(j *api.Job) string {
	n := j.Name
	switch j.State {
	case "PENDING":
		if slices.Contains(j.Flags, "HELD") {
			return fmt.Sprintf("cox release %s   cox cancel %s", n, n)
		}
		return fmt.Sprintf("cox why %s   cox cancel %s", n, n)
	case "RUNNING":
		return fmt.Sprintf("cox logs -f %s   cox exec %s -- nvidia-smi   cox cancel %s", n, n, n)
	case "SUSPENDED":
		return fmt.Sprintf("cox resume %s   cox cancel %s", n, n)
	case "COMPLETED":
		if j.Spec != nil && j.Spec.Upload != nil {
			return fmt.Sprintf("cox logs %s   cox pull %s", n, n)
		}
		return fmt.Sprintf("cox logs %s", n)
	}
	for _, t := range j.Tasks {
		if j.State == "FAILED" && t.Step >= 0 && !t.Running && !t.Exit.OK() && t.Log {
			return fmt.Sprintf("cox logs %s.%d --tail 40   cox requeue %s", n, t.Rank, n)
		}
	}
	return fmt.Sprintf("cox logs %s   cox requeue %s", n, n)
}
