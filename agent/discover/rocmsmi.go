package discover

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

const rocmSMI = "rocm-smi"

// rocmSMI asks rocm-smi. ok is false where it could not be asked.
func (s *search) rocmSMI() (gpus []GPU, ok bool) {
	out, err := s.runTool(rocmSMI, "--showproductname", "--showuniqueid", "--showbus", "--showmeminfo", "vram", "--json")
	gpus, parseErr := parseROCm(out)
	switch {
	case parseErr != nil && err != nil:
		s.addNote(rocmSMI, "%s", failureText(out, err))
		return nil, false
	case parseErr != nil:
		s.addNote(rocmSMI, "%v", parseErr)
		return nil, false
	}
	return gpus, true
}

// parseROCm reads {"card0": {"Card Series": …}, …}. The spelling of the keys
// changes between releases in capitals and wording.
func parseROCm(out []byte) ([]GPU, error) {
	// Warnings stand before the object in some releases.
	if i := bytes.IndexByte(out, '{'); i > 0 {
		out = out[i:]
	}
	var cards map[string]map[string]any
	dec := json.NewDecoder(bytes.NewReader(out))
	dec.UseNumber()
	if err := dec.Decode(&cards); err != nil {
		return nil, fmt.Errorf("its output is not the JSON expected: %w", err)
	}
	var gpus []GPU
	for key, raw := range cards {
		n, err := strconv.Atoi(strings.TrimPrefix(key, "card"))
		if err != nil || !strings.HasPrefix(key, "card") {
			continue // "system"
		}
		card := make(map[string]string, len(raw))
		for k, v := range raw {
			card[strings.ToLower(strings.TrimSpace(k))] = strings.TrimSpace(fmt.Sprint(v))
		}
		gpus = append(gpus, GPU{
			Vendor: AMD, Index: n, Minor: -1, NUMA: -1,
			PCI:         pciAddress(card["pci bus"]),
			UUID:        amdUUID(card["unique id"]),
			Name:        rocmName(card),
			MemoryBytes: parseCount(card["vram total memory (b)"]),
			UsedBytes:   parseCount(card["vram total used memory (b)"]),
		})
	}
	if len(gpus) == 0 {
		return nil, fmt.Errorf("it lists no GPUs")
	}
	sortGPUs(gpus)
	return gpus, nil
}

// rocmName takes the first name that is one: a number stands there where the
// tool does not know the board.
func rocmName(card map[string]string) string {
	for _, key := range []string{"card series", "device name", "card model", "market name"} {
		if v := knownValue(card[key]); v != "" && !strings.HasPrefix(v, "0x") {
			return v
		}
	}
	return ""
}

// amdUUID writes the unique number of a GPU as ROCR_VISIBLE_DEVICES takes it:
// "0x9246aa2c2b5d6a6e" gives "GPU-9246aa2c2b5d6a6e".
func amdUUID(id string) string {
	id = strings.TrimPrefix(strings.ToLower(knownValue(id)), "0x")
	if _, err := strconv.ParseUint(id, 16, 64); err != nil {
		return ""
	}
	return "GPU-" + id
}

// parseCount reads a number that is not negative; 0 where unknown.
func parseCount(v string) int64 {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
