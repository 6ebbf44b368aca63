package discover

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/discover/probe"
)

// HelperName is the program that asks NVML. It is looked for at $COX_GPUPROBE,
// beside the running binary, and in PATH.
const HelperName = "cox-gpuprobe"

// findNVIDIA finds NVIDIA's GPUs: by the helper, else by nvidia-smi.
func (s *search) findNVIDIA(bus pciBus) []GPU {
	onBus := bus.ofVendor(vendorNVIDIA)
	if bus != nil && len(onBus) == 0 && !s.nvidiaDevice() {
		return nil
	}
	found, ok := s.queryNVML()
	if !ok {
		found, ok = s.nvidiaSMI()
	}
	if !ok && len(onBus) > 0 {
		s.addNote("sysfs", "%d NVIDIA GPUs on the PCI bus cannot be used without a working driver", len(onBus))
		return nil
	}
	s.noteLostGPUs(onBus, found)
	return found
}

// nvidiaDevice tells whether a driver shows GPUs outside of the PCI bus: in
// a container, on Tegra, under WSL.
func (s *search) nvidiaDevice() bool {
	return slices.ContainsFunc([]string{"dev/nvidiactl", "dev/nvidia0", "proc/driver/nvidia/version", "dev/dxg"}, s.fileExists)
}

// noteLostGPUs notes the GPUs that sysfs shows and the driver does not: fallen off
// the bus, taken by another driver, or kept from this process.
func (s *search) noteLostGPUs(onBus []pciDevice, found []GPU) {
	for _, d := range onBus {
		if !slices.ContainsFunc(found, func(g GPU) bool { return g.PCI == d.address || g.PCI == "" }) {
			s.addNote("sysfs", "GPU %s is on the PCI bus, but the driver does not offer it here", d.address)
		}
	}
}

// queryNVML asks the helper. ok is false where another tool should be asked.
func (s *search) queryNVML() (gpus []GPU, ok bool) {
	out, err := s.runHelper()
	var r probe.Report
	if jsonErr := json.Unmarshal(out, &r); jsonErr != nil {
		switch {
		case isNotInstalled(err):
			s.addNote(HelperName, "not beside %s and not in PATH", filepath.Base(s.Executable))
		case err != nil:
			s.addNote(HelperName, "%s", failureText(nil, err))
		default:
			s.addNote(HelperName, "its output is not JSON: %v", jsonErr)
		}
		return nil, false
	}
	switch {
	case r.Error != nil:
		s.addNote("nvml", "%s", r.Error.Text)
		return nil, false
	case r.Version != probe.Version:
		s.addNote(HelperName, "speaks version %d, not %d; it belongs to another build", r.Version, probe.Version)
		return nil, false
	}
	for _, p := range r.Problems {
		s.addNote("nvml", "%s", p)
	}
	for _, g := range r.GPUs {
		if g.Prohibited {
			s.addNote("nvml", "GPU %d is in compute mode prohibited: not used", g.Index)
			continue
		}
		gpus = append(gpus, fromProbe(g))
	}
	return gpus, true
}

// runHelper runs the first helper that is there.
func (s *search) runHelper() ([]byte, error) {
	places := helperPlaces(s.LookupEnv, s.Executable)
	for i, p := range places {
		out, err := s.runTool(p)
		if i == len(places)-1 || !isNotInstalled(err) {
			return out, err
		}
	}
	return nil, nil // there always is a place
}

// helperPlaces are the names by which the helper is looked for, in order.
func helperPlaces(lookup func(string) (string, bool), executable string) []string {
	if p, set := lookup("COX_GPUPROBE"); set && p != "" {
		return []string{p}
	}
	if executable == "" {
		return []string{HelperName}
	}
	return []string{filepath.Join(filepath.Dir(executable), HelperName), HelperName}
}

// FindHelper is the path of the helper as this process would run it; "" if there is none.
func FindHelper() string {
	self, _ := os.Executable()
	for _, p := range helperPlaces(os.LookupEnv, self) {
		if path, err := exec.LookPath(p); err == nil {
			return path
		}
	}
	return ""
}

func fromProbe(p probe.GPU) GPU {
	g := GPU{
		Vendor: NVIDIA, Index: p.Index, Minor: p.Minor, UUID: p.UUID, Name: p.Name,
		MemoryBytes: p.MemoryBytes, UsedBytes: p.UsedBytes, PCI: pciAddress(p.PCI), NUMA: -1,
		MIG: MIG{Enabled: p.MIG},
	}
	for _, i := range p.Instances {
		g.MIG.Instances = append(g.MIG.Instances, Instance{
			UUID: i.UUID, Profile: migProfile(i), MemoryBytes: i.MemoryBytes,
		})
	}
	for _, q := range p.Processes {
		g.Processes = append(g.Processes, Process(q))
	}
	for _, l := range p.Links {
		g.Links = append(g.Links, Link{Peer: l.Peer, Fabric: l.Count})
	}
	return g
}

var profilePattern = regexp.MustCompile(`\b(?:\d+c\.)?\d+g\.\d+gb(?:\+[a-z.]+)?`)

// migProfile takes the profile from the product name, which ends in it, else
// makes it from the slices and the memory: 3 of 7 slices with 20 GB is
// "3g.20gb", and "1c.3g.20gb" where only one of the slices computes.
func migProfile(i probe.MIG) string {
	if p := profilePattern.FindString(strings.ToLower(i.Name)); p != "" {
		return p
	}
	if i.GPUSlices == 0 {
		return ""
	}
	// NVIDIA names the profile by the nominal memory, rounded up.
	gb := (i.MemoryBytes + 1<<30 - 1) >> 30
	p := fmt.Sprintf("%dg.%dgb", i.GPUSlices, gb)
	if i.ComputeSlices > 0 && i.ComputeSlices < i.GPUSlices {
		p = fmt.Sprintf("%dc.%s", i.ComputeSlices, p)
	}
	return p
}
