package daemon

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/discover"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/server/config"
)

// A second server of this machine does not get the devices of the first one: it is refused with the
// first one's name, unless it has no devices, declares some, or shares.
func TestASecondServerOfTheDevices(t *testing.T) {
	uuid := "GPU-" + rand.Text() // the folders of locks are this machine's
	look := func(_ context.Context, opt discover.Options) (discover.Machine, []discover.Note, error) {
		m := discover.Machine{CPUs: []discover.CPU{{}}, MemoryBytes: 1 << 30}
		if !opt.NoGPU {
			m.GPUs = []discover.GPU{{Vendor: discover.NVIDIA, UUID: uuid, Type: "h100", NUMA: -1}}
		}
		return m, nil, nil
	}
	top := t.TempDir()
	serve := func(name string, share bool, change func(*config.Config)) (notes []string, stop func() error, err error) {
		cfg := config.Default()
		cfg.State.Dir, cfg.Listen.TCP = filepath.Join(top, name), "none"
		cfg.Listen.Socket = filepath.Join(cfg.State.Dir, "cox.sock")
		if change != nil {
			change(&cfg)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ready, ended := make(chan Info, 1), make(chan error, 1)
		go func() {
			ended <- Run(ctx, Options{Config: cfg, Log: slog.New(slog.DiscardHandler), Look: look, Share: share, Ready: func(i Info) { ready <- i }})
		}()
		select {
		case i := <-ready:
			return i.Notes, func() error { cancel(); return <-ended }, nil
		case err := <-ended:
			cancel()
			return nil, nil, err
		}
	}
	_, stop, err := serve("first", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = serve("second", false, nil)
	if fault.KindOf(err) != fault.Conflict || !strings.Contains(fault.Remedy(err), "--share") ||
		!strings.Contains(err.Error(), "GPU 0 (h100, "+uuid+") is held by cox up, process ") || !strings.Contains(err.Error(), "at unix://"+filepath.Join(top, "first", "cox.sock")) {
		t.Errorf("%v (%s)", err, fault.Remedy(err))
	}
	for name, c := range map[string]struct {
		share  bool
		change func(*config.Config)
	}{
		"shared":   {true, nil},
		"without":  {false, func(c *config.Config) { c.Room.GPUsPerNode = 0 }},
		"declared": {false, func(c *config.Config) { c.Room.Nodes, c.Room.GPUsPerNode, c.Room.ByAddress = 2, 4, true }},
	} {
		notes, end, err := serve(name, c.share, c.change)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, "shared: GPU 0") }); got != c.share {
			t.Errorf("%s: notes %q", name, notes)
		}
		if err := end(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	_, stop, err = serve("second", false, nil)
	if err != nil {
		t.Fatalf("the first one has ended: %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{"/run/lock", "/dev/shm", "/tmp"} {
		if _, err := os.Lstat(filepath.Join(dir, "coxswain-device-"+strings.ToLower(uuid))); err == nil {
			t.Errorf("a lock file is left in %s", dir)
		}
	}
}
