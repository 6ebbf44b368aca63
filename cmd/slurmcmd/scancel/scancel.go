package scancel

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

const usageText = `Usage: scancel [-A account] [-b] [-f] [-i] [-n job_name] [-p partition] [-Q] [-q qos]
               [-s signal | integer] [-t PENDING | RUNNING | SUSPENDED] [-u user_name]
               [--me] [-v] [-w nodes] [job_id[_array_id]]...
`

// Exit codes of Slurm's errors: the lowest byte of their numbers.
const (
	exitDenied = 210 // 2002, access denied
	exitAlter  = 228 // 2020, can not be altered now
)

// Main is scancel with its arguments. The result is its exit code.
func Main(args []string, stdio slurmcmd.Stdio) int {
	k := &killer{Command: slurmcmd.Begin("scancel", stdio)}
	return k.Finish(k.run(args))
}

// killer is what is asked for.
type killer struct {
	*slurmcmd.Command
	sel                  api.Select
	reservations         []string
	signal               string
	number               int
	batch, full, ask, me bool
	quiet, help, version bool
	verbose              int
	ctld, hurry          bool // no effect here
}

// Options lists the options of scancel, for documents and tests.
func Options() []slurmcmd.Option { return (&killer{Command: &slurmcmd.Command{}}).options() }

func (k *killer) options() []slurmcmd.Option {
	return append(k.ClusterOptions(), []slurmcmd.Option{
		slurmcmd.List("account", 'A', &k.sel.Accounts),
		slurmcmd.Autocomplete(),
		slurmcmd.Flag("batch", 'b', &k.batch),
		slurmcmd.Ignored("cron", 'c', getopt.None), // it adds cron jobs, of which there are none
		slurmcmd.Flag("ctld", 0, &k.ctld),
		slurmcmd.Flag("full", 'f', &k.full),
		slurmcmd.Flag("help", 0, &k.help),
		slurmcmd.Flag("hurry", 'H', &k.hurry),
		slurmcmd.Flag("interactive", 'i', &k.ask),
		slurmcmd.Alias("jobname", "name"),
		slurmcmd.Flag("me", 0, &k.me),
		slurmcmd.Filter("name", 'n', k.setName),
		slurmcmd.List("nodelist", 'w', &k.sel.Nodes),
		slurmcmd.List("partition", 'p', &k.sel.Partitions),
		slurmcmd.List("qos", 'q', &k.sel.QOS),
		slurmcmd.Flag("quiet", 'Q', &k.quiet),
		slurmcmd.List("reservation", 'R', &k.reservations),
		slurmcmd.Refused("sibling", 0, getopt.Required, "there are no federations"),
		{Long: "signal", Short: 's', Arg: getopt.Required, Do: k.setSignal},
		slurmcmd.Filter("state", 't', k.addStates),
		slurmcmd.Alias("states", "state"),
		slurmcmd.Flag("usage", 0, &k.help),
		slurmcmd.Filter("user", 'u', k.addUser),
		{Long: "verbose", Short: 'v', Do: func(string) error { k.verbose++; return nil }},
		slurmcmd.Flag("version", 'V', &k.version),
		slurmcmd.Refused("wckey", 0, getopt.Required, "jobs have no workload keys"),
	}...)
}

func (k *killer) run(args []string) error {
	rest, err := slurmcmd.Parse(k.options(), args)
	switch {
	case err != nil:
		return err
	case k.help:
		k.Out.WriteString(usageText)
		return nil
	case k.version:
		k.Out.WriteString(slurmcmd.Version + "\n")
		return nil
	}
	k.ChooseClustersFrom("SLURM_CLUSTERS")
	if _, k.sel.Pools, err = k.CheckPools(); err != nil {
		return err
	}
	if k.me {
		k.sel.Users = append(k.sel.Users, strconv.Itoa(slurmcmd.Me()))
	}
	for _, word := range rest {
		if err := k.addIDs(word); err != nil {
			return err
		}
	}
	filtered := k.hasFilter()
	switch {
	case len(k.sel.IDs) == 0 && !filtered && len(k.reservations) == 0:
		return slurmcmd.Textf("No job identification provided")
	case k.matchesNothing():
		return nil
	case len(k.sel.IDs) > 0 && len(k.sel.Pools) > 0 && !filtered && !k.ask:
		asked := strings.Join(k.sel.IDs, ",")
		if err := k.resolveSelection(); err != nil {
			return err
		}
		if len(k.sel.IDs) == 0 {
			return slurmcmd.Textf("Kill job error on job id %s: Invalid job id specified", asked)
		}
	case filtered && len(k.sel.IDs) > 0, k.ask, len(k.reservations) > 0:
		if err := k.resolveSelection(); err != nil || len(k.sel.IDs) == 0 {
			return err
		}
	}
	return k.sendChange()
}

