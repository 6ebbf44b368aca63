package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/server/config"
)

// A state directory that somebody else's invocation used last is refused unless it is named; nobody
// is asked about a new one, and about one of a version that kept no record.
func TestAStateDirectoryOfAnotherInvocation(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	start := func(caller *Invocation) error {
		cfg := config.Default()
		cfg.State.Dir, cfg.Listen.Socket, cfg.Listen.TCP = dir, filepath.Join(dir, "cox.sock"), "none"
		cfg.Room.GPUsPerNode = 0
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		return Run(ctx, Options{Config: cfg, Log: slog.New(slog.DiscardHandler), Caller: caller, Ready: func(Info) { cancel() }})
	}
	t.Setenv("HOME", "/home/anna")
	t.Setenv("XDG_STATE_HOME", "")
	anna := ThisInvocation()
	other, elsewhere, bert := anna, anna, anna
	other.Home, elsewhere.StateHome, bert.UID, bert.User = "/tmp/x", "/tmp/y", anna.UID+1, "bert"
	for _, c := range []*Invocation{&anna, &anna, nil} {
		if err := start(c); err != nil {
			t.Fatalf("%v: %v", c, err)
		}
	}
	for want, c := range map[string]*Invocation{
		"and this is " + anna.User + " with HOME=/tmp/x":                               &other,
		"and this is " + anna.User + " with HOME=/home/anna and XDG_STATE_HOME=/tmp/y": &elsewhere,
		"and this is bert with HOME=/home/anna":                                        &bert,
	} {
		err := start(c)
		if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), dir+" was last used by "+anna.User+" with HOME=/home/anna, at ") ||
			!strings.HasSuffix(err.Error(), want) || !strings.Contains(fault.Remedy(err), "cox up --state-dir "+dir) || !strings.Contains(fault.Remedy(err), "--dev") {
			t.Errorf("%s: %v (%s)", want, err, fault.Remedy(err))
		}
	}
	t.Setenv("HOME", "/tmp/x")
	if err := start(nil); err != nil { // named: it is his from now on
		t.Fatal(err)
	}
	if err := start(&anna); fault.KindOf(err) != fault.Conflict {
		t.Errorf("the first one comes back: %v", err)
	}
	if err := start(&other); err != nil {
		t.Error(err)
	}
	if err := errors.Join(os.Remove(invocationFile(dir)), start(&anna)); err != nil {
		t.Errorf("without a record: %v", err)
	}
	t.Setenv("HOME", "")
	if i := ThisInvocation(); i.Home == "" {
		t.Error("without HOME the home directory is that of the system's database")
	}
}
