package command

import (
	"context"
	"strings"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// fillInstances fills in the ids of the instances that nodes run on, which sinfo does not show.
// It asks only where they say something: of nodes whose address is that of a pod.
func (s *Site) fillInstances(ctx context.Context, nodes []site.Node) error {
	at := map[string]*site.Node{}
	for i := range nodes {
		if p, ok := nodes[i].Pod(); ok && p.Name != "" && p.Node == "" {
			at[nodes[i].Name] = &nodes[i]
		}
	}
	if len(at) == 0 {
		return nil
	}
	out, err := s.runQuery(ctx, "scontrol", "--oneliner", "show", "nodes")
	if fault.KindOf(err) == fault.Unavailable {
		return err
	}
	for line := range strings.Lines(string(out)) { // none where it refused
		if name, id := parseInstance(line); at[name] != nil {
			at[name].Instance = id
		}
	}
	return nil
}

// parseInstance reads a node's name and the id of its instance from scontrol's line about it.
// The id stands behind everything that people write: reason, comment, extra.
func parseInstance(line string) (name, id string) {
	head, _, _ := strings.Cut(strings.TrimPrefix(line, "NodeName="), " ")
	i := strings.LastIndex(line, " InstanceId=")
	if i < 0 || head == line {
		return head, ""
	}
	id, _, _ = strings.Cut(strings.TrimSpace(line[i+len(" InstanceId="):]), " ")
	if id == "(null)" {
		id = ""
	}
	return head, id
}
