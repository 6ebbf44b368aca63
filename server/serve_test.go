package server

import (
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// start runs a server; set changes its configuration.
func start(t testing.TB, p *servertest.Plane, set func(*Config)) *servertest.Running {
	t.Helper()
	log := &servertest.Log{}
	cfg := Config{
		Plane: p, Name: "lab", Version: "1.2.3", Users: &user.Users{Lookup: servertest.Lookup}, Log: log.Logger(),
		Rules: &admission.Rules{Partitions: []admission.Partition{{Name: "main", Default: true, Nodes: []string{"v1", "v2", "v3", "v4"}}}},
	}
	if set != nil {
		set(&cfg)
	}
	s := New(cfg)
	return servertest.Listen(t, p, log, s.Server, s.Serve)
}

func TestAWholeLife(t *testing.T) {
	r := start(t, servertest.NewPlane(), nil)
	c, ctx := r.As(t, "anna"), t.Context()
	got, err := c.Submit(ctx, servertest.Request())
	if err != nil || got.ID != 1 || got.Name != "train" {
		t.Fatalf("%+v, %v", got, err)
	}
	j, err := c.Job(ctx, "1")
	if err != nil || j.Name != "1" || j.State != "PENDING" || j.Spec.Owner.User != "anna" || j.Spec.Owner.UID != 2001 || j.Spec.Source.Host != "login" {
		t.Fatalf("%+v, %v", j, err)
	}
	if b, err := c.Script(ctx, "1"); err != nil || string(b) != servertest.Script {
		t.Errorf("script %q, %v", b, err)
	}
	if env, err := c.Environment(ctx, "1"); err != nil || len(env) != 2 || env[1] != "B=2" {
		t.Errorf("environment %q, %v", env, err)
	}
	if w, err := c.Why(ctx, "1"); err != nil || len(w.Lines) != 1 || !strings.Contains(w.Lines[0], "1 job before it") {
		t.Errorf("why %+v, %v", w, err)
	}
	ended := make(chan *api.Job, 1)
	go func() {
		j, err := c.Wait(ctx, "1")
		if err != nil {
			t.Error(err)
		}
		ended <- j
	}()
	ch, err := c.Change(ctx, &api.Change{Select: api.Select{IDs: []string{"1"}}, Verb: api.VerbCancel})
	if err != nil || ch.Changed != 1 || ch.Matched != 1 {
		t.Fatalf("%+v, %v", ch, err)
	}
	if j := <-ended; j == nil || j.State != "CANCELLED" {
		t.Errorf("waited for %+v", j)
	}
	info, err := c.Info(ctx)
	if err != nil || info.You.Name != "anna" || info.You.Via != "token" || info.You.Admin || info.Name != "lab" {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestTheSocketKnowsWhoAsks(t *testing.T) {
	r := start(t, servertest.NewPlane(), nil)
	info, err := r.Admin(t).Info(t.Context())
	if err != nil || info.You.UID != uint32(os.Getuid()) || info.You.Via != "socket" || !info.You.Admin {
		t.Errorf("%+v, %v", info, err)
	}
	conn, err := net.Dial("unix", r.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /v1/jobs HTTP/1.1\r\nHost: cox\r\nAuthorization: Bearer cox_x\r\nConnection: close\r\n\r\n")
	b, _ := io.ReadAll(conn)
	if !strings.Contains(string(b), "401 Unauthorized") {
		t.Errorf("a damaged token on the socket: %s", b)
	}
}
