package pools_test

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// TestSuspectTwins: one machine that has another name in each engine is said, by its address or its name without the
// domain. Seen to fail without the look at addresses, and with nodes that are known to share a machine taken too.
func TestSuspectTwins(t *testing.T) {
	others := []fleet.Node{
		{Pool: "k8s", Name: "gpu1.example.org"},
		{Pool: "k8s", Name: "ip-10-0-0-2", Address: "10.0.0.2"},
		{Pool: "k8s", Name: "gpu3", Address: "10.0.0.3"},
		{Pool: "k8s", Name: "kube-4", Address: "10.0.0.4"},
		{Pool: "k8s", Name: "kube-5", Address: "127.0.0.1"},
		{Pool: "k8s", Name: "kube-6", Address: "kube-6.example.org"},
		{Pool: "k8s", Name: "a", Address: "10.0.0.9"},
		{Pool: "k8s", Name: "b", Address: "10.0.0.9"},
		{Pool: "slurm", Name: "gpu7", Address: "10.0.0.7"}, // of the same pool
		{Pool: "local", Name: "v1", Address: "10.0.0.8", Virtual: true},
	}
	for name, c := range map[string]struct {
		node fleet.Node
		want bool
	}{
		"ShortName":        {fleet.Node{Name: "gpu1"}, true},
		"Address":          {fleet.Node{Name: "gpu2", Address: "10.0.0.2"}, true},
		"AddressIsName":    {fleet.Node{Name: "gpu6", Address: "kube-6"}, true},
		"OneName":          {fleet.Node{Name: "gpu3", Address: "10.0.0.3"}, false},
		"KnownMachine":     {fleet.Node{Name: "gpu4", Hosts: []string{"kube-4"}, Address: "10.0.0.4"}, false},
		"Loopback":         {fleet.Node{Name: "gpu5", Address: "127.0.0.1"}, false},
		"AddressOfSeveral": {fleet.Node{Name: "gpu9", Address: "10.0.0.9"}, false},
		"SamePool":         {fleet.Node{Name: "gpu7", Address: "10.0.0.7"}, false},
		"Virtual":          {fleet.Node{Name: "gpu8", Address: "10.0.0.8"}, false},
		"Other":            {fleet.Node{Name: "gpu20", Address: "10.0.0.20"}, false},
	} {
		found := pools.SuspectTwins("slurm", []fleet.Node{c.node}, others)
		if (len(found) == 1 && found[0].State == engine.Warning && strings.HasPrefix(found[0].Text, c.node.Name+": ") && strings.Contains(found[0].Text, "of pool k8s")) != c.want || len(found) > 1 {
			t.Errorf("%s: %+v", name, found)
		}
	}
	if found := pools.SuspectTwins("slurm", []fleet.Node{{Name: "x", Address: "10.0.0.2"}, {Name: "y", Address: "10.0.0.2"}}, others); found != nil {
		t.Errorf("several nodes at one address: %+v", found)
	}
}
