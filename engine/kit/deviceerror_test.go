package kit

import (
	"strings"
	"testing"
)

// TestDeviceError: lines as users reported them (vllm issue 5222, DeepFaceLab_Linux 89,
// CUDAdrv.jl 106, semantic-segmentation 33, and of the kernel's log), and lines that say nothing of
// a device.
//
// Seen to fail with: every Xid counted.
func TestDeviceError(t *testing.T) {
	for _, line := range []string{
		"RuntimeError: CUDA error: uncorrectable ECC error encountered",
		"F tensorflow/stream_executor/lib/statusor.cc:34] Internal: failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error encountered",
		"  CUDA error: uncorrectable ECC error encountered (code #214, ERROR_ECC_UNCORRECTABLE)",
		"RuntimeError: cuda runtime error (39) : uncorrectable ECC error encountered at /pytorch/aten/src/THC/THCCachingHostAllocator.cpp:265",
		"[1234.5] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
		"kernel: NVRM: Xid (PCI:0000:3b:00): 48, pid=4711, An uncorrectable double bit error (DBE) has been detected on GPU",
		"Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU",
	} {
		if got := DeviceError("step 1\n" + line + "\nmore\n"); got != strings.TrimSpace(line) {
			t.Errorf("%q in %q", got, line)
		}
	}
	for _, line := range []string{
		"", "RuntimeError: CUDA error: an illegal memory access was encountered", "torch.OutOfMemoryError: CUDA out of memory.",
		"RuntimeError: CUDA error: unspecified launch failure",
		"NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, name=python, Ch 00000008, intr 00000000. MMU Fault",
		"NVRM: Xid (PCI:0000:3b:00): 13", "NVRM: Xid (", "NVRM: Xid (x): 99999999999999999999",
	} {
		if got := DeviceError(line); got != "" {
			t.Errorf("%q", got)
		}
	}
	if got := DeviceError("GPU is lost " + strings.Repeat("x", 1000)); len(got) > maxDeviceLine+len("…") {
		t.Errorf("%d bytes", len(got))
	}
}
