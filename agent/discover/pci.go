package discover

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// pciBus holds the display controllers and accelerators by address.
type pciBus map[string]pciDevice

type pciDevice struct {
	address string
	vendor  int64
	device  int64
	numa    int // -1 means unknown
	// way names the host bridge and every bridge down to the device, without
	// the device; nil means unknown.
	way []string
}

const (
	vendorNVIDIA = 0x10de
	vendorAMD    = 0x1002
)

// isGPU tells by the PCI class: display controllers (VGA, 3D, other) and
// processing accelerators.
func isGPU(class int64) bool {
	return class>>16 == 0x03 || class>>8 == 0x1200
}

const pciDir = "sys/bus/pci/devices/"

// findPCI reads the GPUs of the PCI bus. It is nil where there is no such bus to
// be read, and empty where there is one without GPUs.
func (s *search) findPCI(nodes []NUMANode) pciBus {
	names := s.listNames(strings.TrimSuffix(pciDir, "/"))
	if names == nil {
		return nil
	}
	bus := pciBus{}
	for _, name := range names {
		vendor, _ := s.readNumber(pciDir + name + "/vendor")
		if vendor != vendorNVIDIA && vendor != vendorAMD {
			continue
		}
		class, _ := s.readNumber(pciDir + name + "/class")
		if !isGPU(class) {
			continue
		}
		d := pciDevice{address: pciAddress(name), vendor: vendor, way: s.pciWay(name)}
		d.device, _ = s.readNumber(pciDir + name + "/device")
		d.numa = numaOf(firstOf(s.readNumber(pciDir+name+"/numa_node")), true, nodes)
		bus[d.address] = d
	}
	return bus
}

func firstOf(n int64, ok bool) int64 {
	if !ok {
		return -1
	}
	return n
}

// ofVendor lists the devices of one vendor by address.
func (b pciBus) ofVendor(vendor int64) []pciDevice {
	var out []pciDevice
	for _, d := range b {
		if d.vendor == vendor {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(x, y pciDevice) int { return strings.Compare(x.address, y.address) })
	return out
}

// pciWay reads the bridges above a device from where its link points:
// ../../../devices/pci0000:15/0000:15:01.0/0000:17:00.0
func (s *search) pciWay(name string) []string {
	target, err := fs.ReadLink(s.FS, pciDir+name)
	if err != nil {
		return nil
	}
	_, way, ok := strings.Cut(target, "devices/")
	if !ok {
		return nil
	}
	parts := strings.Split(way, "/")
	return parts[:len(parts)-1]
}

// pciAddress brings the spellings of an address into the kernel's: four
// hexadecimal digits of domain and lower case ("00000000:C4:00.0" gives
// "0000:c4:00.0"). What is no address gives "".
func pciAddress(text string) string {
	domain, rest, ok := strings.Cut(strings.ToLower(strings.TrimSpace(text)), ":")
	if ok && !strings.Contains(rest, ":") {
		domain, rest = "0", domain+":"+rest // "17:00.0"
	}
	n, err := strconv.ParseUint(domain, 16, 32)
	if !ok || err != nil || len(rest) != len("17:00.0") || rest[2] != ':' || rest[5] != '.' {
		return ""
	}
	d := strconv.FormatUint(n, 16)
	return strings.Repeat("0", max(0, 4-len(d))) + d + ":" + rest
}
