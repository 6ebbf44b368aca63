package native

import (
	"regexp"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// aPatience is how long something is insisted on; nothing at all is a time, too.
var aPatience = form{text: "10m, 1h, 0s", schema: patternSchema(`^(0s|[0-9].*)$`)}

var levelName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,31}$`)

// parseLevel reads "leaf", the number of a level, and the name of one, which the site knows.
func (p *parser) parseLevel(v value) int {
	s, ok := p.parseLine(v)
	switch n, err := strconv.Atoi(s); {
	case !ok:
		return 0
	case s == "leaf":
		return job.InLeaf
	case err == nil && n >= 1 && n <= 16:
		return n
	case levelName.MatchString(s):
		return p.names.NameLevel(s)
	}
	p.failValue(v, "leaf, the number of a level, 1 being the outermost, or its name", "%q is no level of a topology", shortName(s))
	return 0
}

func (p *parser) parsePatience(v value) time.Duration {
	if v.Kind == yaml.Scalar && v.Text == "0s" {
		return 0
	}
	return p.parseDuration(v)
}

func setSwitchesFor(p *parser, g *groupDraft, v value) {
	if v.Kind == yaml.Scalar && v.Text == "site" {
		g.switchesFor = job.SiteWait
		return
	}
	g.switchesFor = p.parsePatience(v)
}

func setGPUTypes(p *parser, g *groupDraft, v value) {
	g.group.Wishes.GPUs = p.parseList(v)
	if len(g.group.Wishes.GPUs) == 1 {
		p.failValue(v, "write gpus: "+g.group.Wishes.GPUs[0]+":2 for one type, or name another one", "names one type, which is no choice")
	}
}

// convertWishes turns what is insisted on for a time alone into wishes.
func (p *parser) convertWishes(g *groupDraft) {
	t := &g.group
	for _, x := range []struct {
		name, of string
		n        *int
		wish     *job.Wish
		wait     time.Duration
	}{
		{"within_for", "within", &t.Within, &t.Wishes.Within, g.withinFor},
		{"switches_for", "switches", &t.Switches, &t.Wishes.Switches, g.switchesFor},
	} {
		v, given := g.given[x.name]
		switch {
		case !given:
		case *x.n == 0:
			p.failValue(v, "add "+x.of+":", "is for %s, which is not given", x.of)
		default:
			*x.wish, *x.n = job.Wish{N: *x.n, For: x.wait}, 0
		}
	}
	if v, given := g.given["gpu_types_for"]; given && len(t.Wishes.GPUs) == 0 {
		p.failValue(v, "add gpu_types:", "is for gpu_types, which is not given")
	}
	if v, given := g.given["gpu_types"]; given && !hasUntypedGPUs(t) {
		p.failValue(v, "ask for GPUs without a type: gpus_per_node: 8", "no GPUs are asked for whose type is open")
	}
}

// hasUntypedGPUs reports whether a group asks for GPUs without saying of which type.
func hasUntypedGPUs(t *job.TaskGroup) bool {
	for _, list := range [][]resource.DeviceRequest{t.PerNode.Devices, t.PerTask.Devices, t.Total.Devices} {
		for _, d := range list {
			if d.KindOf() == "gpu" && d.Type == "" && d.Profile == "" {
				return true
			}
		}
	}
	return false
}
