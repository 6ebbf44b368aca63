package squeue

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

const usageText = `Usage: squeue [-A account] [-i seconds] [-j jobid] [-n name] [-o format] [-O format]
              [-p partitions] [-q qos] [-R reservation] [-S fields] [--start]
              [-t states] [-u user_name] [-w nodes] [--me] [--json] [-ahlrsv]
`

// Main is squeue with its arguments. The result is its exit code.
func Main(args []string, stdio slurmcmd.Stdio) int {
	q := &query{Command: slurmcmd.Begin("squeue", stdio)}
	done, err := q.parse(args)
	for err == nil && !done {
		err = q.showJobs()
		if q.iterate == 0 || err != nil {
			break
		}
		q.Out.WriteByte('\n')
		_ = q.Out.Flush()
		time.Sleep(q.iterate)
		q.Now = time.Now()
	}
	return q.Finish(err)
}

// query is what is asked for.
type query struct {
	*slurmcmd.Command
	ids, users, accounts, partitions, qos, names, states, reservations, licenses, nodes []string

	format, long    string   // of -o and -O
	namesCluster    bool     // a column of the format is the cluster's name
	heading         string   // the cluster's name, which stands above the table with -M
	pools           []string // of --clusters; none: all
	sort            string
	wide, start     bool // -l, --start
	noHeader, array bool
	steps, json     bool
	jsonForm        string
	iterate         time.Duration
	help, version   bool
	wantMe, notMe   bool
	onlyState       bool // --only-job-state: numbers and states alone
	perPartition    bool // -P: a job that waits has a line for each of its partitions

	listLetters, listNames, listStates bool // --helpformat, --helpFormat, --helpstate
}

// Options lists the options of squeue, for documents and tests.
func Options() []slurmcmd.Option { return (&query{Command: &slurmcmd.Command{}}).options() }

func (q *query) options() []slurmcmd.Option {
	return append(q.ClusterOptions(), []slurmcmd.Option{
		slurmcmd.List("accounts", 'A', &q.accounts),
		{Short: 'U', Same: "accounts"},
		slurmcmd.Ignored("all", 'a', getopt.None),
		slurmcmd.Flag("array", 'r', &q.array),
		slurmcmd.Alias("array-unique", "array"),
		slurmcmd.Autocomplete(),
		slurmcmd.Ignored("expand-patterns", 0, getopt.None), // the names of files have no patterns here
		slurmcmd.Ignored("federation", 0, getopt.None),
		slurmcmd.Text("format", 'o', &q.format),
		slurmcmd.Text("Format", 'O', &q.long),
		slurmcmd.Flag("help", 0, &q.help),
		slurmcmd.Flag("helpformat", 0, &q.listLetters),
		slurmcmd.Flag("helpFormat", 0, &q.listNames),
		slurmcmd.Flag("helpstate", 0, &q.listStates),
		slurmcmd.Ignored("hide", 0, getopt.None),
		{Long: "iterate", Short: 'i', Arg: getopt.Required, Do: q.setIterate},
		slurmcmd.Numbers("jobs", 'j', q.addIDs, func() {}),
		{Long: "json", Arg: getopt.Optional, Do: func(s string) error { q.json, q.jsonForm = true, s; return nil }},
		slurmcmd.List("licenses", 'L', &q.licenses),
		slurmcmd.Ignored("local", 0, getopt.None),
		slurmcmd.Flag("long", 'l', &q.wide),
		slurmcmd.Flag("me", 0, &q.wantMe),
		slurmcmd.List("name", 'n', &q.names),
		slurmcmd.Alias("names", "name"),
		slurmcmd.Ignored("noconvert", 0, getopt.None),
		slurmcmd.Flag("noheader", 'h', &q.noHeader),
		slurmcmd.Filter("nodelist", 'w', q.addNodes),
		slurmcmd.Alias("node", "nodelist"),
		slurmcmd.Alias("nodes", "nodelist"),
		slurmcmd.Flag("notme", 0, &q.notMe),
		slurmcmd.Flag("only-job-state", 0, &q.onlyState),
		slurmcmd.List("partitions", 'p', &q.partitions),
		slurmcmd.Flag("priority", 'P', &q.perPartition),
		slurmcmd.List("qos", 'q', &q.qos),
		slurmcmd.List("reservation", 'R', &q.reservations),
		slurmcmd.Ignored("sibling", 0, getopt.None),
		slurmcmd.Alias("sib", "sibling"),
		slurmcmd.Text("sort", 'S', &q.sort),
		slurmcmd.Flag("start", 0, &q.start),
		slurmcmd.Filter("states", 't', q.addStates),
		slurmcmd.Numbers("steps", 's', func(s string) error { q.steps = true; return q.addIDs(s) }, func() { q.steps = true }),
		slurmcmd.Flag("usage", 0, &q.help),
		slurmcmd.List("user", 'u', &q.users),
		slurmcmd.Alias("users", "user"),
		slurmcmd.Ignored("verbose", 'v', getopt.None),
		slurmcmd.Flag("version", 'V', &q.version),
		slurmcmd.Refused("yaml", 0, getopt.Optional, "--json is there"),
	}...)
}

