package kube_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// size is how many gangs of how many pods each.
type size struct{ gangs, pods int }

func (s size) String() string { return fmt.Sprintf("%dx%d", s.gangs, s.pods) }

// TestSpeed measures, in turns on one cluster of fake nodes, how long gangs of pods take: (a)
// to be created alone, by 32 clients that do nothing else; (b) to be created and bound by our
// driver, a process of its own, from the first launch to the last pod with a node; (c) to be
// created by the same 32 and bound by kube-scheduler, a PodGroup for each gang. The pods are
// the same but for what chooses their nodes; they ask for a GPU each. Then how long after the
// apiserver's answer our driver reports that a pod has ended, and what memory it has.
//
// It judges nothing: docs/explanation/benchmarks.md has the figures. NODES, SIZES ("500x8 50x128"), ROUNDS
// set the size; PROFILE names a file for the driver's profile.
func TestSpeed(t *testing.T) {
	if os.Getenv("COX_BENCH_DRIVER") != "" {
		drive(t)
		return
	}
	if os.Getenv("COX_BENCH") == "" {
		t.Skip("COX_BENCH is not set")
	}
	nodes, rounds := number(t, "NODES", 1000), number(t, "ROUNDS", 3)
	s := newSpeed(t, nodes)
	for _, text := range strings.Fields(cmp.Or(os.Getenv("SIZES"), "500x8 50x128")) {
		text, sides, _ := strings.Cut(text, ":")
		var z size
		if _, err := fmt.Sscanf(text, "%dx%d", &z.gangs, &z.pods); err != nil {
			t.Fatalf("SIZES=%q: %v", text, err)
		}
		t.Run(text, func(t *testing.T) { s.compare(t, z, rounds, cmp.Or(sides, "create,ours,native")) })
	}
}

func number(t *testing.T, name string, usual int) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(usual)))
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is no number of them", name, os.Getenv(name))
	}
	return n
}

// speed is a cluster on which it is measured.
type speed struct {
	l     *lab.Lab
	k     *cluster.Cluster
	nodes []string
	bound atomic.Int64 // pods of the round that have a node
	grown chan struct{}
	turn  int
}

func newSpeed(t *testing.T, nodes int) *speed {
	s := &speed{l: lab.Start(t, lab.NativeGangs()), grown: make(chan struct{}, 1)}
	var err error
	if s.k, err = cluster.Open(cluster.Config{Kubeconfig: s.l.Kubeconfig()}); err != nil {
		t.Fatal(err)
	}
	fakes := make([]lab.Fake, nodes)
	for i := range fakes {
		fakes[i].Name = fmt.Sprintf("f%d", i)
		s.nodes = append(s.nodes, fakes[i].Name)
	}
	began := time.Now()
	for some := range slices.Chunk(fakes, 500) {
		s.l.Fake(t, some...)
	}
	t.Logf("%d nodes after %s", nodes, time.Since(began).Round(time.Second))
	return s
}

// used is the CPU of all who have a part.
type used map[string]time.Duration

func (s *speed) used(t *testing.T, driver int) used {
	out := used{"driver": 0}
	for _, d := range []string{"apiserver", "etcd", "scheduler", "controller-manager", "kwok"} {
		out[d] = s.l.CPU(t, d)
	}
	if driver != 0 {
		out["driver"] = cpuOf(t, driver)
	}
	return out
}

func cpuOf(t *testing.T, pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	u, _ := strconv.Atoi(f[11])
	k, _ := strconv.Atoi(f[12])
	return time.Duration(u+k) * 10 * time.Millisecond
}

// memory is the resident set of a process, the greatest and the present one, in MiB.
func memory(pid int) (most, now int) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 {
			n, _ := strconv.Atoi(f[1])
			switch f[0] {
			case "VmHWM:":
				most = n >> 10
			case "VmRSS:":
				now = n >> 10
			}
		}
	}
	return most, now
}

// compare has those who are named take turns, in another order each round.
func (s *speed) compare(t *testing.T, z size, rounds int, only string) {
	load, _ := os.ReadFile("/proc/loadavg")
	sides := []struct {
		name string
		run  func(*testing.T, size) (time.Duration, used)
	}{{"create", s.create}, {"ours", s.ours}, {"native", s.native}}
	figures := map[string][]float64{}
	for round := range rounds {
		took := map[string]float64{}
		for i := range sides {
			side := sides[(i+round)%len(sides)]
			s.clear(t)
			d, cpu := side.run(t, z)
			took[side.name] = d.Seconds()
			figures[side.name+", s"] = append(figures[side.name+", s"], d.Seconds())
			for who, n := range cpu {
				figures[side.name+", CPU "+who+", s"] = append(figures[side.name+", CPU "+who+", s"], n.Seconds())
			}
			t.Logf("round %d: %s %.2f s, CPU %v", round+1, side.name, d.Seconds(), cpu)
		}
		figures["ours / create"] = append(figures["ours / create"], took["ours"]/took["create"])
		figures["native / create"] = append(figures["native / create"], took["native"]/took["create"])
	}
	s.clear(t)
	t.Logf("%d nodes, %s, load before %s:", len(s.nodes), z, strings.Fields(string(load))[0])
	var names []string
	for name := range figures {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		all := slices.Sorted(slices.Values(figures[name]))
		t.Logf("  %-32s %.2f (%.2f to %.2f)", name, all[len(all)/2], all[0], all[len(all)-1])
	}
}

