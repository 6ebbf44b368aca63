package killtest

import (
	"cmp"
	"context"
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

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/model/fault"
	kube "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
	slurm "github.com/coxswain-sched/coxswain/test/testcluster/slurmlab"
)

// TestKubeAndSlurmStorm: a real slurmctld and a real control plane have a slurmd and a kubelet on each of
// the same machines, and one server has both as pools. For a while jobs are handed in to either of them or
// to both, past the server too (sbatch, kubectl); machines change hands, some moves are aborted; and at
// moments drawn from the seed the server, slurmctld, a slurmd, the apiserver, kubelets and others are
// killed or hang.
//
// A judge looks at locks of the processes themselves each 100 ms: never is work of both engines on one
// machine. At the end, of every job that was accepted:
//
//   - it is in the history once, and ended as it should;
//   - no two processes of it that are one rank lived at the same time;
//   - one that must not be queued again began in one attempt at most.
//
// No machine is on its way any more, each has one owner, and machines have moved both ways. It blows for
// COX_STORM, or 30 s; with COX_LONG beside Slurm 24.11 too.
//
// Seen to fail with: a proof of emptiness that does not look at the engine.
func TestKubeAndSlurmStorm(t *testing.T) {
	machines := 2 // each has a slurmd, a containerd and a kubelet
	if long {
		machines = 3
	}
	t.Run("22.05", func(t *testing.T) { stormOnSharedMachines(t, slurm.Config{Nodes: machines}) })
	if long {
		t.Run("24.11", func(t *testing.T) { stormOnSharedMachines(t, slurm.Config{Nodes: machines, Modern: true}) })
	}
}

