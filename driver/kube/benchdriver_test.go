package kube_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/test/testcluster"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// order is what a driver is told to launch.
type order struct{ Gangs, Pods int }

// told is what a driver tells.
type told struct {
	Server     string
	Allocation uint64
	Phase      engine.Phase
	At         time.Time
}

// driver is the process of one.
type driver struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	server string

	mu    sync.Mutex
	seen  map[uint64]map[engine.Phase]time.Time
	grown chan struct{}
}

func (d *driver) pid() int { return d.cmd.Process.Pid }

// driver starts one, which is acquainted with the cluster when it returns.
func (s *speed) driver(t *testing.T) *driver {
	d := &driver{seen: map[uint64]map[engine.Phase]time.Time{}, grown: make(chan struct{}, 1)}
	d.cmd = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSpeed$")
	d.cmd.Env = append(os.Environ(), "COX_BENCH_DRIVER="+t.TempDir(), "COX_BENCH_CONFIG="+s.l.Kubeconfig(), "COX_BENCH_NODES="+strconv.Itoa(len(s.nodes)),
		"GOGC=50") // as package serve has it
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	d.cmd.Stderr = os.Stderr
	var err error
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := testcluster.Start(d.cmd); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the driver says nothing")
	}
	var first told
	if err := json.Unmarshal(lines.Bytes(), &first); err != nil {
		t.Fatalf("%v: %s", err, lines.Text())
	}
	d.server = first.Server
	go func() {
		for lines.Scan() {
			var x told
			if json.Unmarshal(lines.Bytes(), &x) != nil {
				continue
			}
			d.mu.Lock()
			if d.seen[x.Allocation] == nil {
				d.seen[x.Allocation] = map[engine.Phase]time.Time{}
			}
			if _, had := d.seen[x.Allocation][x.Phase]; !had {
				d.seen[x.Allocation][x.Phase] = x.At
			}
			d.mu.Unlock()
			select {
			case d.grown <- struct{}{}:
			default:
			}
		}
	}()
	return d
}

func (d *driver) say(t *testing.T, o order) {
	t.Helper()
	if err := json.NewEncoder(d.in).Encode(o); err != nil {
		t.Fatal(err)
	}
}

func (d *driver) when(t *testing.T, f func() bool) {
	t.Helper()
	limit := time.After(5 * time.Minute)
	for {
		d.mu.Lock()
		ok := f()
		d.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-d.grown:
		case <-limit:
			t.Fatal("the driver does not tell it")
		}
	}
}

// await waits until so many attempts were in a phase.
func (d *driver) await(t *testing.T, n int, p engine.Phase) {
	t.Helper()
	d.when(t, func() bool {
		count := 0
		for _, x := range d.seen {
			if !x[p].IsZero() {
				count++
			}
		}
		return count >= n
	})
}

// told is when the driver told of a phase.
func (d *driver) told(t *testing.T, allocation uint64, p engine.Phase) (at time.Time) {
	t.Helper()
	d.when(t, func() bool { at = d.seen[allocation][p]; return !at.IsZero() })
	return at
}

func (d *driver) end(t *testing.T) {
	_ = d.in.Close()
	if err := d.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// drive is the driver's process: it launches what it is told to, and tells of each phase.
func drive(t *testing.T) {
	c, err := cluster.Open(cluster.Config{Kubeconfig: os.Getenv("COX_BENCH_CONFIG")})
	if err != nil {
		t.Fatal(err)
	}
	root := os.Getenv("COX_BENCH_DRIVER")
	e, err := kube.New(kube.Config{
		Root: filepath.Join(root, "state"), Cluster: c, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Terms: settings.Terms{Pool: "kube", Namespace: "default", Placed: true, Image: lab.Base, AgentImage: lab.Cox},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Nodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	var nodes []string
	for i := range number(t, "COX_BENCH_NODES", 1) {
		nodes = append(nodes, fmt.Sprintf("f%d", i))
	}
	profile, err := os.Create(cmp.Or(os.Getenv("PROFILE"), filepath.Join(root, "profile")))
	if err != nil {
		t.Fatal(err)
	}
	if err := pprof.StartCPUProfile(profile); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	_ = out.Encode(told{Server: serverOf(t, filepath.Join(root, "state"))})
	go func() {
		phase := map[engine.Ref]engine.Phase{}
		_ = e.Watch(t.Context(), "", func(ev engine.Event) error {
			if r := ev.Report; phase[r.Ref] != r.Phase {
				phase[r.Ref] = r.Phase
				mu.Lock()
				defer mu.Unlock()
				return out.Encode(told{Allocation: r.Ref.Allocation, Phase: r.Phase, At: time.Now()})
			}
			return nil
		})
	}()
	in := json.NewDecoder(os.Stdin)
	for {
		var o order
		if in.Decode(&o) != nil {
			break
		}
		for i := range o.Gangs {
			if err := e.Launch(t.Context(), gangOf(nodes, i, size{o.Gangs, o.Pods})); err != nil {
				t.Fatal(err)
			}
		}
	}
	pprof.StopCPUProfile()
	keepHeap(t)
	if err := errors.Join(profile.Close(), e.Close()); err != nil {
		t.Error(err)
	}
}

// serverOf is the driver's name in names of objects, as its journal has it.
func serverOf(t *testing.T, root string) string {
	f, err := os.Open(filepath.Join(root, "kube"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var first struct{ Server string }
	if err := json.NewDecoder(f).Decode(&first); err != nil || first.Server == "" {
		t.Fatalf("%q, %v", first.Server, err)
	}
	return first.Server
}

// keepHeap writes the driver's heap, as it is in use, to the file that HEAP names.
func keepHeap(t *testing.T) {
	name := os.Getenv("HEAP")
	if name == "" {
		return
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	if err := errors.Join(pprof.WriteHeapProfile(f), f.Close()); err != nil {
		t.Fatal(err)
	}
}