// parse reads the command line; done means that there is nothing more to do.
func (q *query) parse(args []string) (done bool, err error) {
	rest, err := slurmcmd.Parse(q.options(), args)
	switch {
	case err != nil:
		return true, err
	case q.help:
		q.Out.WriteString(usageText)
		return true, nil
	case q.version:
		q.Out.WriteString(slurmcmd.Version + "\n")
		return true, nil
	case q.listLetters, q.listNames, q.listStates:
		q.writeLists()
		return true, nil
	case q.steps && q.onlyState:
		return true, slurmcmd.Textf("Options --only-job-state and -s(--steps) are mutually exclusive. Please remove one and retry.")
	case q.steps && q.json:
		return true, fault.New(fault.Unsupported, "--steps --json is not built yet").Advise("leave one of them out")
	case len(rest) > 0:
		q.Out.WriteString(usageText)
		return true, slurmcmd.Textf("Unrecognized option: %s", rest[0])
	}
	if q.wantMe {
		q.users = append(q.users, strconv.Itoa(slurmcmd.Me()))
	}
	q.checkUsers()
	q.readEnvironment()
	if q.onlyState && q.format == "" && q.long == "" {
		q.format = formatState
	}
	q.heading, q.pools, err = q.CheckPools()
	return false, err
}

// writeLists writes what formats and states there are.
func (q *query) writeLists() {
	if q.listStates {
		q.Out.WriteString(strings.Join(jobs.StateNames, "\n") + "\n")
		return
	}
	var letters, names []string
	for _, f := range jobs.Fields() {
		if f.Letter != 0 {
			letters = append(letters, "%"+string(f.Letter))
		}
		names = append(names, f.Long)
	}
	if q.listLetters {
		slurmcmd.WriteColumns(q.Out, letters, 8, 6)
		return
	}
	slurmcmd.WriteColumns(q.Out, names, 4, 20)
}

// readEnvironment takes the SQUEUE_* variables for options that were not given.
func (q *query) readEnvironment() {
	if q.format == "" && q.long == "" && !q.wide && !q.start {
		q.format, q.long = q.Getenv("SQUEUE_FORMAT"), q.Getenv("SQUEUE_FORMAT2")
	}
	if q.sort == "" {
		q.sort = q.Getenv("SQUEUE_SORT")
	}
	for name, flag := range map[string]*bool{"SQUEUE_ARRAY": &q.array, "SQUEUE_PRIORITY": &q.perPartition} {
		if _, ok := q.LookupEnv(name); ok {
			*flag = true
		}
	}
	if v, ok := q.LookupEnv("SQUEUE_LICENSES"); ok && len(q.licenses) == 0 {
		q.licenses = slurmcmd.SplitFilter(v)
	}
	for name, list := range map[string]*[]string{
		"SQUEUE_ACCOUNT": &q.accounts, "SQUEUE_NAMES": &q.names, "SQUEUE_PARTITION": &q.partitions, "SQUEUE_QOS": &q.qos, "SQUEUE_USERS": &q.users,
	} {
		if v, ok := q.LookupEnv(name); ok && len(*list) == 0 {
			*list = slurmcmd.SplitFilter(v)
		}
	}
	q.ChooseClustersFrom("SLURM_CLUSTERS")
	if v, ok := q.LookupEnv("SQUEUE_STATES"); ok && len(q.states) == 0 {
		_ = q.addStates(v)
	}
}

// checkUsers complains of names that this machine does not know, as Slurm does, and
// asks for them all the same: the server may know them.
func (q *query) checkUsers() {
	for _, u := range q.users {
		if _, ok := slurmcmd.UserID(u); !ok && u != "" {
			q.Errorf("Invalid user: %s", u)
		}
	}
}

func (q *query) setIterate(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n <= 0 {
		return errors.New("--iterate must be a positive number of seconds, not " + s)
	}
	q.iterate = time.Duration(n) * time.Second
	return nil
}

func (q *query) addIDs(s string) error {
	for _, id := range slurmcmd.SplitFilter(s) {
		if _, err := slurmfmt.ParseJobID(id); err != nil && id != "" {
			return slurmcmd.Textf("Invalid job id: %s", id)
		}
		q.ids = append(q.ids, id)
	}
	return nil
}

// addNodes reads the argument of -w.
func (q *query) addNodes(s string) error {
	if _, err := hostlist.Expand(s); err != nil && strings.Trim(s, ",") != "" {
		return slurmcmd.Textf("Invalid node name %s", s)
	}
	q.nodes = append(q.nodes, slurmcmd.SplitFilter(s)...)
	return nil
}

// addStates reads the argument of -t.
func (q *query) addStates(s string) error {
	for _, word := range slurmcmd.SplitFilter(s) {
		if word == "" {
			q.states = append(q.states, "")
			continue
		}
		if strings.EqualFold(word, "all") {
			q.states = append(q.states, "all")
			continue
		}
		long, err := slurmfmt.ParseState(word)
		if err != nil {
			return slurmcmd.Textf("Invalid job state specified: %s\nsqueue: error: Valid job states include: %s", word, strings.Join(jobs.StateNames, ","))
		}
		q.states = append(q.states, long)
	}
	return nil
}
