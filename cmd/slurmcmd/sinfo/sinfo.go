package sinfo

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/fleet"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/layout"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/slurmjson"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

const usageText = `Usage: sinfo [-dehlNrRsT] [-i seconds] [-n nodes] [-p partition] [-t states]
             [-o format] [-O format] [-S fields] [--json]
`

// nameWidth is how wide a column of -O is unless told otherwise.
const nameWidth = 20

// Main is sinfo with its arguments. The result is its exit code.
func Main(args []string, stdio slurmcmd.Stdio) int {
	s := &show{Command: slurmcmd.Begin("sinfo", stdio)}
	done, err := s.parse(args)
	for err == nil && !done {
		err = s.run()
		if s.iterate == 0 || err != nil {
			break
		}
		s.Out.WriteByte('\n')
		_ = s.Out.Flush()
		time.Sleep(s.iterate)
		s.Now = time.Now()
	}
	return s.Finish(err)
}

// show is what is asked for.
type show struct {
	*slurmcmd.Command
	partitions, states, nodes []string
	format, long, sort        string
	heading                   string   // the cluster's name, which stands above the table with -M
	pools                     []string // of --clusters; none: all
	dead, responding          bool
	noHeader, byNode, wide    bool
	reasons, summary, resv    bool
	json                      bool
	jsonForm                  string
	help, version             bool

	listLetters, listNames, listStates bool // --helpformat, --helpFormat, --helpstate

	iterate time.Duration

	used []bool // fields that the format has
}

// Options lists the options of sinfo, for documents and tests.
func Options() []slurmcmd.Option { return (&show{Command: &slurmcmd.Command{}}).options() }

func (s *show) options() []slurmcmd.Option {
	return append(s.ClusterOptions(), []slurmcmd.Option{
		slurmcmd.Ignored("all", 'a', getopt.None),
		slurmcmd.Autocomplete(),
		slurmcmd.Flag("dead", 'd', &s.dead),
		slurmcmd.Ignored("exact", 'e', getopt.None),
		slurmcmd.Ignored("federation", 0, getopt.None),
		slurmcmd.Text("format", 'o', &s.format),
		slurmcmd.Text("Format", 'O', &s.long),
		slurmcmd.Ignored("future", 'F', getopt.None),
		slurmcmd.Flag("help", 0, &s.help),
		slurmcmd.Flag("helpformat", 0, &s.listLetters),
		slurmcmd.Flag("helpFormat", 0, &s.listNames),
		slurmcmd.Flag("helpstate", 0, &s.listStates),
		slurmcmd.Ignored("hide", 0, getopt.None),
		{Long: "iterate", Short: 'i', Arg: getopt.Required, Do: s.setIterate},
		{Long: "json", Arg: getopt.Optional, Do: func(v string) error { s.json, s.jsonForm = true, v; return nil }},
		slurmcmd.Flag("list-reasons", 'R', &s.reasons),
		slurmcmd.Ignored("local", 0, getopt.None),
		slurmcmd.Flag("long", 'l', &s.wide),
		slurmcmd.Ignored("noconvert", 0, getopt.None),
		slurmcmd.Flag("Node", 'N', &s.byNode),
		slurmcmd.Filter("nodes", 'n', s.addNodes),
		slurmcmd.Flag("noheader", 'h', &s.noHeader),
		slurmcmd.List("partition", 'p', &s.partitions),
		slurmcmd.Flag("reservation", 'T', &s.resv),
		slurmcmd.Flag("responding", 'r', &s.responding),
		slurmcmd.Text("sort", 'S', &s.sort),
		slurmcmd.Filter("states", 't', s.addStates),
		slurmcmd.Flag("summarize", 's', &s.summary),
		slurmcmd.Flag("usage", 0, &s.help),
		slurmcmd.Ignored("verbose", 'v', getopt.None),
		slurmcmd.Flag("version", 'V', &s.version),
		slurmcmd.Refused("yaml", 0, getopt.Optional, "--json is there"),
	}...)
}

