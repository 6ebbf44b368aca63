package inventory_test

import (
	"slices"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/inventory"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// A node is on the machine that NodeHostname names, and so the same as another engine's node of that name. Seen to
// fail without NameHosts.
func TestHostnameIsMachine(t *testing.T) {
	found := []site.Node{
		{Name: "gpu7", Host: "gpu7.example.org"},
		{Name: "gpu8", Host: "Rack2-U8"},
		{Name: "gpu9", Host: "GPU9"},
		{Name: "gpu10"},
		{Name: "v1", Host: "host1"},
		{Name: "v2", Host: "host1"}, // several slurmds on one machine
		{Name: "w1", Host: "w2"},
		{Name: "w2", Host: "w2"},
		{Name: "lab", Host: "localhost"},
		{Name: "ip", Host: "10.0.0.7"},
		{Name: "cloud1", Host: "ip-10-0-0-5", State: "idle+cloud"},
		{Name: "pod1", Host: "pod1-abc", Comment: `{"namespace":"slurm","podName":"pod1","node":"kube-7"}`},
	}
	want := map[string][]string{"gpu7": {"gpu7.example.org"}, "gpu8": {"rack2-u8"}, "pod1": {"kube-7"}}
	all := make([]fleet.Node, len(found))
	for i := range found {
		all[i] = inventory.Node("slurm", &found[i])
	}
	inventory.NameHosts(found, all)
	for i := range all {
		if n := &all[i]; !slices.Equal(n.Hosts, want[n.Name]) {
			t.Errorf("%s is on %v, want %v", n.Name, n.Hosts, want[n.Name])
		}
	}
}
