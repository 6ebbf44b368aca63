package env

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/step"
)

// devicesOfTask picks those of a node's devices that one of its tasks sees, by the
// rule of --gpu-bind: none or closest, all; single:N, one device for every N tasks
// in turn; per_task:N, N devices for each task, in a row; map_gpu and mask_gpu (newer: map and mask), the
// list's element for the task, the list going round.
func devicesOfTask(all []step.AllocDevice, rule string, local int) []step.AllocDevice {
	name, arg, _ := strings.Cut(strings.TrimPrefix(rule, "verbose,"), ":")
	if len(all) == 0 {
		return nil
	}
	switch name {
	case "single":
		n, err := strconv.Atoi(arg)
		if err != nil || n < 1 {
			n = 1
		}
		return pickDevices(all, 1<<(local/n%len(all)))
	case "per_task":
		n, err := strconv.Atoi(arg)
		if err != nil || n < 1 {
			n = 1
		}
		from := min(local*n, len(all))
		return all[from:min(from+n, len(all))]
	case "map_gpu", "mask_gpu", "map", "mask":
		words, err := ExpandRepeats(arg)
		if err != nil || len(words) == 0 {
			return all
		}
		n, err := strconv.ParseUint(words[local%len(words)], 0, 64)
		if err != nil {
			return all
		}
		if strings.HasPrefix(name, "map") {
			n = 1 << min(n, 63)
		}
		return pickDevices(all, n)
	}
	return all
}

// pickDevices picks by a mask over positions.
func pickDevices(all []step.AllocDevice, mask uint64) []step.AllocDevice {
	out := make([]step.AllocDevice, 0, bits.OnesCount64(mask))
	for i, d := range all {
		if i < 64 && mask&(1<<i) != 0 {
			out = append(out, d)
		}
	}
	return out
}

// ExpandRepeats expands "0*2,1" to 0, 0, 1.
func ExpandRepeats(list string) ([]string, error) {
	var out []string
	for word := range strings.SplitSeq(list, ",") {
		value, times, ok := strings.Cut(word, "*")
		n := 1
		if ok {
			var err error
			if n, err = strconv.Atoi(times); err != nil || n < 1 || n > 1<<12 {
				return nil, fmt.Errorf("%q is not a number of times", times)
			}
		}
		for range n {
			out = append(out, value)
		}
	}
	return out, nil
}
