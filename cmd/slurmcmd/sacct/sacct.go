package sacct

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/slurmjson"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/stepusage"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

const usageText = `Usage: sacct [-A accounts] [-a] [-B] [-b] [-E endtime] [-e] [-j jobs] [-l] [-N nodes] [-n] [--name names]
             [-o fields] [-P | -p] [-q qos] [-r partitions] [-S starttime] [-s states] [-u users] [-X] [--json]
`

// The formats that sacct has for itself.
const (
	formatDefault = "jobid,jobname,partition,account,alloccpus,state,exitcode"
	formatBrief   = "jobid,state,exitcode"
	formatLong    = "jobid,jobidraw,jobname,partition,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,maxrssnode,maxrsstask," +
		"averss,maxpages,maxpagesnode,maxpagestask,avepages,mincpu,mincpunode,mincputask,avecpu,ntasks,alloccpus,elapsed,state,exitcode," +
		"avecpufreq,reqcpufreqmin,reqcpufreqmax,reqcpufreqgov,reqmem,consumedenergy,maxdiskread,maxdiskreadnode,maxdiskreadtask," +
		"avediskread,maxdiskwrite,maxdiskwritenode,maxdiskwritetask,avediskwrite,reqtres,alloctres"
)

// Main is sacct with its arguments. The result is its exit code.
func Main(args []string, stdio slurmcmd.Stdio) int {
	q := &query{Command: slurmcmd.Begin("sacct", stdio), delimiter: "|"}
	return q.Finish(q.run(args))
}

// query is what is asked for.
type query struct {
	*slurmcmd.Command
	ids, users, accounts, partitions, qos, names, states, nodes []string

	steps []string // of ids, one each; empty: the whole job

	format, delimiter          string
	from, to                   time.Time
	all, alone, noHeader, help bool
	version, list, script      bool
	parsable, bar, environ     bool // bar: no delimiter at the end of a line
	json, duplicates           bool // duplicates: attempts before the last one too
	jsonForm                   string
	listReasons, listStates    bool // --helpreason, --helpstate
	choice                     choice
	units                      stepusage.Units
	eachTask                   bool // --array: waiting tasks of an array have a line each
}

// Options lists the options of sacct, for documents and tests.
func Options() []slurmcmd.Option { return (&query{Command: &slurmcmd.Command{}}).options() }

