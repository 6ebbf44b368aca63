package killtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store/sqlite"
	"github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// TestKubeStorm: for a while a server hands jobs over to a cluster of real Kubernetes: on one node and
// gangs on several, such as end by themselves or are cancelled, may be queued again or must not.
// Meanwhile, at moments drawn from the seed, the server is killed or hangs, and so are apiserver, etcd,
// controller-manager, kubelets and containerds; nodes hang or lose their power. Then, of every job that
// was accepted:
//
//   - it ended once, as it should: by its exit code, cancelled, or with its node;
//   - no attempt of it ran twice, and no two lived at the same time (locks of the processes);
//   - one that must not be queued again began in one attempt at most, others again only where a node
//     lost its power or its kubelet, which may refuse what it had when it begins anew;
//   - when the server said that it had ended, nothing of it lived;
//   - where no node lost its power, every line that it printed is in its file.
//
// The account of all of them was charged for no less than ran, and for no more than the jobs were there;
// no node has anything taken of it, and the cluster has nothing of ours: no pod, no Secret, no Service.
// The store verifies.
//
// It blows for COX_STORM, or 30 s.
//
// Seen to fail with: a driver that begins anew without what it had.
func TestKubeStorm(t *testing.T) {
	l := lab.Start(t, lab.Config{Kubelets: 3})
	t.Logf("seed %d (COX_KILL_SEED)", seed)
	length, err := time.ParseDuration(cmp.Or(os.Getenv("COX_STORM"), "30s"))
	if err != nil {
		t.Fatal(err)
	}
	k := &kubeStorm{lab: l, handed: map[string]*work{}, over: map[string]bool{}, seen: map[string]bool{}}
	k.round = &round{t: t, rnd: rand.New(rand.NewPCG(seed, 6<<40)), h: newHarm(), dir: filepath.Join(t.TempDir(), "ran"), from: time.Now()}
	for _, d := range []string{"lock", "said", "out"} {
		if err := os.MkdirAll(filepath.Join(k.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	k.s = newServer(t, filepath.Join(t.TempDir(), "s"))
	k.add()
	var looks sync.WaitGroup
	calm := make(chan struct{})
	looks.Go(func() { k.watch(calm) })
	k.blow(time.Now().Add(length))
	k.settle()
	close(calm)
	looks.Wait()
	k.look()
	k.judge()
	k.ledger()
}

// kubeStorm is what happens to a server and its cluster.
type kubeStorm struct {
	*round
	lab *lab.Lab

	wg sync.WaitGroup

	mu     sync.Mutex
	handed map[string]*work // by name
	over   map[string]bool  // said to have ended, or not known to be there, by name
	seen   map[string]bool  // said to have ended
	power  bool             // a node has lost it
	anew   bool             // a kubelet was killed, and another begun
}

// add adds the cluster to the server, which charges an account for what runs there.
func (k *kubeStorm) add() {
	set, err := json.Marshal(map[string]any{
		"kubeconfig": k.lab.Kubeconfig(), "namespace": "default", "image": lab.Base, "agent_image": lab.Cox,
		"paths": map[string]string{k.dir: "hostPath:" + k.dir, bin: "hostPath:" + bin + ",ro"},
	})
	if err != nil {
		k.t.Fatal(err)
	}
	if _, err := k.s.c.AddPool(k.t.Context(), &api.NewPool{Name: "kube", Engine: "kube", Settings: set}); err != nil {
		k.t.Fatal(err)
	}
	if _, err := k.s.c.SetPolicy(k.t.Context(), &api.SetPolicy{Text: "fair_share: {half_life: never}\naccounts: [storm]\n"}); err != nil {
		k.t.Fatal(err)
	}
}

// atOnce is how many jobs of a storm are there at most.
const atOnce = 10

// blow hands jobs in, and breaks things, until an end.
func (k *kubeStorm) blow(end time.Time) {
	breaks := k.lab.Breaks(func(string) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.power = true
	})
	breaks["server"] = func(_ testing.TB, _ *rand.Rand, meanwhile func()) { meanwhile() }
	breaks["frozen server"] = func(_ testing.TB, rnd *rand.Rand, meanwhile func()) {
		k.s.signal(unix.SIGSTOP)
		lab.Pause(rnd, 3*time.Second) // what it had asked for is done, or too late
		k.s.signal(unix.SIGCONT)
		meanwhile()
	}
	names := slices.Sorted(maps.Keys(breaks))
	count := map[string]int{}
	for time.Now().Before(end) {
		for range 1 + k.rnd.IntN(4) {
			k.hand()
			lab.Pause(k.rnd, 200*time.Millisecond)
		}
		name := names[k.rnd.IntN(len(names))]
		count[name]++
		k.anew = k.anew || name == "kubelet"
		breaks[name](k.t, k.rnd, func() {
			if k.rnd.IntN(2) == 0 {
				k.hand()
			}
			if k.rnd.IntN(3) == 0 || name == "server" {
				k.s.kill()
				k.s.start()
				k.s.ready()
				count["server"]++
			}
		})
		lab.Pause(k.rnd, 2*time.Second)
	}
	k.wg.Wait()
	k.t.Logf("broken: %v", count)
}

// draw draws a job, of a node or of several.
func (k *kubeStorm) draw(i int) *work {
	w := &work{name: fmt.Sprintf("gale-%d", i), stays: i%2 == 0, cancel: i%5 == 0, grace: 1, exit: 3, wait: ms(k.rnd.IntN(6000))}
	lines := 1 + k.rnd.IntN(40)
	if w.cancel {
		lines = 36000
	}
	if i%3 == 0 {
		w.gang(2+k.rnd.IntN(len(k.lab.Nodes)-1), 1, lines, kubeBeat, "-exit", "3")
	} else {
		w.batch(lines, kubeBeat, "-exit", "3")
	}
	return w
}

// kubeBeat is the pause after each line of a storm's jobs.
const kubeBeat = 100 * time.Millisecond

// hand hands one more job in, unless there are enough, and has it cancelled where it does not end by
// itself.
func (k *kubeStorm) hand() {
	k.mu.Lock()
	i, live := len(k.handed)+1, len(k.handed)-len(k.over)
	k.mu.Unlock()
	if live >= atOnce {
		return
	}
	w := k.draw(i)
	ask := w.request(k.dir)
	ask.Pool, ask.Args = "kube", append(ask.Args, "--account=storm")
	k.mu.Lock()
	k.handed[w.name] = w
	k.mu.Unlock()
	k.wg.Go(func() {
		r, err := k.s.c.Submit(k.t.Context(), ask)
		k.mu.Lock()
		if w.sent, w.acked, w.err = true, err == nil, err; w.acked {
			w.id = r.ID
		} else {
			k.over[w.name] = true // until it is seen
		}
		k.mu.Unlock()
		switch {
		case err != nil && fault.KindOf(err) != fault.Unavailable:
			k.t.Errorf("%s is refused: %v", w.name, err)
		case w.cancel:
			time.Sleep(w.wait) // the moment is what is tried
			k.cancel(w)
		}
	})
}

// cancel cancels a job, by its name where its number was not heard, and asks until there is an answer.
func (k *kubeStorm) cancel(w *work) {
	ch := &api.Change{Verb: api.VerbCancel, Grace: &w.grace, Select: api.Select{Names: []string{w.name}}}
	for end := time.Now().Add(patience); ; time.Sleep(pollEvery) {
		_, err := k.s.c.Change(k.t.Context(), ch)
		if err == nil || fault.KindOf(err) != fault.Unavailable {
			return // what came of it is judged at the end
		}
		if time.Now().After(end) {
			k.t.Errorf("cancel %s: no answer: %v", w.name, err)
			return
		}
	}
}

// watch looks at the jobs again and again, until there is calm.
func (k *kubeStorm) watch(calm <-chan struct{}) {
	for {
		k.look()
		select {
		case <-calm:
			return
		case <-time.After(10 * pollEvery):
		}
	}
}

// look tries the locks of the processes of jobs that the server says have ended.
func (k *kubeStorm) look() {
	for _, j := range k.jobsNow() {
		name := j.Spec.Name
		k.mu.Lock()
		fresh := !j.Ended.IsZero() && !k.seen[name]
		k.seen[name] = k.seen[name] || fresh
		k.over[name] = !j.Ended.IsZero() // it counts, though nobody was told that it was accepted
		k.mu.Unlock()
		if !fresh {
			continue
		}
		for what, who := range holders(k.dir, "life."+name+".") {
			k.t.Errorf("%s is said to be %s, and its process %s (%s) lives", name, j.State, what, who)
		}
	}
}

// judge compares what the server says of each job with what ran.
func (k *kubeStorm) judge() {
	f, err := k.h.read(k.dir)
	if err != nil {
		k.t.Error(err)
	}
	for _, c := range f.clashes {
		k.t.Errorf("a lock was held by another: %s", c)
	}
	ours, states, silent := map[string]int{}, map[string]int{}, 0
	least, most := 0.0, 0.0
	for j, err := range k.s.c.History(k.t.Context(), client.HistoryQuery{From: k.from}) {
		if err != nil {
			k.t.Fatal(err)
		}
		w, runs := k.handed[j.Spec.Name], f.runs[j.Spec.Name]
		if w == nil {
			k.t.Errorf("%s was never handed in", j.Spec.Name)
			continue
		}
		ours[w.name]++
		states[j.State]++
		if bad := k.wrong(w, &j, runs); len(bad) > 0 {
			k.t.Errorf("%s (%d ranks, stays %t, cancel %t) is %s, %v, attempt %d, exit %+v, %q: %s", w.name, w.ranks, w.stays, w.cancel, j.State, j.Flags, j.Attempt, j.Exit, j.Message, strings.Join(bad, "; "))
		}
		for _, ranks := range runs {
			least += float64(ends(ranks)*w.say) * kubeBeat.Seconds()
		}
		most += float64(max(1, w.ranks)) * j.Ended.Sub(j.Submitted).Seconds()
	}
	for name, w := range k.handed {
		if !w.acked {
			silent++
		}
		if n := ours[name]; n > 1 || w.acked && n == 0 || n == 0 && len(f.runs[name]) > 0 {
			k.t.Errorf("%s (answered: %t) is in the history %d times, and ran in %d attempts", name, w.acked, n, len(f.runs[name]))
		}
	}
	used := k.charged()
	if used < least || used > most {
		k.t.Errorf("charged are %.0f CPU seconds; at least %.0f ran, and the jobs were there for %.0f", used, least, most)
	}
	k.t.Logf("%d jobs, %d without an answer, ends: %v; charged %.0f CPU seconds, of %.0f that ran to their end to %.0f", len(k.handed), silent, states, used, least, most)
}

// charged is for how much the account was charged, in CPU seconds.
func (k *kubeStorm) charged() float64 {
	of, err := k.s.c.Shares(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	for _, s := range of.Shares {
		if s.Account == "storm" && s.User == "" {
			return s.Used
		}
	}
	k.t.Errorf("there is no account: %+v", of.Shares)
	return 0
}

// wrong is what cannot be of a job that has ended.
func (k *kubeStorm) wrong(w *work, j *api.Job, runs map[int]map[string]*run) (bad []string) {
	say := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	want, whole, last := max(1, w.ranks), 0, runs[int(j.Attempt)]
	for n, ranks := range runs {
		for rank, p := range ranks {
			if p.starts != 1 || p.ends > 1 {
				say("rank %s of attempt %d began %d times and ended %d times", rank, n, p.starts, p.ends)
			}
		}
		if n > int(j.Attempt) {
			say("attempt %d ran", n)
		}
		if ends(ranks) == want {
			whole++
		}
		if !k.power {
			bad = append(bad, k.judgeLines(w, w.name, "", n, ranks)...)
		}
	}
	if len(runs) > 1 && (w.stays || !k.power && !k.anew) {
		say("%d attempts began, %d came to their end", len(runs), whole)
	}
	switch {
	case j.State == "FAILED" && !w.cancel && ends(last) == want && j.Exit.Status == 3 && len(j.Flags) == 0:
	case j.State == "CANCELLED" && w.cancel:
	case j.State == "NODE_FAIL" && w.stays && (k.power || k.anew):
	default:
		say("this is no end for it, of which %d attempts ran and of %d ranks of the last %d ended", len(runs), want, ends(last))
	}
	return bad
}

// ledger holds what the server says is taken against the cluster, once all has ended: nothing.
func (k *kubeStorm) ledger() {
	nodes, err := k.s.c.Nodes(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	for _, n := range nodes.Nodes {
		if len(n.Jobs) > 0 || n.CPUsUsed != 0 {
			k.t.Errorf("all has ended, but node %s has %v, %v CPUs are used", n.Name, n.Jobs, n.CPUsUsed)
		}
	}
	k.lab.Emptied(k.t, "default", "pods,secrets,services", "-l", "coxswain.sh/server")
	if err := k.s.close(); err != nil {
		k.t.Error(err)
	}
	got, err := sqlite.Verify(k.t.Context(), k.s.state)
	if err != nil {
		k.t.Errorf("the store: %v", err)
	}
	k.t.Logf("verified: %+v", got)
}
