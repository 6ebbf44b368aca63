package scontrol

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/fleet"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/slurmjson"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/printable"
)

// showEntity answers "show ENTITY [NAME]"; ENTITY may be shortened and hold the name after
// an equals sign.
func (s *command) showEntity(args []string) error {
	if len(args) == 0 {
		return plainErrorf("too few arguments for keyword:show")
	}
	entity, name, named := strings.Cut(args[0], "=")
	if len(args) > 1 {
		name, named = args[1], true
	}
	entity = strings.ToLower(entity)
	is := func(word string, least int) bool { return len(entity) >= least && strings.HasPrefix(word, entity) }
	if s.json && !is("jobs", 1) && !is("jobid", 1) && !is("nodes", 1) && !is("partitions", 1) {
		return fault.New(fault.Unsupported, "show %s --json is not built yet", entity).Advise("without --json it prints text; cox has -o json for the same")
	}
	switch {
	case is("jobs", 1), is("jobid", 1):
		return s.showJobs(name)
	case named && name == "" && is("nodes", 1):
		return s.showNothing("Node")
	case named && name == "" && is("partitions", 1):
		return s.showNothing("Partition")
	case named && name == "" && is("reservations", 1):
		return s.showNothing("Reservation")
	case named && name == "" && (is("licenses", 2) || is("licences", 2)):
		return s.showNothing("License")
	case is("nodes", 1):
		return s.showNodes(name)
	case is("partitions", 1):
		return s.showPartitions(name)
	case is("config", 3):
		return s.showConfig()
	case is("reservations", 1):
		return s.showReservations(name)
	case is("licenses", 2), is("licences", 2):
		return s.showLicenses(name)
	case is("steps", 2), is("topology", 1), is("assoc_mgr", 2), is("bbstat", 2), is("burstbuffer", 2), is("daemons", 1), is("dwstat", 2),
		is("federation", 1), is("frontend", 2), is("aliases", 2), is("slurmd", 2):
		return fault.New(fault.Unsupported, "show %s is not built yet", entity)
	}
	return plainErrorf("invalid entity:%s for keyword:show ", args[0])
}

// showNothing says that nothing has an empty name, as of a variable that is not set.
func (s *command) showNothing(kind string) error {
	fmt.Fprintf(s.Out, "%s  not found\n", kind)
	s.Code = 1
	return nil
}

// writeRecord writes lines of fields as Slurm does: joined on one line with -o. What cannot be
// printed of them is taken out: reasons and comments come from users.
func (s *command) writeRecord(lines []string) {
	for i, l := range lines {
		lines[i] = string(printable.Clean([]byte(l)))
	}
	if s.oneLine {
		s.Out.WriteString(strings.Join(lines, " ") + "\n")
		return
	}
	s.Out.WriteString(strings.Join(lines, "\n   ") + "\n\n")
}

func (s *command) showJobs(name string) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	var ids []string
	if name != "" {
		sel, err := parseSelection([]string{name})
		if err != nil || len(sel.IDs) == 0 {
			return plainErrorf("scontrol_print_job error: Invalid job id specified")
		}
		ids = sel.IDs
	}
	var want jobs.Want
	want.Add(column.All()...)
	rows, err := jobs.Get(c, "/v1/jobs", &want, s.Now, "ids", strings.Join(ids, ","), "states", "all", "collapse", "1")
	if slurmcmd.IsNotFound(err) {
		return plainErrorf("slurm_load_jobs error: Invalid job id specified")
	}
	if err != nil {
		return err
	}
	var list []jobs.Row
	for i := range rows.Len() {
		r := rows.Row(i)
		n := int(r.Int(column.HetSize))
		if n < 2 {
			list = append(list, r)
			continue
		}
		for k := range n {
			list = append(list, r.Component(k))
		}
	}
	if s.json {
		return slurmjson.Jobs(s.Command, s.jsonForm, list)
	}
	if len(list) == 0 {
		s.Out.WriteString("No jobs in the system\n")
	}
	for _, r := range list {
		details, err := s.detailLines(r)
		if err != nil && !slurmcmd.IsNotFound(err) { // it may have ended since
			return err
		}
		s.writeRecord(s.jobLines(r, details))
	}
	return nil
}

func (s *command) showNodes(name string) error {
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
	var names []string
	if name != "" {
		if names, err = hostlist.Expand(name); err != nil {
			return plainErrorf("Node %s not found", name)
		}
	}
	for _, n := range names {
		if !slices.ContainsFunc(nodes, func(have fleet.Node) bool { return have.Name == n }) {
			fmt.Fprintf(s.Out, "Node %s not found\n", n)
			s.Code = 1
		}
	}
	var list []*fleet.Node
	for i := range nodes {
		if name == "" || slices.Contains(names, nodes[i].Name) {
			list = append(list, &nodes[i])
		}
	}
	if s.json {
		return slurmjson.Nodes(s.Command, s.jsonForm, list, parts)
	}
	for _, n := range list {
		s.writeRecord(nodeLines(n, parts))
	}
	return nil
}

func (s *command) showPartitions(name string) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	parts, err := fleet.Partitions(c)
	if err != nil {
		return err
	}
	nodes, err := fleet.Nodes(c)
	if err != nil {
		return err
	}
	var list []*fleet.Partition
	for i := range parts {
		if name == "" || parts[i].Name == name {
			list = append(list, &parts[i])
		}
	}
	if s.json {
		return slurmjson.Partitions(s.Command, s.jsonForm, list, nodes)
	}
	for _, p := range list {
		s.writeRecord(partitionLines(p, nodes))
	}
	if name != "" && len(list) == 0 {
		fmt.Fprintf(s.Out, "Partition %s not found\n", name)
		s.Code = 1
	}
	return nil
}

// writeScript saves the batch script of a job: write batch_script JOB [FILE|-].
func (s *command) writeScript(args []string) error {
	if len(args) < 2 {
		return plainErrorf("too few arguments for keyword:write")
	}
	if !strings.HasPrefix("batch_script", strings.ToLower(args[0])) {
		return plainErrorf("invalid keyword: write %s", strings.Join(args, " "))
	}
	c, err := s.Client()
	if err != nil {
		return err
	}
	r, err := c.Get("/v1/jobs/"+fastclient.Segment(args[1])+"/script", "text/plain")
	if slurmcmd.IsNotFound(err) {
		return plainErrorf("job script retrieval failed: Invalid job id specified")
	}
	if err != nil {
		return err
	}
	b, err := r.All()
	if err != nil {
		return err
	}
	file := "slurm-" + args[1] + ".sh"
	if len(args) > 2 {
		file = args[2]
	}
	if file == "-" {
		s.Out.Write(b)
		return nil
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "batch script for job %s written to %s\n", args[1], file)
	return nil
}
