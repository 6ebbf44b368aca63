package dcgm

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/server/series"
)

// The GPUs of testdata/page.txt, which has the form of dcgm-exporter 3.3 and 4 with the labels of Kubernetes.
const (
	whole  = "GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52"
	second = "GPU-0a1f8a0e-5c5b-4b9a-8a58-64b5e35ae3a1"
	split  = "GPU-b1c22d2b-0a55-9f3c-7d4e-3f5ad92a70ee"
	mebi   = 1 << 20
)

// TestMatch reads the page of an exporter, once of its own and once of a Prometheus that scrapes it, and finds the
// devices of attempts: by their pods, by UUID, and by the profile of an instance.
//
// Seen to fail with a pod of another namespace, with the numbers of a whole GPU for an instance of it, and with
// blank values that are read; with a page of all nodes that is read again for others.
func TestMatch(t *testing.T) {
	page, err := os.ReadFile("testdata/page.txt")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("/gpu1/metrics", func(w http.ResponseWriter, _ *http.Request) { asked.Add(1); _, _ = w.Write(page) })
	mux.HandleFunc("/federate", func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query().Get("match[]"); !strings.HasPrefix(q, `{__name__=~"DCGM_FI_DEV_GPU_UTIL|`) {
			t.Errorf("Prometheus is asked for %s", q)
		}
		asked.Add(1)
		text := strings.NewReplacer(`pod="cox`, `pod="dcgm-exporter-x",exported_pod="cox`, `,namespace="teams"`, `,namespace="gpu-operator",exported_namespace="teams"`,
			" gauge\n", " untyped\n").Replace(string(page))
		_, _ = w.Write([]byte(text))
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	config := Config{
		Pods: func(ref engine.Ref) []engine.PodName {
			switch ref.Allocation {
			case 12:
				return []engine.PodName{{Namespace: "teams", Name: "cox-12-1-0", Node: "gpu1"}}
			case 13:
				return []engine.PodName{{Namespace: "teams", Name: "cox-13-1-0", Node: "gpu1"}}
			}
			return nil
		},
		Nodes: func(context.Context) []fleet.Node {
			return []fleet.Node{{Name: "v1", Devices: []fleet.Device{
				{Index: 4, UUID: whole},
				{Index: 5, UUID: second},
				{Index: 6, UUID: "MIG-1", Parent: split, Profile: "1g.10gb"},
				{Index: 7, UUID: "MIG-2", Parent: split, Profile: "7g.80gb"},
				{Index: 8, UUID: whole, Declared: true},
			}}, {Name: "gpu1", Devices: []fleet.Device{{Index: 0}, {Index: 3}}}}
		},
	}
	claim := func(node string, devices ...int) *series.Attempt {
		c := fleet.Claim{Node: node}
		for _, d := range devices {
			c.Devices = append(c.Devices, fleet.DeviceClaim{Index: d})
		}
		return &series.Attempt{Claims: []fleet.Claim{c}}
	}
	inPods := func(allocation uint64) *series.Attempt {
		return &series.Attempt{Ref: engine.Ref{Allocation: allocation, Attempt: 1}}
	}
	first := series.GPUSample{Node: "gpu1", Busy: 87, Used: 41051 * mebi, Of: 81051 * mebi}
	instance := series.GPUSample{Node: "gpu1", Index: 2, Instance: "9", Profile: "1g.10gb", Busy: 42.5, Used: 1728 * mebi, Of: 9728 * mebi}
	at := func(g series.GPUSample, node string, index int) series.GPUSample {
		g.Node, g.Index = node, index
		return g
	}
	for _, address := range []string{server.URL + "/{node}/metrics", server.URL} {
		config.URL = address
		s := New(config)
		all, err := s.Look(t.Context(), []string{"gpu1"})
		if err != nil || len(all) != 4 {
			t.Fatalf("%s: %+v, %v", address, all, err)
		}
		for _, tt := range []struct {
			name string
			of   *series.Attempt
			want []series.GPUSample
		}{
			{"pod", inPods(12), []series.GPUSample{first}},
			{"pod with an instance", inPods(13), []series.GPUSample{instance}},
			{"another pod", inPods(14), nil},
			{"UUIDs", claim("v1", 4, 5, 6, 7, 8), []series.GPUSample{at(first, "v1", 4), {Node: "v1", Index: 5}, at(instance, "v1", 6)}},
			{"node and number alone", claim("gpu1", 0, 3), nil},
		} {
			if d := cmp.Diff(tt.want, s.Match(all, tt.of), cmpopts.EquateNaNs()); d != "" {
				t.Errorf("%s, %s (-want +got):\n%s", address, tt.name, d)
			}
		}
		again := []string{"gpu1"}
		if address == server.URL {
			again = []string{"gpu1", "gpu2"} // one page has them all
		}
		if _, err := s.Look(t.Context(), again); err != nil {
			t.Error(err)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the exporter and the Prometheus were asked %d times", n)
	}
	config.URL = server.URL + "/{node}/metrics"
	if all, err := New(config).Look(t.Context(), []string{"away", "gpu1"}); err == nil || len(all) != 4 || !strings.Contains(err.Error(), "/away/metrics answers 404") {
		t.Errorf("of a node without an exporter: %d GPUs, %v", len(all), err)
	}
}

// FuzzPage: whatever a page says, a number is a share or unknown, and no amount is negative.
func FuzzPage(f *testing.F) {
	page, err := os.ReadFile("testdata/page.txt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(page))
	f.Add("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} -1e300\nDCGM_FI_DEV_FB_USED{gpu=\"0\"} -5\nDCGM_FI_DEV_FB_FREE{gpu=\"0\"} NaN\n")
	f.Fuzz(func(t *testing.T, page string) {
		all, err := parsePage(strings.NewReader(page), "")
		if err != nil {
			return
		}
		for _, g := range all {
			if !math.IsNaN(g.Busy) && (g.Busy < 0 || g.Busy > 100) || g.Used < 0 || g.Of < g.Used {
				t.Errorf("%+v", g)
			}
		}
	})
}
