package kube

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
)

// claimsOf stands for the part of a cluster that makes claims and their volumes.
type claimsOf struct {
	s     *stand
	mu    sync.Mutex
	asked map[string]int    // how often, by claim
	told  map[string]string // for which node, by claim
	late  []string          // what was bound before all claims had volumes
	wants int               // so many claims have to have volumes first
	never bool              // no claim gets a volume
	owner string            // of claims, in the place of their pod's UID
}

func (c *claimsOf) answer(w http.ResponseWriter, r *http.Request) bool {
	dir, name := path.Split(r.URL.Path)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/binding") && len(c.told) < c.wants:
		c.late = append(c.late, r.URL.Path)
		return false
	case !strings.HasSuffix(dir, "/persistentvolumeclaims/"):
		return false
	case r.Method == http.MethodPatch:
		var p struct {
			Metadata struct {
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
		}
		text, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(text, &p)
		c.told[name] = p.Metadata.Annotations[selectedNode]
		answer(w, http.StatusOK, map[string]any{})
		return true
	}
	if c.asked[name]++; c.asked[name] == 1 {
		refusal(w, http.StatusNotFound, "NotFound", name)
		return true
	}
	m := map[string]any{"name": name, "namespace": "default", "uid": "claim-" + name, "resourceVersion": "1"}
	phase := "Pending"
	if pod, _, own := strings.Cut(name, "-path-"); own {
		c.s.mu.Lock()
		uid, _ := meta(c.s.objects["/api/v1/namespaces/default/pods/"+pod])["uid"].(string)
		c.s.mu.Unlock()
		if c.owner != "" {
			uid = c.owner
		}
		m["ownerReferences"] = []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid, "controller": true}}
	}
	if node := c.told[name]; node != "" {
		m["annotations"] = map[string]any{selectedNode: node}
		if !c.never {
			phase = "Bound"
		}
	}
	answer(w, http.StatusOK, map[string]any{"metadata": m, "spec": map[string]any{"storageClassName": "fast"}, "status": map[string]any{"phase": phase}})
	return true
}

// TestClaimsComeFirst: the claims of a placed pool's pods are told the nodes that were chosen,
// each pod's own its own, and no pod has a node before all have volumes. A claim that is
// somebody else's is left alone, and one that gets no volume is not waited for for ever.
//
// Seen to fail with: claims that are looked for in what a watch has kept of pods: none is told.
func TestClaimsComeFirst(t *testing.T) {
	for what, x := range map[string]struct {
		path  string
		never bool
		owner string
		told  map[string]string // for which node, by the claim's name without the attempt's
		cause engine.Cause      // empty: its pods are bound
		says  string
	}{
		"each its own":  {path: "ephemeral:1Gi,class=fast", told: map[string]string{"0-path-0": "n1", "1-path-0": "n2"}},
		"one for all":   {path: "pvc:home", told: map[string]string{"home": "n1"}},
		"another's":     {path: "ephemeral:1Gi", owner: "another", told: map[string]string{}, cause: engine.LaunchFailed, says: "is not this pod's"},
		"none, forever": {path: "pvc:home", never: true, told: map[string]string{"home": "n1"}, cause: engine.Unready, says: "claim home has no volume yet, of storage class fast, for node n1"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, "n1", "n2")
			c := &claimsOf{s: s, asked: map[string]int{}, told: map[string]string{}, wants: len(x.told), never: x.never, owner: x.owner}
			s.answersBy(c.answer)
			v, err := settings.ParseVolume(x.path)
			if err != nil {
				t.Fatal(err)
			}
			e := s.open(func(cfg *Config) {
				cfg.Terms.Paths, cfg.Terms.WorkDir = []settings.Path{{Prefix: "/scratch", Volume: v}}, settings.WorkDirEmpty
				if x.never {
					cfg.Ready = time.Second
				}
			})
			l := launchOn(1, "n1", "n2")
			if err := e.Launch(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			var last engine.Report
			until(t, "it has ended, or its pods are bound", func() bool {
				last, err = e.Inspect(t.Context(), l.Ref)
				return err != nil || last.Gone || x.cause == "" && bound(s) == 2
			})
			if x.cause != "" && (last.Cause != x.cause || !strings.Contains(last.Message, x.says)) {
				t.Errorf("%v: %+v", err, last)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if x.cause == "" && bound(s) != 2 || x.cause != "" && bound(s) != 0 || len(c.late) > 0 {
				t.Errorf("%d pods are bound, too early %v", bound(s), c.late)
			}
			got := map[string]string{}
			for name, node := range c.told {
				if i := strings.Index(name, "-1-1-"); i > 0 {
					name = name[i+len("-1-1-"):]
				}
				got[name] = node
			}
			if fmt.Sprint(got) != fmt.Sprint(x.told) {
				t.Errorf("told %v, want %v", got, x.told)
			}
		})
	}
}

// bound is how many pods have a node.
func bound(s *stand) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, o := range s.objects {
		spec, _ := o["spec"].(map[string]any)
		if node, _ := spec["nodeName"].(string); strings.Contains(p, "/pods/") && node != "" {
			n++
		}
	}
	return n
}

