package nodecheck_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/agent/discover/probe"
	"github.com/coxswain-sched/coxswain/agent/nodecheck"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// look runs one check on a node and writes its results as lines "device verdict: text".
func look(t *testing.T, c nodecheck.Config, n fleet.Node) string {
	t.Helper()
	got, err := nodecheck.New(c).CheckNode(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, r := range got {
		if r.Device != nil {
			fmt.Fprintf(&b, "%d ", *r.Device)
		}
		fmt.Fprintf(&b, "%s: %s\n", r.Verdict, r.Text)
	}
	return b.String()
}

// Seen to fail without the comparison with the total number of inodes, and with a warning that is not
// turned down from a failure.
func TestMachineChecks(t *testing.T) {
	space := func(s nodecheck.Space, err error) nodecheck.Machine {
		return nodecheck.Machine{Space: func(string) (nodecheck.Space, error) { return s, err }, Mounted: func(path string) (bool, error) { return path != "/gone", nil }}
	}
	disk := nodecheck.Check{Kind: nodecheck.Disk, Fence: true, Paths: []string{"/scratch"}, Free: 1 << 30}
	for _, c := range []struct {
		name    string
		check   nodecheck.Check
		machine nodecheck.Machine
		want    string
	}{
		{"room", disk, space(nodecheck.Space{Free: 2 << 30, Inodes: -1}, nil), "pass: /scratch has 2 GiB free\n"},
		{"full", disk, space(nodecheck.Space{Free: 1 << 20, Inodes: -1}, nil), "fail: /scratch has 1 MiB free, less than 1 GiB\n"},
		{"no inodes", disk, space(nodecheck.Space{Free: 2 << 30, Inodes: 4, InodesTotal: 1000}, nil), "fail: /scratch has room for 4 more files, less than 0.5 % of 1000\n"},
		{"read-only", disk, space(nodecheck.Space{Free: 2 << 30, Inodes: -1, ReadOnly: true}, nil), "fail: /scratch is read-only\n"},
		{"warns", nodecheck.Check{Kind: nodecheck.Disk, Paths: []string{"/scratch"}}, space(nodecheck.Space{ReadOnly: true}, nil), "warn: /scratch is read-only\n"},
		{"mounted", nodecheck.Check{Kind: nodecheck.Mounts, Fence: true, Paths: []string{"/home"}}, space(nodecheck.Space{}, nil), "pass: /home is mounted and answers\n"},
		{"not mounted", nodecheck.Check{Kind: nodecheck.Mounts, Fence: true, Paths: []string{"/home", "/gone"}}, space(nodecheck.Space{}, nil), "fail: nothing is mounted at /gone\n"},
		{"stale mount", nodecheck.Check{Kind: nodecheck.Mounts, Fence: true, Paths: []string{"/home"}}, space(nodecheck.Space{}, errors.New("/home: stale file handle")), "fail: /home: stale file handle\n"},
		{
			"memory",
			nodecheck.Check{Kind: nodecheck.Memory, Fence: true, Free: 1 << 30},
			nodecheck.Machine{Memory: func() (nodecheck.MemoryState, error) { return nodecheck.MemoryState{Available: 1 << 20}, nil }},
			"fail: 1 MiB of memory are available, less than 1 GiB\n",
		},
		{
			"bad memory",
			nodecheck.Check{Kind: nodecheck.Memory, Fence: true},
			nodecheck.Machine{Memory: func() (nodecheck.MemoryState, error) {
				return nodecheck.MemoryState{Available: 1 << 30, Uncorrectable: 2}, nil
			}},
			"fail: 2 uncorrectable errors of the main memory since the machine began\n",
		},
		{
			"clock",
			nodecheck.Check{Kind: nodecheck.Clock, Fence: true, Within: time.Second},
			nodecheck.Machine{Clock: func() (nodecheck.ClockState, error) {
				return nodecheck.ClockState{Synchronized: true, Error: 3 * time.Second}, nil
			}},
			"fail: the clock may be off by 3s, more than 1s\n",
		},
		{
			"unknown",
			nodecheck.Check{Kind: nodecheck.Clock, Fence: true},
			nodecheck.Machine{Clock: func() (nodecheck.ClockState, error) { return nodecheck.ClockState{}, errors.New("not here") }},
			"unknown: not here\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, look(t, nodecheck.Config{Checks: []nodecheck.Check{c.check}, Machine: c.machine}, fleet.Node{Name: "v1"})); d != "" {
				t.Error(d)
			}
		})
	}
}

