package env

import (
	"testing"

	"github.com/coxswain-sched/coxswain/agent/deviceenv"
	"github.com/coxswain-sched/coxswain/agent/step"
)

func TestPartsByMemoryAreSaid(t *testing.T) {
	nvidia := func(i int, bytes int64) step.AllocDevice {
		return step.AllocDevice{Index: i, Kind: "gpu", Shown: deviceenv.Device{Vendor: deviceenv.NVIDIA, Index: i}, Bytes: bytes}
	}
	for _, c := range []struct {
		name        string
		devices     []step.AllocDevice
		memory, mps string
	}{
		{"two parts", []step.AllocDevice{nvidia(2, 20<<30), nvidia(5, 1<<30)}, "20480,1024", "0=20480M,1=1024M"},
		{"a declared one", []step.AllocDevice{{Bytes: 20 << 30, Shown: deviceenv.Device{Vendor: deviceenv.Declared}}}, "20480", "of the user"},
		{"whole ones", []step.AllocDevice{nvidia(0, 0)}, "", "of the user"},
	} {
		e := newEnviron([]string{"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=of the user", "COX_GPU_MEMORY=of an outer job"})
		e.setDevices(c.devices, nil)
		if got := e.get("COX_GPU_MEMORY"); got != c.memory {
			t.Errorf("%s: COX_GPU_MEMORY=%q, want %q", c.name, got, c.memory)
		}
		if got := e.get("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"); got != c.mps {
			t.Errorf("%s: CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=%q, want %q", c.name, got, c.mps)
		}
	}
}