// matchesNothing reports whether a filter has an empty value. Empty values beside others
// are dropped.
func (k *killer) matchesNothing() bool {
	for _, list := range []*[]string{&k.sel.Names, &k.sel.Accounts, &k.sel.Partitions, &k.sel.QOS, &k.sel.Nodes, &k.reservations} {
		if slurmcmd.MatchesNothing(*list) {
			return true
		}
		*list = slurmcmd.DropEmpty(*list)
	}
	return false
}

// hasFilter reports whether a filter was given beside or instead of numbers.
func (k *killer) hasFilter() bool {
	s := &k.sel
	return len(s.Users)+len(s.Accounts)+len(s.Partitions)+len(s.QOS)+len(s.Names)+len(s.States)+len(s.Nodes) > 0
}

func (k *killer) addIDs(word string) error {
	for _, text := range slurmcmd.SplitFilter(word) {
		id, err := slurmfmt.ParseJobID(text)
		if err != nil {
			return slurmcmd.Textf("Invalid job id %s", text)
		}
		if id.Step != "" {
			return fault.New(fault.Unsupported, "%s: steps alone cannot be cancelled yet", text).Advise("name the job, or end the step's srun")
		}
		text, _, _ = strings.Cut(text, "+") // a component of a heterogeneous job is the job
		k.sel.IDs = append(k.sel.IDs, text)
	}
	return nil
}

func (k *killer) setSignal(s string) error {
	n, err := slurmfmt.ParseSignalName(s)
	if err != nil {
		return plainError("Unknown job signal: " + s)
	}
	k.signal, k.number = s, n
	return nil
}

func (k *killer) addStates(s string) error {
	for _, word := range slurmcmd.SplitFilter(s) {
		long, err := slurmfmt.ParseState(word)
		if err != nil || long != "PENDING" && long != "RUNNING" && long != "SUSPENDED" {
			return plainError("Invalid job state specified: " + word + "\nValid job states are PENDING, RUNNING, and SUSPENDED")
		}
		k.sel.States = append(k.sel.States, long)
	}
	return nil
}

// setName takes a job's name, which may have commas in it.
func (k *killer) setName(s string) error {
	k.sel.Names = []string{s}
	return nil
}

func (k *killer) addUser(s string) error {
	if _, ok := slurmcmd.UserID(s); !ok {
		return slurmcmd.Textf("Invalid user name: %s", s)
	}
	k.sel.Users = append(k.sel.Users, s)
	return nil
}

// plainError is an error that is printed as it is, without the command's name.
func plainError(text string) error { return &slurmcmd.PlainError{Text: text} }

