package cluster

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestASilentWatchIsLeft: a watch, or a list, that is open and of which nothing is heard is
// taken for dead, and another one goes on from the same version. A bookmark is a word too.
//
// Seen to fail with: a watch that waits for the server alone (it is asked twice in two minutes).
func TestASilentWatchIsLeft(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	silent := true // the first list
	k := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Query().Get("watch") == "" {
			asked = append(asked, "list")
			if silent {
				silent = false
				mu.Unlock()
				<-r.Context().Done()
				mu.Lock()
				return
			}
			say(w, 200, &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}})
			return
		}
		asked = append(asked, "watch "+r.URL.Query().Get("resourceVersion"))
		if len(asked) == 4 {
			say(w, 200, map[string]any{"type": watch.Added, "object": corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "11"}}})
			return
		}
		_ = http.NewResponseController(w).Flush()
		mu.Unlock()
		<-r.Context().Done()
		mu.Lock()
	})
	k.quiet = 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	Follow(ctx, k, Pods, Selection{}, Follower[corev1.Pod]{Each: func(p *corev1.Pod, _ bool) { cancel() }})
	mu.Lock()
	defer mu.Unlock()
	if len(asked) < 4 || asked[0] != "list" || asked[1] != "list" || asked[2] != "watch 10" || asked[3] != "watch 10" {
		t.Errorf("asked %q", asked)
	}
}

// TestAServerThatCutsWatchesIsNotPressed: what ends each watch at once, or has always forgotten
// the version that it told a moment ago, is asked ever less often, and the follower hears of it.
//
// Seen to fail with: a watch begun anew at once whenever it ends, and a list after each 410.
func TestAServerThatCutsWatchesIsNotPressed(t *testing.T) {
	for name, end := range map[string]func(w http.ResponseWriter){
		"cut":     func(http.ResponseWriter) {},
		"expired": func(w http.ResponseWriter) { say(w, 410, status(410, metav1.StatusReasonExpired, "too old", "")) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var mu sync.Mutex
			calls := 0
			k := serve(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				if calls++; calls > 12 {
					cancel()
				}
				mu.Unlock()
				if r.URL.Query().Get("watch") == "" {
					say(w, 200, &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}})
					return
				}
				end(w)
			})
			failed := 0
			Follow(ctx, k, Pods, Selection{}, Follower[corev1.Pod]{
				Each: func(*corev1.Pod, bool) {},
				Failed: func(err error) {
					if fault.KindOf(err) != fault.Unavailable {
						t.Errorf("%v", err)
					}
					if failed++; failed == 3 { // after 0.5 and 1 s
						cancel()
					}
				},
			})
			mu.Lock()
			defer mu.Unlock()
			if calls > 12 {
				t.Errorf("%d calls until the third failure", calls)
			}
		})
	}
}

// TestARefusalThatIsCut: of an API server that dies while it refuses something nobody knows what
// it refused, and why. It is no refusal.
//
// Seen to fail with: what was heard taken for all (a conflict without a reason, which ended an
// attempt in the middle of a storm).
func TestARefusalThatIsCut(t *testing.T) {
	for _, code := range []int{400, 403, 404, 409, 410, 422} {
		k := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "500")
			w.WriteHeader(code)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		err := k.Create(t.Context(), Pods, "ns", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, false, nil)
		if fault.KindOf(err) != fault.Unavailable || Expired(err) {
			t.Errorf("%d: %v is %s", code, err, fault.KindOf(err))
		}
	}
}

// TestAWatchThatWasForbidden: a follower that heard that nothing may be seen may have forgotten
// what there was; once it may again, it is told of all there is.
//
// Seen to fail with: a watch that goes on from the version before.
func TestAWatchThatWasForbidden(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	k := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, "list")
		if r.URL.Query().Get("watch") == "" {
			say(w, 200, &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}, Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}})
			return
		}
		asked[len(asked)-1] = "watch"
		say(w, 403, status(403, metav1.StatusReasonForbidden, "no", ""))
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	there := 0
	Follow(ctx, k, Pods, Selection{}, Follower[corev1.Pod]{Each: func(*corev1.Pod, bool) {
		if there++; there == 2 {
			cancel()
		}
	}})
	mu.Lock()
	defer mu.Unlock()
	if there != 2 || len(asked) != 3 || asked[0] != "list" || asked[1] != "watch" || asked[2] != "list" {
		t.Errorf("asked %q, told of %d", asked, there)
	}
}