func (s *show) parse(args []string) (done bool, err error) {
	rest, err := slurmcmd.Parse(s.options(), args)
	switch {
	case err != nil:
		return true, err
	case s.help:
		s.Out.WriteString(usageText)
		return true, nil
	case s.version:
		s.Out.WriteString(slurmcmd.Version + "\n")
		return true, nil
	case s.listLetters, s.listNames, s.listStates:
		s.writeLists()
		return true, nil
	case len(rest) > 0:
		return true, slurmcmd.Textf("Unrecognized option: %s", rest[0])
	case s.resv && s.json:
		return true, fault.New(fault.Unsupported, "--reservation --json is not built yet").Advise("leave --json out; cox reserve list -o json has them")
	}
	if v := s.Getenv("SINFO_FORMAT"); v != "" && s.format == "" && s.long == "" {
		s.format = v
	}
	if v, ok := s.LookupEnv("SINFO_PARTITION"); ok && len(s.partitions) == 0 {
		s.partitions = slurmcmd.SplitFilter(v)
	}
	if s.sort == "" {
		s.sort = s.Getenv("SINFO_SORT")
	}
	s.ChooseClustersFrom("SLURM_CLUSTERS")
	s.heading, s.pools, err = s.CheckPools()
	return false, err
}

// writeLists writes what formats and states there are.
func (s *show) writeLists() {
	if s.listStates {
		s.Out.WriteString(strings.ToUpper(strings.ReplaceAll(stateNames, ",", "\n")) + "\n")
		return
	}
	var letters, names []string
	for _, f := range fields {
		if f.letter != 0 {
			letters = append(letters, "%"+string(f.letter))
		}
		names = append(names, f.long)
	}
	if s.listLetters {
		slurmcmd.WriteColumns(s.Out, letters, 8, 6)
		return
	}
	slurmcmd.WriteColumns(s.Out, names, 4, 20)
}

func (s *show) setIterate(v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n <= 0 {
		return errors.New("--iterate must be a positive number of seconds, not " + v)
	}
	s.iterate = time.Duration(n) * time.Second
	return nil
}

func (s *show) addNodes(list string) error {
	names, err := hostlist.Expand(list)
	if err != nil && strings.Trim(list, ",") != "" {
		return slurmcmd.Textf("Invalid node list %s: %v", list, err)
	}
	s.nodes = append(s.nodes, names...)
	if s.nodes == nil {
		s.nodes = []string{}
	}
	return nil
}

func (s *show) addStates(list string) error {
	for _, word := range slurmcmd.SplitFilter(list) {
		if word == "" {
			s.states = append(s.states, "")
			continue
		}
		if strings.EqualFold(word, "all") {
			s.states = nil
			return nil
		}
		st, ok := readState(strings.TrimSuffix(word, "*"))
		if !ok {
			return slurmcmd.Textf("Bad state string: \"%s\"\nsinfo: error: valid states: %s", word, stateNames)
		}
		s.states = append(s.states, st)
	}
	return nil
}

// run asks and prints once.
func (s *show) run() error {
	switch {
	case s.resv && len(s.pools) > 0:
		return fault.New(fault.Unsupported, "--reservation shows the reservations of all pools, and --clusters names some").Advise("leave --clusters out")
	case s.resv:
		return s.printReservations()
	}
	c, err := s.Client()
	if err != nil {
		return err
	}
	nodes, err := fleet.Nodes(c)
	if err != nil {
		return err
	}
	parts, err := fleet.Partitions(c)
	if err != nil {
		return err
	}
	switch {
	case len(s.pools) == 0:
		return s.showNodes(s.heading, parts, nodes)
	case s.json:
		parts, nodes = ofPools(s.pools, parts, nodes)
		return s.showNodes("", parts, nodes)
	}
	for i, p := range s.pools { // a table for each, as Slurm has for clusters
		if i > 0 && !s.noHeader {
			s.Out.WriteString("\n")
		}
		parts, nodes := ofPools([]string{p}, parts, nodes)
		if err := s.showNodes(p, parts, nodes); err != nil {
			return err
		}
	}
	return nil
}

// ofPools are the nodes of some pools, and the partitions that have some of these.
func ofPools(pools []string, parts []fleet.Partition, nodes []fleet.Node) (some []fleet.Partition, of []fleet.Node) {
	has := map[string]bool{}
	for i := range nodes {
		if slices.Contains(pools, nodes[i].Pool) {
			of = append(of, nodes[i])
			has[nodes[i].Name] = true
		}
	}
	for i := range parts {
		if slices.ContainsFunc(parts[i].Nodes, func(n string) bool { return has[n] }) {
			some = append(some, parts[i])
		}
	}
	return some, of
}

