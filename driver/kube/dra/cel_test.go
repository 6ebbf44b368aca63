package dra

import (
	"encoding/json"
	"fmt"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestSelectors: what classes say of their devices is read as CEL has it. Seen to fail with &&
// whose first part decides when it is an error, and with in that takes any values: it panicked.
func TestSelectors(t *testing.T) {
	var v resourcev1.Device
	if err := json.Unmarshal(fmt.Appendf(nil, h100, 3, 1), &v); err != nil {
		t.Fatal(err)
	}
	d := &candidate{driver: "gpu.nvidia.com", device: &v}
	for text, want := range map[string]bool{
		`device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'`: true, // those of NVIDIA's classes
		`device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'`: false,
		`device.driver == "gpu.intel.com"`:  false,
		`device.driver != "gpu.intel.com"`:  true,
		`"gpu.nvidia.com" == device.driver`: true,
		`device.attributes["gpu.nvidia.com"]["productName"] in ['NVIDIA H100 80GB HBM3', 'NVIDIA H200']`: true,
		`device.attributes["gpu.nvidia.com"].productName in ['NVIDIA H200']`:                             false,
		`'uuid' in device.attributes['gpu.nvidia.com']`:                                                  true,
		`'serial' in device.attributes['gpu.nvidia.com']`:                                                false,
		`'uuid' in device.attributes['gpu.amd.com']`:                                                     false,
		`device.attributes['resource.kubernetes.io'].pcieRoot == 'pci0000:1'`:                            true,
		`device.attributes['gpu.nvidia.com'].pcieRoot == 'pci0000:1'`:                                    false,
		`device.attributes['gpu.nvidia.com'].numaNode >= 1`:                                              true,
		`device.attributes['gpu.nvidia.com'].numaNode < 1`:                                               false,
		`device.attributes['gpu.nvidia.com'].numaNode == '1'`:                                            false, // of another kind
		`device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0`:                      true,
		`device.capacity['gpu.nvidia.com'].memory.compareTo(quantity("80Gi")) > 0`:                       false,
		`device.attributes['gpu.nvidia.com'].serial == 'x' || device.driver == 'gpu.nvidia.com'`:         true, // what is true decides
		`device.attributes['gpu.nvidia.com'].serial != 'x'`:                                              false,
		`!(device.attributes['gpu.nvidia.com'].serial == 'x' && device.driver == 'other')`:               true,
		`!(device.driver == 'other') && (true || false)`:                                                 true,
		`device.attributes['gpu.nvidia.com'].driverVersion == '570.86.15'`:                               false, // a version is no text
		`device.attributes['gpu.nvidia.com'] in [device.attributes['gpu.nvidia.com']]`:                   false, // these cannot be compared
		`!('gpu' in [device.attributes['gpu.nvidia.com']])`:                                              false,
		`['gpu'] in [['gpu']]`: false,
		`device.attributes['gpu.nvidia.com'].driverVersion in [device.attributes['gpu.nvidia.com'].driverVersion]`: false,
		`device.attributes['gpu.nvidia.com'].numaNode in [0, 1]`:                                                   true,
	} {
		x, err := parseSelector(text)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := x.matches(d); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	for _, text := range []string{
		``, `device.driver ==`, `device.driver == 'a`, `device.attributes['a'].x.matches('b')`, `device.driver.startsWith('gpu')`, `size(device.attributes) > 0`,
		`device.attributes['a'].v.isGreaterThan(semver('1.0.0'))`, `device.allowMultipleAllocations`, `device.driver == 'a' ? true : false`, `device.driver == 'a\'b'`, `(device.driver == 'a'`, `1.5 > 1`,
	} {
		if _, err := parseSelector(text); err == nil {
			t.Errorf("%q is understood", text)
		}
	}
	if _, err := readClass(&resourcev1.DeviceClass{Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: "has(device.x)"}}}}}); fault.KindOf(err) != fault.Unsupported || fault.Remedy(err) == "" {
		t.Errorf("%v", err)
	}
}
