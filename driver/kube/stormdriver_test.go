package kube_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/test/testcluster"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// far is a driver in a process of its own, which can be killed. It is called by JSON over its
// standard streams, and is safe for concurrent use.
type far struct {
	cmd *exec.Cmd
	rpc *rpc.Client
}

// Wish is what a far driver is told to launch.
type Wish struct {
	Allocation uint64
	Script     string
	Nodes      []string
	Image      string
	TimeLimit  time.Duration
}

// Reply is what a far driver answers.
type Reply struct {
	Failed  string // empty: it did not
	Kind    fault.Kind
	Reports []engine.Report
}

func (r *Reply) fails(err error) {
	if err != nil {
		r.Failed, r.Kind = err.Error(), fault.KindOf(err)
	}
}

// streams are a process's standard ones.
type streams struct {
	io.Reader
	io.WriteCloser
}

// beginFar starts the process of a driver on a state directory. dir is /storm in its pods.
func beginFar(t *testing.T, kubeconfig, root, dir string) *far {
	t.Helper()
	d := &far{cmd: exec.Command(os.Args[0], "-test.run=^TestStorm$")}
	d.cmd.Env = append(os.Environ(), "COX_STORM_DRIVER="+root, "COX_STORM_CONFIG="+kubeconfig, "COX_STORM_DIR="+dir)
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	d.cmd.Stderr = t.Output()
	in, err1 := d.cmd.StdinPipe()
	out, err2 := d.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, testcluster.Start(d.cmd)); err != nil {
		t.Fatal(err)
	}
	d.rpc = jsonrpc.NewClient(streams{out, in})
	return d
}

// kill ends it with no chance to act.
func (d *far) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.rpc.Close()
	_ = d.cmd.Wait()
}

// leave has it end as it does when it is told to.
func (d *far) leave() error {
	_ = d.rpc.Close()
	return d.cmd.Wait()
}

// ask calls it. That it was killed meanwhile is fault.Unavailable, as for whoever asks a
// server.
func (d *far) ask(ctx context.Context, what string, of any) ([]engine.Report, error) {
	var r Reply
	c := d.rpc.Go("Far."+what, of, &r, make(chan *rpc.Call, 1))
	select {
	case <-c.Done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch {
	case c.Error != nil:
		return nil, fault.New(fault.Unavailable, "%w", c.Error)
	case r.Failed != "":
		return nil, fault.New(r.Kind, "%s", r.Failed)
	}
	return r.Reports, nil
}

// Ending is a Stop, as it is sent.
type Ending struct {
	Ref  engine.Ref
	Stop engine.Stop
}

// Far are the calls of a far driver.
type Far struct {
	e       *kube.Engine
	reports chan engine.Report
	over    chan struct{} // nobody asks any more
}

// Launch takes a job.
func (f *Far) Launch(w Wish, r *Reply) error {
	l := launch(w.Allocation, w.Script, w.Nodes...)
	l.Job.Spec.WorkDir = "/storm"
	l.Job.Spec.Image = w.Image
	l.Job.Spec.TimeLimit = w.TimeLimit
	r.fails(f.e.Launch(context.Background(), l))
	return nil
}

// Stop begins to end an attempt.
func (f *Far) Stop(s Ending, r *Reply) error {
	r.fails(f.e.Stop(context.Background(), s.Ref, s.Stop))
	return nil
}

// Forget drops an attempt.
func (f *Far) Forget(ref engine.Ref, r *Reply) error {
	r.fails(f.e.Forget(context.Background(), ref))
	return nil
}

// List reports every attempt.
func (f *Far) List(_ int, r *Reply) error {
	var err error
	r.Reports, err = f.e.List(context.Background())
	r.fails(err)
	return nil
}

// Next waits for a report. One at a time asks for it.
func (f *Far) Next(_ int, r *Reply) error {
	select {
	case one := <-f.reports:
		r.Reports = []engine.Report{one}
	case <-f.over:
	}
	return nil
}

// input is what a far driver is asked by; over is closed at its end.
type input struct {
	io.Reader
	over func()
}

func (i *input) Read(b []byte) (int, error) {
	n, err := i.Reader.Read(b)
	if err != nil {
		i.over()
	}
	return n, err
}

// beFar is the process of a far driver, until its standard input ends.
func beFar(t *testing.T) {
	c, err := cluster.Open(cluster.Config{Kubeconfig: os.Getenv("COX_STORM_CONFIG")})
	if err != nil {
		t.Fatal(err)
	}
	e, err := kube.New(kube.Config{
		Root: os.Getenv("COX_STORM_DRIVER"), Cluster: c, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Terms: settings.Terms{
			Pool: "kube", Namespace: "default", Placed: true, Image: lab.Base, AgentImage: lab.Cox,
			Paths: []settings.Path{{Prefix: "/storm", Volume: settings.Volume{Kind: settings.Host, Dir: os.Getenv("COX_STORM_DIR")}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &Far{e: e, reports: make(chan engine.Report), over: make(chan struct{})}
	go func() {
		_ = e.Watch(context.Background(), "", func(ev engine.Event) error { f.reports <- ev.Report; return nil })
	}()
	s := rpc.NewServer()
	if err := s.Register(f); err != nil {
		t.Fatal(err)
	}
	out := os.Stdout
	os.Stdout = os.Stderr // of whatever else is printed here
	s.ServeCodec(jsonrpc.NewServerCodec(streams{&input{os.Stdin, sync.OnceFunc(func() { close(f.over) })}, out}))
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
