package discover

import (
	"encoding/csv"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const nvidiaSMI = "nvidia-smi"

// queryFields are asked together; a driver that does not know one refuses all,
// and is asked again for the first queryBasic of them.
var queryFields = []string{"index", "uuid", "name", "pci.bus_id", "memory.total", "memory.used", "mig.mode.current", "compute_mode"}

const queryBasic = 6

// nvidiaSMI asks nvidia-smi. ok is false where it could not be asked.
func (s *search) nvidiaSMI() (gpus []GPU, ok bool) {
	out, err := s.queryGPU(queryFields)
	if err != nil && strings.Contains(string(out), "not a valid field") {
		out, err = s.queryGPU(queryFields[:queryBasic])
	}
	gpus, odd := parseQueryGPU(string(out))
	if len(gpus) == 0 && err != nil {
		s.addNote(nvidiaSMI, "%s", failureText(out, err))
		return nil, false
	}
	for _, line := range odd {
		s.addNote(nvidiaSMI, "%s", line)
	}
	s.readMinors(gpus)
	s.computeApps(gpus)
	s.migInstances(gpus)
	if len(gpus) > 1 {
		if out, err := s.runTool(nvidiaSMI, "topo", "-m"); err != nil {
			s.addNote(nvidiaSMI+" topo", "%s", failureText(out, err))
		} else {
			applyTopo(gpus, parseTopo(string(out)))
		}
	}
	return gpus, true
}

func (s *search) queryGPU(fields []string) ([]byte, error) {
	return s.runTool(nvidiaSMI, "--query-gpu="+strings.Join(fields, ","), "--format=csv,noheader,nounits")
}

// parseQueryGPU reads one GPU a line. A line that is none comes back in odd:
// nvidia-smi writes about GPUs that it cannot reach between the others.
func parseQueryGPU(out string) (gpus []GPU, odd []string) {
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		f := splitCSV(line)
		index, err := strconv.Atoi(f[0])
		if err != nil || len(f) < queryBasic {
			odd = append(odd, line)
			continue
		}
		g := GPU{
			Vendor: NVIDIA, Index: index, Minor: -1, UUID: knownValue(f[1]), Name: knownValue(f[2]),
			PCI: pciAddress(f[3]), MemoryBytes: parseMebibytes(f[4]), UsedBytes: parseMebibytes(f[5]), NUMA: -1,
		}
		if len(f) > 6 {
			g.MIG.Enabled = strings.EqualFold(f[6], "Enabled")
		}
		if len(f) > 7 && strings.EqualFold(f[7], "Prohibited") {
			odd = append(odd, fmt.Sprintf("GPU %d is in compute mode prohibited: not used", index))
			continue
		}
		gpus = append(gpus, g)
	}
	return gpus, odd
}

// splitCSV splits a line of nvidia-smi's CSV, which separates by comma and
// space and quotes nothing.
func splitCSV(line string) []string {
	r := csv.NewReader(strings.NewReader(line))
	r.TrimLeadingSpace, r.LazyQuotes, r.FieldsPerRecord = true, true, -1
	f, err := r.Read()
	if err != nil {
		return []string{line}
	}
	for i := range f {
		f[i] = strings.TrimSpace(f[i])
	}
	return f
}

// knownValue drops what nvidia-smi writes for "cannot tell": [N/A], [Not
// Supported], [Unknown Error], [GPU is lost].
func knownValue(v string) string {
	v = strings.TrimSpace(v)
	if v == "" || v == "N/A" || v == "-" || strings.HasPrefix(v, "[") {
		return ""
	}
	return v
}

// parseMebibytes reads a number with or without its unit; 0 where unknown.
func parseMebibytes(v string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(knownValue(v), "MiB")), 10, 64)
	if err != nil || n < 0 || n > maxInt64>>20 {
		return 0
	}
	return n << 20
}

// readMinors reads the device numbers, which nvidia-smi does not list, from the
// driver's files.
func (s *search) readMinors(gpus []GPU) {
	for i := range gpus {
		t, ok := s.readText("proc/driver/nvidia/gpus/" + gpus[i].PCI + "/information")
		if !ok {
			continue
		}
		if v, ok := findField(t, "Device Minor"); ok {
			if n, err := strconv.Atoi(v); err == nil {
				gpus[i].Minor = n
			}
		}
	}
}

// computeApps adds the processes that compute. nvidia-smi lists no others in
// this form.
func (s *search) computeApps(gpus []GPU) {
	out, err := s.runTool(nvidiaSMI, "--query-compute-apps=gpu_uuid,pid,process_name,used_memory", "--format=csv,noheader,nounits")
	if err != nil {
		s.addNote(nvidiaSMI, "processes: %s", failureText(out, err))
		return
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), ", ")
		if len(f) < 4 {
			continue
		}
		pid, err := strconv.Atoi(f[1])
		if err != nil {
			continue
		}
		p := Process{PID: pid, MemoryBytes: -1}
		// A process may have commas in its name.
		p.Name = baseName(knownValue(strings.Join(f[2:len(f)-1], ", ")))
		if last := knownValue(f[len(f)-1]); last != "" {
			p.MemoryBytes = parseMebibytes(last)
		}
		for i := range gpus {
			if gpus[i].UUID == f[0] {
				gpus[i].Processes = append(gpus[i].Processes, p)
			}
		}
	}
}

// baseName is the last part of a path, without arguments before it.
func baseName(path string) string {
	return path[strings.LastIndexByte(path, '/')+1:]
}

var (
	listGPU = regexp.MustCompile(`^GPU (\d+): .*\(UUID: ([^)]+)\)`)
	listMIG = regexp.MustCompile(`^\s+MIG (\S+)\s+Device\s+\d+: \(UUID: ([^)]+)\)`)
)

// migInstances lists the MIG devices where a GPU has that mode on.
func (s *search) migInstances(gpus []GPU) {
	any := false
	for _, g := range gpus {
		any = any || g.MIG.Enabled
	}
	if !any {
		return
	}
	out, err := s.runTool(nvidiaSMI, "-L")
	if err != nil {
		s.addNote(nvidiaSMI+" -L", "%s", failureText(out, err))
		return
	}
	var at *GPU
	for line := range strings.Lines(string(out)) {
		if m := listGPU.FindStringSubmatch(line); m != nil {
			at = nil
			for i := range gpus {
				if gpus[i].UUID == m[2] {
					at = &gpus[i]
				}
			}
		} else if m := listMIG.FindStringSubmatch(line); m != nil && at != nil {
			at.MIG.Instances = append(at.MIG.Instances, Instance{
				UUID: m[2], Profile: m[1], MemoryBytes: profileMemory(m[1]),
			})
		}
	}
}

var profileGB = regexp.MustCompile(`\.(\d+)gb`)

// profileMemory is the nominal memory of a profile: "1g.10gb" gives 10 GiB.
func profileMemory(profile string) int64 {
	m := profileGB.FindStringSubmatch(profile)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseInt(m[1], 10, 32)
	if err != nil {
		return 0
	}
	return n << 30
}
