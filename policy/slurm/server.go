package slurm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// Server is what slurm.conf says of the server itself: what belongs into its cox.yaml.
type Server struct {
	cluster                   *Cluster
	grace, memory, unkillable time.Duration // 0: not said
	maxArray                  int           // 0: not said
	killInvalid, private      bool
	refusesLong               bool // EnforcePartLimits
	mailDomain, level         string
	programs                  []setting // Prolog, Epilog, MailProg
	admins                    []string  // Slurm's administrators and operators
	notes                     []string  // what the configuration says differently; set by Write
}

// mostVirtual bounds the virtual nodes of a server.
const mostVirtual = 1000

// Partitions are the names of the partitions, in the order of slurm.conf.
func (v *Server) Partitions() (names []string) {
	for _, p := range v.cluster.parts {
		names = append(names, p.name)
	}
	return names
}

// Notes say, after Write, what the configuration could not say as slurm.conf does.
func (v *Server) Notes() []string { return v.notes }

// Write is the server's configuration: its name, virtual nodes with the names and the size of the
// cluster's, the partitions, and what else of slurm.conf has a field there. All virtual nodes have one
// size, that of most nodes; Notes names the others. The error is fault.Unsupported: there are too many nodes.
func (v *Server) Write(of string) ([]byte, error) {
	c := v.cluster
	if len(c.order) > mostVirtual {
		e := fault.New(fault.Unsupported, "slurm.conf has %d nodes, and a server has at most %d virtual nodes", len(c.order), mostVirtual)
		if pool := c.Pool(); pool != "" {
			return nil, e.Advise("use the cluster itself as a pool, which keeps its nodes and partitions: %s", pool)
		}
		return nil, e.Advise("use the cluster itself as a pool: cox pool add NAME --engine slurm --ssh LOGIN")
	}
	v.notes = nil
	var b strings.Builder
	fmt.Fprintf(&b, "# made by cox import slurm of %s; docs/reference/configuration.md has every field\n", plainComment(of))
	if c.Name != "" {
		fmt.Fprintf(&b, "name: %q\n", c.Name)
	}
	v.writeRoom(&b)
	v.writePartitions(&b)
	v.writeJobs(&b)
	if v.memory > 0 {
		fmt.Fprintf(&b, "state: {memory: %s}\n", durationText(v.memory))
	}
	if v.private {
		b.WriteString("auth: {private: true}\n")
	}
	if v.mailDomain != "" {
		fmt.Fprintf(&b, "notify: {domain: %q}\n", v.mailDomain)
	}
	if v.level != "" {
		fmt.Fprintf(&b, "log: {level: %s}\n", v.level)
	}
	if len(v.admins) > 0 {
		slices.Sort(v.admins)
		fmt.Fprintf(&b, "# administrators and operators of the cluster, who would be administrators of this server:\n# auth: {admins: [%s]}\n", quoteText(strings.Join(slices.Compact(v.admins), ",")))
	}
	for i, s := range v.programs {
		if i == 0 {
			b.WriteString("# programs of the cluster: write these lines without # where the server's machine has the program\n")
		}
		field := map[string]string{"prolog": "hooks: {prolog: %q}", "epilog": "hooks: {epilog: %q}", "mailprog": "notify: {command: [%q]}"}[strings.ToLower(s.key)]
		fmt.Fprintf(&b, "# "+field+"\n", plainComment(s.value))
	}
	return []byte(b.String()), nil
}

// size is what nodes of one kind have.
type size struct {
	cpus, gpus     int
	memory         int64
	kind, features string
}

func (c *Cluster) sizeOf(name string) size {
	m := c.nodes[name]
	s := size{cpus: m.deviceCount(), gpus: m.gpus, memory: m.memory, features: strings.Join(m.features, ",")}
	if len(m.types) > 0 {
		s.kind = m.types[0]
	}
	return s
}

// String is a size for people: "64 CPUs, 8 h100".
func (s size) String() string {
	text := countedNoun(s.cpus, "CPU", "CPUs")
	if s.gpus > 0 {
		text += fmt.Sprintf(", %d %s", s.gpus, cmp.Or(s.kind, "GPUs"))
	}
	if s.features != "" {
		text += ", features " + s.features
	}
	return text
}

// writeRoom writes virtual nodes of the size that most nodes have.
func (v *Server) writeRoom(b *strings.Builder) {
	c := v.cluster
	if len(c.order) == 0 {
		return
	}
	of := map[size][]string{}
	var most size
	for _, n := range c.order {
		s := c.sizeOf(n)
		of[s] = append(of[s], n)
		if len(of[s]) > len(of[most]) {
			most = s
		}
	}
	for _, s := range slices.SortedFunc(maps.Keys(of), func(x, y size) int { return strings.Compare(of[x][0], of[y][0]) }) {
		if s != most {
			v.addNote("%s (%s): written as %s, because all virtual nodes of a server have one size", hostlist.CompressInOrder(of[s]), s, most)
		}
	}
	b.WriteString("# Virtual nodes with the names and the size of the cluster's: jobs run on the machine of this server.\n")
	if pool := c.Pool(); pool != "" {
		fmt.Fprintf(b, "# To run jobs on the cluster itself, remove room and partitions, and add the cluster as a pool:\n# %s\n", pool)
	}
	fmt.Fprintf(b, "room:\n  nodes: %d\n  names: [%s]\n  cpus: %d\n", len(c.order), quoteText(strings.Join(c.order, ",")), most.cpus)
	if most.memory > 0 {
		fmt.Fprintf(b, "  memory: %dM\n", most.memory)
	}
	fmt.Fprintf(b, "  gpus_per_node: %d\n", min(most.gpus, 128))
	if most.kind != "" {
		fmt.Fprintf(b, "  gpu_type: %q\n", most.kind)
	}
	if most.features != "" {
		fmt.Fprintf(b, "  features: [%s]\n", quoteText(most.features))
	}
}

