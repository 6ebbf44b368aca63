package verify

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Node is one on which the gang could have run.
type Node struct {
	Name string
	Leaf string // empty: it is not known where it lies
	Free bool   // it had room for a rank
}

// Check is one thing that was looked at.
type Check struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
	Text string `json:"text"`
	Mend string `json:"mend,omitempty"`
}

// Judge says of what a gang needs whether it was so. Nodes are those of the pool, as they
// were before; none: they are not known.
func Judge(o *Order, ranks []Rank, nodes []Node) []Check {
	if len(ranks) == 0 {
		return []Check{{What: "ranks", Text: "none has said anything", Mend: "cox logs and cox show of the job have what there is; --dir names a directory that is there on the nodes"}}
	}
	return []Check{checkWholeGang(o, ranks), checkOneJob(ranks), checkTogether(ranks), checkDevices(o, ranks), checkSpread(ranks, nodes)}
}

// checkWholeGang: one rank on each of the nodes.
func checkWholeGang(o *Order, ranks []Rank) Check {
	on := map[string]bool{}
	for i := range ranks {
		on[ranks[i].Node] = true
	}
	c := Check{What: "ranks", OK: len(ranks) == o.Nodes && len(on) == o.Nodes, Text: fmt.Sprintf("%d on %s", len(ranks), strings.Join(slices.Sorted(maps.Keys(on)), ", "))}
	if !c.OK {
		c.Text += fmt.Sprintf("; %d, each on a node of its own, were asked for", o.Nodes)
		c.Mend = "cox logs of the job has what the others said"
	}
	return c
}

// checkOneJob: one job.
func checkOneJob(ranks []Rank) Check {
	all := map[string]bool{}
	for i := range ranks {
		all[ranks[i].Job] = true
	}
	names := slices.Sorted(maps.Keys(all))
	if len(names) != 1 || names[0] == "" {
		return Check{What: "job", Text: "the ranks are of jobs " + strings.Join(names, ", "), Mend: "SLURM_JOB_ID has to be one job's: does a prolog or profile change it?"}
	}
	return Check{What: "job", OK: true, Text: "all ranks are of job " + names[0]}
}

// checkTogether: all lived at one time.
func checkTogether(ranks []Rank) Check {
	first, last := ranks[0].Started, ranks[0].Started
	for i := range ranks {
		r := &ranks[i]
		if r.Seen < r.Of {
			return Check{
				What: "start", Text: fmt.Sprintf("rank %d on %s met %d of %d", r.Rank, r.Node, r.Seen, r.Of),
				Mend: "the others did not start while it lived: cox show of the job says on which nodes it was",
			}
		}
		if r.Started.Before(first) {
			first = r.Started
		}
		if r.Started.After(last) {
			last = r.Started
		}
	}
	return Check{What: "start", OK: true, Text: fmt.Sprintf("all met before any went on; by their clocks they started within %s", last.Sub(first).Round(time.Millisecond))}
}

// checkDevices: each rank has its own, and what its container was given is as much.
func checkDevices(o *Order, ranks []Rank) Check {
	if o.GPUs == 0 {
		return Check{What: "devices", OK: true, Text: "none were asked for"}
	}
	var given []string
	for i := range ranks {
		r := &ranks[i]
		if r.Given != nil {
			given = append(given, r.Node+" "+strings.Join(r.Given, ","))
		}
		if r.Given != nil && len(r.Given) != o.GPUs {
			return Check{
				What: "devices", Text: fmt.Sprintf("the container of rank %d on %s was given %d of %d: %s", r.Rank, r.Node, len(r.Given), o.GPUs, strings.Join(r.Given, ",")),
				Mend: "does the pod ask for them, and does the image or a profile set NVIDIA_VISIBLE_DEVICES?",
			}
		}
		if len(r.Devices) != o.GPUs {
			return Check{
				What: "devices", Text: fmt.Sprintf("rank %d on %s sees %d of %d: %s", r.Rank, r.Node, len(r.Devices), o.GPUs, cmp.Or(strings.Join(r.Devices, ","), "none")),
				Mend: "is the node's gres.conf right (File=/dev/…), and does no profile set CUDA_VISIBLE_DEVICES?",
			}
		}
	}
	text := fmt.Sprintf("%d on each", o.GPUs)
	if given != nil {
		text += ": " + strings.Join(given, "; ")
	}
	return Check{What: "devices", OK: true, Text: text}
}

// checkSpread: no more than were needed.
func checkSpread(ranks []Rank, nodes []Node) Check {
	of := map[string]string{}
	room := map[string]int{}
	for i := range nodes {
		of[nodes[i].Name] = nodes[i].Leaf
		if nodes[i].Leaf != "" && nodes[i].Free {
			room[nodes[i].Leaf]++
		}
	}
	used := map[string]bool{}
	for i := range ranks {
		leaf := cmp.Or(of[ranks[i].Node], ranks[i].Place)
		if leaf == "" {
			return Check{What: "leaves", OK: true, Text: fmt.Sprintf("where %s lies is not known: not looked at", ranks[i].Node)}
		}
		used[leaf] = true
	}
	names := strings.Join(slices.Sorted(maps.Keys(used)), ", ")
	least, left := 0, len(ranks)
	for _, n := range slices.Backward(slices.Sorted(maps.Values(room))) {
		if left > 0 {
			least, left = least+1, left-n
		}
	}
	switch {
	case len(used) == 1:
		return Check{What: "leaves", OK: true, Text: "1, the fewest: " + names}
	case len(room) == 0 || left > 0:
		return Check{What: "leaves", OK: true, Text: fmt.Sprintf("%d: %s; whether fewer would have done is not known", len(used), names)}
	case len(used) > least:
		return Check{What: "leaves", Text: fmt.Sprintf("%d where %d had room: %s", len(used), least, names), Mend: "once more: others' jobs may have taken the room meanwhile; then TopologyPlugin and topology.conf"}
	}
	return Check{What: "leaves", OK: true, Text: fmt.Sprintf("%d, the fewest: %s", len(used), names)}
}
