package submission

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/cmd/internal/localrun"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// cox run leaves devices alone that somebody else of the machine has, and says who; what an earlier
// run in its own state directory left running is no somebody else.
func TestFreeDevices(t *testing.T) {
	var all []fleet.Device
	for i := range 3 { // the folders of locks are this machine's
		all = append(all, fleet.Device{Index: i, Kind: "gpu", Type: "h100", UUID: "GPU-" + rand.Text()})
	}
	all[2].Declared = true
	dir := t.TempDir()
	root := filepath.Join(dir, "engine")
	if err := os.MkdirAll(attempt.SlotsOf(root), 0o700); err != nil { // as an older version made it
		t.Fatal(err)
	}
	id, err := attempt.DeviceOwner(root)
	if err != nil {
		t.Fatal(err)
	}
	holder := deviceLocker(root)
	holder.Owner.Identity = id
	locks, errs := holder.TakeAll(all[1:])
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	defer locks.Release()
	free := func(stateDir string) localrun.Machine {
		t.Helper()
		m := localrun.Machine{Devices: append([]fleet.Device(nil), all...)}
		if err := freeDevices(&m, stateDir); err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, dir := range []string{"", t.TempDir()} {
		m := free(dir)
		if len(m.Devices) != 2 || m.Devices[0].UUID != all[0].UUID || len(m.Held) != 1 || m.Held[0].UUID != all[1].UUID ||
			!strings.Contains(fmt.Sprint(m.Holder), fmt.Sprintf("held by cox run, process %d of user ", os.Getpid())) {
			t.Errorf("%+v", m)
		}
	}
	if m := free(dir); len(m.Devices) != 3 || len(m.Held) > 0 {
		t.Errorf("in its own state directory: %+v", m)
	}
}
