package dra

import (
	"fmt"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// TestDevicesKeepTheirNumbers: a device has its number whatever is published beside it, and
// that by which a launch of before knows it.
func TestDevicesKeepTheirNumbers(t *testing.T) {
	n := Numbers{}
	n.Remember([]render.Node{{Node: fleet.Node{Name: "gpu-7", Devices: []fleet.Device{{Index: 4}}}, Pieces: []render.Piece{{Driver: "gpu.nvidia.com", Pool: "gpu-7", Device: "gpu-3"}}}})
	see := func(devices ...string) string {
		tray := offeredTrays([]resourcev1.ResourceSlice{published(t, "gpu-7", devices...)}, nvidias(t))["gpu-7"]
		tray.Settle("gpu-7", n)
		var out []string
		for _, o := range tray.Offers {
			out = append(out, fmt.Sprintf("%s is %d", o.Device.UUID, o.Device.Index))
		}
		return strings.Join(out, ", ")
	}
	two, three, four := fmt.Sprintf(h100, 2, 0), fmt.Sprintf(h100, 3, 0), fmt.Sprintf(h100, 4, 0)
	for _, x := range []struct{ got, want string }{
		{see(two, three, four), "GPU-2 is 0, GPU-3 is 4, GPU-4 is 1"},
		{see(three, four), "GPU-3 is 4, GPU-4 is 1"},
		{see(fmt.Sprintf(h100, 1, 0), two, four), "GPU-1 is 2, GPU-2 is 0, GPU-4 is 1"},
	} {
		if x.got != x.want {
			t.Errorf("%s, want %s", x.got, x.want)
		}
	}
}
