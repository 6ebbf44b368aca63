package container

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/deviceenv"
)

// GPU is a device that a container gets.
type GPU struct {
	Shown deviceenv.Device `json:"shown"`
	UUID  string           `json:"uuid,omitempty"` // empty: not known
}

// CDIDirs are where descriptions of devices for containers are looked for.
var CDIDirs = []string{"/etc/cdi", "/var/run/cdi"}

// cdiFile is the part of a description by the container device interface that is read here.
type cdiFile struct {
	Kind    string `json:"kind"`
	Devices []struct {
		Name string `json:"name"`
	} `json:"devices"`
}

// Devices are the devices that a runtime is told for GPUs: their names by the container device
// interface where a directory describes them, else their files below dev. Declared ones are no
// hardware and give none.
func Devices(gpus []GPU, cdiDirs []string, dev string) []string {
	names := cdiNames(cdiDirs)
	var out []string
	add := func(names ...string) {
		for _, n := range names {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	for _, g := range gpus {
		kind := map[deviceenv.Vendor]string{deviceenv.NVIDIA: "nvidia.com/gpu", deviceenv.AMD: "amd.com/gpu"}[g.Shown.Vendor]
		if kind == "" {
			continue
		}
		found := false
		for _, name := range []string{g.Shown.Instance, g.UUID, strconv.Itoa(g.Shown.Index)} {
			if full := kind + "=" + name; name != "" && names[full] {
				add(full)
				found = true
				break
			}
		}
		if !found {
			add(deviceFiles(g, dev)...)
		}
	}
	return out
}

// cdiNames are all devices that descriptions name, as KIND=NAME.
func cdiNames(dirs []string) map[string]bool {
	names := map[string]bool{}
	for _, dir := range dirs {
		files, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, f := range files {
			text, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				continue
			}
			var d cdiFile
			switch filepath.Ext(f.Name()) {
			case ".json":
				if json.Unmarshal(text, &d) != nil {
					continue
				}
			case ".yaml", ".yml":
				d = readCDI(string(text))
			}
			for _, one := range d.Devices {
				names[d.Kind+"="+one.Name] = true
			}
		}
	}
	return names
}

// readCDI reads the kind and the names of the devices of a description in YAML, as nvidia-ctk
// writes it: names of devices are the only keys "name" of list items below "devices".
func readCDI(text string) cdiFile {
	var d cdiFile
	in := false
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if line[0] != ' ' && line[0] != '-' {
			in = strings.HasPrefix(line, "devices:")
		}
		value := func(key string) (string, bool) {
			v, ok := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(trimmed, "- ")), key+":")
			return strings.Trim(strings.TrimSpace(v), `"'`), ok
		}
		if v, ok := value("kind"); ok && line[0] == 'k' {
			d.Kind = v
		}
		if v, ok := value("name"); ok && in {
			d.Devices = append(d.Devices, struct {
				Name string `json:"name"`
			}{v})
		}
	}
	return d
}

// deviceFiles are the files of a GPU that exist, with those that all GPUs of its vendor share.
func deviceFiles(g GPU, dev string) []string {
	var names []string
	switch g.Shown.Vendor {
	case deviceenv.NVIDIA:
		names = []string{fmt.Sprintf("nvidia%d", g.Shown.Index), "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"}
	case deviceenv.AMD:
		names = []string{"kfd", fmt.Sprintf("dri/renderD%d", 128+g.Shown.Index)}
	}
	var out []string
	for _, n := range names {
		path := filepath.Join(dev, n)
		if _, err := os.Stat(path); err == nil {
			out = append(out, path)
		}
	}
	return out
}

// HasVendor reports of which vendors there are GPUs.
func HasVendor(gpus []GPU) (nvidia, amd bool) {
	for _, g := range gpus {
		nvidia = nvidia || g.Shown.Vendor == deviceenv.NVIDIA
		amd = amd || g.Shown.Vendor == deviceenv.AMD
	}
	return nvidia, amd
}

// NumberDevices gives an environment whose variables number GPUs as the node does the numbers that
// they have in a container, which has only the given ones. Devices that are named otherwise keep
// their names, and so does what counts among the devices that another variable leaves.
func NumberDevices(env []string, gpus []GPU) []string {
	nvidia, amd := HasVendor(gpus)
	vendors := map[string]deviceenv.Vendor{}
	if nvidia {
		vendors[deviceenv.CUDA] = deviceenv.NVIDIA
		if !amd {
			vendors[deviceenv.OpenCL] = deviceenv.NVIDIA
		}
	}
	if amd {
		vendors[deviceenv.ROCR] = deviceenv.AMD
	}
	out := slices.Clone(env)
	for i, v := range out {
		name, value, _ := strings.Cut(v, "=")
		if vendor, ok := vendors[name]; ok {
			out[i] = name + "=" + numberOwn(value, indexesOf(gpus, vendor))
		}
	}
	return out
}

// indexesOf are the node's numbers of the GPUs of a vendor, in order.
func indexesOf(gpus []GPU, vendor deviceenv.Vendor) []int {
	var own []int
	for _, g := range gpus {
		if g.Shown.Vendor == vendor {
			own = append(own, g.Shown.Index)
		}
	}
	slices.Sort(own)
	return slices.Compact(own)
}

// numberOwn gives a list of numbers those by which own has them.
func numberOwn(list string, own []int) string {
	names := strings.Split(list, ",")
	for i, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			if at := slices.Index(own, n); at >= 0 {
				names[i] = strconv.Itoa(at)
			}
		}
	}
	return strings.Join(names, ",")
}
