package dra

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/coxswain-sched/coxswain/model/fault"
	amount "github.com/coxswain-sched/coxswain/model/resource"
)

// TestWanted: what a claim says of the devices that a job asks for is true of these and of no
// others that there are. It is read with our own reading of CEL; the cluster's reads it in driver/kube,
// testClaimsDelegated. Seen to fail without !('profile' in …): a MIG instance was a GPU.
func TestWanted(t *testing.T) {
	h200 := strings.NewReplacer("H100", "H200", "80GB", "141GB", "81559Mi", "143771Mi").Replace(fmt.Sprintf(h100, 5, 0))
	published := published(t, "gpu-7", fmt.Sprintf(h100, 2, 0), h200, mig)
	all := offeredTrays([]resourcev1.ResourceSlice{published}, []Class{classOf(t, "any", `device.driver == 'gpu.nvidia.com'`)})["gpu-7"].Offers
	for _, x := range []struct {
		r    amount.DeviceRequest
		want string
	}{
		{amount.DeviceRequest{Count: 1}, "gpu-2 gpu-5"},
		{amount.DeviceRequest{Count: 1, Type: "h100"}, "gpu-2"},
		{amount.DeviceRequest{Count: 1, Type: "h200"}, "gpu-5"},
		{amount.DeviceRequest{Count: 1, Memory: 100 * amount.GiB}, "gpu-5"},
		{amount.DeviceRequest{Count: 1, Profile: "1G.10GB"}, "gpu-9-mig-19-0-1"},
		{amount.DeviceRequest{Count: 1, Type: "h100", Memory: 100 * amount.GiB}, "error"},
		{amount.DeviceRequest{Count: 1, Type: "a100"}, "error"},
		{amount.DeviceRequest{Count: 1, Share: 500}, "error"},
	} {
		p, err := Wanted(slices.Values(all), []string{"none", "any"}, x.r)
		got := "error"
		if err == nil {
			s, err := parseSelector(p.Where)
			if err != nil || p.Class != "any" {
				t.Errorf("%+v: %+v %v", x.r, p, err)
				continue
			}
			var names []string
			for i := range published.Spec.Devices {
				if s.matches(&candidate{driver: "gpu.nvidia.com", device: &published.Spec.Devices[i]}) {
					names = append(names, published.Spec.Devices[i].Name)
				}
			}
			got = strings.Join(names, " ")
		}
		if got != x.want {
			t.Errorf("%+v: %s is %s, want %s", x.r, p.Where, got, x.want)
		}
	}
	if p, err := Wanted(slices.Values(all), []string{"any"}, amount.DeviceRequest{Count: 1, Type: "a100"}); fault.KindOf(err) != fault.Invalid || fault.Remedy(err) == "" {
		t.Errorf("%+v %v", p, err)
	}
}
