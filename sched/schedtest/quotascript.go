package schedtest

import (
	"bufio"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/quota"
)

// QuotaScript runs scenarios of quotas alone, without nodes or time, and returns them
// with the output that they have now. Paragraphs are as in Transcript; amounts are
// numbers without a unit. The commands:
//
//	scenario               all that was said before is forgotten
//	flavor, account        as in Transcript
//	hold JOB ACCOUNT FLAVOR:RESOURCE=AMOUNT… [prio=0] [at=0] [since=0] [leaving]
//	                       it runs; at: its place in the queue's order, since: when it began
//	want JOB ACCOUNT FLAVOR:RESOURCE=AMOUNT[!]… [prio=0] [at=0]
//	                       it waits in these flavours, and those with ! are missing:
//	                       whom does it stop?
//	need JOB ACCOUNT RESOURCE=AMOUNT… [prio=0] [at=0] [only=FLAVOR,…] [try=[FLAVOR:RESOURCE:]none|preempt|reclaim/LEVEL]…
//	                       in which flavours would it be? only: those that its nodes
//	                       allow; try: what stopping others would give, instead of
//	                       finding out
//	like fits|waits|never in=FLAVOR,… level=0
//	like ACCOUNT available FLAVOR:RESOURCE=AMOUNT…
//	like ACCOUNT share N [RESOURCE]
//	                       what Kueue answers, to the need before it; is it the same?
//	offer JOB ACCOUNT RESOURCE=AMOUNT… [prio=0] [at=0]
//	admit                  all that was offered, one after the other, by quota alone:
//	                       of each queue its first job at a time
//	show ACCOUNT…          what it holds, what is available to it, and its share
func QuotaScript(text string) (string, error) {
	r := &quotaRunner{runner: runner{plain: true}}
	var out strings.Builder
	lines := bufio.NewScanner(strings.NewReader(text))
	skip := false
	for lines.Scan() {
		line := lines.Text()
		switch {
		case line == "----":
			out.WriteString("----\n" + r.said.String())
			r.said.Reset()
			skip = true
		case line == "":
			skip = false
			out.WriteString("\n")
		case skip:
		default:
			out.WriteString(line + "\n")
			if words := strings.Fields(line); !strings.HasPrefix(line, "#") {
				if err := r.runCommand(words[0], words[1:]); err != nil {
					return "", fmt.Errorf("%q: %w", line, err)
				}
			}
		}
	}
	return out.String(), nil
}

type quotaRunner struct {
	runner
	state  *quota.State // nil: to be made
	names  []string     // of running
	held   []quota.Holder
	offers []offer
	said   strings.Builder
	last   quota.Assignment // of the need before
}

// offer is a job that waits.
type offer struct {
	job   string
	wish  quota.Wish
	needs []quota.Need
	order int

	only []string
	try  map[string]answer // by "flavour:resource"; "": of all others; nil: find out
}

// answer is what stopping others would give.
type answer struct {
	mode  quota.Mode
	level int32
}

func (r *quotaRunner) runCommand(verb string, args []string) error {
	if verb == "scenario" {
		*r = quotaRunner{runner: runner{plain: true}}
		return nil
	}
	if verb == "admit" {
		r.admitOffered()
		return nil
	}
	if len(args) == 0 {
		return fmt.Errorf("%s of what?", verb)
	}
	switch verb {
	case "flavor":
		return r.readFlavor(args)
	case "account":
		return r.readAccount(args)
	case "show":
		return r.showAccount(args)
	case "like":
		return r.likeNeed(args)
	}
	if err := r.countState(); err != nil {
		return err
	}
	if len(args) < 2 {
		return fmt.Errorf("%s JOB ACCOUNT …", verb)
	}
	o := offer{job: args[0], order: len(r.offers)}
	if o.wish.Queue = r.state.Find(args[1]); o.wish.Queue == quota.None {
		return fmt.Errorf("no account %s", args[1])
	}
	h := quota.Holder{Queue: o.wish.Queue}
	for _, word := range args[2:] {
		if err := r.readWord(word, &o, &h); err != nil {
			return err
		}
	}
	switch verb {
	case "hold":
		h.Charges, h.Priority, h.At = o.wish.Charges, o.wish.Priority, o.wish.At
		r.addHolder(o.job, h)
	case "want":
		r.offerJob(&o)
	case "need":
		r.computeNeeds(&o)
	case "offer":
		r.offers = append(r.offers, o)
	default:
		return fmt.Errorf("no such command")
	}
	return nil
}

// countState makes the state of the accounts as they are.
func (r *quotaRunner) countState() error {
	if r.state != nil && r.told {
		return nil
	}
	t, err := quota.New(r.buildPolicy())
	if err != nil {
		return err
	}
	if t == nil {
		return fmt.Errorf("no quotas")
	}
	r.state, r.told = t.NewState(), true
	return nil
}