// resolveSelection lists what the selection means, asks about each if that is wanted, and
// makes it a selection by numbers.
func (k *killer) resolveSelection() error {
	c, err := k.Client()
	if err != nil {
		return err
	}
	var want jobs.Want
	want.Add(column.Name, column.State, column.JobName, column.Partition, column.Reservation)
	s := &k.sel
	rows, err := jobs.Get(c, "/v1/jobs", &want, k.Now,
		"ids", strings.Join(s.IDs, ","), "users", strings.Join(s.Users, ","), "accounts", slurmcmd.JoinFilter(s.Accounts),
		"partitions", slurmcmd.JoinFilter(s.Partitions), "qos", slurmcmd.JoinFilter(s.QOS),
		"states", strings.Join(s.States, ","), "nodes", slurmcmd.JoinFilter(s.Nodes), "collapse", collapseParam(s), "pools", strings.Join(s.Pools, ","))
	switch {
	case slurmcmd.IsNotFound(err):
		k.sel = api.Select{}
		return nil
	case err != nil:
		return err
	}
	in := bufio.NewReader(k.In)
	var ids []string
	for i := range rows.Len() {
		r := rows.Row(i)
		if len(k.reservations) > 0 && !contains(k.reservations, r.Text(column.Reservation)) {
			continue
		}
		if len(s.Names) > 0 && !contains(s.Names, r.Text(column.JobName)) { // a name with a comma cannot be asked for
			continue
		}
		if k.ask && !k.askJob(in, r) {
			continue
		}
		ids = append(ids, r.Text(column.Name))
	}
	k.sel = api.Select{IDs: ids}
	return nil
}

// collapseParam asks for waiting arrays as one row, unless single tasks were named.
func collapseParam(s *api.Select) string {
	for _, id := range s.IDs {
		if strings.Contains(id, "_") {
			return ""
		}
	}
	return "1"
}

func contains(list []string, v string) bool {
	for _, s := range list {
		if s == v {
			return true
		}
	}
	return false
}

// askJob asks about one job; the end of the input is a no.
func (k *killer) askJob(in *bufio.Reader, r jobs.Row) bool {
	for {
		fmt.Fprintf(k.Out, "Cancel job_id=%s name=%s partition=%s [y/n]? ", r.Text(column.Name), r.Text(column.JobName), r.Text(column.Partition))
		_ = k.Out.Flush()
		line, err := in.ReadString('\n')
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return true
		case "n", "no":
			return false
		}
		if err != nil {
			return false
		}
	}
}

// kill is the number of SIGKILL, which ends a job however it is asked for.
const kill = 9

// sendChange sends the request and tells what Slurm would tell.
func (k *killer) sendChange() error {
	var o fastclient.Object
	o.Raw("select", fastclient.Select(&k.sel))
	if k.signal == "" || k.number == kill {
		o.Text("verb", api.VerbCancel)
		if k.number == kill {
			o.Float("grace", 0)
		}
	} else {
		o.Text("verb", api.VerbSignal)
		o.Text("signal", k.signal)
		o.True("batch_only", k.batch)
		o.True("full", k.full)
	}
	c, err := k.Client()
	if err != nil {
		return err
	}
	v, err := c.JSON("POST", "/v1/jobs/change", o.End())
	if err != nil {
		return err
	}
	if k.verbose > 0 {
		for _, n := range v.Get("names").Texts() {
			k.tellSignalled(n)
		}
	}
	for _, e := range v.Get("errors").Items() {
		k.printChangeError(e.Get("name").Text(), e.Get("error"))
	}
	return nil
}

func (k *killer) tellSignalled(name string) {
	if k.signal == "" || k.number == kill {
		k.Sayf("Terminating job %s", name)
		return
	}
	k.Sayf("Signal %d to job %s", k.number, name)
}

// printChangeError reports one job that was not changed.
func (k *killer) printChangeError(name string, e fastclient.Value) {
	text, detail := "", e.Get("detail").Text()
	p := api.Error{Status: int(e.Get("status").Int()), Title: e.Get("title").Text()}
	code := 1
	switch p.FaultKind() {
	case fault.NotFound:
		text, code = "Invalid job id specified", 0
	case fault.Conflict:
		if k.signal == "" || k.number == kill {
			text, code = "Job/step already completing or completed", 0
		} else {
			text, code = "Job can not be altered now, try again later", exitAlter
		}
	case fault.Permission:
		text, code = "Access/permission denied", exitDenied
	default:
		text, detail = detail, ""
	}
	if k.Code == 0 {
		k.Code = code
	}
	if k.quiet && code == 0 || code == 0 && k.verbose == 0 {
		return
	}
	if detail != "" {
		text += " (" + detail + ")"
	}
	k.Errorf("Kill job error on job id %s: %s", name, text)
}