func (v *Server) addNote(format string, args ...any) {
	v.notes = append(v.notes, fmt.Sprintf(format, args...))
}

// writePartitions writes the partitions with their nodes.
func (v *Server) writePartitions(b *strings.Builder) {
	c := v.cluster
	title := "partitions:\n"
	for _, p := range c.parts {
		var nodes []string
		for _, n := range c.partitionMembers(p.nodes, map[string]bool{}) {
			if c.nodes[n] != nil && !c.nodes[n].future && !slices.Contains(nodes, n) {
				nodes = append(nodes, n)
			}
		}
		if len(nodes) == 0 && len(c.order) > 0 {
			v.addNote("partition %s has no nodes: left out; remove its rules from queues.yaml too", p.name)
			continue
		}
		fmt.Fprintf(b, "%s  - {name: %q", title, p.name)
		title = ""
		if len(nodes) > 0 && len(nodes) < len(c.order) {
			fmt.Fprintf(b, ", nodes: %q", hostlist.CompressInOrder(nodes))
		}
		if p.isDefault {
			b.WriteString(", default: true")
		}
		longest := p.longest
		if !v.refusesLong {
			longest = 0 // the rules have it: the job waits
		}
		if longest > 0 {
			fmt.Fprintf(b, ", time_limit: %s", durationText(longest))
		}
		if usual := cmp.Or(p.usual, p.longest); usual > 0 {
			fmt.Fprintf(b, ", default_time: %s", durationText(usual))
		}
		b.WriteString("}\n")
	}
}

func (v *Server) writeJobs(b *strings.Builder) {
	title := "jobs:\n"
	put := func(ok bool, format string, args ...any) {
		if ok {
			fmt.Fprintf(b, title+"  "+format+"\n", args...)
			title = ""
		}
	}
	put(v.grace > 0, "grace: %s", durationText(v.grace))
	put(v.unkillable > 0, "unkillable: %s", durationText(v.unkillable))
	put(v.maxArray > 0, "max_array: %d", v.maxArray)
	put(v.killInvalid, "kill_on_invalid_dep: true")
}

// durationText writes a duration as cox.yaml reads it.
func durationText(d time.Duration) string {
	if days := d / (24 * time.Hour); days > 0 && d%(24*time.Hour) == 0 {
		return strconv.FormatInt(int64(days), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// placed are directives that belong into cox.yaml, with their fields.
var placed = map[string]string{
	"ClusterName": "name", "KillWait": "jobs.grace", "MinJobAge": "state.memory", "MaxArraySize": "jobs.max_array",
	"UnkillableStepTimeout": "jobs.unkillable", "DependencyParameters": "jobs.kill_on_invalid_dep, if it has kill_invalid_depend",
	"Prolog": "hooks.prolog", "Epilog": "hooks.epilog", "MailProg": "notify.command", "MailDomain": "notify.domain",
	"PrivateData": "auth.private, if it has jobs", "SlurmctldDebug": "log.level",
}

// placedKeys are placed by their names in lower case.
var placedKeys = func() map[string]string {
	out := map[string]string{}
	for name, where := range placed {
		out[strings.ToLower(name)] = where
	}
	return out
}()

// readPlaced reads a directive that belongs into cox.yaml.
func (im *importer) readPlaced(s setting, key string) {
	v := im.server
	field, _, _ := strings.Cut(placedKeys[key], ",")
	im.noteElsewhere(s, "%s in cox.yaml (--config writes it)", field)
	switch key {
	case "clustername":
		im.cluster.Name = strings.ToLower(s.value)
	case "killwait":
		im.readServerSeconds(s, &v.grace)
	case "minjobage":
		im.readServerSeconds(s, &v.memory)
	case "unkillablesteptimeout":
		im.readServerSeconds(s, &v.unkillable)
	case "maxarraysize":
		n, err := strconv.Atoi(s.value)
		if err != nil || n < 1 || n > 4_000_001 {
			im.refuseUnreadable(s, "a number from 1 to 4000001")
			return
		}
		v.maxArray = n
	case "dependencyparameters":
		v.killInvalid = slices.Contains(splitCommas(strings.ToLower(s.value)), "kill_invalid_depend")
	case "privatedata":
		v.private = slices.Contains(splitCommas(strings.ToLower(s.value)), "jobs")
	case "maildomain":
		v.mailDomain = s.value
	case "slurmctlddebug":
		v.level = logLevel(s.value)
	case "prolog", "epilog", "mailprog":
		v.programs = append(v.programs, s)
		im.told[s] = len(im.report.Findings) - 1
		im.report.Findings[len(im.report.Findings)-1].How = field + " in cox.yaml (--config writes it as a comment)"
	}
}

// readServerSeconds reads a time in seconds, or in one of Slurm's other forms.
func (im *importer) readServerSeconds(s setting, to *time.Duration) {
	if n, err := strconv.ParseUint(s.value, 10, 31); err == nil {
		*to = time.Duration(n) * time.Second
		return
	}
	d, err := slurmfmt.ParseTimeLimit(s.value)
	if err != nil || d < 0 {
		im.refuseUnreadable(s, "a number of seconds")
		return
	}
	*to = d
}

// logLevel is the level of our log that is nearest to one of slurmctld's; empty: the usual one.
func logLevel(level string) string {
	switch l := strings.ToLower(level); {
	case strings.HasPrefix(l, "debug"), len(l) == 1 && l >= "5" && l <= "9":
		return "debug"
	case l == "quiet", l == "fatal", l == "error", len(l) == 1 && l <= "2":
		return "error"
	}
	return ""
}
