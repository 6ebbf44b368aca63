package scontrol

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/fleet"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
)

// detailLines are what -d adds about a job that holds nodes: its devices, and what it holds on
// which nodes. Nodes of which it holds the same share a line. CPUs have no numbers here.
func (s *command) detailLines(r jobs.Row) ([]string, error) {
	if state := r.Base(); !s.details || state != job.Running && state != job.Suspended {
		return nil, nil
	}
	c, err := s.Client()
	if err != nil {
		return nil, err
	}
	v, err := c.JSON("GET", "/v1/jobs/"+fastclient.Segment(r.Text(column.Name)), nil)
	if err != nil {
		return nil, err
	}
	if s.nodes == nil {
		if s.nodes, err = fleet.Nodes(c); err != nil {
			return nil, err
		}
	}
	var shares []string
	nodesOf, total := map[string][]string{}, map[string]int{}
	for _, claim := range v.Get("claims").Items() {
		name := claim.Get("node").Text()
		share := fmt.Sprintf("CPU_IDs=N/A Mem=%d GRES=%s", claim.Get("memory").Int()>>20, s.deviceText(name, claim.Get("devices").Items(), total))
		if nodesOf[share] == nil {
			shares = append(shares, share)
		}
		nodesOf[share] = append(nodesOf[share], name)
	}
	var all []string
	for kind, n := range total {
		all = append(all, kind+":"+strconv.Itoa(n))
	}
	slices.Sort(all)
	lines := []string{"JOB_GRES=" + orDefault(strings.Join(all, ","), "(null)")}
	indent := "  "
	if s.oneLine {
		indent = ""
	}
	for _, share := range shares {
		lines = append(lines, indent+"Nodes="+hostlist.Compress(nodesOf[share])+" "+share)
	}
	return lines, nil
}

// deviceText is devices of a node by kind with their numbers, gpu:h100:2(IDX:0-1), and adds them
// to the job's total.
func (s *command) deviceText(node string, devices []fastclient.Value, total map[string]int) string {
	index := map[string][]string{}
	var kinds []string
	for _, d := range devices {
		kind := "gpu"
		if i := slices.IndexFunc(s.nodes, func(n fleet.Node) bool { return n.Name == node }); i >= 0 {
			kind = orDefault(s.nodes[i].DeviceKind(d.Int()), kind)
		}
		if index[kind] == nil {
			kinds = append(kinds, kind)
		}
		index[kind] = append(index[kind], strconv.FormatInt(d.Int(), 10))
		total[kind]++
	}
	var out []string
	for _, kind := range kinds {
		out = append(out, fmt.Sprintf("%s:%d(IDX:%s)", kind, len(index[kind]), strings.Trim(hostlist.Compress(index[kind]), "[]")))
	}
	return strings.Join(out, ",")
}
