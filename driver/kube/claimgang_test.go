package kube

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// serves has a stand say what it has for gangs.
func serves(begins render.GangKind) string {
	g, _ := gang.OfKind(begins)
	return `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"` + g.Resource.Group + `"},"versions":[{"version":"` + g.Resource.Version + `","resources":[{"resource":"` + g.Resource.Name + `","scope":"Namespaced"}]}]}]}`
}

// asking is a job of one pod that asks for a device, of a pool where the cluster's scheduler chooses.
func asking(allocation uint64) *engine.Launch {
	l := launchOn(allocation, "")
	l.Claims = []fleet.Claim{{Node: "@kube", Tasks: 1}}
	l.Job.Spec.Groups[0].PerNode.Devices = []resource.DeviceRequest{{Count: 1}}
	return l
}

// TestGangsThatRefuseClaims: a job whose devices are claimed is refused where Kueue would never admit
// its pods, with the option and what helps, and nowhere else; nor is one without devices.
//
// Seen to fail with: Kueue let have claims.
func TestGangsThatRefuseClaims(t *testing.T) {
	for _, c := range []struct {
		gang    render.GangKind
		devices bool
		refused bool
	}{{render.Kueue, true, true}, {render.Kueue, false, false}, {render.Volcano, true, false}, {render.Native, true, false}} {
		s := claimable(t, 1)
		s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/apis" {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, serves(c.gang))
				return true
			}
			return false
		})
		e := s.open(func(c2 *Config) {
			c2.Terms.Placed, c2.Terms.Classes = false, []string{"gpu.example.com"}
			c2.Terms.Gang, c2.Terms.Approximate, c2.Terms.Queue = c.gang, c.gang == render.Kueue, "q"
		})
		l := asking(1)
		if !c.devices {
			l.Job.Spec.Groups[0].PerNode.Devices = nil
		}
		err := e.Admit(t.Context(), &engine.JobDraft{Spec: l.Job.Spec, Script: l.Script})
		if c.refused != (fault.KindOf(err) == fault.Unsupported && err != nil && strings.Contains(err.Error(), "Kueue, by which its pods begin, admits no pod that has a ResourceClaim") && strings.Contains(fault.Remedy(err), "device_class")) || !c.refused && err != nil {
			t.Errorf("%s, devices %v: %v", c.gang, c.devices, err)
		}
	}
}

// TestAClaimWithoutDevices: a scheduler binds a pod whose claim it has given no device. The attempt
// says so and who it was, and ends: none comes later. With a device it runs, and nothing is said.
//
// Seen to fail with: nobody looking at the claim (it waits for its kubelet).
func TestAClaimWithoutDevices(t *testing.T) {
	for _, c := range []struct {
		gang  render.GangKind
		gives bool
		says  string
	}{
		{render.Volcano, false, "on n1: Volcano has given it a node, and its ResourceClaim no devices: it takes predicate.DynamicResourceAllocationEnable: true"},
		{render.Coscheduling, false, "on n1: the scheduler theirs has given it a node, and its ResourceClaim no devices: its plugin DynamicResources has to be on"},
		{render.Volcano, true, ""},
	} {
		s := claimable(t, 1)
		s.answersBy(binds(s, c.gang, c.gives))
		e := s.open(func(c2 *Config) {
			c2.Pull, c2.Terms.Placed, c2.Terms.Classes, c2.Terms.Gang = 1, false, []string{"gpu.example.com"}, c.gang
			if c.gang == render.Coscheduling {
				c2.Terms.Scheduler = "theirs"
			}
		})
		l := asking(1)
		if err := e.Launch(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if c.gives {
			until(t, "it has a node", func() bool { return s.boundTo() == "0 n1" })
			s.become(isRunning, "0")
		}
		var r engine.Report
		until(t, "it runs, or says why not", func() bool {
			var err error
			if r, err = e.Inspect(t.Context(), l.Ref); err != nil {
				t.Fatal(err)
			}
			return r.Phase >= engine.Running
		})
		if c.gives {
			if r.Phase != engine.Running || r.Message != "" {
				t.Errorf("%s, with a device: %+v", c.gang, r)
			}
			continue
		}
		s.become(hasEnded, "0") // its kubelet, as it was deleted
		if r = goneFrom(t, e, l.Ref); r.Cause != engine.LaunchFailed || !strings.Contains(r.Message, c.says) || !r.Started.IsZero() {
			t.Errorf("%s: %+v", c.gang, r)
		}
	}
}

// binds has a stand be the scheduler of one pod: when our gate is gone it has a node, and its claim a
// device if gives.
func binds(s *stand, gang render.GangKind, gives bool) func(http.ResponseWriter, *http.Request) bool {
	bound := false
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/apis" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, serves(gang))
			return true
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/pods/") || bound {
			return false
		}
		bound = true
		for path, o := range s.objects {
			if strings.Contains(path, "/namespaces/default/resourceclaims/") && gives {
				o["status"] = map[string]any{"allocation": map[string]any{"devices": map[string]any{"results": []any{map[string]any{"request": "gpu-0", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}}}}}
			}
		}
		o := s.objects[r.URL.Path]
		spec, _ := o["spec"].(map[string]any)
		spec["nodeName"] = "n1"
		delete(spec, "schedulingGates")
		s.keep(r.URL.Path, "MODIFIED", o)
		answer(w, http.StatusOK, o)
		return true
	}
}

// TestGangsOfPodsThatAskForNothing: Volcano begins pods that ask for nothing one by one, so a gang of
// such is refused there; with devices that are claimed alone it is one of these.
//
// Seen to fail with: any pod let be of a gang.
func TestGangsOfPodsThatAskForNothing(t *testing.T) {
	pod := func(cpu resource.Amount, ask ...string) render.Node {
		n := render.Node{Ask: ask}
		n.Capacity.CPU = cpu
		return n
	}
	for _, c := range []struct {
		gang    render.GangKind
		nodes   []render.Node
		refused bool
	}{
		{render.Volcano, []render.Node{pod(1000), pod(1000)}, false},
		{render.Volcano, []render.Node{pod(0, "nvidia.com/gpu"), pod(0, "nvidia.com/gpu")}, false},
		{render.Volcano, []render.Node{pod(1000), pod(0, "")}, true},
		{render.Volcano, []render.Node{pod(0)}, false}, // one begins whole
		{render.Coscheduling, []render.Node{pod(0), pod(0)}, false},
	} {
		g := &gang.Gang{Kind: c.gang}
		if err := g.CheckClaims(c.nodes); c.refused != (fault.KindOf(err) == fault.Unsupported && err != nil && strings.Contains(err.Error(), "Volcano begins such pods one by one")) || !c.refused && err != nil {
			t.Errorf("%s %+v: %v", c.gang, c.nodes, err)
		}
	}
}