func (q *query) options() []slurmcmd.Option {
	preset := func(f string) func(string) error { return func(string) error { q.format = f; return nil } }
	return slices.Concat(q.ClusterOptions(), q.choice.options(), []slurmcmd.Option{
		slurmcmd.List("accounts", 'A', &q.accounts),
		slurmcmd.Flag("allocations", 'X', &q.alone),
		slurmcmd.Flag("allusers", 'a', &q.all),
		slurmcmd.Ignored("allclusters", 'L', getopt.None),
		slurmcmd.Flag("array", 0, &q.eachTask),
		slurmcmd.Refused("associations", 'x', getopt.Required, "associations have no numbers here; -A and -u choose by account and user"),
		slurmcmd.Autocomplete(),
		slurmcmd.Flag("batch-script", 'B', &q.script),
		{Long: "brief", Short: 'b', Do: preset(formatBrief)},
		slurmcmd.Refused("completion", 'c', getopt.None, "leave it out: all jobs stand in the store"),
		slurmcmd.Text("delimiter", 0, &q.delimiter),
		slurmcmd.Flag("duplicates", 'D', &q.duplicates),
		{Long: "endtime", Short: 'E', Arg: getopt.Required, Do: q.timeOption(&q.to)},
		slurmcmd.Flag("env-vars", 0, &q.environ),
		slurmcmd.Ignored("expand-patterns", 0, getopt.None), // the names of files have no patterns here
		slurmcmd.Ignored("federation", 0, getopt.None),
		slurmcmd.Alias("fields", "format"),
		slurmcmd.Refused("file", 'f', getopt.Required, "leave it out: all jobs are in the server's history"),
		slurmcmd.Refused("flags", 'F', getopt.Required, "the history does not keep which pass started a job"),
		{Long: "format", Short: 'o', Arg: getopt.Required, Do: func(s string) error { q.format = strings.TrimPrefix(q.format+","+s, ","); return nil }},
		slurmcmd.Flag("help", 'h', &q.help),
		slurmcmd.Flag("helpformat", 'e', &q.list),
		slurmcmd.Alias("help-fields", "helpformat"),
		slurmcmd.Flag("helpreason", 0, &q.listReasons),
		slurmcmd.Flag("helpstate", 0, &q.listStates),
		slurmcmd.Filter("jobs", 'j', q.addIDs),
		{Long: "json", Arg: getopt.Optional, Do: func(s string) error { q.json, q.jsonForm = true, s; return nil }},
		slurmcmd.Ignored("local", 0, getopt.None),
		{Long: "long", Short: 'l', Do: preset(formatLong)},
		slurmcmd.List("name", 0, &q.names),
		slurmcmd.Flag("noconvert", 0, &q.units.Raw),
		slurmcmd.Filter("nodelist", 'N', q.addNodes),
		slurmcmd.Flag("noheader", 'n', &q.noHeader),
		slurmcmd.Flag("parsable", 'p', &q.parsable),
		slurmcmd.Flag("parsable2", 'P', &q.bar),
		slurmcmd.List("partition", 'r', &q.partitions),
		slurmcmd.List("qos", 'q', &q.qos),
		{Long: "starttime", Short: 'S', Arg: getopt.Required, Do: q.timeOption(&q.from)},
		slurmcmd.Filter("state", 's', q.addStates),
		slurmcmd.Ignored("truncate", 'T', getopt.None),
		{Long: "units", Arg: getopt.Required, Do: q.setUnit},
		slurmcmd.Flag("usage", 'U', &q.help),
		slurmcmd.List("user", 'u', &q.users),
		slurmcmd.Alias("uid", "user"),
		slurmcmd.Ignored("use-local-uid", 0, getopt.None),
		slurmcmd.Ignored("verbose", 'v', getopt.None),
		slurmcmd.Flag("version", 'V', &q.version),
		slurmcmd.Refused("wckeys", 'W', getopt.Required, "jobs have no workload keys"),
		slurmcmd.Ignored("whole-hetjob", 0, getopt.Optional),
		slurmcmd.Refused("yaml", 0, getopt.Optional, "--json is there"),
	})
}

func (q *query) run(args []string) error {
	rest, err := slurmcmd.Parse(q.options(), args)
	switch {
	case err != nil:
		return err
	case q.Told(q.help, usageText, q.version):
		return nil
	case q.list:
		q.printNames()
		return nil
	case q.listReasons:
		q.Out.WriteString(strings.Join(reasonWords(), "\n") + "\n")
		return nil
	case q.listStates:
		q.Out.WriteString(strings.Join(jobs.StateNames, "\n") + "\n")
		return nil
	case (q.script || q.environ) && q.json:
		return fault.New(fault.Unsupported, "--json of scripts and environments is not built yet").Advise("leave --json out")
	case len(rest) > 0:
		return slurmcmd.Textf("Unrecognized option: %s", rest[0])
	}
	if _, err := q.CheckClusters(); err != nil {
		return err
	}
	if q.script || q.environ {
		return q.showBlob()
	}
	for _, u := range q.users {
		if _, ok := slurmcmd.UserID(u); !ok {
			return slurmcmd.Textf("Invalid user id: %s", u)
		}
	}
	q.applyDefaults()
	if q.from.After(q.to) {
		const form = "2006-01-02T15:04:05"
		return slurmcmd.Textf("Start time (%s) requested is after end time (%s).", q.from.Format(form), q.to.Format(form))
	}
	return q.showJobs()
}