// showNodes prints nodes below a heading.
func (s *show) showNodes(heading string, parts []fleet.Partition, nodes []fleet.Node) error {
	if s.json {
		s.used = make([]bool, len(fields))
		for _, l := range "PtcmGfz" {
			i, _ := findLetter(byte(l))
			s.used[i] = true
		}
		return s.writeJSON(s.groupNodes(parts, nodes))
	}
	f, err := s.parseFormat(parts, nodes)
	if err != nil {
		return err
	}
	list := s.groupNodes(parts, nodes)
	s.sortGroups(list)
	var b []byte
	if !s.noHeader {
		s.writeHeading(heading)
		s.Out.Write(f.Append(nil, func(b []byte, i int) []byte { return append(b, fields[i].head...) }))
	}
	for _, g := range list {
		b = f.Append(b[:0], func(b []byte, i int) []byte { return fields[i].text(b, s, g) })
		s.Out.Write(b)
	}
	return nil
}

// writeHeading writes what Slurm has above the table: the date of a long or repeated one, and
// the cluster's name with -M.
func (s *show) writeHeading(cluster string) {
	if s.wide || s.iterate > 0 {
		s.Out.WriteString(s.Now.Format("Mon Jan 02 15:04:05 2006") + "\n")
	}
	s.WriteClusterHeading(cluster)
}

// defaultFormat is the format that sinfo has for itself.
func (s *show) defaultFormat(parts []fleet.Partition, nodes []fleet.Node) string {
	p, n := 9, 9
	for i := range parts {
		p = max(p, len(parts[i].Name)+1)
	}
	for i := range nodes {
		n = max(n, len(nodes[i].Name))
	}
	switch {
	case s.reasons && s.wide:
		return "%20E %12U %19H %6t %N"
	case s.reasons:
		return "%20E %9u %19H %N"
	case s.byNode && s.wide:
		return fmt.Sprintf("%%%dN %%.6D %%.%dP %%.11T %%4c %%.8z %%.6m %%.8d %%.6w %%.8f %%20E", n, p)
	case s.byNode:
		return fmt.Sprintf("%%%dN %%.6D %%.%dP %%6t", n, p)
	case s.summary:
		return fmt.Sprintf("%%%dP %%.5a %%.10l %%.16F %%N", p)
	case s.wide:
		return fmt.Sprintf("%%%dP %%.5a %%.10l %%.10s %%.4r %%.8h %%.10g %%.6D %%.11T %%N", p)
	}
	return fmt.Sprintf("%%%dP %%.5a %%.10l %%.6D %%.6t %%N", p)
}

func (s *show) parseFormat(parts []fleet.Partition, nodes []fleet.Node) (f layout.Format, err error) {
	if s.long != "" {
		if f, err = layout.Names(s.long, nameWidth, findLong); err != nil {
			return nil, err
		}
	} else {
		spec := s.format
		if spec == "" {
			spec = s.defaultFormat(parts, nodes)
		}
		f = layout.Letters(spec, findLetter, func(text string) {
			fmt.Fprintf(s.Err, "Invalid node format specification: %s\n", text)
		})
	}
	f.Keep(func(i int) bool { l := fields[i].letter; return l == 'N' || l == 'n' || l == 'o' })
	s.used = make([]bool, len(fields))
	for _, c := range f {
		if c.Field >= 0 {
			s.used[c.Field] = true
		}
	}
	return f, nil
}

// hasField reports whether the format has one of the letters' fields.
func (s *show) hasField(letters ...byte) bool {
	for i := range fields {
		if s.used[i] && slices.Contains(letters, fields[i].letter) {
			return true
		}
	}
	return false
}

// writeJSON writes the document of --json.
func (s *show) writeJSON(list []*group) error {
	out := make([]slurmjson.Group, len(list))
	for i, g := range list {
		out[i] = slurmjson.Group{Partition: g.part, Nodes: g.nodes}
	}
	return slurmjson.Info(s.Command, s.jsonForm, out)
}
