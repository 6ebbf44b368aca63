package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fault"
)

type testSettings struct {
	SSH    string   `json:"ssh"`
	Window float64  `json:"window,omitempty"`
	Parts  []string `json:"partitions"`
	Deep   struct {
		Key string `json:"key"`
	} `json:"deep"`
	Hidden int `json:"-"`
}

func TestReadSettings(t *testing.T) {
	for _, tt := range []struct{ text, want, remedy string }{
		{``, "", ""},
		{`null`, "", ""},
		{`{}`, "", ""},
		{`{"ssh":"login1","window":1.5,"partitions":["a"],"deep":{"key":"k"}}`, "", ""},
		{`{"shs":"login1"}`, "settings: there is no field shs; did you mean ssh?", "there are deep, partitions, ssh, window"},
		{`{"SSH":"login1"}`, "settings: there is no field SSH; did you mean ssh?", "there are deep, partitions, ssh, window"},
		{`{"Hidden":1}`, "settings: there is no field Hidden", "there are deep, partitions, ssh, window"},
		{`{"deep":{"kye":"x"}}`, "settings: there is no field deep.kye; did you mean key?", "there are key"},
		{`{"ssh":"a","ssh":"b"}`, "settings: ssh is there twice", "leave one of them"},
		{`{"ssh":7}`, "settings: ssh: number is not text", "write text there"},
		{`{"deep":7}`, "settings: deep: number is not an object", `write an object there, in JSON: --set 'deep={"NAME":"VALUE"}'`},
		{`{"partitions":"a"}`, "settings: partitions: string is not a list", `write a list there, in JSON: --set 'partitions=["VALUE"]'`},
		{`{"deep":{"key":["k"]}}`, "settings: deep.key: array is not text", "write text there"},
		{`[]`, "settings: this is no object", `write an object: {"name": value}`},
		{`{} {}`, "settings: there is more behind its end", `write an object: {"name": value}`},
		{`{"ssh"`, "settings: they end too early", `write an object: {"name": value}`},
	} {
		var got testSettings
		err := ReadSettings(json.RawMessage(tt.text), &got)
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.text, err)
			}
			continue
		}
		if err == nil || err.Error() != tt.want || fault.Remedy(err) != tt.remedy || fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v (%s, %s), want %s (%s)", tt.text, err, fault.KindOf(err), fault.Remedy(err), tt.want, tt.remedy)
		}
	}
	if err := ReadSettings(json.RawMessage(`{"a":1}`), &struct{}{}); err == nil || fault.Remedy(err) != "this kind of engine has no settings" {
		t.Errorf("%v, %s", err, fault.Remedy(err))
	}
}

// TestATrialLeavesNothing, whether the engine is opened or not; what is added keeps its folder.
func TestATrialLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	broken := false
	var at Place
	e := &engines{state: dir, log: slog.New(slog.DiscardHandler), kinds: map[string]Opener{"x": func(_ context.Context, _ string, _ json.RawMessage, p Place) (engine.Engine, error) {
		at = p
		if err := os.Mkdir(p.Dir, 0o700); err != nil {
			return nil, err
		}
		if broken {
			return nil, errors.New("it does not open")
		}
		return fake.New(fake.Config{Findings: []engine.Finding{{What: "site"}}}), nil
	}}}
	left := func() []string {
		list, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	p, err := e.openPool(t.Context(), state.PoolSpec{Name: "q", Engine: "x", Trial: true})
	if err != nil || !at.Trial {
		t.Fatalf("%+v, %v", at, err)
	}
	if f, err := p.Engine.(engine.Checker).Check(t.Context()); err != nil || len(f) != 1 {
		t.Errorf("it checks %v, %v", f, err)
	}
	if err := p.Engine.Close(); err != nil || len(left()) != 0 {
		t.Errorf("a look has left %v, %v", left(), err)
	}
	broken = true
	if _, err := e.openPool(t.Context(), state.PoolSpec{Name: "q", Engine: "x", Trial: true}); err == nil || len(left()) != 0 {
		t.Errorf("a look that fails has left %v, %v", left(), err)
	}
	if _, err := os.MkdirTemp(dir, trials); err != nil {
		t.Fatal(err)
	}
	if err := e.sweepTrials(); err != nil || len(left()) != 0 {
		t.Errorf("a start has left %v, %v", left(), err)
	}
	broken = false
	p, err = e.openPool(t.Context(), state.PoolSpec{Name: "q", Engine: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Engine.Close(); err != nil || at.Trial || !cmp.Equal(left(), []string{filepath.Join(dir, "pools")}) || at.Dir != filepath.Join(dir, "pools", "q") {
		t.Errorf("%+v has left %v, %v", at, left(), err)
	}
	for kind, want := range map[string]fault.Kind{"y": fault.Invalid, "kubernetes": fault.Invalid, "local": fault.Unsupported} {
		if _, err := e.openPool(t.Context(), state.PoolSpec{Name: "q", Engine: kind}); fault.KindOf(err) != want || fault.Remedy(err) == "" {
			t.Errorf("kind %s: %v, %s", kind, err, fault.Remedy(err))
		}
	}
}