// applyDefaults are what sacct means where nothing is said: a window of time, and one's own
// jobs unless root asks.
func (q *query) applyDefaults() {
	if q.format == "" {
		q.format = q.Getenv("SACCT_FORMAT")
	}
	if q.format == "" {
		q.format = formatDefault
	}
	q.applyWindow()
	if len(q.ids) > 0 {
		return
	}
	if len(q.users) == 0 && !q.all && slurmcmd.Me() != 0 {
		q.users = []string{strconv.Itoa(slurmcmd.Me())}
	}
}

func (q *query) setUnit(s string) error {
	if len(s) != 1 || !strings.Contains("KMGTP", s) {
		return &slurmcmd.PlainError{Text: "sacct: fatal: Invalid unit specified: " + s + ", write K, M, G, T or P"}
	}
	q.units.Unit = s[0]
	return nil
}

func (q *query) addIDs(s string) error {
	for _, text := range slurmcmd.Split(s) {
		id, err := slurmfmt.ParseJobID(text)
		if err != nil {
			return &slurmcmd.PlainError{Text: "sacct: fatal: Bad job/step specified: " + text}
		}
		text, _, _ = strings.Cut(text, "+")
		if id.Step != "" {
			text, _, _ = strings.Cut(text, ".")
		}
		q.ids, q.steps = append(q.ids, text), append(q.steps, id.Step)
	}
	return nil
}

func (q *query) addNodes(s string) error {
	if strings.Trim(s, ",") == "" {
		q.nodes = append(q.nodes, "")
		return nil
	}
	names, err := hostlist.Expand(s)
	q.nodes = append(q.nodes, names...)
	return err
}

func (q *query) addStates(s string) error {
	for _, word := range slurmcmd.SplitFilter(s) {
		long, err := slurmfmt.ParseState(word)
		if err != nil && word != "" {
			return &slurmcmd.PlainError{Text: "sacct: fatal: unrecognized job state value '" + word + "'"}
		}
		q.states = append(q.states, long)
	}
	return nil
}

// timeOption reads -S and -E. Unlike --begin these look back: a time of day is today's,
// "now-7days" is a week ago.
func (q *query) timeOption(to *time.Time) func(string) error {
	return func(s string) error {
		t, err := parsePastTime(s, q.Now)
		if err != nil {
			return &slurmcmd.PlainError{Text: "Invalid time specification (pos=0): " + s}
		}
		*to = t
		return nil
	}
}

func parsePastTime(s string, now time.Time) (time.Time, error) {
	if back, ok := strings.CutPrefix(strings.ToLower(s), "now-"); ok {
		t, err := slurmfmt.ParseWhen("now+"+back, now)
		return now.Add(-t.Sub(now)), err
	}
	t, err := slurmfmt.ParseWhen(s, now)
	if err != nil || !t.After(now) || strings.HasPrefix(strings.ToLower(s), "now") || strings.EqualFold(s, "tomorrow") {
		return t, err
	}
	if strings.Contains(s, "/") {
		return t.AddDate(-1, 0, 0), nil
	}
	if len(s) <= len("00:00:00 PM") && strings.Contains(s, ":") || !strings.ContainsAny(s, "0123456789") {
		return t.AddDate(0, 0, -1), nil
	}
	return t, nil
}

// showJobs asks for the jobs and prints them.
func (q *query) showJobs() error {
	cols, err := q.parseColumns()
	if err != nil {
		return err
	}
	var want jobs.Want
	want.Add(column.ID, column.State, column.Flags, column.Started, column.ScriptHash, column.HetSize, column.NodeList)
	want.Add(q.choice.needs()...)
	want.Add(column.Name, column.ArrayJob, column.ArrayTask, column.ArrayLimit)
	want.Add(column.Submitted, column.Eligible, column.Ended, column.CancelledBy)
	if q.duplicates {
		want.Add(column.Past)
	}
	if !q.alone {
		want.Add(column.Steps)
	}
	if slices.Contains(q.states, "SUSPENDED") {
		want.Add(span...)
	}
	for _, c := range cols {
		want.Add(c.needs...)
	}
	if q.json {
		want.Add(slurmjson.AccountColumns()...)
	}
	rows, err := q.fetchRows(&want)
	if err != nil {
		return err
	}
	if q.json || slices.ContainsFunc(cols, func(f field) bool { return f.name == "Cluster" }) {
		if rows.Cluster, err = q.ClusterName(); err != nil {
			return err
		}
	}
	if q.duplicates {
		if rows, err = rows.WithPast(); err != nil {
			return err
		}
	}
	list := q.chooseRows(rows)
	if q.json {
		return slurmjson.Account(q.Command, q.jsonForm, list)
	}
	if !q.eachTask {
		list = groupTasks(list)
	}
	q.printTable(cols, list)
	return nil
}

