package slurm

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// machines is where what is said of machines goes.
const machines = "a machine: --config and --cluster write it; a Slurm pool asks the cluster itself"

// reportEach reports the settings of a line by a table: used says where those of the first group go.
func (im *importer) reportEach(all []setting, table []unused, where, used string) {
	known := indexOf(table)
	for i, s := range all {
		switch u, ok := known[strings.ToLower(s.key)]; {
		case ok && u.why == "" || i == 0 && used != "":
			im.noteElsewhere(s, "%s", used)
		case ok:
			im.notUsed(s, u)
		case i == 0:
			im.notUsed(s, unused{why: "nothing on this line is used"})
		default:
			im.refuseSetting(s, "%s", unknownDirective(s.key, where, namesOf(table)))
		}
	}
}

// expandHosts expands a list of names; false: it is refused, with the place.
func (im *importer) expandHosts(s setting) ([]string, bool) {
	n, err := hostlist.Count(s.value)
	if err == nil && n > mostNodes {
		im.refuseSetting(s, "%d nodes are more than the import takes (%d)", n, mostNodes)
		return nil, false
	}
	names, err := hostlist.Expand(s.value)
	if err != nil {
		im.refuseSetting(s, "%v: write a list like n[01-16],login1", err)
		return nil, false
	}
	return names, true
}

// readNodes reads a line NodeName=…; DEFAULT is what later ones begin with.
func (im *importer) readNodes(all []setting) {
	if strings.EqualFold(all[0].value, "DEFAULT") {
		im.reportEach(all, ofNodes, "NodeName line", machines)
		im.readHardware(&machine{}, all[1:])
		for _, s := range all[1:] {
			im.usual = slices.DeleteFunc(im.usual, func(d setting) bool { return d.hasKey(s.key) })
			im.usual = append(im.usual, s)
		}
		return
	}
	names, ok := im.expandHosts(all[0])
	if !ok {
		im.reportEach(all[1:], ofNodes, "NodeName line", machines)
		return
	}
	im.reportEach(all, ofNodes, "NodeName line", machines)
	var m machine
	quiet := *im
	quiet.report, quiet.told = newReport(), nil
	quiet.readHardware(&m, im.usual)
	im.readHardware(&m, all[1:])
	c := im.cluster
	if len(c.order)+len(names) > mostNodes {
		im.refuseSetting(all[0], "the cluster has more than %d nodes: these nodes are left out", mostNodes)
		return
	}
	for _, n := range names {
		if c.nodes[n] == nil {
			c.order = append(c.order, n)
		}
		own := m
		c.nodes[n] = &own
	}
}

// readHardware reads what a machine has. What says nothing that can be understood is refused.
func (im *importer) readHardware(m *machine, all []setting) {
	counts := map[string]*int{
		"cpus": &m.cpus, "procs": &m.cpus, "boards": &m.boards, "sockets": &m.sockets, "socketsperboard": &m.perBoard, "corespersocket": &m.cores, "threadspercore": &m.threads,
	}
	for _, s := range all {
		key := strings.ToLower(s.key)
		if to := counts[key]; to != nil {
			n, err := strconv.Atoi(s.value)
			if err != nil || n < 1 || n > 1<<16 {
				im.refuseUnreadable(s, "a number of "+s.key+" from 1 to 65536")
				continue
			}
			*to = n
			continue
		}
		switch key {
		case "realmemory":
			n, err := strconv.ParseInt(s.value, 10, 40)
			if err != nil || n < 1 {
				im.refuseUnreadable(s, "a number of MiB")
				continue
			}
			m.memory = n
		case "feature", "features":
			m.features = splitCommas(s.value)
		case "state":
			m.future = strings.EqualFold(s.value, "future")
		case "gres":
			im.readDevices(m, s)
		}
	}
}

