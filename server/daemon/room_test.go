package daemon

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/internal/checkout"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/server/config"
)

func gpus(n int) []fleet.Device {
	var out []fleet.Device
	for i := range n {
		out = append(out, fleet.Device{Index: i, Type: "h100", UUID: string(rune('a' + i))})
	}
	return out
}

func TestDeal(t *testing.T) {
	tests := []struct {
		name         string
		have, n, per int
		want         []int // devices of each node
		declared     bool
		first        []string // UUID of each node's first device
	}{
		{"equal parts of what is there", 8, 4, -1, []int{2, 2, 2, 2}, false, []string{"a", "c", "e", "g"}},
		{"as asked for", 8, 2, 3, []int{3, 3}, false, []string{"a", "d"}},
		{"more than there is", 2, 2, 2, []int{2, 2}, true, []string{"", ""}},
		{"none", 8, 2, 0, []int{0, 0}, false, nil},
		{"nothing here", 0, 2, -1, []int{0, 0}, false, nil},
	}
	for _, tt := range tests {
		sets, declared := dealDevices(gpus(tt.have), tt.n, tt.per, "h100")
		if len(sets) != tt.n || declared != tt.declared {
			t.Errorf("%s: %d nodes, declared %v", tt.name, len(sets), declared)
			continue
		}
		for i, set := range sets {
			if len(set) != tt.want[i] {
				t.Errorf("%s: node %d has %d devices, want %d", tt.name, i, len(set), tt.want[i])
			}
			if tt.first != nil && set[0].UUID != tt.first[i] {
				t.Errorf("%s: node %d begins with %q, want %q", tt.name, i, set[0].UUID, tt.first[i])
			}
		}
	}
}

func TestPartitionsOfNodes(t *testing.T) {
	cfg := config.Default()
	cfg.Partitions = []config.Partition{
		{Name: "all", Default: true, DefaultTime: config.Duration(time.Hour)},
		{Name: "big", Nodes: "v[2-3]"},
	}
	cfg.Accounts = []config.Account{{Name: "nlp", Users: []string{"anna"}}}
	nodes := []fleet.Node{{Name: "v1"}, {Name: "v2"}, {Name: "v3"}}
	rules, err := rulesOf(&cfg, nodes)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(nodes[1].Parts, " "); got != "all big" {
		t.Errorf("v2 is of %q", got)
	}
	if p := rules.Default(); p.Name != "all" || len(p.Nodes) != 3 || p.DefaultTime != time.Hour {
		t.Errorf("%+v", p)
	}
	if got := rules.AccountsOf("anna"); len(got) != 1 || got[0] != "nlp" {
		t.Errorf("%v", got)
	}
	cfg.Partitions[1].Nodes = "v[3-4]"
	if _, err := rulesOf(&cfg, nodes); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "there is no node v4") || fault.Remedy(err) != "nodes here: v[1-3]" {
		t.Errorf("%v; %s", err, fault.Remedy(err))
	}
	cfg.Partitions = nil
	if rules, err = rulesOf(&cfg, []fleet.Node{{Name: "v1"}}); err != nil || rules.Default().Name != poolName {
		t.Errorf("%+v, %v", rules, err)
	}
}

func TestUnit(t *testing.T) {
	u := Unit("/opt/my cox/cox", "/etc/50%.yaml", false)
	for _, want := range []string{
		`ExecStart="/opt/my cox/cox" up --config "/etc/50%%.yaml"`, "KillMode=process", "Type=notify",
		"Delegate=yes", "WantedBy=multi-user.target", "StateDirectory=coxswain",
	} {
		if !strings.Contains(u, want) {
			t.Errorf("no %s in\n%s", want, u)
		}
	}
	if u := Unit("/usr/bin/cox", "", true); !strings.Contains(u, "WantedBy=default.target") || strings.Contains(u, "StateDirectory") || !strings.Contains(u, "ExecStart=/usr/bin/cox up\n") {
		t.Error(u)
	}
	packaged, err := os.ReadFile(checkout.Path("deploy", "debian", "coxswain.service"))
	if err != nil || string(packaged) != Unit("/usr/bin/cox", "", false) {
		t.Errorf("the Debian package has another unit than cox up --systemd-unit: %v\n%s", err, packaged)
	}
}
