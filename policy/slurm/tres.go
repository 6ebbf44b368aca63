package slurm

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// tresName turns Slurm's name of a countable thing into ours; false: nothing here
// counts it.
func tresName(name string) (string, bool) {
	low := strings.ToLower(strings.TrimSpace(name))
	switch low {
	case "cpu", "node", "billing":
		return low, true
	case "mem":
		return "memory", true
	case "nodes":
		return "node", true
	case "gres/gpu":
		return "gpu", true
	}
	if rest, ok := strings.CutPrefix(low, "gres/gpu:"); ok {
		return "gpu:" + rest, true
	}
	if strings.HasPrefix(low, "license/") {
		name, _, _ := strings.Cut(strings.TrimSpace(name), "@")
		return "license/" + name[len("license/"):], true
	}
	return "", false
}

// readTRES reads cpu=64,mem=1T,gres/gpu=8. The parts that nothing counts are named in
// left. minutes: memory is in MiB-minutes then.
func (im *importer) readTRES(s setting, set func(account.TRES)) {
	out, left := account.TRES{}, []string(nil)
	for _, part := range splitCommas(s.value) {
		name, value, ok := strings.Cut(part, "=")
		ours, known := tresName(name)
		switch {
		case !ok:
			im.refuseUnreadable(s, "a list of NAME=COUNT")
			return
		case !known:
			left = append(left, part)
			continue
		case isUnlimited(value):
			continue
		}
		a, err := parseAmount(ours, value)
		if err != nil {
			im.refuseSetting(s, "%s: %v", part, err)
			return
		}
		out[ours] = a
	}
	if len(out) > 0 {
		set(out)
	}
	switch {
	case len(left) == 0:
		im.noteKept(s)
	case len(out) == 0:
		im.refuseSetting(s, "nothing here counts %s", strings.Join(left, ", "))
	default:
		im.noteAbout(s, "without %s, which nothing here counts", strings.Join(left, ", "))
	}
}

// parseAmount reads a count in the unit of account.TRES.
func parseAmount(name, value string) (resource.Amount, error) {
	if name == "memory" {
		b, err := slurmfmt.ParseMemory(value)
		return resource.Amount(b), err
	}
	n, err := strconv.ParseInt(value, 10, 48)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a count", value)
	}
	if name == "cpu" || name == "gpu" || strings.HasPrefix(name, "gpu:") {
		n *= 1000
	}
	return resource.Amount(n), nil
}

// billing reads TRESBillingWeights: CPU=1.0,Mem=0.25G,GRES/gpu=2.0. Memory counts by
// MiB there unless a unit says otherwise, and by GiB here.
func (im *importer) readBillingWeights(s setting, set func(map[string]float64)) {
	out, left := map[string]float64{}, []string(nil)
	for _, part := range splitCommas(s.value) {
		name, value, ok := strings.Cut(part, "=")
		ours, known := tresName(name)
		if !ok || !known {
			left = append(left, part)
			continue
		}
		per := 1.0
		if ours == "memory" {
			per = 1024
			switch last := strings.ToUpper(value[max(len(value)-1, 0):]); last {
			case "K", "M", "G", "T", "P":
				per, value = map[string]float64{"K": 1 << 20, "M": 1024, "G": 1, "T": 1.0 / 1024, "P": 1.0 / (1 << 20)}[last], value[:len(value)-1]
			}
		}
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || !(f >= 0 && f < 1e9) {
			im.refuseSetting(s, "%s: %q is not a weight", part, value)
			return
		}
		out[ours] = float64(f * per)
	}
	if len(out) > 0 {
		set(out)
	}
	switch {
	case len(left) == 0:
		im.noteKept(s)
	case len(out) == 0:
		im.refuseSetting(s, "nothing here counts %s", strings.Join(left, ", "))
	default:
		im.noteAbout(s, "without %s, which nothing here counts", strings.Join(left, ", "))
	}
}