// readDevices reads Gres=gpu:h100:8(S:0-1),nvme:2.
func (im *importer) readDevices(m *machine, s setting) {
	m.gpus, m.types = 0, nil
	text := strings.ReplaceAll(stripParentheses(s.value), ":no_consume", "")
	if isUnlimited(text) {
		return
	}
	all, err := slurmfmt.ParseGRES(text)
	if err != nil {
		im.refuseUnreadable(s, "a list of resources like gpu:h100:8")
		return
	}
	types := map[string]bool{}
	for _, g := range all {
		if g.Name != "gpu" || g.Count < 0 || g.Count > 1<<16 {
			continue
		}
		if m.gpus = min(m.gpus+int(g.Count), 1<<16); g.Type != "" {
			types[strings.ToLower(g.Type)] = true
		}
	}
	m.types = slices.Sorted(maps.Keys(types))
}

// stripParentheses takes what stands in parentheses out: "gpu:h100:8(S:0-1)".
func stripParentheses(text string) string {
	var b strings.Builder
	depth := 0
	for _, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth = max(0, depth-1)
		case depth == 0:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// nodeSet reads NodeSet=name Feature=… or Nodes=….
func (im *importer) nodeSet(all []setting) {
	im.reportEach(all, ofSets, "NodeSet line", machines)
	var v set
	for _, s := range all[1:] {
		switch {
		case s.hasKey("nodes"):
			if _, ok := im.expandHosts(s); ok {
				v.nodes = s.value
			}
		case s.hasKey("feature"):
			v.feature = s.value
		}
	}
	im.cluster.sets[all[0].value] = v
}

// downNodes reads DownNodes=… State=…, which is about the state of a moment.
func (im *importer) downNodes(all []setting) {
	im.reportEach(all, ofDown, "DownNodes line", "the state of a node changes; the server asks for it")
}

// checkDeclared refuses a list with a node that slurm.conf does not have, and names the first. Without any, nothing is known.
func (im *importer) checkDeclared(s setting, names []string) {
	if len(im.cluster.order) == 0 {
		return
	}
	for _, n := range names {
		if _, isSet := im.cluster.sets[n]; im.cluster.nodes[n] == nil && !isSet && !strings.EqualFold(n, "all") {
			im.refuseSetting(s, "slurm.conf has no node %.80s: correct the name, or add a NodeName line", n)
			return
		}
	}
}

// readGres reads gres.conf: how many devices a node has stands in slurm.conf; here are their types.
func (im *importer) readGres(f File) {
	for _, l := range confLines(f.Text) {
		all := l.splitSettings(f.Name)
		if isTemplated(l.text) {
			im.readTemplate(f, l)
			continue
		}
		im.reportEach(all, ofGres, "gres.conf", machines)
		at := map[string]setting{}
		for _, s := range all {
			at[strings.ToLower(s.key)] = s
		}
		var names []string
		if s, ok := at["nodename"]; ok {
			if names, ok = im.expandHosts(s); !ok {
				continue
			}
			im.checkDeclared(s, names)
		}
		im.gresLine(at, names)
	}
}

func (im *importer) gresLine(at map[string]setting, names []string) {
	if s, ok := at["count"]; ok {
		if g, err := slurmfmt.ParseGRES("x:" + s.value); err != nil || len(g) != 1 || g[0].Type != "" {
			im.refuseUnreadable(s, "a count such as 8, 2K or 4M")
		}
	}
	if s, ok := at["file"]; ok {
		if n, err := hostlist.Count(s.value); err != nil {
			im.refuseUnreadable(s, "a list of files like /dev/nvidia[0-7]")
		} else if c, said := at["count"]; said && c.value != strconv.Itoa(n) && !strings.EqualFold(at["name"].value, "shard") && !strings.EqualFold(at["name"].value, "mps") {
			im.refuseSetting(c, "File names %d devices and Count says another number: Slurm refuses that", n)
		}
	}
	kind := at["type"].value
	if kind == "" || !strings.EqualFold(at["name"].value, "gpu") {
		return
	}
	if names == nil {
		names = im.cluster.order
	}
	for _, n := range names {
		if m := im.cluster.nodes[n]; m != nil && m.gpus > 0 && len(m.types) == 0 {
			m.types = []string{strings.ToLower(kind)}
		}
	}
}