// fetchRows gets the jobs.
func (q *query) fetchRows(want *jobs.Want) (*jobs.Rows, error) {
	if slurmcmd.MatchesNothing(q.users, q.accounts, q.partitions, q.qos, q.names, q.nodes, q.states, q.choice.constraints, q.choice.groups, q.choice.reasons) {
		return jobs.None(want, q.Now), nil
	}
	c, err := q.Client()
	if err != nil {
		return nil, err
	}
	rows, err := jobs.Get(c, "/v1/history", want, q.Now, q.requestParams()...)
	if slurmcmd.IsNotFound(err) {
		return jobs.None(want, q.Now), nil
	}
	return rows, err
}

func (q *query) requestParams() []string {
	stamp := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	return []string{
		"ids", strings.Join(q.ids, ","), "users", slurmcmd.JoinFilter(q.users), "accounts", slurmcmd.JoinFilter(q.accounts),
		"partitions", slurmcmd.JoinFilter(q.partitions), "qos", slurmcmd.JoinFilter(q.qos), "names", slurmcmd.JoinFilter(q.names),
		"states", q.statesParam(), "from", stamp(q.from), "to", stamp(q.to),
	}
}

// chooseRows takes the jobs that are asked for, oldest first.
func (q *query) chooseRows(rows *jobs.Rows) []jobs.Row {
	var out []jobs.Row
	for i := range rows.Len() {
		r := rows.Row(i)
		if !q.inWindow(r) || !q.onNodes(r) || !q.choice.takes(r) {
			continue
		}
		if n := int(r.Int(column.HetSize)); n > 1 {
			for k := n - 1; k >= 0; k-- {
				out = append(out, r.Component(k))
			}
			continue
		}
		out = append(out, r)
	}
	slices.Reverse(out)
	slices.SortStableFunc(out, func(a, b jobs.Row) int { return int(a.Int(column.ID) - b.Int(column.ID)) })
	return out
}

func (q *query) onNodes(r jobs.Row) bool {
	if len(q.nodes) == 0 {
		return true
	}
	names, err := hostlist.Expand(r.Text(column.NodeList))
	return err == nil && slices.ContainsFunc(names, func(n string) bool { return slices.Contains(q.nodes, n) })
}

// hasBatch reports whether the job's batch script ran.
func hasBatch(r jobs.Row) bool {
	return len(r.Bytes(column.ScriptHash)) > 0 && r.Int(column.Started) > 0 && r.Base() != job.Pending && r.Part() <= 0
}

// showBlob prints the script or the environment of the jobs.
func (q *query) showBlob() error {
	if len(q.ids) == 0 {
		return slurmcmd.Textf("This option requires a job list (-j)")
	}
	c, err := q.Client()
	if err != nil {
		return err
	}
	what, title := "script", "Batch Script for "
	if q.environ {
		what, title = "environment", "Environment used for "
	}
	for _, id := range q.ids {
		r, err := c.Get("/v1/jobs/"+fastclient.Segment(id)+"/"+what, "text/plain")
		if err != nil {
			return err
		}
		b, err := r.All()
		if err != nil {
			return err
		}
		text := strings.ReplaceAll(string(b), "\x00", "\n")
		q.Out.WriteString(title + id + "\n" + strings.Repeat("-", 80) + "\n" + text + "\n")
	}
	return nil
}
