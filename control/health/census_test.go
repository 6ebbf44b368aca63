package health

import (
	"maps"
	"testing"
)

// TestCensus: a device counts once for any number of jobs, and is idle if it is for all of them, in whichever order
// they are asked.
//
// Seen to fail with what the last job says, and with what the first says.
func TestCensus(t *testing.T) {
	for _, order := range [][]bool{{true, false}, {false, true}, {true, true, false}} {
		c := Census{}
		for _, idle := range order {
			c.Add(Device{Pool: "k8s", Node: "a"}, idle)
		}
		c.Add(Device{Pool: "k8s", Node: "a", Index: 1}, true)
		c.Add(Device{Pool: "k8s", Node: "a", Index: 1, Instance: "3"}, true)
		c.Add(Device{Pool: "k8s", Node: "a", Index: 1, Instance: "3"}, true)
		c.Add(Device{Pool: "local", Node: "a"}, false)
		if got, want := c.ByPool(), (map[string]DeviceUse{"k8s": {Measured: 3, Idle: 2}, "local": {Measured: 1}}); !maps.Equal(got, want) {
			t.Errorf("%v: %+v, want %+v", order, got, want)
		}
	}
}