// A file system whose server is gone holds up one call for good, and no check: the next check does not
// wait behind it.
//
// Seen to fail without the list of calls that have not returned: the second look calls again.
func TestAPathThatDoesNotAnswer(t *testing.T) {
	calls := make(chan string, 10)
	stuck := make(chan struct{})
	defer close(stuck)
	c := nodecheck.New(nodecheck.Config{
		Timeout: time.Millisecond, Checks: []nodecheck.Check{{Kind: nodecheck.Disk, Fence: true, Paths: []string{"/nfs"}}},
		Machine: nodecheck.Machine{Space: func(path string) (nodecheck.Space, error) {
			calls <- path
			<-stuck
			return nodecheck.Space{}, nil
		}},
	})
	for range 2 {
		got, err := c.CheckNode(t.Context(), fleet.Node{Name: "v1"})
		if err != nil || len(got) != 1 || got[0].Verdict != fleet.Failed || got[0].Text != "/nfs gives no answer within 1ms" {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if len(calls) > 1 {
		t.Errorf("%d calls wait", len(calls))
	}
}

// Nodes of one machine that ask for a path at the same time share the answer. A check of the same path with
// other terms judges it by its own.
//
// Seen to fail with a node that is late as soon as another one asks.
func TestNodesShareAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		c := nodecheck.New(nodecheck.Config{
			Timeout: time.Minute,
			Checks:  []nodecheck.Check{{Kind: nodecheck.Disk, Fence: true, Paths: []string{"/scratch"}, Free: 1}, {Kind: nodecheck.Disk, Name: "more", Fence: true, Paths: []string{"/scratch"}, Free: 1 << 40}},
			Machine: nodecheck.Machine{Space: func(string) (nodecheck.Space, error) {
				calls++
				time.Sleep(time.Second)
				return nodecheck.Space{Free: 1 << 30, Inodes: -1}, nil
			}},
		})
		var running sync.WaitGroup
		for _, name := range []string{"v1", "v2", "v3"} {
			running.Go(func() {
				got, err := c.CheckNode(t.Context(), fleet.Node{Name: name})
				if err != nil || got[0].Verdict != fleet.Passed || got[1].Verdict != fleet.Failed {
					t.Errorf("%s: %+v, %v", name, got, err)
				}
			})
		}
		running.Wait()
		if calls != 1 {
			t.Errorf("%d calls", calls)
		}
	})
}

// An error of a call that another check began, as one whose time was up before, is no answer.
//
// Seen to fail with errors shared as answers are.
func TestErrorsAreNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		gpu := fleet.Device{Index: 0, Kind: "gpu", UUID: "GPU-1"}
		c := nodecheck.New(nodecheck.Config{
			Timeout: time.Minute, Checks: []nodecheck.Check{{Kind: nodecheck.Devices, Fence: true}},
			Machine: nodecheck.Machine{
				Xids: func(time.Time) ([]nodecheck.Xid, error) { return nil, nil },
				GPUs: func(ctx context.Context) (probe.Report, error) {
					if calls++; calls == 1 {
						<-ctx.Done()
						return probe.Report{}, ctx.Err()
					}
					return probe.Report{GPUs: []probe.GPU{{UUID: "GPU-1"}}}, nil
				},
			},
		})
		var running sync.WaitGroup
		running.Go(func() {
			if got, err := c.CheckNode(t.Context(), fleet.Node{Name: "v1", Devices: []fleet.Device{gpu}}); err != nil || got[0].Verdict != fleet.Failed {
				t.Errorf("%+v, %v", got, err)
			}
		})
		time.Sleep(time.Second)
		if got, err := c.CheckNode(t.Context(), fleet.Node{Name: "v2", Devices: []fleet.Device{gpu}}); err != nil || got[0].Verdict != fleet.Passed {
			t.Errorf("%+v, %v", got, err)
		}
		running.Wait()
	})
}

