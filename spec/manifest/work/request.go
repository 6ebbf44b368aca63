package work

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// requestOf is what one pod asks for: the sum of its containers and sidecars, or its largest init container
// where that is more. Of memory and disk it is the limit where there is one: so much a container may
// use. A pod that says nothing of CPUs has one.
func requestOf(b *builder, p *podspec.PodTemplate, path string) (job.TaskGroup, error) {
	var g job.TaskGroup
	sum, devices, err := addContainers(b, p.Spec.Containers, path+".spec.containers")
	if err != nil {
		return g, err
	}
	var sidecars, largest resource.Vector     // sidecars that began before; the most that an init container needs with them
	var beside, most []resource.DeviceRequest // the same of devices
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		v, more, err := addContainers(b, []podspec.Container{*c}, path+".spec.initContainers")
		if err != nil {
			return g, err
		}
		if c.RestartPolicy == "Always" {
			sidecars, beside = sidecars.Add(v), addDevices(beside, more)
			continue
		}
		v = v.Add(sidecars)
		largest.CPU, largest.Memory, largest.Disk = max(largest.CPU, v.CPU), max(largest.Memory, v.Memory), max(largest.Disk, v.Disk)
		most = largestDevices(most, addDevices(slices.Clone(beside), more))
	}
	sum, devices = sum.Add(sidecars), largestDevices(most, addDevices(devices, beside))
	sum.CPU, sum.Memory, sum.Disk = max(sum.CPU, largest.CPU), max(sum.Memory, largest.Memory), max(sum.Disk, largest.Disk)
	if sum.CPU == 0 {
		sum.CPU = resource.OneCPU
	}
	g.PerTask = resource.Requirements{Vector: sum, Devices: devices}
	g.CPUsPerTask = int((sum.CPU + resource.OneCPU - 1) / resource.OneCPU)
	return g, nil
}

func addContainers(b *builder, all []podspec.Container, path string) (sum resource.Vector, devices []resource.DeviceRequest, err error) {
	for i := range all {
		r := &all[i].Resources
		at := path + "[" + strconv.Itoa(i) + "].resources"
		var v resource.Vector
		if cpu, ok := r.Asked("cpu"); ok {
			if v.CPU, err = amountOf(b, cpu, int64(resource.OneCPU), at); err != nil {
				return sum, nil, err
			}
		}
		for name, to := range map[string]*resource.Amount{"memory": &v.Memory, "ephemeral-storage": &v.Disk} {
			q, ok := r.Limits[name]
			if !ok {
				q, ok = r.Requests[name]
			}
			if !ok {
				continue
			}
			if *to, err = amountOf(b, q, 1, at); err != nil {
				return sum, nil, err
			}
		}
		sum = sum.Add(v)
		more, err := containerDevices(b, r, at)
		if err != nil {
			return sum, nil, err
		}
		devices = addDevices(devices, more)
	}
	return sum, devices, nil
}

// containerDevices are the devices that a container asks for.
func containerDevices(b *builder, r *podspec.Resources, at string) (out []resource.DeviceRequest, err error) {
	var names []string
	for name := range r.Limits {
		names = append(names, name)
	}
	for name := range r.Requests {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		d, ok := deviceOf(name)
		q, _ := r.Asked(name)
		if !ok {
			continue
		}
		n, err := amountOf(b, q, 1, at)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			continue
		}
		d.Count = int(n)
		out = append(out, d)
	}
	return out, nil
}

// sameDevice reports whether two requests ask for devices that are alike.
func sameDevice(a, b resource.DeviceRequest) bool {
	return a.Kind == b.Kind && a.Type == b.Type && a.Profile == b.Profile
}

// largestDevices is the larger number of each kind of device.
func largestDevices(a, b []resource.DeviceRequest) []resource.DeviceRequest {
	out := slices.Clone(b)
	for _, d := range a {
		if i := slices.IndexFunc(out, func(o resource.DeviceRequest) bool { return sameDevice(o, d) }); i >= 0 {
			out[i].Count = max(out[i].Count, d.Count)
		} else {
			out = append(out, d)
		}
	}
	return out
}

// addDevices joins what containers of a pod ask for.
func addDevices(to, more []resource.DeviceRequest) []resource.DeviceRequest {
	for _, d := range more {
		if i := slices.IndexFunc(to, func(x resource.DeviceRequest) bool { return sameDevice(x, d) }); i >= 0 {
			to[i].Count += d.Count
		} else {
			to = append(to, d)
		}
	}
	return to
}

// suffixes are the units of Kubernetes' quantities.
var suffixes = map[string]*big.Rat{
	"": big.NewRat(1, 1), "m": big.NewRat(1, 1000), "u": big.NewRat(1, 1_000_000), "n": big.NewRat(1, 1_000_000_000),
	"k": powerOf(1000, 1), "M": powerOf(1000, 2), "G": powerOf(1000, 3), "T": powerOf(1000, 4), "P": powerOf(1000, 5), "E": powerOf(1000, 6),
	"Ki": powerOf(1024, 1), "Mi": powerOf(1024, 2), "Gi": powerOf(1024, 3), "Ti": powerOf(1024, 4), "Pi": powerOf(1024, 5), "Ei": powerOf(1024, 6),
}

func powerOf(base, n int64) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(base), big.NewInt(n), nil))
}

// parseQuantity reads "1500m", "2Gi", "1e3" or "4" in parts of which unit make one, rounded up. false: it is
// none, negative, or too large.
func parseQuantity(q podspec.Quantity, unit int64) (resource.Amount, bool) {
	s := string(q)
	end := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(s)
	}
	digits, suffix := s[:end], s[end:]
	exponent := big.NewRat(1, 1)
	if rest, ok := strings.CutPrefix(strings.ToLower(suffix), "e"); ok && suffix != "E" && suffix != "Ei" {
		n, err := strconv.Atoi(rest)
		if err != nil || n < -18 || n > 18 {
			return 0, false
		}
		suffix = ""
		if exponent = powerOf(10, int64(max(n, -n))); n < 0 {
			exponent.Inv(exponent)
		}
	}
	factor, known := suffixes[suffix]
	n, ok := new(big.Rat).SetString(digits)
	if !known || !ok || digits == "" || len(digits) > 40 {
		return 0, false
	}
	n.Mul(n, factor).Mul(n, exponent).Mul(n, new(big.Rat).SetInt64(unit))
	whole, rest := new(big.Int).QuoRem(n.Num(), n.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	if !whole.IsInt64() || whole.Int64() > math.MaxInt64>>3 {
		return 0, false
	}
	return resource.Amount(whole.Int64()), true
}

func amountOf(b *builder, q podspec.Quantity, unit int64, at string) (resource.Amount, error) {
	n, ok := parseQuantity(q, unit)
	if !ok {
		return 0, b.fail(at, `write a number with a unit, such as 500m, 4, 16Gi`, "%.40q is no amount", string(q))
	}
	return n, nil
}
