package sshare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/layout"
	"github.com/coxswain-sched/coxswain/model/getopt"
)

// The formats that sshare has for itself.
const (
	formatDefault = "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare"
	formatLong    = "Account,User,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,FairShare,LevelFS,GrpTRESMins,TRESRunMins"
)

// Main is sshare with its arguments. The result is its exit code.
func Main(args []string, stdio slurmcmd.Stdio) int {
	q := &query{Command: slurmcmd.Begin("sshare", stdio)}
	return q.Finish(q.run(args))
}

// query is what is asked for.
type query struct {
	*slurmcmd.Command
	accounts, users []string
	format          string

	all, long, usersOnly bool
	parsable, bar        bool // bar: no delimiter at the end of a line
	noHeader, partition  bool
	verbose              bool
	help, usage          bool
	list, version        bool
}

// Options lists the options of sshare, for documents and tests.
func Options() []slurmcmd.Option { return (&query{Command: &slurmcmd.Command{}}).options() }

func (q *query) options() []slurmcmd.Option {
	return append(q.ClusterOptions(), []slurmcmd.Option{
		slurmcmd.List("accounts", 'A', &q.accounts),
		slurmcmd.Flag("all", 'a', &q.all),
		slurmcmd.Text("format", 'o', &q.format),
		slurmcmd.Flag("help", 0, &q.help),
		slurmcmd.Flag("helpformat", 'e', &q.list),
		slurmcmd.Flag("long", 'l', &q.long),
		slurmcmd.Flag("noheader", 'n', &q.noHeader),
		{Short: 'h', Same: "noheader"},
		slurmcmd.Autocomplete(),
		slurmcmd.Refused("json", 0, getopt.Optional, "cox shares -o json has the same figures"),
		slurmcmd.Refused("yaml", 0, getopt.Optional, "cox shares -o json has the same figures"),
		slurmcmd.Flag("parsable", 'p', &q.parsable),
		slurmcmd.Flag("parsable2", 'P', &q.bar),
		slurmcmd.Flag("partition", 'm', &q.partition),
		slurmcmd.Flag("usage", 0, &q.usage),
		slurmcmd.List("users", 'u', &q.users),
		slurmcmd.Alias("uid", "users"),
		slurmcmd.Flag("Users", 'U', &q.usersOnly),
		slurmcmd.Flag("verbose", 'v', &q.verbose),
		slurmcmd.Flag("version", 'V', &q.version),
	}...)
}

func (q *query) run(args []string) error {
	_, err := slurmcmd.Parse(q.options(), args)
	switch {
	case err != nil:
		return err
	case q.Told(q.help || q.usage, usageText, q.version):
		return nil
	case q.list:
		q.printNames()
		return nil
	}
	heading, err := q.CheckClusters()
	if err != nil {
		return err
	}
	q.WriteClusterHeading(heading)
	table, columns, err := q.columnTable()
	if err != nil {
		return err
	}
	c, err := q.Client()
	if err != nil {
		return err
	}
	v, err := c.JSON("GET", "/v1/shares", nil)
	if err != nil {
		return err
	}
	list := q.chooseRows(v.Get("shares").Items())
	if slices.ContainsFunc(columns, func(i int) bool { return fields[i].name == "Cluster" }) {
		name, err := q.ClusterName()
		if err != nil {
			return err
		}
		for i := range list {
			list[i].cluster = name
		}
	}
	q.printTable(table, columns, list)
	return nil
}

// columnTable is the columns that are asked for.
func (q *query) columnTable() (*layout.Table, []int, error) {
	spec := q.format
	switch {
	case spec != "":
	case q.long:
		spec = formatLong
	default:
		spec = formatDefault
	}
	if q.partition && q.format == "" {
		spec = strings.Replace(spec, ",User,", ",User,Partition,", 1)
	}
	columns, widths, err := layout.Fields(spec, findField, func(i int) int { return fields[i].width })
	if err != nil {
		return nil, nil, slurmcmd.Textf("Invalid field requested: \"%s\"", err)
	}
	t := &layout.Table{NoHeader: q.noHeader, Last: !q.bar}
	if q.parsable || q.bar {
		t.Delimiter = "|"
	}
	for i, n := range columns {
		t.Fields = append(t.Fields, layout.Field{Name: fields[n].name, Width: widths[i], Whole: fields[n].isDecimal()})
	}
	return t, columns, nil
}

// row is an account or a user, and how far it is indented.
type row struct {
	fastclient.Value
	cluster string
	indent  int
	norm    float64 // normalised shares: those of the account above where it has none of its own
}

func (r row) isRoot() bool { return r.Get("depth").Int() == 0 && r.Get("user").Text() == "" }

// chooseRows leaves out who is not asked about: other users unless all are wanted, and
// accounts that are not named. An account whose parent is left out is not indented.
func (q *query) chooseRows(list []fastclient.Value) (out []row) {
	users := q.users
	if len(users) == 0 {
		users = []string{slurmcmd.MyName()}
	}
	for i := range users {
		users[i] = slurmcmd.UserName(users[i])
	}
	if q.verbose {
		q.printChoice("Users", users, q.all)
		q.printChoice("Accounts", q.accounts, len(q.accounts) == 0)
	}
	depth, shares := map[string]int{}, map[string]float64{}
	for _, v := range list {
		name, account, above := v.Get("user").Text(), v.Get("account").Text(), v.Get("parent").Text()
		r := row{Value: v, norm: v.Get("norm_shares").Float()}
		switch {
		case r.isRoot():
			r.norm = 0
		case v.Get("raw_shares").Int() < 0:
			r.norm = shares[above]
		}
		if name == "" {
			shares[account] = r.norm
		}
		switch {
		case len(q.accounts) > 0 && !containsFold(q.accounts, account),
			name != "" && !q.all && !slices.Contains(users, name),
			name == "" && q.usersOnly:
			continue
		}
		if d, ok := depth[above]; ok {
			r.indent = d + 1
		}
		if name == "" {
			depth[account] = r.indent
		}
		out = append(out, r)
	}
	return out
}

// printChoice says what was asked for.
func (q *query) printChoice(what string, names []string, all bool) {
	if all {
		names = []string{"all"}
	}
	fmt.Fprintf(q.Err, "%s requested:\n", what)
	for _, n := range names {
		fmt.Fprintf(q.Err, "\t: %s\n", n)
	}
}

func containsFold(list []string, s string) bool {
	return slices.ContainsFunc(list, func(x string) bool { return strings.EqualFold(x, s) })
}

// widthOf is how wide a column is; 0: it is as wide as what stands there.
func widthOf(t *layout.Table, i int) int {
	if t.Delimiter != "" {
		return 0
	}
	return t.Fields[i].Width
}

func (q *query) printTable(t *layout.Table, columns []int, list []row) {
	b := t.Head(nil)
	for _, r := range list {
		b = t.Row(b, func(i int) string { return fields[columns[i]].text(r, widthOf(t, i)) })
	}
	q.Out.Write(b)
}