// Whatever the kernel does not return from holds up no check, and the same is not asked a second time.
//
// Seen to fail with each of these called without callOnce.
func TestWhatHangs(t *testing.T) {
	gpu := fleet.Device{Index: 0, Kind: "gpu", UUID: "GPU-1", Bus: "0000:17:00.0"}
	for name, want := range map[string]string{
		"script": "fail: /bin/own has not ended within 1m0s",
		"gpus":   "fail: the driver gives no answer within 1m0s",
		"bus":    "fail: PCI device 0000:17:00.0 gives no answer within 1m0s",
		"xids":   "pass: it answers; XIDs were not looked at: the kernel's log gives no answer within 1m0s",
		"memory": "unknown: the state of the memory gives no answer within 1m0s",
		"clock":  "unknown: the state of the clock gives no answer within 1m0s",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stuck := make(chan struct{})
				defer close(stuck)
				var calls atomic.Int32
				hang := func(what string) {
					if what == name {
						calls.Add(1)
						<-stuck
					}
				}
				kind := name
				if name == "gpus" || name == "bus" || name == "xids" {
					kind = nodecheck.Devices
				}
				c := nodecheck.New(nodecheck.Config{
					Timeout: time.Minute, Checks: []nodecheck.Check{{Kind: kind, Fence: true, Run: []string{"/bin/own"}}},
					Machine: nodecheck.Machine{
						Run: func(*exec.Cmd) error { hang("script"); return nil },
						GPUs: func(context.Context) (probe.Report, error) {
							hang("gpus")
							return probe.Report{GPUs: []probe.GPU{{UUID: "GPU-1"}}}, nil
						},
						Bus:    func(string) ([]byte, error) { hang("bus"); return []byte{1, 2}, nil },
						Xids:   func(time.Time) ([]nodecheck.Xid, error) { hang("xids"); return nil, nil },
						Memory: func() (nodecheck.MemoryState, error) { hang("memory"); return nodecheck.MemoryState{}, nil },
						Clock:  func() (nodecheck.ClockState, error) { hang("clock"); return nodecheck.ClockState{}, nil },
					},
				})
				for range 2 {
					got, err := c.CheckNode(t.Context(), fleet.Node{Name: "v1", Devices: []fleet.Device{gpu}})
					if err != nil || len(got) != 1 || string(got[0].Verdict)+": "+got[0].Text != want {
						t.Errorf("%+v, %v", got, err)
					}
				}
				if n := calls.Load(); n != 1 {
					t.Errorf("%d calls wait", n)
				}
			})
		})
	}
}

// Seen to fail without the kills of the process group, and with the devices of a program that passed.
func TestScripts(t *testing.T) {
	n := fleet.Node{Name: "v1", Pool: "local", Devices: []fleet.Device{{Index: 0}, {Index: 1, UUID: "GPU-1"}, {Index: 2}}}
	for _, c := range []struct{ name, text, want string }{
		{"passes", "echo fine; exit 0", "pass: fine\n"},
		{"passes with words of devices", "echo device 1: fine", "pass: device 1: fine\n"},
		{"fails", "echo; echo no route; exit 3", "fail: no route (exit status 3)\n"},
		{"fails on standard error", "echo no route >&2; exit 3", "fail: no route (exit status 3)\n"},
		{"fails silently", "exit 1", "fail: exit status 1\n"},
		{"fails for devices", "echo device 1: ECC; echo device 2:; echo device 7: none; echo device 1: again; exit 1", "1 fail: ECC\n2 fail: exit status 1\n"},
		{"is told the node", "echo $1 $2 $COX_NODE $COX_POOL $COX_NODE_DEVICES; exit 1", "fail: first v1 v1 local 0,1,2 (exit status 1)\n"},
		{"colours the terminal", `printf '\033[31mred\n'; exit 1`, "fail: ?[31mred (exit status 1)\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			check := nodecheck.Check{Kind: nodecheck.Script, Name: "own", Fence: true, Run: []string{"/bin/sh", "-c", c.text, "sh", "first"}}
			if d := cmp.Diff(c.want, look(t, nodecheck.Config{Checks: []nodecheck.Check{check}}, n)); d != "" {
				t.Error(d)
			}
		})
	}
	t.Run("is not there", func(t *testing.T) {
		check := nodecheck.Check{Kind: nodecheck.Script, Name: "own", Fence: true, Run: []string{"/nowhere/check"}}
		if got := look(t, nodecheck.Config{Checks: []nodecheck.Check{check}}, n); !strings.HasPrefix(got, "unknown: /nowhere/check cannot be run") {
			t.Error(got)
		}
	})
	t.Run("does not end", func(t *testing.T) {
		held := filepath.Join(t.TempDir(), "held")
		check := nodecheck.Check{Kind: nodecheck.Script, Name: "own", Fence: true, Run: []string{"/bin/sh", "-c", "sleep 600 & echo $! > " + held + "; wait"}}
		if got := look(t, nodecheck.Config{Timeout: 200 * time.Millisecond, Checks: []nodecheck.Check{check}}, n); got != "fail: /bin/sh has not ended within 200ms\n" {
			t.Error(got)
		}
		pid, err := os.ReadFile(held)
		if err != nil {
			t.Fatal(err)
		}
		state, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		if err == nil && !strings.Contains(string(state), ") Z ") && !strings.Contains(string(state), ") X ") {
			t.Errorf("what it started lives: %s", state)
		}
	})
}