// readWord reads one word of a job.
func (r *quotaRunner) readWord(word string, o *offer, h *quota.Holder) error {
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "only":
		o.only = strings.Split(value, ",")
		return nil
	case "try":
		return o.readAnswers(value)
	}
	lacks := strings.HasSuffix(value, "!")
	x, err := strconv.ParseFloat(strings.TrimSuffix(value, "!"), 64)
	if err != nil && key != "leaving" {
		return err
	}
	switch key {
	case "prio":
		o.wish.Priority = int64(x)
	case "at":
		o.wish.At = int64(x)
	case "since":
		h.Since = int64(x)
	case "leaving":
		h.Leaving = true
	default:
		amount := resource.Amount(x*1000 + 0.5)
		if !strings.Contains(key, ":") {
			if n := r.state.Resource(key); n != quota.None {
				o.needs = append(o.needs, quota.Need{Resource: n, Amount: amount})
				slices.SortFunc(o.needs, func(a, b quota.Need) int { return int(a.Resource - b.Resource) })
			}
			return nil
		}
		fr := r.frNumber(key)
		if fr == quota.None {
			return fmt.Errorf("nobody has a quota of %s", key)
		}
		o.wish.Charges = append(o.wish.Charges, quota.Charge{FR: fr, Amount: amount})
		if lacks {
			o.wish.Lacks = append(o.wish.Lacks, fr)
		}
	}
	return nil
}

// likeShown compares what an account may take, or its share, with what Kueue says.
func (r *quotaRunner) likeShown(name, what string, words []string) error {
	if err := r.countState(); err != nil {
		return err
	}
	n := int32(slices.Index(r.state.Names, name))
	if n == quota.None {
		return fmt.Errorf("no account %s", name)
	}
	var got []string
	if what == "share" {
		x := r.state.Share(n)
		if got = append(got, strconv.FormatInt(x.PerMille(), 10)); x.Resource != quota.None {
			got = append(got, r.state.Resources[x.Resource])
		}
	}
	for i := 0; what == "available" && i < len(words); i++ {
		key, _, _ := strings.Cut(words[i], "=")
		fr := r.frNumber(key)
		if fr == quota.None {
			return fmt.Errorf("nobody has a quota of %s", key)
		}
		got = append(got, fmt.Sprintf("%s=%g", key, inUnits(r.state.Available(n, fr))))
	}
	if slices.Equal(got, words) {
		r.said.WriteString("like it\n")
		return nil
	}
	fmt.Fprintf(&r.said, "unlike it: %s %s %s\n", name, what, strings.Join(got, " "))
	return nil
}

// frNumber is the number of "FLAVOR:RESOURCE", or None.
func (r *quotaRunner) frNumber(key string) int32 {
	return int32(slices.IndexFunc(r.state.FRs, func(x quota.FR) bool {
		return r.state.Flavors[x.Flavor].Name+":"+r.state.Resources[x.Resource] == key
	}))
}

func (r *quotaRunner) addHolder(name string, h quota.Holder) {
	r.names, r.held = append(r.names, name), append(r.held, h)
	r.state.Add(h.Queue, h.Charges)
}

func (r *quotaRunner) offerJob(o *offer) {
	var who []string
	for _, v := range r.state.Victims(o.wish, r.held, nil) {
		who = append(who, fmt.Sprintf("%s (%s)", r.names[v.Holder], v.Cause))
	}
	slices.Sort(who)
	if len(who) == 0 {
		who = []string{"nobody"}
	}
	fmt.Fprintf(&r.said, "%s stops %s\n", o.job, strings.Join(who, ", "))
}

// modes are how answers and needs call quota.Mode.
var modes = [...]string{"never fits", "has to wait", "may stop jobs of its queue", "may reclaim", "fits"}

// readAnswers reads "[FLAVOR:RESOURCE:]none|preempt|reclaim/LEVEL".
func (o *offer) readAnswers(text string) error {
	word, level, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(level)
	if o.try == nil {
		o.try = map[string]answer{}
	}
	fr := ""
	if i := strings.LastIndex(word, ":"); i >= 0 {
		fr, word = word[:i], word[i+1:]
	}
	mode := slices.Index([]string{"", "none", "preempt", "reclaim"}, word)
	if mode < 1 || err != nil {
		return fmt.Errorf("%s: want none, preempt or reclaim, and a level", text)
	}
	o.try[fr] = answer{quota.Mode(mode), int32(n)}
	return nil
}