func stormOnSharedMachines(t *testing.T, c slurm.Config) {
	t.Logf("seed %d (COX_KILL_SEED)", seed)
	length, err := time.ParseDuration(cmp.Or(os.Getenv("COX_STORM"), "30s"))
	if err != nil {
		t.Fatal(err)
	}
	k := &fleetStorm{works: map[string]*work{}}
	var told []string // how long what took
	began := time.Now()
	after := func(what string) {
		told = append(told, fmt.Sprintf("%s %.0f s", what, time.Since(began).Seconds()))
		began = time.Now()
	}
	defer func() { t.Log("took:", strings.Join(told, ", ")) }()
	k.slurm = slurm.Start(t, c)
	k.kube = kube.Start(t, kube.Config{Kubelets: c.Nodes, Names: k.slurm.Nodes})
	k.round = &round{t: t, rnd: rand.New(rand.NewPCG(seed, 7<<40)), h: newHarm(), dir: filepath.Join(t.TempDir(), "ran"), from: time.Now()}
	for _, d := range []string{"lock", "said", "out"} {
		if err := os.MkdirAll(filepath.Join(k.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	after("the clusters")
	k.s = newServer(t, filepath.Join(t.TempDir(), "s"))
	k.addPools()
	k.closeKube()
	k.epochs = map[string]uint64{}
	for _, m := range k.settleMoves() {
		k.epochs[m.Name] = m.Epoch
	}
	after("the first hand-overs")
	var looks sync.WaitGroup
	calm := make(chan struct{})
	looks.Go(func() { k.watchMachines(calm) })
	looks.Go(func() { k.administrate(calm) })
	k.blow(time.Now().Add(length))
	after("the storm")
	var machines []api.Machine
	for _, to := range []string{"slurm", "kube"} { // what waits for several machines of a pool gets them
		machines = k.moveAll(to)
		after("all to " + to)
		k.settlePool(to)
		after("its jobs")
	}
	k.settle()
	close(calm)
	looks.Wait()
	k.judge()
	k.judgeMachines(machines)
}

// fleetPatience bounds each wait for what must come to rest.
const fleetPatience = 3 * time.Minute

// fleetStorm is what happens to a server and its two clusters.
type fleetStorm struct {
	*round
	slurm *slurm.Lab
	kube  *kube.Lab

	wg   sync.WaitGroup
	room int // for more jobs

	mu     sync.Mutex
	works  map[string]*work  // by name
	native int               // jobs past the server
	epochs map[string]uint64 // of the machines before the storm
	looks  int               // of the judge, at which something ran
}

// addPools adds both clusters; the machines are Slurm's, which is first.
func (k *fleetStorm) addPools() {
	set := map[string]any{"local": true, "conf": k.slurm.Conf, "root": true, "placed": true, "shared": filepath.Join(k.dir, "locks")}
	if bin := k.slurm.Bin(k.t); bin != "" {
		set["commands"] = bin
	}
	k.addPool("slurm", "slurm", set)
	k.addPool("kube", "kube", map[string]any{
		"kubeconfig": k.kube.Kubeconfig(), "namespace": "default", "image": kube.Base, "agent_image": kube.Cox,
		"paths": map[string]string{k.dir: "hostPath:" + k.dir, bin: "hostPath:" + bin + ",ro"},
	})
}

func (k *fleetStorm) addPool(name, kind string, settings map[string]any) {
	b, err := json.Marshal(settings)
	if err != nil {
		k.t.Fatal(err)
	}
	if _, err := k.s.c.AddPool(k.t.Context(), &api.NewPool{Name: name, Engine: kind, Settings: b, Force: true}); err != nil {
		k.t.Fatal(err)
	}
}

// closeKube hands each machine over and back once, so that the engine that does not own it is closed:
// until then both could start work there, as cox doctor says.
func (k *fleetStorm) closeKube() {
	for _, to := range []string{"kube", "slurm"} {
		k.moveAll(to)
	}
}

// moveAll hands all machines over to a pool, and waits until they are there.
func (k *fleetStorm) moveAll(to string) []api.Machine {
	all := k.settleMoves()
	var move []string
	for _, m := range all {
		if m.Pool != to {
			move = append(move, m.Name)
		}
	}
	if len(move) == 0 {
		return all
	}
	got, err := k.s.c.MoveMachines(k.t.Context(), &api.MachineMove{Nodes: move, To: to})
	if err != nil {
		k.t.Fatal(err)
	}
	for _, m := range got.Machines {
		if m.Error != nil {
			k.t.Fatalf("machine %s does not move to %s: %s", m.Machine, to, m.Error.Detail)
		}
	}
	return k.settleMoves()
}

// settlePool waits until no job of a pool waits or runs.
func (k *fleetStorm) settlePool(pool string) {
	for end := time.Now().Add(fleetPatience); ; time.Sleep(5 * pollEvery) {
		left := 0
		for _, j := range k.jobsNow() {
			if j.Ended.IsZero() && j.Spec.Pool == pool {
				left++
			}
		}
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			k.t.Fatalf("%d jobs of pool %s never end; %s", left, pool, k.present())
		}
	}
}

// settleMoves waits until no machine is on its way, both pools have said that it is theirs, and none is
// open to both engines if one has been moved. It returns the machines.
func (k *fleetStorm) settleMoves() []api.Machine {
	var last any
	for end := time.Now().Add(fleetPatience); ; time.Sleep(5 * pollEvery) {
		all, err := k.s.c.Machines(k.t.Context())
		last = err
		if err == nil {
			last = all.Machines
			settled := slices.DeleteFunc(slices.Clone(all.Machines), func(m api.Machine) bool {
				return !slices.Contains(k.slurm.Nodes, m.Name) || m.To != "" || len(m.Nodes) != 2 || m.Epoch > 1 && len(m.Open) > 1
			})
			if len(settled) == len(k.slurm.Nodes) {
				return settled
			}
		}
		if time.Now().After(end) {
			k.t.Fatalf("machines never come to rest: %+v; %s", last, k.present())
		}
	}
}

// present is what lives, as the server says and as Slurm does.
func (k *fleetStorm) present() string {
	live, err := k.live()
	jobs, _ := k.slurm.Try(k.t.Context(), "squeue", "-o", "%i %j %T %r %N %k")
	nodes, _ := k.slurm.Try(k.t.Context(), "sinfo", "-N", "-o", "%N %T %E")
	return fmt.Sprintf("live (%v):\n%s\nSlurm:\n%s%s", err, strings.Join(live, "\n"), jobs, nodes)
}

// administrate is what Slurm's administrators and users do beside a slurmctld that is killed, and what nobody does for
// them: they bring back a node that it drained because it began a job again that still ran there, and cancel a job of
// theirs whose end it lost, which it calls running until the node registers anew, minutes later.
func (k *fleetStorm) administrate(calm <-chan struct{}) {
	since := map[string]time.Time{} // running jobs of which nothing lives
	for {
		out, _ := k.slurm.Try(k.t.Context(), "sinfo", "-h", "-N", "-o", "%N|%T|%E")
		for line := range strings.Lines(out) {
			f := strings.SplitN(strings.TrimSpace(line), "|", 3)
			if len(f) == 3 && strings.HasPrefix(f[1], "drain") && f[2] == "Duplicate jobid" {
				k.bringBack(f[0], f[1] == "drained")
			}
		}
		out, err := k.slurm.Try(k.t.Context(), "squeue", "-h", "-t", "R", "-o", "%A|%j")
		still := map[string]time.Time{}
		for line := range strings.Lines(out) {
			id, name, _ := strings.Cut(strings.TrimSpace(line), "|")
			if name != "cox-probe" && (!strings.HasPrefix(name, "native-") || len(holders(k.dir, "life."+name+".")) > 0) {
				continue
			}
			if still[id] = since[id]; still[id].IsZero() {
				still[id] = time.Now()
			}
			if time.Since(still[id]) > 10*time.Second {
				_, _ = k.slurm.Try(k.t.Context(), "scancel", id)
			}
		}
		if err == nil {
			since = still
		}
		select {
		case <-calm:
			return
		case <-time.After(2 * time.Second): // how often somebody looks
		}
	}
}

// bringBack deals with a node that slurmctld drained (Duplicate jobid). On one that is fenced, what may be left is
// looked for first, and the drain stays.
func (k *fleetStorm) bringBack(node string, drained bool) {
	shown, err := k.slurm.Try(k.t.Context(), "scontrol", "-o", "show", "node", node)
	change := []string{"update", "nodename=" + node, "state=resume"}
	if strings.Contains(shown, "coxswain") {
		change = []string{"update", "nodename=" + node, "state=drain", "reason=checked"}
		if !drained || len(holders(k.dir, "on."+node+".slurm.")) > 0 {
			return
		}
	}
	if err == nil {
		_, _ = k.slurm.Try(k.t.Context(), "scontrol", change...)
	}
}

// watchMachines is the judge. Who has its lock before and after another has been seen has had it all
// the time.
func (k *fleetStorm) watchMachines(calm <-chan struct{}) {
	for {
		first := holders(k.dir, "on.")
		k.mu.Lock()
		k.looks += min(1, len(first))
		k.mu.Unlock()
		if clash := mixedMachines(first); clash != "" {
			again := holders(k.dir, "on.")
			maps.DeleteFunc(again, func(name, _ string) bool { return first[name] == "" })
			if clash := mixedMachines(again); clash != "" {
				k.t.Errorf("work of both engines is on a machine: %s", clash)
			}
		}
		select {
		case <-calm:
			return
		case <-time.After(100 * time.Millisecond): // how often it looks
		}
	}
}

// mixedMachines names a machine on which work of two engines is; empty: there is none. A lock's name
// is MACHINE.ENGINE.JOB.RANK.ATTEMPT.
func mixedMachines(locks map[string]string) string {
	engines := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(locks)) {
		w := strings.SplitN(name, ".", 3)
		if was := engines[w[0]]; was != "" && was != w[1] {
			return fmt.Sprintf("%s: %q", w[0], slices.Sorted(maps.Keys(locks)))
		}
		engines[w[0]] = w[1]
	}
	return ""
}

// blow hands jobs in, moves machines and breaks things, until an end.
func (k *fleetStorm) blow(end time.Time) {
	breaks := k.kube.Breaks(func(string) {})
	for _, name := range []string{"lost power", "frozen node", "containerd"} {
		delete(breaks, name) // what dies with a node is TestKubeStorm's
	}
	for _, d := range append([]string{"slurmctld"}, "slurmd."+k.slurm.Nodes[0]) {
		breaks[d] = func(t testing.TB, rnd *rand.Rand, meanwhile func()) {
			k.slurm.Kill(t, d)
			meanwhile()
			kube.Pause(rnd, 2*time.Second)
			k.slurm.Begin(t, d)
		}
	}
	breaks["server"] = func(_ testing.TB, _ *rand.Rand, meanwhile func()) {
		k.s.kill()
		k.s.start()
		k.s.ready()
		meanwhile()
	}
	names := slices.Sorted(maps.Keys(breaks))
	count := map[string]int{}
	for time.Now().Before(end) {
		k.room = fleetAtOnce
		for _, j := range k.jobsNow() { // none are known while the server is down
			if j.Ended.IsZero() {
				k.room--
			}
		}
		for range 2 + k.rnd.IntN(3) {
			k.handOne()
			kube.Pause(k.rnd, 200*time.Millisecond)
		}
		k.moveOne()
		name := names[k.rnd.IntN(len(names))]
		count[name]++
		breaks[name](k.t, k.rnd, func() {
			k.handOne()
			k.moveOne()
		})
		kube.Pause(k.rnd, time.Second)
	}
	k.wg.Wait()
	k.t.Logf("broken: %v", count)
}

// fleetAtOnce is about how many jobs of the server's are there at most: a kubelet has as many CPUs as this machine.
const fleetAtOnce = 8

// handOne hands a job in, unless there are enough, or has an engine's own user do so.
func (k *fleetStorm) handOne() {
	k.mu.Lock()
	i := len(k.works) + k.native + 1
	k.mu.Unlock()
	lines := 1 + k.rnd.IntN(20)
	switch k.rnd.IntN(6) {
	case 0:
		k.handNative(fmt.Sprintf("native-%d", i), lines)
		return
	}
	if k.room <= 0 {
		return
	}
	k.room--
	w := &work{name: fmt.Sprintf("fleet-%d", i), stays: i%2 == 0, exit: 3}
	engine := fmt.Sprintf("-on $([ -e %s ] && echo slurm || echo kube)", k.slurm.Conf)
	if i%3 == 0 {
		w.gang(2, 1, lines, kubeBeat, "-exit", "3", engine)
		w.lines = strings.Replace(w.lines, "srun ", "srun sh -c 'exec ", 1) + "'"
	} else {
		w.batch(lines, kubeBeat, "-exit", "3", engine)
	}
	ask := w.request(k.dir)
	ask.Pool = []string{"slurm", "kube"}[k.rnd.IntN(2)]
	k.mu.Lock()
	k.works[w.name] = w
	k.mu.Unlock()
	k.wg.Go(func() {
		_, err := k.s.c.Submit(k.t.Context(), ask)
		k.mu.Lock()
		w.sent, w.acked, w.err = true, err == nil, err
		k.mu.Unlock()
		if err != nil && fault.KindOf(err) != fault.Unavailable {
			k.t.Errorf("%s is refused: %v", w.name, err)
		}
	})
}

// handNative hands a job to an engine past the server; whether it is taken does not matter.
func (k *fleetStorm) handNative(name string, lines int) {
	k.mu.Lock()
	k.native++
	k.mu.Unlock()
	inSlurm := k.rnd.IntN(2) == 0
	program := fmt.Sprintf("%s -n %d -pause %s -on", filepath.Join(bin, "evidence"), lines, kubeBeat)
	k.wg.Go(func() {
		ctx, stop := context.WithTimeout(k.t.Context(), 10*time.Second)
		defer stop()
		if inSlurm {
			_, _ = k.slurm.Try(ctx, "sbatch", "-J", name, "-o", "/dev/null", "--export=COX_KILL_DIR="+k.dir+",COX_KILL_NAME="+name, "--wrap", program+" slurm batch")
			return
		}
		_, _ = k.kube.Try(ctx, fmt.Sprintf(nativePod, name, kube.Base, program+" kube batch", k.dir, name, k.dir, k.dir, bin, bin, k.dir), "create", "-f", "-")
	})
}

// nativePod is a pod that the cluster's own scheduler places.
const nativePod = `
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {native: "yes"}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: %s
    imagePullPolicy: Never
    command: [sh, -c, "%s"]
    workingDir: %s
    env:
    - {name: COX_KILL_NAME, value: %s}
    - {name: COX_KILL_DIR, value: %s}
    - {name: SLURMD_NODENAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    volumeMounts:
    - {name: dir, mountPath: %s}
    - {name: bin, mountPath: %s}
  volumes:
  - {name: bin, hostPath: {path: %s}}
  - {name: dir, hostPath: {path: %s}}
`

// moveOne asks for a machine to change hands, now or when it is empty, or aborts such a move.
func (k *fleetStorm) moveOne() {
	machine := k.slurm.Nodes[k.rnd.IntN(len(k.slurm.Nodes))]
	to := []string{"slurm", "kube"}[k.rnd.IntN(2)]
	abort, now := false, false
	switch k.rnd.IntN(6) {
	case 0:
		abort = true
	case 1, 2, 3:
		now = true
	}
	k.wg.Go(func() {
		ctx, stop := context.WithTimeout(k.t.Context(), 20*time.Second)
		defer stop()
		var got *api.MovedMachines
		var err error
		if abort {
			got, err = k.s.c.AbortMoves(ctx, []string{machine})
		} else {
			got, err = k.s.c.MoveMachines(ctx, &api.MachineMove{Nodes: []string{machine}, To: to, Now: now})
		}
		if err == nil { // else it is not to be moved, or on its way: what came of it is judged at the end
			k.t.Logf("%s to %s (now: %t, abort: %t): %+v", machine, to, now, abort, got.Machines)
		}
	})
}

// judge compares what the server says of each job with what ran.
func (k *fleetStorm) judge() {
	f, err := k.h.read(k.dir)
	if err != nil {
		k.t.Error(err)
	}
	for _, c := range f.clashes {
		k.t.Errorf("a lock was held by another: %s", c)
	}
	ours, states, silent := map[string]int{}, map[string]int{}, 0
	for j, err := range k.s.c.History(k.t.Context(), client.HistoryQuery{From: k.from}) {
		if err != nil {
			k.t.Fatal(err)
		}
		w, runs := k.works[j.Spec.Name], f.runs[j.Spec.Name]
		if w == nil {
			k.t.Errorf("%s was never handed in", j.Spec.Name)
			continue
		}
		ours[w.name]++
		states[j.State]++
		if w.stays && len(runs) > 1 {
			k.t.Errorf("%s must not be queued again, and %d attempts began", w.name, len(runs))
		}
		for n, ranks := range runs {
			for rank, p := range ranks {
				// Slurm counts restarts of its own job only, and each attempt is another one there.
				if most := int(j.Attempt); p.starts > most || p.ends > most || w.stays && p.starts > 1 {
					k.t.Errorf("%s: rank %s of attempt %d began %d times and ended %d times", w.name, rank, n, p.starts, p.ends)
				}
			}
		}
		whole := false
		for _, ranks := range runs {
			whole = whole || ends(ranks) >= max(1, w.ranks)
		}
		switch {
		case j.State == "FAILED" && j.Exit.Status == 3 && whole:
		case j.State == "NODE_FAIL" && w.stays:
		default:
			k.t.Errorf("%s (%d ranks, stays %t) is %s, attempt %d, exit %+v, %q, of which %d attempts began", w.name, w.ranks, w.stays, j.State, j.Attempt, j.Exit, j.Message, len(runs))
		}
	}
	for name, w := range k.works {
		if !w.acked {
			silent++
		}
		if n := ours[name]; n > 1 || w.acked && n == 0 || n == 0 && len(f.runs[name]) > 0 {
			k.t.Errorf("%s (answered: %t) is in the history %d times, and ran in %d attempts", name, w.acked, n, len(f.runs[name]))
		}
	}
	k.t.Logf("%d jobs, %d without an answer, %d past the server, ends: %v; the judge saw work %d times", len(k.works), silent, k.native, states, k.looks)
	if k.looks < 50 {
		k.t.Errorf("the judge saw work at %d looks", k.looks)
	}
}

// judgeMachines looks at the owners, once all has come to rest.
func (k *fleetStorm) judgeMachines(machines []api.Machine) {
	moved := 0
	for _, m := range machines {
		moved += int(m.Epoch - k.epochs[m.Name])
		if len(m.Open) != 1 || m.Open[0] != m.Pool {
			k.t.Errorf("machine %s is of pool %s, and open are %q", m.Name, m.Pool, m.Open)
		}
	}
	k.t.Logf("%d hand-overs were asked for and taken", moved)
	if moved < len(machines) {
		k.t.Errorf("only %d hand-overs in the whole storm", moved)
	}
}
