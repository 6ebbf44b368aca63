package hardcase

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

// replicaArg is the hidden first argument of a replica: then come what it answers, and a file without
// which it answers nothing yet.
const replicaArg = "hardcase-replica"

func replicaMain(says, file string) int {
	for _, err := os.Stat(file); err != nil; _, err = os.Stat(file) {
		time.Sleep(5 * time.Millisecond) // another process writes it
	}
	err := http.ListenAndServe(":"+os.Getenv("PORT"), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { //nolint:gosec // a test's
		_, _ = io.WriteString(w, says)
	}))
	fmt.Println(err)
	return 1
}

// submitService submits a service of replicas with a GPU each, which answer once a file is there.
func submitService(t *testing.T, p *plane.Plane, replicas int, says, file string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("kind: service\nname: chat\nreplicas: %d\ngpus: 1\nports: [http]\nprobes: {readiness: {http: /, every: 1s, failures: 1}}\nupdate: {in_place: true}\noutput: none\ncommand: [%s, %s, %s, %s]\n",
		replicas, self, replicaArg, says, file)
	if _, err := p.Client.Submit(t.Context(), &api.Submit{Form: api.FormNative, File: "chat.yaml", Text: text, Dir: p.Dir, Environ: []string{"PATH=" + os.Getenv("PATH")}}); err != nil {
		t.Fatal(err)
	}
}

// awaitService waits until the service is so. watch, if there is one, sees what it was on the way.
func awaitService(t *testing.T, p *plane.Plane, what string, watch, is func(*api.Service) bool) (s *api.Service) {
	t.Helper()
	p.Await(what, func() bool {
		var err error
		if s, err = p.Service(t.Context(), "chat"); err != nil {
			t.Fatal(err)
		}
		if watch != nil && !watch(s) {
			t.Fatalf("on the way to %q it is %+v", what, s)
		}
		return is(s)
	})
	return s
}

// answer is what a replica says.
func answer(t *testing.T, r *api.Replica) string {
	t.Helper()
	got, err := http.Get("http://" + r.Address + "/")
	if err != nil {
		t.Fatalf("a replica that is ready does not answer: %v", err)
	}
	defer got.Body.Close()
	b, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Two replicas have both GPUs, and a new version comes that takes long to answer. It takes the place of
// one replica; the other one, of the old version, goes on alone, and nothing else is ready until the
// new one answers. At no time more replicas live than there are GPUs.
//
// Seen to fail with: a replica that counts as ready when it runs; a rollout with one more.
func TestHardCase_47_noSpareGPU(t *testing.T) {
	p := plane.New(t, nodes(2, 1)).Start()
	submitService(t, p, 2, "one", p.Write("there", ""))
	ready := func(n int, revision uint32) func(*api.Service) bool {
		return func(s *api.Service) bool {
			for i := range s.Parts {
				if s.Parts[i].Ready && s.Parts[i].Revision != revision {
					return false
				}
			}
			return s.Replicas.Ready == n && len(s.Parts) == n && s.Revision == revision
		}
	}
	awaitService(t, p, "two replicas", nil, ready(2, 1))

	later := filepath.Join(p.Dir, "later")
	submitService(t, p, 2, "two", later)
	enough := func(s *api.Service) bool { return s.Replicas.Ready >= 1 && len(s.Parts) <= 2 }
	begun := awaitService(t, p, "the new version begins and does not answer", enough, func(s *api.Service) bool {
		for i := range s.Parts {
			if r := &s.Parts[i]; r.Revision == 2 && r.State == "RUNNING" && !r.Ready {
				return true
			}
		}
		return false
	})
	p.Settle()
	for _, s := range []*api.Service{begun, awaitService(t, p, "the old one serves", enough, func(*api.Service) bool { return true })} {
		for i := range s.Parts {
			if r := &s.Parts[i]; r.Ready && (r.Revision != 1 || answer(t, r) != "one") {
				t.Errorf("ready before it answers: %+v", r)
			}
		}
	}
	p.Write("later", "")
	s := awaitService(t, p, "the new version serves", enough, ready(2, 2))
	for i := range s.Parts {
		if got := answer(t, &s.Parts[i]); got != "two" {
			t.Errorf("replica %d says %q", i, got)
		}
	}
}

// A service is scaled to five replicas where two have room. The others wait, and those two serve; then
// it is stopped, and nothing of it stays, waiting or running: both GPUs are free.
//
// Seen to fail with: a stop that ends what runs alone.
func TestHardCase_48_beyondCapacity(t *testing.T) {
	p := plane.New(t, nodes(2, 1)).Start()
	submitService(t, p, 1, "one", p.Write("there", ""))
	awaitService(t, p, "one replica", nil, func(s *api.Service) bool { return s.Replicas.Ready == 1 })
	if _, err := p.ScaleService(t.Context(), "chat", 5); err != nil {
		t.Fatal(err)
	}
	s := awaitService(t, p, "two of five", nil, func(s *api.Service) bool { return s.Replicas.Ready == 2 && len(s.Parts) == 5 })
	waiting := 0
	for i := range s.Parts {
		r := &s.Parts[i]
		switch {
		case r.Ready:
			if got := answer(t, r); got != "one" {
				t.Errorf("replica %d says %q", i, got)
			}
		case r.State == "PENDING":
			waiting++
		default:
			t.Errorf("%+v neither serves nor waits", r)
		}
	}
	if waiting != 3 {
		t.Errorf("%d of three wait: %+v", waiting, s.Parts)
	}
	if _, err := p.StopService(t.Context(), "chat"); err != nil {
		t.Fatal(err)
	}
	p.Await("the service is gone", func() bool {
		_, err := p.Service(t.Context(), "chat")
		return fault.KindOf(err) == fault.NotFound
	})
	p.Ends(p.Submit("srun true", "--nodes=2", "--gpus-per-node=1"), "COMPLETED")
	page, err := p.JobsPage(t.Context(), client.Query{})
	if err != nil || len(page.Jobs) > 0 {
		t.Errorf("left: %+v, %v", page, err)
	}
}
