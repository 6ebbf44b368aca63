package admission_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

func fleetOf(devices ...fleet.Device) func() ([]fleet.Node, error) {
	for i := range devices {
		devices[i].Index, devices[i].Kind = i, "gpu"
	}
	return func() ([]fleet.Node, error) { return []fleet.Node{{Name: "n1", Devices: devices}}, nil }
}

func TestPartsByMemoryCountForTheSmallestDevice(t *testing.T) {
	for _, c := range []struct {
		name    string
		r       resource.DeviceRequest
		devices []fleet.Device
		want    resource.Share
		says    string
	}{
		{"a quarter", resource.DeviceRequest{Bytes: 20 * resource.GiB}, []fleet.Device{{Type: "h100", Memory: 80 * resource.GiB}}, 250, ""},
		{"the smaller one", resource.DeviceRequest{Bytes: 20 * resource.GiB}, []fleet.Device{{Memory: 80 * resource.GiB}, {Memory: 40 * resource.GiB}, {Memory: 16 * resource.GiB}}, 500, ""},
		{"of the type", resource.DeviceRequest{Bytes: 20 * resource.GiB, Type: "h100"}, []fleet.Device{{Type: "h100", Memory: 80 * resource.GiB}, {Type: "a100", Memory: 40 * resource.GiB}}, 250, ""},
		{"rounded up", resource.DeviceRequest{Bytes: 1}, []fleet.Device{{Memory: 80 * resource.GiB}}, 1, ""},
		{"too large: a device", resource.DeviceRequest{Bytes: 90 * resource.GiB}, []fleet.Device{{Memory: 80 * resource.GiB}}, 1000, ""},
		{"none of it is known", resource.DeviceRequest{Bytes: resource.GiB}, []fleet.Device{{}}, 0, "gpu 0 of node n1"},
		{"some are known", resource.DeviceRequest{Bytes: resource.GiB}, []fleet.Device{{}, {Memory: 10 * resource.GiB}}, 100, ""},
		{"instances are no devices", resource.DeviceRequest{Bytes: resource.GiB}, []fleet.Device{{Memory: 10 * resource.GiB, Profile: "1g.10gb"}}, 1000, ""},
	} {
		c.r.Count = 1
		s := &job.Spec{Groups: []job.TaskGroup{{PerTask: resource.Requirements{Devices: []resource.DeviceRequest{c.r}}}}}
		err := admission.Parts(s, fleetOf(c.devices...))
		if got := s.Groups[0].PerTask.Devices[0].Share; c.says == "" && (err != nil || got != c.want) {
			t.Errorf("%s: counts for %d (%v), want %d", c.name, got, err, c.want)
		}
		if c.says != "" && (err == nil || fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want one that says %q", c.name, err, c.says)
		}
	}
	s := &job.Spec{Groups: []job.TaskGroup{{PerTask: resource.Requirements{Devices: []resource.DeviceRequest{{Count: 1, Share: 500}}}}}}
	if err := admission.Parts(s, func() ([]fleet.Node, error) { return nil, errors.New("asked") }); err != nil {
		t.Errorf("a job without parts by memory: %v", err)
	}
}
