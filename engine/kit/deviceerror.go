package kit

import (
	"strconv"
	"strings"
)

// deviceErrors are parts of lines that CUDA, its libraries and drivers print of a device that is
// broken, whatever program uses it. Errors that a program can bring about itself (an illegal
// address, a launch failure, memory that is full) are not among them.
var deviceErrors = []string{
	"uncorrectable ECC error encountered", "CUDA_ERROR_ECC_UNCORRECTABLE", "cudaErrorECCUncorrectable",
	"GPU has fallen off the bus", "GPU is lost", "NVLink error was detected", "cudaErrorNvlinkUncorrectable", "CUDA_ERROR_NVLINK_UNCORRECTABLE",
}

// deviceXids are the numbers of NVIDIA's kernel driver (Xid) of which the device or its links are
// the cause: a double bit error, a failure of remapping a row, NVLink, a device that fell off the
// bus, uncontained and contained errors of memory, and the GSP that does not answer.
// https://docs.nvidia.com/deploy/xid-errors/
var deviceXids = map[int]bool{48: true, 62: true, 64: true, 74: true, 79: true, 94: true, 95: true, 119: true, 120: true, 140: true}

// maxDeviceLine bounds the line that DeviceError returns, in bytes.
const maxDeviceLine = 300

// DeviceError returns the first line of a text that says that a device is broken; empty if none
// does. The text is the output of a program or the log of a kernel: a program can print what it
// likes, so no more may follow from it than for the job itself.
func DeviceError(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !isDeviceError(line) {
			continue
		}
		if len(line) > maxDeviceLine {
			line = strings.ToValidUTF8(line[:maxDeviceLine], "") + "…"
		}
		return line
	}
	return ""
}

func isDeviceError(line string) bool {
	for _, part := range deviceErrors {
		if strings.Contains(line, part) {
			return true
		}
	}
	// NVRM: Xid (PCI:0000:3b:00): 79, pid=…
	_, rest, ok := strings.Cut(line, "NVRM: Xid (")
	if !ok {
		return false
	}
	_, rest, ok = strings.Cut(rest, "): ")
	if !ok {
		return false
	}
	end := strings.IndexFunc(rest, func(c rune) bool { return c < '0' || c > '9' })
	if end < 0 {
		end = len(rest)
	}
	n, err := strconv.Atoi(rest[:end])
	return err == nil && deviceXids[n]
}
