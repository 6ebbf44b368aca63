package local_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/devicelock"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// deviceConfig is an engine that has two physical GPUs of the machine, of which folder has the locks.
func deviceConfig(root, folder string) local.Config {
	node := fleet.Node{State: fleet.Up}
	for i := range 2 {
		node.Devices = append(node.Devices, fleet.Device{
			Index: i, Minor: -1, Kind: "gpu", Type: "h100", NUMA: -1, UUID: fmt.Sprintf("GPU-%d", i), Bus: fmt.Sprintf("0000:%d7:00.0", i),
		})
	}
	return local.Config{
		Root: root, Nodes: local.VirtualRoom(local.RoomConfig{Seed: root}, []fleet.Node{node}), ShareAdvice: "use --share",
		Devices: &devicelock.Locker{Owner: devicelock.NewOwner("cox up", "", root, filepath.Join(root, "cox.sock")), Folders: []string{folder}},
	}
}

// deviceLaunch is a job on GPU 1 that lasts until a file is there.
func deviceLaunch(cfg *local.Config) *engine.Launch {
	node := cfg.Nodes[0].Name
	return &engine.Launch{
		Ref: engine.Ref{Allocation: 1, Attempt: 1},
		Job: &job.Job{ID: 1, Attempt: 1, Spec: &job.Spec{
			Name: "devices", WorkDir: "/", Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}}},
			Program: job.Program{Kind: job.Batch}, Output: job.Output{Stdout: os.DevNull},
		}},
		Claims: []fleet.Claim{{Node: node, Tasks: 1, Devices: []fleet.DeviceClaim{{Index: 1, Share: resource.WholeDevice}}}},
		Script: fmt.Appendf(nil, "#!/bin/sh\nuntil [ -e %s/end ]; do sleep 0.02; done\n", cfg.Root), Env: []string{"PATH=" + os.Getenv("PATH")}, Grace: time.Second,
	}
}

// deviceMain is such an engine in a process of its own, which launches the job and waits to be killed.
func deviceMain(root, folder string) {
	cfg := deviceConfig(root, folder)
	e, err := local.New(cfg)
	if err == nil {
		err = e.Launch(context.Background(), deviceLaunch(&cfg))
	}
	if err == nil {
		err = e.Watch(context.Background(), "", func(ev engine.Event) error {
			if running(ev.Report) {
				fmt.Println("running")
			}
			return nil
		})
	}
	fmt.Println("failed", err)
	os.Exit(1)
}

func lockFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A machine's devices have one owner: the engine that has them, after SIGKILL the supervisors of its
// jobs, each its job's, and then the engine that takes those up.
func TestOneOwnerOfDevices(t *testing.T) {
	folder, first, second := lockFolder(t), t.TempDir(), t.TempDir()
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), me, "devices", first, folder)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "running\n" {
		t.Fatal(line)
	}
	refused := func(when string, want, wantNot []string) {
		t.Helper()
		e, err := local.New(deviceConfig(second, folder))
		if err == nil {
			_ = e.Close()
			t.Errorf("%s: a second engine has the devices too", when)
			return
		}
		missing := func(s string) bool { return !strings.Contains(err.Error(), s) }
		if fault.KindOf(err) != fault.Conflict || fault.Remedy(err) != "use --share" || slices.ContainsFunc(want, missing) ||
			slices.ContainsFunc(wantNot, func(s string) bool { return !missing(s) }) {
			t.Errorf("%s: %v (%s); want %q, not %q", when, err, fault.Remedy(err), want, wantNot)
		}
	}
	holder := fmt.Sprintf("held by cox up, process %d of user ", cmd.Process.Pid)
	refused("the engine lives", []string{"GPU 0 (h100, GPU-0), GPU 1 (h100, GPU-1) are " + holder, "unix://" + first + "/cox.sock"}, nil)

	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	refused("its job lives", []string{"GPU 1 (h100, GPU-1) is " + holder, "its jobs still hold the device", first}, []string{"GPU-0"})

	e := newEngine(t, deviceConfig(first, folder))
	ref := engine.Ref{Allocation: 1, Attempt: 1}
	until(t, e, ref, running)
	refused("the next engine has taken the job up", []string{fmt.Sprintf("GPU 0 (h100, GPU-0), GPU 1 (h100, GPU-1) are held by cox up, process %d of user ", os.Getpid())}, nil)
	if err := os.WriteFile(filepath.Join(first, "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, e, ref, gone)
	refused("the job has ended", []string{"GPU-0", "GPU-1"}, nil)

	shared := deviceConfig(second, folder)
	shared.Share = true
	s := newEngine(t, shared)
	if info, err := s.Info(t.Context()); err != nil || !slices.ContainsFunc(info.Notes, func(n string) bool { return strings.HasPrefix(n, "shared: GPU 0 (h100, GPU-0), GPU 1") }) {
		t.Errorf("with Share: %q, %v", info.Notes, err)
	}
	if err := errors.Join(s.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
	last, err := local.New(deviceConfig(second, folder))
	if err != nil {
		t.Fatalf("everything has ended: %v", err)
	}
	if err := last.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left in the folder of locks: %v, %v", left, err)
	}
}
