package discover

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

const amdSMI = "amd-smi"

// amdStatic is what amd-smi static --json says of one GPU. A value that it
// does not know is the text "N/A" where an object or a number belongs.
type amdStatic struct {
	GPU  int `json:"gpu"`
	ASIC struct {
		MarketName string `json:"market_name"`
		Serial     string `json:"asic_serial"`
	} `json:"asic"`
	Bus struct {
		BDF string `json:"bdf"`
	} `json:"bus"`
	VRAM struct {
		Size quantity `json:"size"`
	} `json:"vram"`
	NUMA struct {
		Node quantity `json:"node"`
	} `json:"numa"`
}

// quantity is a number with or without a unit: 196592, "196592 MB",
// {"value": 196592, "unit": "MB"}, "N/A".
type quantity struct {
	n     int64
	unit  string
	known bool
}

// UnmarshalJSON takes all the forms; one that is none of them is unknown.
func (q *quantity) UnmarshalJSON(b []byte) error {
	var form struct {
		Value json.Number `json:"value"`
		Unit  string      `json:"unit"`
	}
	text := strings.Trim(string(b), `"`)
	if json.Unmarshal(b, &form) == nil {
		text = form.Value.String() + " " + form.Unit
	}
	var n float64
	var unit string
	k, _ := fmt.Sscan(text, &n, &unit)
	*q = quantity{n: int64(n), unit: strings.ToUpper(unit), known: k >= 1}
	return nil
}

// toBytes reads the quantity as a size; amd-smi writes MB for 2²⁰ bytes.
func (q quantity) toBytes() int64 {
	shift := map[string]uint{"": 20, "B": 0, "KB": 10, "MB": 20, "GB": 30}
	by, ok := shift[q.unit]
	if !q.known || !ok || q.n < 0 || q.n > maxInt64>>by {
		return 0
	}
	return q.n << by
}

// amdSMI asks amd-smi, which replaces rocm-smi.
func (s *search) amdSMI() (gpus []GPU, ok bool) {
	out, err := s.runTool(amdSMI, "static", "--asic", "--bus", "--vram", "--numa", "--json")
	list, parseErr := parseAMDStatic(out)
	switch {
	case parseErr != nil && err != nil:
		s.addNote(amdSMI, "%s", failureText(out, err))
		return nil, false
	case parseErr != nil:
		s.addNote(amdSMI, "%v", parseErr)
		return nil, false
	}
	for _, a := range list {
		g := GPU{
			Vendor: AMD, Index: a.GPU, Minor: -1, NUMA: -1,
			Name: knownValue(a.ASIC.MarketName), UUID: amdUUID(a.ASIC.Serial),
			PCI: pciAddress(a.Bus.BDF), MemoryBytes: a.VRAM.Size.toBytes(),
		}
		if a.NUMA.Node.known {
			g.NUMA = int(a.NUMA.Node.n)
		}
		g.UsedBytes, _ = s.readNumber(pciDir + g.PCI + "/mem_info_vram_used")
		gpus = append(gpus, g)
	}
	return gpus, true
}

// parseAMDStatic reads a list, or an object with the list in gpu_data as
// later releases write it.
func parseAMDStatic(out []byte) ([]amdStatic, error) {
	if i := bytes.IndexAny(out, "[{"); i > 0 {
		out = out[i:]
	}
	var wrapped struct {
		Data []amdStatic `json:"gpu_data"`
	}
	list := &wrapped.Data
	var err error
	if bytes.HasPrefix(out, []byte("[")) {
		err = json.Unmarshal(out, list)
	} else {
		err = json.Unmarshal(out, &wrapped)
	}
	if err != nil {
		return nil, fmt.Errorf("its output is not the JSON expected: %w", err)
	}
	if len(*list) == 0 {
		return nil, fmt.Errorf("it lists no GPUs")
	}
	return *list, nil
}
