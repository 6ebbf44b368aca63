package discover

import (
	"slices"
	"strconv"
	"strings"
)

// dropHiddenGPUs drops the GPUs that this process's own environment hides: Coxswain
// started inside an allocation of another scheduler, or by somebody who keeps
// to two GPUs of a shared machine, must not hand out the others.
func (s *search) dropHiddenGPUs(gpus []GPU) []GPU {
	nvidia, amd := s.visibleTo("CUDA_VISIBLE_DEVICES", ofVendor(gpus, NVIDIA), absolute), ofVendor(gpus, AMD)
	// ROCm applies the two one after the other: the second counts among what
	// the first has left.
	amd = s.visibleTo("ROCR_VISIBLE_DEVICES", amd, absolute)
	amd = s.visibleTo("HIP_VISIBLE_DEVICES", amd, relative)
	return slices.Concat(nvidia, amd)
}

func ofVendor(gpus []GPU, v Vendor) []GPU {
	var out []GPU
	for _, g := range gpus {
		if g.Vendor == v {
			out = append(out, g)
		}
	}
	return out
}

type counting int

const (
	absolute counting = iota // a number is GPU.Index
	relative                 // a number is the position in the list
)

// visibleTo keeps the GPUs that a variable names. As in the vendors'
// libraries an entry that names nothing ends the list.
func (s *search) visibleTo(variable string, gpus []GPU, count counting) []GPU {
	value, set := s.LookupEnv(variable)
	if !set || len(gpus) == 0 {
		return gpus
	}
	chosen := make([]GPU, 0, len(gpus))
	for entry := range strings.SplitSeq(value, ",") {
		entry = strings.TrimSpace(entry)
		i := slices.IndexFunc(gpus, func(g GPU) bool { return g.hasUUID(entry) })
		if n, err := strconv.Atoi(entry); err == nil {
			i = n
			if count == absolute {
				i = slices.IndexFunc(gpus, func(g GPU) bool { return g.Index == n })
			}
		}
		if i < 0 || i >= len(gpus) {
			break
		}
		g := gpus[i].restrictMIG(entry)
		if k := slices.IndexFunc(chosen, func(c GPU) bool { return c.Index == g.Index }); k < 0 {
			chosen = append(chosen, g)
		} else if len(g.MIG.Instances) == 1 {
			chosen[k].MIG.Instances = append(chosen[k].MIG.Instances, g.MIG.Instances...)
		}
	}
	if len(chosen) < len(gpus) {
		s.addNote(variable, "%q leaves %d of %d GPUs", value, len(chosen), len(gpus))
	}
	sortGPUs(chosen)
	return chosen
}

// hasUUID matches a UUID of the GPU or of one of its instances, or the
// beginning of one, as CUDA does.
func (g GPU) hasUUID(entry string) bool {
	if len(entry) <= len("GPU-") {
		return false
	}
	return strings.HasPrefix(g.UUID, entry) || slices.ContainsFunc(g.MIG.Instances, func(i Instance) bool {
		return strings.HasPrefix(i.UUID, entry)
	})
}

// restrictMIG keeps the one instance that an entry names, if it names one.
func (g GPU) restrictMIG(entry string) GPU {
	for _, i := range g.MIG.Instances {
		if len(entry) > len("MIG-") && strings.HasPrefix(i.UUID, entry) {
			g.MIG.Instances = []Instance{i}
			break
		}
	}
	return g
}
