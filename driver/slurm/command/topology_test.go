package command

import (
	"reflect"
	"testing"
)

// TestPaths: as 22.05 and 24.11 print them.
func TestPaths(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want map[string][]string
	}{
		"tree": {
			"SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n3\nSwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-3] Switches=leaf[1-2]\n",
			map[string][]string{"n1": {"spine", "leaf1"}, "n2": {"spine", "leaf1"}, "n3": {"spine", "leaf2"}},
		},
		"two leaves": {
			"SwitchName=b Level=0 LinkSpeed=1 Nodes=n1\nSwitchName=a Level=0 LinkSpeed=1 Nodes=n1\n",
			map[string][]string{"n1": {"a"}},
		},
		"blocks": {
			"BlockName=b1 BlockIndex=0 Nodes=n1,n2 BlockSize=2\nBlockName=b2 BlockIndex=1 Nodes=n3,n4 BlockSize=2\nAggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-4] BlockSize=4\n",
			map[string][]string{"n1": {"b[1-2]", "b1"}, "n2": {"b[1-2]", "b1"}, "n3": {"b[1-2]", "b2"}, "n4": {"b[1-2]", "b2"}},
		},
		"none": {"No topology information available\n", map[string][]string{}},
	} {
		if got, err := parseTopology(c.text); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