// TestRunningPodsNeedNoClaims: an engine that is opened again asks nothing of the claims of pods
// that have their nodes, whatever paths the pool has by now and whatever became of the claims.
//
// Seen to fail with: all pods' claims wanted before an attempt is judged: the job was stopped.
func TestRunningPodsNeedNoClaims(t *testing.T) {
	scratch, err := settings.ParseVolume("ephemeral:1Gi")
	if err != nil {
		t.Fatal(err)
	}
	paths := []settings.Path{{Prefix: "/scratch", Volume: scratch}}
	for what, x := range map[string]struct {
		paths  []settings.Path
		answer func(w http.ResponseWriter)
	}{
		"a path more": {append([]settings.Path{{Prefix: "/more", Volume: scratch}}, paths...), func(w http.ResponseWriter) { refusal(w, http.StatusNotFound, "NotFound", "no claim") }},
		"no right": {paths, func(w http.ResponseWriter) {
			refusal(w, http.StatusForbidden, "Forbidden", "may not get persistentvolumeclaims")
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, "n1", "n2")
			c := &claimsOf{s: s, asked: map[string]int{}, told: map[string]string{}}
			s.answersBy(c.answer)
			root := ""
			e := s.open(func(cfg *Config) { cfg.Terms.Paths, cfg.Terms.WorkDir, root = paths, settings.WorkDirEmpty, cfg.Root })
			l := launchOn(1, "n1", "n2")
			if err := e.Launch(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			until(t, "its pods are bound", func() bool { return bound(s) == 2 })
			s.runs()
			reported(t, e, l.Ref, "running", func(r engine.Report) bool { return r.Phase == engine.Running })
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
				is := strings.Contains(r.URL.Path, "/persistentvolumeclaims/")
				if is {
					x.answer(w)
				}
				return is
			})
			e = s.open(func(cfg *Config) {
				cfg.Terms.Paths, cfg.Terms.WorkDir, cfg.Root, cfg.Ready = x.paths, settings.WorkDirEmpty, root, time.Millisecond
			})
			var stop *stopping
			until(t, "its pods are taken for bound, or it is stopped", func() bool {
				e.mu.Lock()
				defer e.mu.Unlock()
				a := e.attempts[l.Ref]
				stop = a.stop
				return a.bound || stop != nil
			})
			if r, err := e.Inspect(t.Context(), l.Ref); err != nil || stop != nil || r.Phase != engine.Running {
				t.Errorf("%+v %v %+v", stop, err, r)
			}
		})
	}
}

// runs has all pods run, as their kubelets would say it.
func (s *stand) runs() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, o := range s.objects {
		if strings.Contains(p, "/pods/") {
			o["status"] = map[string]any{"phase": "Running", "containerStatuses": []any{map[string]any{
				"name": render.Container, "started": true, "state": map[string]any{"running": map[string]any{"startedAt": time.Now().UTC().Format(time.RFC3339)}},
			}}}
			s.keep(p, "MODIFIED", o)
		}
	}
}

// TestWaitForVolumes: a job whose claims have no volumes yet says so as long as that is so, and
// ends meanwhile if it is stopped or its pod is deleted.
//
// Seen to fail with: no look at pods while volumes are waited for; what is waited for said on.
func TestWaitForVolumes(t *testing.T) {
	home, err := settings.ParseVolume("pvc:home")
	if err != nil {
		t.Fatal(err)
	}
	for what, x := range map[string]struct {
		act   func(*testing.T, *stand, *claimsOf, *Engine, engine.Ref)
		cause engine.Cause // empty: it is bound
	}{
		"the volume comes": {act: func(_ *testing.T, _ *stand, c *claimsOf, _ *Engine, _ engine.Ref) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.never = false
		}},
		"it is stopped": {act: func(t *testing.T, s *stand, _ *claimsOf, e *Engine, ref engine.Ref) {
			t.Helper()
			if err := e.Stop(t.Context(), ref, engine.Stop{}); err != nil {
				t.Error(err)
			}
		}, cause: engine.Stopped},
		"its pod is deleted": {act: func(t *testing.T, s *stand, _ *claimsOf, e *Engine, _ engine.Ref) {
			t.Helper()
			pod := s.names("pods")[0]
			if err := e.k.Delete(t.Context(), cluster.Pods, "default", pod, cluster.Deletion{}); err != nil {
				t.Error(err)
			}
		}, cause: engine.Cancelled},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, "n1")
			c := &claimsOf{s: s, asked: map[string]int{}, told: map[string]string{}, never: true}
			s.answersBy(c.answer)
			e := s.open(func(cfg *Config) {
				cfg.Terms.Paths, cfg.Terms.WorkDir = []settings.Path{{Prefix: "/home", Volume: home}}, settings.WorkDirEmpty
			})
			l := launchOn(1, "n1")
			if err := e.Launch(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			var last engine.Report
			see := func(ok func() bool) func() bool {
				return func() bool {
					r, err := e.Inspect(t.Context(), l.Ref)
					last = r
					return err == nil && ok()
				}
			}
			until(t, "it says what it waits for", see(func() bool { return strings.Contains(last.Message, "claim home has no volume yet") }))
			c.mu.Lock()
			rounds := c.asked["home"]
			c.mu.Unlock()
			until(t, "it was looked at three times more", func() bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				return c.asked["home"] >= rounds+3
			})
			x.act(t, s, c, e, l.Ref)
			if x.cause == "" {
				until(t, "it is bound, and says nothing of volumes", see(func() bool { return bound(s) == 1 && last.Message == "" }))
				return
			}
			until(t, "it has ended", see(func() bool { return last.Gone }))
			if last.Cause != x.cause {
				t.Errorf("%+v", last)
			}
		})
	}
}