// bus is a PCI bus whose devices answer, but for those that are named.
func bus(lost ...string) func(string) ([]byte, error) {
	return func(address string) ([]byte, error) {
		for _, l := range lost {
			if l == address {
				return []byte{0xff, 0xff, 0xff, 0xff}, nil
			}
		}
		if address == "0000:ff:00.0" {
			return nil, fs.ErrNotExist
		}
		return []byte{0xde, 0x10, 0x35, 0x23}, nil
	}
}

// Each device is judged by itself: what is wrong with one says nothing of the others.
//
// Seen to fail without the comparison of MIG modes, and with the XIDs of programs.
func TestDevices(t *testing.T) {
	now := time.Unix(10_000, 0)
	gpu := func(i int) fleet.Device {
		return fleet.Device{Index: i, Kind: "gpu", UUID: fmt.Sprintf("GPU-%d", i), Bus: fmt.Sprintf("0000:0%d:00.0", i), Memory: 80 * resource.GiB}
	}
	instance := func(uuid string) fleet.Device {
		return fleet.Device{Index: 0, Kind: "gpu", UUID: uuid, Profile: "1g.10gb", Parent: "GPU-0"}
	}
	well := func(i int) probe.GPU { return probe.GPU{UUID: fmt.Sprintf("GPU-%d", i), MemoryBytes: 80 << 30} }
	with := func(i int, f func(*probe.GPU)) probe.GPU { g := well(i); f(&g); return g }
	for _, c := range []struct {
		name    string
		devices []fleet.Device
		report  probe.Report
		err     error
		bus     func(string) ([]byte, error)
		xids    []nodecheck.Xid
		want    string
	}{
		{name: "declared", devices: []fleet.Device{{Index: 0, Declared: true}}, want: "pass: there are no devices to look at\n"},
		{name: "well", devices: []fleet.Device{gpu(0), gpu(1)}, report: probe.Report{GPUs: []probe.GPU{well(0), well(1)}}, want: "0 pass: it answers\n1 pass: it answers\n"},
		{
			name: "off the bus", devices: []fleet.Device{gpu(0), gpu(1)}, bus: bus("0000:01:00.0"),
			report: probe.Report{GPUs: []probe.GPU{well(0), well(1)}},
			want:   "0 pass: it answers\n1 fail: PCI device 0000:01:00.0 does not answer: it has fallen off the bus\n",
		},
		{
			name: "gone", devices: []fleet.Device{{Index: 3, Kind: "gpu", Bus: "0000:ff:00.0"}},
			want: "3 fail: PCI device 0000:ff:00.0 is gone\n",
		},
		{name: "another vendor", devices: []fleet.Device{{Index: 3, Kind: "gpu", Bus: "0000:03:00.0"}}, want: "3 pass: it is on the bus\n"},
		{
			name: "the driver has lost it", devices: []fleet.Device{gpu(0), gpu(1)},
			report: probe.Report{GPUs: []probe.GPU{well(0)}, Problems: []string{"GPU 1: the GPU has fallen off the bus or cannot be reached"}},
			want:   "0 pass: it answers\n1 fail: GPU-1 is not among the devices of the driver: GPU 1: the GPU has fallen off the bus or cannot be reached\n",
		},
		{name: "no answer", devices: []fleet.Device{gpu(0)}, err: errors.New("deadline"), want: "0 fail: the driver gives no answer: deadline\n"},
		{name: "no driver", devices: []fleet.Device{gpu(0)}, report: probe.Report{Error: &probe.Error{Kind: probe.NoDriver, Text: "NVML does not start"}}, want: "0 fail: NVML does not start\n"},
		{name: "no library", devices: []fleet.Device{gpu(0)}, report: probe.Report{Error: &probe.Error{Kind: probe.NoLibrary, Text: "not installed"}}, want: "0 unknown: not installed\n"},
		{
			name: "ECC", devices: []fleet.Device{gpu(0), gpu(1), gpu(2)},
			report: probe.Report{GPUs: []probe.GPU{
				with(0, func(g *probe.GPU) { g.Errors = &probe.Errors{Uncorrected: 3} }),
				with(1, func(g *probe.GPU) { g.Errors = &probe.Errors{RemapPending: true} }),
				with(2, func(g *probe.GPU) { g.Errors = &probe.Errors{RemapFailed: true} }),
			}},
			want: "0 fail: 3 uncorrectable memory errors since the driver was loaded\n1 warn: rows of its memory are remapped at the next reset of the device\n2 fail: a bad row of its memory could not be remapped\n",
		},
		{
			name: "MIG was turned on", devices: []fleet.Device{gpu(0)}, report: probe.Report{GPUs: []probe.GPU{with(0, func(g *probe.GPU) { g.MIG = true })}},
			want: "0 fail: MIG mode was turned on: as a whole it runs nothing. Restart the server to use its instances, or turn MIG off\n",
		},
		{
			name: "MIG was turned off", devices: []fleet.Device{instance("MIG-1")}, report: probe.Report{GPUs: []probe.GPU{well(0)}},
			want: "0 fail: MIG mode was turned off: the instance is gone. Restart the server to use the device as a whole, or turn MIG on\n",
		},
		{
			name: "partitioned anew", devices: []fleet.Device{instance("MIG-1")},
			report: probe.Report{GPUs: []probe.GPU{with(0, func(g *probe.GPU) { g.MIG, g.Instances = true, []probe.MIG{{UUID: "MIG-2"}} })}},
			want:   "0 fail: MIG instance MIG-1 is gone: the device was partitioned anew. Restart the server to use its new instances\n",
		},
		{
			name: "an instance", devices: []fleet.Device{instance("MIG-1")},
			report: probe.Report{GPUs: []probe.GPU{with(0, func(g *probe.GPU) { g.MIG, g.Instances = true, []probe.MIG{{UUID: "MIG-1"}} })}},
			want:   "0 pass: it is there\n",
		},
		{
			name: "MPS", devices: []fleet.Device{gpu(0), gpu(1)},
			report: probe.Report{GPUs: []probe.GPU{with(0, func(g *probe.GPU) { g.Exclusive = true }), with(1, func(g *probe.GPU) { g.Prohibited = true })}},
			want:   "0 warn: its compute mode is exclusive: jobs that share it fail\n1 fail: its compute mode is prohibited\n",
		},
		{
			name: "less memory", devices: []fleet.Device{gpu(0)}, report: probe.Report{GPUs: []probe.GPU{with(0, func(g *probe.GPU) { g.MemoryBytes = 20 << 30 })}},
			want: "0 fail: it has 20 GiB of memory, and had 80 GiB when the server began\n",
		},
		{
			name: "XID", devices: []fleet.Device{gpu(0), gpu(1)}, report: probe.Report{GPUs: []probe.GPU{well(0), well(1)}},
			xids: []nodecheck.Xid{{At: now, Bus: "0000:00:00", Code: 79, Text: "79, GPU has fallen off the bus."}, {At: now, Bus: "0000:01:00", Code: 31, Text: "31, a program's"}},
			want: "0 fail: XID 79 at 02:46:40Z: 79, GPU has fallen off the bus.\n1 pass: it answers\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.bus == nil {
				c.bus = bus()
			}
			m := nodecheck.Machine{
				GPUs: func(context.Context) (probe.Report, error) { return c.report, c.err },
				Bus:  c.bus, Now: func() time.Time { return now },
				Xids: func(since time.Time) ([]nodecheck.Xid, error) {
					if since != now.Add(-10*time.Minute) {
						t.Errorf("XIDs since %s", since)
					}
					return c.xids, nil
				},
			}
			n := fleet.Node{Name: "v1", Devices: c.devices}
			if d := cmp.Diff(c.want, look(t, nodecheck.Config{Checks: []nodecheck.Check{{Kind: nodecheck.Devices, Fence: true}}, Machine: m}, n)); d != "" {
				t.Error(d)
			}
		})
	}
}

// This machine's own ways see something.
func TestThisMachine(t *testing.T) {
	c := nodecheck.Config{Checks: []nodecheck.Check{
		{Kind: nodecheck.Disk, Fence: true, Paths: []string{t.TempDir()}},
		{Kind: nodecheck.Memory, Fence: true},
		{Kind: nodecheck.Mounts, Fence: true, Paths: []string{"/proc"}},
		{Kind: nodecheck.Devices, Fence: true},
	}}
	got, err := nodecheck.New(c).CheckNode(t.Context(), fleet.Node{Name: "v1"})
	if err != nil || len(got) != len(c.Checks) {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, r := range got {
		if r.Verdict != fleet.Passed {
			t.Errorf("%+v", r)
		}
	}
}
