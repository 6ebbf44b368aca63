package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
)

// TestABrokenDeviceIsNamed: a job with a device whose program prints that it is broken, and fails, is
// reported so; one that prints it and ends well, or that had no device, is not.
//
// Seen to fail with: the exit code not looked at.
func TestABrokenDeviceIsNamed(t *testing.T) {
	const line = "RuntimeError: CUDA error: uncorrectable ECC error encountered"
	cfg := deviceConfig(t.TempDir(), lockFolder(t))
	e := newEngine(t, cfg)
	for i, tt := range []struct {
		exit    int
		devices bool
		want    string
	}{{1, true, line}, {0, true, ""}, {1, false, ""}} {
		l := deviceLaunch(&cfg)
		l.Ref.Allocation, l.Job.ID = uint64(i+1), l.Job.ID+1
		l.Job.Spec.Output.Stdout = filepath.Join(t.TempDir(), "out")
		l.Script = fmt.Appendf(nil, "#!/bin/sh\necho '%s' >&2\nexit %d\n", line, tt.exit)
		if !tt.devices {
			l.Claims[0].Devices = nil
		}
		if err := e.Launch(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		r := until(t, e, l.Ref, func(r engine.Report) bool { return r.Gone })
		if r.DeviceError != tt.want || r.Cause != engine.Exited || r.Exit.Status != tt.exit || r.Message != tt.want {
			out, _ := os.ReadFile(l.Job.Spec.Output.Stdout)
			t.Errorf("%d: %q, %q, %s; it printed %q", i, r.DeviceError, r.Message, r.Exit, out)
		}
		if err := e.Forget(t.Context(), l.Ref); err != nil {
			t.Fatal(err)
		}
	}
}