// gang is a gang of the round as it is rendered.
func (s *speed) gang(i int, z size, placed bool) *render.Attempt {
	l := gangOf(s.nodes, i, z)
	a := &render.Attempt{Server: fmt.Sprintf("b%05d", s.turn), Launch: l, Digest: "d", Settings: render.Settings{
		Namespace: "default", Image: lab.Base, Agent: lab.Cox, Placed: placed, Ready: time.Minute,
	}}
	for _, c := range l.Claims {
		n := render.Node{Node: fleet.Node{Name: c.Node}}
		for k := range 8 {
			n.Devices, n.Ask = append(n.Devices, fleet.Device{Index: k}), append(n.Ask, "nvidia.com/gpu")
		}
		a.Nodes = append(a.Nodes, n)
	}
	return a
}

// gangOf is a launch of a gang: a task with a GPU on each of its nodes.
func gangOf(nodes []string, i int, z size) *engine.Launch {
	l := launch(uint64(i+1), "#!/bin/sh\nsrun train\n")
	l.Job.Spec.Groups = []job.TaskGroup{{Nodes: job.Range{Min: z.pods, Max: z.pods}, Tasks: job.Count{Want: z.pods}}}
	for k := range z.pods {
		n := i*z.pods + k
		l.Claims = append(l.Claims, fleet.Claim{Node: nodes[n%len(nodes)], Tasks: 1, Devices: []fleet.DeviceClaim{{Index: n / len(nodes) % 8, Share: resource.WholeDevice}}})
	}
	return l
}

// clients are how many create at once.
const clients = 32

