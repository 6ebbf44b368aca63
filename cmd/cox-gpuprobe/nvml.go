package main

import (
	"bytes"
	"fmt"
)

// device is NVML's handle of a GPU or of a MIG device.
type device uintptr

// status is NVML's return code.
type status int32

const (
	success         status = 0
	notSupported    status = 3
	noPermission    status = 4
	notFound        status = 6
	insufficient    status = 7
	driverNotLoaded status = 9
	gpuLost         status = 15
	versionMismatch status = 18
)

// String names the codes that users meet; the library's own words are used
// where it has them.
func (s status) String() string {
	switch s {
	case success:
		return "success"
	case notSupported:
		return "not supported"
	case noPermission:
		return "no permission"
	case driverNotLoaded:
		return "the NVIDIA kernel driver is not loaded"
	case gpuLost:
		return "the GPU has fallen off the bus or cannot be reached"
	case versionMismatch:
		return "the kernel driver and the library are of different versions; a restart of the machine is due"
	default:
		return fmt.Sprintf("NVML error %d", int32(s))
	}
}

// nvml is the part of the library that is used. Functions that older drivers
// lack are nil there.
type nvml struct {
	init     func() status
	shutdown func() status
	driver   func(text *byte, length uint32) status

	count   func(n *uint32) status
	byIndex func(i uint32, d *device) status
	uuid    func(d device, text *byte, length uint32) status
	name    func(d device, text *byte, length uint32) status
	minor   func(d device, n *uint32) status
	pci     func(d device, p *pciInfo) status
	memory2 func(d device, m *memoryV2) status
	memory1 func(d device, m *memoryV1) status
	mode    func(d device, m *uint32) status
	busy    func(d device, u *utilization) status

	eccErrors    func(d device, kind, counter uint32, n *uint64) status
	remappedRows func(d device, corrected, uncorrected, pending, failed *uint32) status

	compute     func(d device, n *uint32, p *processInfo) status
	graphics    func(d device, n *uint32, p *processInfo) status
	processName func(pid uint32, text *byte, length uint32) status

	migMode         func(d device, now, later *uint32) status
	migCount        func(d device, n *uint32) status
	migByIndex      func(d device, i uint32, m *device) status
	gpuInstance     func(d device, id *uint32) status
	computeInstance func(d device, id *uint32) status
	attributes      func(d device, a *attributes) status

	linkState  func(d device, link uint32, active *uint32) status
	linkRemote func(d device, link uint32, p *pciInfo) status
	linkType   func(d device, link uint32, kind *uint32) status
	p2p        func(a, b device, index uint32, state *uint32) status
}

// symbol ties a function to its names in the library, the newest first.
type symbol struct {
	fn       any // pointer to a field of nvml
	needed   bool
	versions []string
}

func (l *nvml) symbols() []symbol {
	return []symbol{
		{&l.init, true, []string{"nvmlInit_v2"}},
		{&l.shutdown, true, []string{"nvmlShutdown"}},
		{&l.count, true, []string{"nvmlDeviceGetCount_v2"}},
		{&l.byIndex, true, []string{"nvmlDeviceGetHandleByIndex_v2"}},
		{&l.uuid, true, []string{"nvmlDeviceGetUUID"}},
		{&l.name, true, []string{"nvmlDeviceGetName"}},
		{&l.memory1, true, []string{"nvmlDeviceGetMemoryInfo"}},
		{&l.driver, false, []string{"nvmlSystemGetDriverVersion"}},
		{&l.minor, false, []string{"nvmlDeviceGetMinorNumber"}},
		{&l.pci, false, []string{"nvmlDeviceGetPciInfo_v3"}},
		{&l.memory2, false, []string{"nvmlDeviceGetMemoryInfo_v2"}},
		{&l.mode, false, []string{"nvmlDeviceGetComputeMode"}},
		{&l.busy, false, []string{"nvmlDeviceGetUtilizationRates"}},
		{&l.eccErrors, false, []string{"nvmlDeviceGetTotalEccErrors"}},
		{&l.remappedRows, false, []string{"nvmlDeviceGetRemappedRows"}},
		{&l.compute, false, []string{"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"}},
		{&l.graphics, false, []string{"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2"}},
		{&l.processName, false, []string{"nvmlSystemGetProcessName"}},
		{&l.migMode, false, []string{"nvmlDeviceGetMigMode"}},
		{&l.migCount, false, []string{"nvmlDeviceGetMaxMigDeviceCount"}},
		{&l.migByIndex, false, []string{"nvmlDeviceGetMigDeviceHandleByIndex"}},
		{&l.gpuInstance, false, []string{"nvmlDeviceGetGpuInstanceId"}},
		{&l.computeInstance, false, []string{"nvmlDeviceGetComputeInstanceId"}},
		{&l.attributes, false, []string{"nvmlDeviceGetAttributes_v2"}},
		{&l.linkState, false, []string{"nvmlDeviceGetNvLinkState"}},
		{&l.linkRemote, false, []string{"nvmlDeviceGetNvLinkRemotePciInfo_v2"}},
		{&l.linkType, false, []string{"nvmlDeviceGetNvLinkRemoteDeviceType"}},
		{&l.p2p, false, []string{"nvmlDeviceGetP2PStatus"}},
	}
}

// The structures below have the layout of the C ones, padding included.

type pciInfo struct {
	legacy    [16]byte
	domain    uint32
	bus       uint32
	slot      uint32
	deviceID  uint32
	subsystem uint32
	busID     [32]byte
}

type memoryV1 struct {
	total, free, used uint64
}

// memoryV2 tells the driver's reserve apart from what is used.
type memoryV2 struct {
	version                     uint32
	_                           uint32
	total, reserved, free, used uint64
}

// versionOfMemoryV2 is the size and the version as NVML wants them.
const versionOfMemoryV2 = 40 | 2<<24

// utilization is per cent of the time of the last sample, which the driver takes in up to a second.
type utilization struct {
	gpu, memory uint32
}

type processInfo struct {
	pid             uint32
	_               uint32
	used            uint64 // all bits set: unknown
	gpuInstance     uint32 // all bits set: none
	computeInstance uint32
}

type attributes struct {
	_             [6]uint32 // counts of processors and engines
	gpuSlices     uint32
	computeSlices uint32
	memoryMiB     uint64
}

// readText calls a function that fills a buffer; "" where it fails.
func readText(fill func(buf *byte, length uint32) status) string {
	var buf [256]byte // NVML asks for 64, 80 or 96 at most
	if fill(&buf[0], uint32(len(buf))) != success {
		return ""
	}
	return cString(buf[:])
}

func cString(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
