package native

import (
	"regexp"
	"strings"
	"sync"

	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

var gpuFields = []field[resource.DeviceRequest]{
	{name: "type", form: aText, doc: "type, such as h100", set: func(p *parser, r *resource.DeviceRequest, v value) { r.Type, _ = p.parseLine(v) }},
	{name: "count", form: aCount, doc: "how many (1 if not given)", set: func(p *parser, r *resource.DeviceRequest, v value) { r.Count = p.parseCount(v) }},
	{name: "memory", form: aSize, doc: "memory that each GPU must have", also: []string{"vram"}, set: func(p *parser, r *resource.DeviceRequest, v value) { r.Memory = p.parseSize(v) }},
	{name: "profile", form: aText, doc: "partition of a GPU, such as 1g.10gb", also: []string{"mig"}, set: func(p *parser, r *resource.DeviceRequest, v value) { r.Profile, _ = p.parseLine(v) }},
	{name: "share", form: aShare, doc: "part of one GPU each, in thousandths or as an amount of its memory ([sharing.md](../explanation/sharing.md)); isolates nothing by itself", also: []string{"fraction", "gpu_memory", "gpumem", "gpu_fraction"}, set: setShare},
	{name: "kind", form: aText, doc: "kind of device; gpu if not given", set: func(p *parser, r *resource.DeviceRequest, v value) { r.Kind, _ = p.parseLine(v) }},
}

// setShare reads "500", thousandths of a device, or "20G", of its memory.
func setShare(p *parser, r *resource.DeviceRequest, v value) {
	if s, ok := p.parseText(v); ok && s != "" && strings.ContainsAny(s[len(s)-1:], "KMGTkmgtBb") {
		if r.Bytes = p.parseSize(v); r.Bytes > maxPart {
			p.failValue(v, "", "%s is more than a device has", shortName(s))
		}
		return
	}
	r.Share = resource.Share(p.parseNumber(v, 1, 1000))
}

// maxPart is the largest part of a device by memory.
const maxPart = 1024 * resource.TiB

// parseGPUs reads "2", "h100", "h100:2", lists of these, and the long form.
func (p *parser) parseGPUs(v value) []resource.DeviceRequest {
	var out []resource.DeviceRequest
	for _, item := range p.listItems(v) {
		if item.Kind == yaml.Mapping {
			r := resource.DeviceRequest{Count: 1}
			decodeFields(p, item.path, item.Node, gpuFields, &r)
			out = append(out, r)
			continue
		}
		s, ok := p.parseLine(item)
		if !ok {
			return out
		}
		list, err := slurmfmt.ParseGPUs(s)
		if err != nil {
			p.failSlurmValue(item, err, "forms: "+aGPUs.text)
			return out
		}
		for _, g := range list {
			if g.Count < 1 || g.Count > maxCount {
				p.failValue(item, "leave the field out for no GPUs", "%d is not between 1 and %d", g.Count, maxCount)
				return out
			}
			out = append(out, deviceRequest(g))
		}
	}
	return out
}

// profile recognises a partition in a type, such as "1g.10gb" or "a100_1g.5gb".
var profile = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:(.+)_)?(\d+g\.\d+gb(?:\+[a-z.]+)?)$`) })

func deviceRequest(g slurmfmt.GRES) resource.DeviceRequest {
	r := resource.DeviceRequest{Type: g.Type, Count: int(g.Count)}
	if !strings.Contains(g.Type, ".") {
		return r
	}
	if m := profile().FindStringSubmatch(strings.ToLower(g.Type)); m != nil {
		r.Type, r.Profile = m[1], m[2]
	}
	return r
}