func (r *quotaRunner) computeNeeds(o *offer) {
	try := r.state.Try(o.wish, r.held)
	if o.try != nil {
		try = func(fr int32, _ resource.Amount) (quota.Mode, int32) {
			x := r.state.FRs[fr]
			a, ok := o.try[r.state.Flavors[x.Flavor].Name+":"+r.state.Resources[x.Resource]]
			if !ok {
				a = o.try[""]
			}
			return a.mode, a.level
		}
	}
	var may func(int32) bool
	if o.only != nil {
		may = func(f int32) bool { return slices.Contains(o.only, r.state.Flavors[f].Name) }
	}
	a := r.state.Assign(o.wish.Queue, o.needs, may, try)
	r.last = a
	fmt.Fprintf(&r.said, "%s %s", o.job, modes[a.Mode])
	if len(a.Flavors) > 0 {
		fmt.Fprintf(&r.said, " in %s", r.flavorNames(a.Flavors))
	}
	if a.Level > 0 {
		fmt.Fprintf(&r.said, ", borrowing from level %d", a.Level)
	}
	r.said.WriteString("\n")
}

// likeNeed compares the last need with what Kueue answers.
func (r *quotaRunner) likeNeed(args []string) error {
	if len(args) > 1 && (args[1] == "available" || args[1] == "share") {
		return r.likeShown(args[0], args[1], args[2:])
	}
	if len(args) != 3 {
		return fmt.Errorf("like fits|waits|never in=FLAVOR,… level=0")
	}
	word := "waits"
	switch r.last.Mode {
	case quota.NoFit:
		word = "never"
	case quota.Fit:
		word = "fits"
	}
	names := strings.Split(r.flavorNames(r.last.Flavors), ",")
	slices.Sort(names)
	got := []string{word, "in=" + strings.Join(names, ","), fmt.Sprintf("level=%d", r.last.Level)}
	if slices.Equal(got, args) {
		r.said.WriteString("like it\n")
		return nil
	}
	fmt.Fprintf(&r.said, "unlike it: %s\n", strings.Join(got, " "))
	return nil
}

func (r *quotaRunner) flavorNames(list []int32) string {
	var out []string
	for _, f := range list {
		out = append(out, r.state.Flavors[f].Name)
	}
	return strings.Join(out, ",")
}

// admitOffered lets in what was offered, as long as anything fits.
func (r *quotaRunner) admitOffered() {
	for {
		var entries []quota.Entry
		var from []int
		seen := map[int32]bool{}
		slices.SortStableFunc(r.offers, func(a, b offer) int { return a.compareOffer(&b) })
		for i := range r.offers {
			o := &r.offers[i]
			a := r.state.Assign(o.wish.Queue, o.needs, nil, nil)
			if seen[o.wish.Queue] || a.Mode != quota.Fit {
				seen[o.wish.Queue] = seen[o.wish.Queue] || r.state.Strict(o.wish.Queue)
				continue
			}
			seen[o.wish.Queue] = true
			entries = append(entries, quota.Entry{Queue: o.wish.Queue, Charges: a.Charges, Level: a.Level})
			from = append(from, i)
			o.wish.Lacks = a.Flavors
		}
		roots := map[int32]bool{}
		if len(entries) == 0 {
			break
		}
		root := r.state.Root(entries[0].Queue)
		roots[root] = true
		var mine []quota.Entry
		var of []int
		for i, e := range entries {
			if roots[r.state.Root(e.Queue)] {
				mine, of = append(mine, e), append(of, from[i])
			}
		}
		k := r.state.First(mine, func(i, j int) bool { return i < j })
		o := r.offers[of[k]]
		fmt.Fprintf(&r.said, "%s in %s\n", o.job, r.flavorNames(o.wish.Lacks))
		r.addHolder(o.job, quota.Holder{Queue: o.wish.Queue, Charges: mine[k].Charges, Priority: o.wish.Priority, At: o.wish.At})
		r.offers = slices.Delete(r.offers, of[k], of[k]+1)
	}
	for i := range r.offers {
		fmt.Fprintf(&r.said, "%s waits\n", r.offers[i].job)
	}
}

func (o *offer) compareOffer(p *offer) int {
	switch {
	case o.wish.Priority != p.wish.Priority:
		return int(p.wish.Priority - o.wish.Priority)
	case o.wish.At != p.wish.At:
		return int(o.wish.At - p.wish.At)
	}
	return o.order - p.order
}

// showAccount says how an account stands.
func (r *quotaRunner) showAccount(args []string) error {
	if err := r.countState(); err != nil {
		return err
	}
	for _, name := range args {
		n := int32(slices.Index(r.state.Names, name))
		if n == quota.None {
			return fmt.Errorf("no account %s", name)
		}
		fmt.Fprintf(&r.said, "%s:", name)
		for fr := range int32(len(r.state.FRs)) {
			fmt.Fprintf(&r.said, " %s %g of %g, %g available;", r.state.Text(fr), inUnits(r.state.Used(n, fr)), inUnits(r.state.Subtree(n, fr)), inUnits(r.state.Available(n, fr)))
		}
		fmt.Fprintf(&r.said, " share %d\n", r.state.Share(n).PerMille())
	}
	return nil
}

func inUnits(a resource.Amount) float64 { return float64(a) / 1000 }