func (s *speed) each(n int, f func(i int) error) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, clients)
	for c := range clients {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[c] == nil; i = int(next.Add(1)) - 1 {
				errs[c] = f(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// create creates the pods and nothing else.
func (s *speed) create(t *testing.T, z size) (time.Duration, used) {
	pods := s.pods(z, true)
	before, began := s.used(t, 0), time.Now()
	if err := s.each(len(pods), func(i int) error {
		return s.k.Create(t.Context(), cluster.Pods, "default", pods[i], false, nil)
	}); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	return took, less(s.used(t, 0), before)
}

func less(a, b used) used {
	for k := range a {
		a[k] -= b[k]
	}
	return a
}

// pods are those of all gangs, without an owner and a finalizer.
func (s *speed) pods(z size, placed bool) (out []*corev1.Pod) {
	s.turn++
	for i := range z.gangs {
		a := s.gang(i, z, placed)
		if !placed {
			a.Gang = render.Native
		}
		for _, p := range a.Pods("none") {
			p.OwnerReferences, p.Finalizers = nil, nil
			p.Spec.SchedulingGates, p.Spec.Affinity = nil, nil
			out = append(out, p)
		}
	}
	return out
}

// native creates gangs for kube-scheduler, and waits until all pods have nodes.
func (s *speed) native(t *testing.T, z size) (time.Duration, used) {
	pods := s.pods(z, false)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.look(ctx)
	before, began := s.used(t, 0), time.Now()
	groups := cluster.Resource{Group: "scheduling.k8s.io", Version: "v1alpha2", Name: "podgroups"}
	if err := s.each(z.gangs, func(i int) error {
		name := *pods[i*z.pods].Spec.SchedulingGroup.PodGroupName
		g := &group{TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1alpha2", Kind: "PodGroup"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
		g.Spec.SchedulingPolicy.Gang.MinCount = z.pods
		return s.k.Create(t.Context(), groups, "default", g, false, nil)
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.each(len(pods), func(i int) error {
		return s.k.Create(t.Context(), cluster.Pods, "default", pods[i], false, nil)
	}); err != nil {
		t.Fatal(err)
	}
	s.await(t, int64(len(pods)))
	took := time.Since(began)
	return took, less(s.used(t, 0), before)
}

// group is a PodGroup.
type group struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		SchedulingPolicy struct {
			Gang struct {
				MinCount int `json:"minCount"`
			} `json:"gang"`
		} `json:"schedulingPolicy"`
	} `json:"spec"`
}

// look counts the pods that get nodes from now on.
func (s *speed) look(ctx context.Context) {
	s.bound.Store(0)
	var once sync.Once
	listed := make(chan struct{})
	had := map[string]bool{}
	go cluster.Follow(ctx, s.k, cluster.Pods, cluster.Selection{Namespace: "default", Fields: "spec.nodeName!="}, cluster.Follower[metav1.PartialObjectMetadata]{
		Listed: func() { once.Do(func() { close(listed) }) },
		Each: func(p *metav1.PartialObjectMetadata, deleted bool) {
			if had[p.Name] || deleted {
				return
			}
			had[p.Name] = true
			s.bound.Add(1)
			select {
			case s.grown <- struct{}{}:
			default:
			}
		},
	})
	<-listed
}

func (s *speed) await(t *testing.T, n int64) {
	t.Helper()
	limit := time.After(15 * time.Minute)
	for s.bound.Load() < n {
		select {
		case <-s.grown:
		case <-limit:
			t.Fatalf("%d of %d pods have nodes after a quarter of an hour", s.bound.Load(), n)
		}
	}
}

// ours launches gangs by a driver of its own process, and waits until all pods have nodes.
func (s *speed) ours(t *testing.T, z size) (time.Duration, used) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d := s.driver(t)
	s.look(ctx)
	before, began := s.used(t, d.pid()), time.Now()
	d.say(t, order{Gangs: z.gangs, Pods: z.pods})
	s.await(t, int64(z.gangs*z.pods))
	took := time.Since(began)
	cpu := less(s.used(t, d.pid()), before)
	s.lag(t, d, z)
	most, now := memory(d.pid())
	t.Logf("the driver's memory: at most %d MiB, now %d MiB", most, now)
	d.end(t)
	return took, cpu
}

// lag measures how long after the apiserver's answer the driver tells of a pod's end.
func (s *speed) lag(t *testing.T, d *driver, z size) {
	d.await(t, z.gangs, engine.Accepted)
	n := min(z.gangs, 100)
	var all []time.Duration
	for i := range n {
		name := render.PodName(d.server, engine.Ref{Allocation: uint64(i + 1), Attempt: 1}, z.pods-1)
		patch := map[string]any{"status": map[string]any{"phase": "Failed", "containerStatuses": []any{map[string]any{
			"name": render.Container, "image": lab.Base, "imageID": "", "ready": false, "restartCount": 0,
			"state": map[string]any{"terminated": map[string]any{"exitCode": 1, "reason": "Error", "startedAt": time.Now().UTC().Format(time.RFC3339), "finishedAt": time.Now().UTC().Format(time.RFC3339)}},
		}}}}
		if err := s.k.Patch(t.Context(), cluster.Pods, "default", name, "status", cluster.Merge, patch, nil); err != nil {
			t.Fatal(err)
		}
		written := time.Now()
		all = append(all, d.told(t, uint64(i+1), engine.Ending).Sub(written))
	}
	slices.Sort(all)
	t.Logf("a change is reported after the apiserver's answer: p50 %s, p99 %s, %d changes", all[len(all)/2].Round(100*time.Microsecond), all[len(all)*99/100].Round(100*time.Microsecond), n)
}

// clear deletes all of the round before and waits until it is gone and all are at rest.
func (s *speed) clear(t *testing.T) {
	t.Helper()
	for over := time.Now().Add(30 * time.Minute); ; {
		for _, what := range []string{"api/v1/namespaces/default/pods?gracePeriodSeconds=0", "api/v1/namespaces/default/secrets", "apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"} {
			if _, err := s.l.Try(t.Context(), "", "delete", "--raw", "/"+what); err != nil && time.Now().After(over) { // a minute is too short for many
				t.Fatal(err)
			}
		}
		left := s.left(t)
		was := s.used(t, 0)
		time.Sleep(500 * time.Millisecond) // a part of a second in which CPU is measured
		is := less(s.used(t, 0), was)
		if left == 0 && is["apiserver"]+is["controller-manager"]+is["kwok"]+is["scheduler"] < 200*time.Millisecond {
			return
		}
	}
}

// left is how many objects of rounds are there. Finalizers, of a driver that is no more, are
// taken away.
func (s *speed) left(t *testing.T) (n int) {
	t.Helper()
	var held []string
	for _, r := range []cluster.Resource{cluster.Pods, cluster.Services} {
		if _, err := cluster.List(t.Context(), s.k, r, cluster.Selection{Namespace: "default"}, func(o *metav1.PartialObjectMetadata) error {
			if o.Name != "kubernetes" {
				n++
			}
			if len(o.Finalizers) > 0 {
				held = append(held, o.Name)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.each(len(held), func(i int) error {
		err := s.k.Patch(t.Context(), cluster.Pods, "default", held[i], "", cluster.Merge, map[string]any{"metadata": map[string]any{"finalizers": nil}}, nil)
		if fault.KindOf(err) == fault.NotFound {
			return nil
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return n
}
