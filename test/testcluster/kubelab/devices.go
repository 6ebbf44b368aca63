package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/coxswain-sched/coxswain/internal/checkout"
	"github.com/coxswain-sched/coxswain/test/testcluster"
)

// Device is a GPU that is a name and nothing else.
type Device struct {
	ID  string // at most 63 characters
	Ill bool   // its plugin says that it is not healthy
}

// Plug gives nodes, by name, devices by a device plugin, which are counted as a resource
// ("nvidia.com/gpu"); again, it says what they are now. It returns when the kubelets have told
// the cluster how many of them are well. A container sees those that the kubelet chose in
// NVIDIA_VISIBLE_DEVICES, sorted, with commas. The plugin is the daemon "devices.NODE".
func (l *Lab) Plug(t testing.TB, resource string, nodes map[string][]Device) {
	t.Helper()
	for name, devices := range nodes {
		l.setPluginDevices(t, name, resource, devices)
	}
	for name, devices := range nodes {
		well := 0
		for _, d := range devices {
			if !d.Ill {
				well++
			}
		}
		if err := testcluster.Await(t.Context(), fmt.Sprintf("%d × %s on %s", well, resource, name), func() bool {
			has, wellNow := l.deviceCounts(t.Context(), name, resource)
			return has == fmt.Sprint(len(devices)) && wellNow == fmt.Sprint(well)
		}); err != nil {
			t.Fatalf("%v\n%s", err, l.Logs())
		}
	}
}

// setPluginDevices tells a node's plugin what there is, which it starts before.
func (l *Lab) setPluginDevices(t testing.TB, name, resource string, devices []Device) {
	t.Helper()
	l.setVendorStock(t, name, "plugin", map[string]any{"Resource": resource, "Devices": devices})
}

// setVendorStock tells a program that plays a vendor on a node what there is, and starts it before.
func (l *Lab) setVendorStock(t testing.TB, name, kind string, stock map[string]any) {
	t.Helper()
	n := l.nodeByName(t, name)
	text, err := json.Marshal(stock)
	if err != nil {
		t.Fatal(err)
	}
	file, program := filepath.Join(n.dir, kind+".json"), map[string]string{"plugin": "devices.", "claims": "claims."}[kind]+name
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	runs := l.daemons[program] != nil
	l.mu.Unlock()
	if runs {
		l.signalDaemon(t, program, syscall.SIGHUP)
	} else if err := l.startDaemon(t.Context(), &daemon{name: program, node: n, words: []string{l.vendorProgram(t), kind, file}}); err != nil {
		t.Fatal(err)
	}
}

// deviceCounts is how many units of a resource a node says that it has, and how many of them are
// well.
func (l *Lab) deviceCounts(ctx context.Context, node, resource string) (has, well string) {
	var n struct {
		Status struct{ Capacity, Allocatable map[string]string }
	}
	if text, err := l.readPath(ctx, "/api/v1/nodes/"+node); err != nil || json.Unmarshal(text, &n) != nil {
		return "", ""
	}
	return n.Status.Capacity[resource], n.Status.Allocatable[resource]
}

// vendorProgram is the program that plays a vendor of devices on nodes. It is built from a module of
// its own (test/kube/devices).
func (l *Lab) vendorProgram(t testing.TB) string {
	t.Helper()
	program := l.labFile("devices")
	if _, err := os.Stat(program); err == nil {
		return program
	}
	c := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, ".")
	c.Dir, c.Env = checkout.Path("test", "kube", "devices"), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		skipOrFail(t, fmt.Sprintf("the program that plays a vendor of devices is not built: %v: %s", err, out))
	}
	return program
}
