package jobs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

func TestAccountsBindAToken(t *testing.T) {
	r := start(t, servertest.NewPlane(), nil)
	secret := r.Token(t, "anna", func(k *state.Token) { k.Accounts = []string{"nlp"} })
	for account, want := range map[string]int{"nlp": 201, "vision": 403} {
		s := servertest.Request()
		s.Args = []string{"--account=" + account}
		b, _ := json.Marshal(s)
		if resp, body := r.Ask(t, "POST", "/v1/jobs", secret, string(b)); resp.StatusCode != want {
			t.Errorf("%s: %s %s", account, resp.Status, body)
		}
	}
}

func TestAServerThatIsNotRootsRunsItsOwnJobsAlone(t *testing.T) {
	r := start(t, servertest.NewPlane(), func(c *Config) { c.Alone = true })
	_, err := r.As(t, "anna").Submit(t.Context(), servertest.Request())
	if fault.KindOf(err) != fault.Permission || fault.Remedy(err) == "" {
		t.Errorf("%v", err)
	}
	if _, err := r.Admin(t).Submit(t.Context(), servertest.Request()); err != nil {
		t.Errorf("its own: %v", err)
	}
}

func TestBadSubmissions(t *testing.T) {
	r := start(t, servertest.NewPlane(), nil)
	c := r.As(t, "anna")
	for _, x := range []struct {
		name string
		set  func(*api.Submit)
		kind fault.Kind
		want string
	}{
		{"form", func(s *api.Submit) { s.Form = "cobol" }, fault.Invalid, "cobol"},
		{"dir", func(s *api.Submit) { s.Dir = "run" }, fault.Invalid, "absolute"},
		{"option", func(s *api.Submit) { s.Args = []string{"--nodes=zwei"} }, fault.Invalid, "zwei"},
		{"line", func(s *api.Submit) { s.Text = "#!/bin/sh\n#SBATCH --time=28:00:00:00\n" }, fault.Invalid, "train.sbatch:2"},
		{"partition", func(s *api.Submit) { s.Args = []string{"-p", "gpu"} }, fault.Invalid, "no such partition"},
		{"array", func(s *api.Submit) { s.Args = []string{"--array=0-10000000"} }, fault.Invalid, "array"},
		{"file of the server", func(s *api.Submit) { s.Args = []string{"--export-file=/etc/shadow"} }, fault.Invalid, "not sent by this client"},
		{"priority", func(s *api.Submit) { s.Args = []string{"--priority=9"} }, fault.Permission, "priority"},
		{"empty command", func(s *api.Submit) { s.Form = api.FormCommand }, fault.Invalid, "no command"},
		{"native", func(s *api.Submit) { s.Form, s.Text = api.FormNative, "nam: x\n" }, fault.Invalid, "nam"},
	} {
		s := servertest.Request()
		x.set(s)
		_, err := c.Submit(t.Context(), s)
		if fault.KindOf(err) != x.kind || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	s := servertest.Request()
	s.Text = "#!/bin/sh\n#SBATCH -t 1\n#SBATCH --nodes=x\n"
	b, _ := json.Marshal(s)
	resp, body := r.Ask(t, "POST", "/v1/jobs", r.Token(t, "anna", nil), string(b))
	var e api.Error
	if err := json.Unmarshal([]byte(body), &e); err != nil || resp.StatusCode != 400 || len(e.Errors) != 1 || e.Errors[0].Line != 3 || e.Errors[0].Col == 0 || e.Errors[0].File != "train.sbatch" || e.Errors[0].Text != "#SBATCH --nodes=x" {
		t.Errorf("%s, %v", body, err)
	}
	if len(r.Plane.Jobs) != 0 {
		t.Error("something was submitted")
	}
}

func TestFormsOfSubmission(t *testing.T) {
	r := start(t, servertest.NewPlane(), nil)
	c := r.As(t, "anna")
	s := &api.Submit{Form: api.FormCommand, Command: []string{"/bin/hostname", "-s"}, Args: []string{"-N2"}, Dir: "/tmp"}
	if got, err := c.Submit(t.Context(), s); err != nil || got.Name != "hostname" {
		t.Errorf("%+v, %v", got, err)
	}
	j, err := c.Job(t.Context(), "1")
	if err != nil || j.Spec.Program.Kind != "direct" || j.Spec.Program.Args[1] != "-s" || j.Spec.Source.Form != "command" || j.Spec.Groups[0].Nodes.Min != 2 {
		t.Errorf("%+v, %v", j, err)
	}
	s = servertest.Request()
	s.Args = []string{"--array=1-3%2", "--nodefile=hosts"}
	s.Files = map[string]string{"hosts": "v1\nv2\n"}
	if got, err := c.Submit(t.Context(), s); err != nil || got.Tasks != 3 || got.ID != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	s = servertest.Request()
	s.Text = "#!/bin/sh\n#SBATCH --test-only --parsable\n"
	if got, err := c.Submit(t.Context(), s); err != nil || got.ID != 0 || !got.TestOnly || got.Estimate == nil || got.Estimate.Nodes[0] != "v1" || !got.Parsable {
		t.Errorf("%+v, %v", got, err)
	}
	mask := uint32(0o077)
	s = servertest.Request()
	s.Umask, s.Environ = &mask, []string{"A=1", "SLURM_UMASK=0022", "B=2"}
	if _, err := c.Submit(t.Context(), s); err != nil {
		t.Error(err)
	}
	if env, err := c.Environment(t.Context(), "5"); err != nil || strings.Join(env, " ") != "A=1 B=2 SLURM_UMASK=0077" {
		t.Errorf("%v, %v", env, err)
	}
	if len(r.Plane.Jobs) != 5 {
		t.Errorf("%d jobs", len(r.Plane.Jobs))
	}
}

func TestAdvice(t *testing.T) {
	r := start(t, servertest.NewPlane(), nil)
	raw, err := r.As(t, "anna").Advise(t.Context(), servertest.Request())
	var a struct {
		Engine string
		Facts  []any
		Here   []struct{ Pool string }
	}
	if err != nil || json.Unmarshal(raw, &a) != nil || a.Engine == "" || len(a.Facts) == 0 || len(a.Here) != 1 || a.Here[0].Pool != "local" {
		t.Errorf("%s, %v", raw, err)
	}
	if _, err := r.As(t, "anna").Advise(t.Context(), &api.Submit{Form: "command"}); fault.KindOf(err) != fault.Invalid || fault.Remedy(err) == "" {
		t.Errorf("%v", err)
	}
}
