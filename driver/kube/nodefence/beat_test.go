package nodefence

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// A kubelet has to be heard again after each time that the fence is set, also of the same epoch: what it was told to
// start while there was no fence, it may not have reported yet. Seen to fail without forgetBeat, and where a cluster
// without ResourceClaims is an error.
func TestEachFenceWaitsForKubelet(t *testing.T) {
	to := engine.NodeFence{Epoch: 5, Reason: "pool b has it"}
	for name, gap := range map[string]func(*testing.T, *Fencer, *oneNode){
		"Removed": func(t *testing.T, f *Fencer, _ *oneNode) {
			if err := f.Unfence(t.Context(), "gpu7", to); err != nil {
				t.Fatal(err)
			}
		},
		"TakenByHand":         func(_ *testing.T, _ *Fencer, s *oneNode) { s.setTaints(nil) },
		"HalfTakenByHand":     func(_ *testing.T, _ *Fencer, s *oneNode) { s.setTaints(withTaints(nil, to, effects[0])) },
		"SeenInList":          func(_ *testing.T, f *Fencer, _ *oneNode) { f.See([]fleet.Node{{Name: "gpu7"}}) },
		"LookedAtWithoutMark": func(t *testing.T, f *Fencer, s *oneNode) { s.setTaints(nil); wantEmpty(t, f, false) },
	} {
		t.Run(name, func(t *testing.T) {
			f, s := newOneNode(t)
			fence := func() {
				if err := f.Fence(t.Context(), "gpu7", to); err != nil {
					t.Fatal(err)
				}
			}
			fence()
			wantEmpty(t, f, false)
			s.renew()
			wantEmpty(t, f, true)
			gap(t, f, s)
			fence()
			wantEmpty(t, f, false)
			s.renew()
			wantEmpty(t, f, true)
			fence() // it stands already
			wantEmpty(t, f, true)
		})
	}
}

// What is listed before the fence stands proves nothing. Seen to fail where only the look after the lists counts.
func TestFenceSetBetweenLooks(t *testing.T) {
	f, s := newOneNode(t)
	s.onPods = func() { s.node.Spec.Taints = withTaints(nil, engine.NodeFence{Epoch: 5}, effects...) }
	wantEmpty(t, f, false)
}

// Pods that run get the toleration, the cluster's controllers time to see it, and then comes the taint that would end
// them. A pod that comes meanwhile is treated the same. Seen to fail where the taint follows the toleration at once.
func TestTolerationIsSeenBeforeTaint(t *testing.T) {
	f, s := newOneNode(t)
	runs := func(name string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "others"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	}
	s.pods = []corev1.Pod{runs("first")}
	f.settle = func(context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changes = append(s.changes, "settle")
		if len(s.pods) == 1 {
			s.pods = append(s.pods, runs("second"))
		}
		return nil
	}
	if err := f.Fence(t.Context(), "gpu7", engine.NodeFence{Epoch: 5}); err != nil {
		t.Fatal(err)
	}
	want := []string{"NoSchedule", "tolerates first", "settle", "tolerates second", "settle", "NoSchedule NoExecute"}
	if !slices.Equal(s.changes, want) {
		t.Errorf("changes are %q, want %q", s.changes, want)
	}
}

// A pod that changes while it gets its toleration is looked at again, and may be gone by then. The other pods' tolerations
// are as new as before. Seen to fail where the error forgets them.
func TestTolerationsBesideAPodThatGoes(t *testing.T) {
	f, s := newOneNode(t)
	for _, name := range []string{"first", "second"} {
		s.pods = append(s.pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "others"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
	}
	s.goes = "second"
	f.settle = func(context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changes = append(s.changes, "settle")
		return nil
	}
	if err := f.Fence(t.Context(), "gpu7", engine.NodeFence{Epoch: 5}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"NoSchedule", "tolerates first", "settle", "NoSchedule NoExecute"}; !slices.Equal(s.changes, want) {
		t.Errorf("changes are %q, want %q", s.changes, want)
	}
}

func wantEmpty(t *testing.T, f *Fencer, want bool) {
	t.Helper()
	c, err := f.Empty(t.Context(), "gpu7")
	if err != nil || c.ProvedEmpty(5) != want {
		t.Errorf("%+v, %v; want empty %t", c, err, want)
	}
}

// oneNode is an API server with one node, its lease, and its pods.
type oneNode struct {
	mu     sync.Mutex
	node   corev1.Node
	lease  coordinationv1.Lease
	pods   []corev1.Pod
	onPods func() // called, under the lock, when pods are listed
	goes   string // pod that ends as it is patched

	changes []string // of the node's taints and of pods, in order
}

func newOneNode(t *testing.T) (*Fencer, *oneNode) {
	t.Helper()
	s := &oneNode{node: corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu7"},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}}
	s.lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Unix(1e9, 0)}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, []byte(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"`+server.URL+`"}}],"users":[{"name":"u","user":{}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := cluster.Open(cluster.Config{Kubeconfig: file})
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(k, filepath.Join(dir, "fences"), "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return f, s
}

func (s *oneNode) setTaints(taints []corev1.Taint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node.Spec.Taints, s.node.Annotations = taints, nil
}

// renew is a beat of the kubelet.
func (s *oneNode) renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease.Spec.RenewTime = &metav1.MicroTime{Time: s.lease.Spec.RenewTime.Add(10 * time.Second)}
}

func (s *oneNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out any
	switch p := r.URL.Path; {
	case p == "/api/v1/nodes":
		out = corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, Items: []corev1.Node{s.node}}
	case p == "/api/v1/nodes/gpu7" && r.Method == http.MethodPatch:
		var c struct {
			Metadata struct {
				Annotations map[string]*string
			}
			Spec struct{ Taints []corev1.Taint }
		}
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.node.Spec.Taints, s.node.Annotations = c.Spec.Taints, map[string]string{}
		for key, v := range c.Metadata.Annotations {
			if v != nil {
				s.node.Annotations[key] = *v
			}
		}
		var to []string
		for _, x := range c.Spec.Taints {
			to = append(to, string(x.Effect))
		}
		s.changes = append(s.changes, strings.Join(to, " "))
		out = s.node
	case strings.Contains(p, "/pods/") && r.Method == http.MethodPatch:
		i := slices.IndexFunc(s.pods, func(o corev1.Pod) bool { return strings.HasSuffix(p, "/namespaces/"+o.Namespace+"/pods/"+o.Name) })
		if i < 0 {
			http.NotFound(w, r)
			return
		}
		if s.pods[i].Name == s.goes {
			s.pods[i].Status.Phase = corev1.PodSucceeded
			http.Error(w, "the object has been modified", http.StatusConflict)
			return
		}
		if err := json.NewDecoder(r.Body).Decode(&s.pods[i]); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.changes = append(s.changes, "tolerates "+s.pods[i].Name)
		out = s.pods[i]
	case p == "/api/v1/pods":
		if s.onPods != nil {
			s.onPods()
		}
		out = corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: s.pods}
	case strings.HasSuffix(p, "/leases/gpu7"):
		out = s.lease
	default: // resource claims: the cluster is of before 1.34
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(out)
}
