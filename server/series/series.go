package series

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

// Bounds of a Series.
const (
	MaxPoints  = 240 // intervals
	MaxNodes   = 64  // with lines of their own
	MaxDevices = 512 // of all nodes, with lines of their own
)

// version is the form of the files.
const version = 1

// Series is how one attempt used CPUs, memory and devices. Names are a format on disk.
type Series struct {
	Version int           `json:"version"`
	Ref     engine.Ref    `json:"ref"`
	Start   time.Time     `json:"start"` // of the first interval
	Step    time.Duration `json:"step"`  // of each interval

	Total     Track         `json:"total"`
	Nodes     []NodeTrack   `json:"nodes,omitempty"`   // none if the attempt has one node
	Devices   []DeviceTrack `json:"devices,omitempty"` // by node, then index
	LeftNodes int           `json:"left_nodes,omitempty"`
	Sources   []string      `json:"sources,omitempty"` // Supervisor, Pod, NVML, DCGM, or as the engine names it

	Last baseline `json:"last"`
}

// The sources of a series.
const (
	Supervisor = "supervisor" // of this machine
	Pod        = "pod"        // the agent in the pods
	NVML       = "nvml"       // the server's own look at the GPUs of this machine
	DCGM       = "dcgm"       // an exporter
)

// Track is the CPUs and the memory of some processes.
type Track struct {
	CPUs   Line `json:"cpus,omitempty"`   // CPUs that were busy, on average
	Memory Line `json:"memory,omitempty"` // bytes
}

// NodeTrack is what the attempt used on one node.
type NodeTrack struct {
	Name string `json:"name"`
	Track
}

// DeviceTrack is one device of the attempt.
type DeviceTrack struct {
	Node     string `json:"node,omitempty"`
	Index    int    `json:"index"`
	Instance string `json:"instance,omitempty"` // number of the MIG instance, as an exporter has it
	Profile  string `json:"profile,omitempty"`  // it is a MIG instance of that profile
	Source   string `json:"source"`
	Of       int64  `json:"of,omitempty"` // its memory, bytes; 0: not known
	Busy     Line   `json:"busy,omitempty"`
	Memory   Line   `json:"memory,omitempty"` // in use, bytes
}

// Line is a value for each interval, NaN where it is not known. It may be shorter than the series.
type Line []float64

// MarshalJSON writes unknown values as null, and no more digits than anybody looks at.
func (l Line) MarshalJSON() ([]byte, error) {
	out := make([]*float64, len(l))
	for i, v := range l {
		if !math.IsNaN(v) {
			v = RoundDigits(v)
			out[i] = &v
		}
	}
	return json.Marshal(out)
}

// RoundDigits keeps four digits of a number.
func RoundDigits(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-3)
	if unit >= 1 {
		return math.Round(v/unit) * unit
	}
	return math.Round(v/unit) / math.Round(1/unit)
}

// UnmarshalJSON reads null as unknown.
func (l *Line) UnmarshalJSON(b []byte) error {
	var in []*float64
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*l = make(Line, len(in))
	for i, v := range in {
		if (*l)[i] = math.NaN(); v != nil {
			(*l)[i] = *v
		}
	}
	return nil
}

// growTo makes room for n intervals.
func (l *Line) growTo(n int) {
	for len(*l) < n {
		*l = append(*l, math.NaN())
	}
}

// halveLine joins each two intervals to one.
func (l *Line) halveLine(join func(a, b float64) float64) {
	in, out := *l, (*l)[:0]
	for i := 0; i < len(in); i += 2 {
		v := in[i]
		if i+1 < len(in) {
			switch w := in[i+1]; {
			case math.IsNaN(v):
				v = w
			case !math.IsNaN(w):
				v = join(v, w)
			}
		}
		out = append(out, v)
	}
	*l = out
}

func averageOf(a, b float64) float64 { return (a + b) / 2 }

// baseline is what was known at the last sample: averages are of what came since.
type baseline struct {
	At       time.Time                `json:"at,omitzero"`
	Exported time.Time                `json:"exported,omitzero"` // when an exporter was read
	CPU      time.Duration            `json:"cpu,omitempty"`
	Nodes    map[string]time.Duration `json:"nodes,omitempty"` // CPU time by node
	GPUs     map[string]gpuBaseline   `json:"gpus,omitempty"`  // by node and index
}

// gpuBaseline is how often a device had been sampled, and the sum of the samples.
type gpuBaseline struct {
	Samples int     `json:"samples"`
	Sum     float64 `json:"sum"`
}

// New begins the series of an attempt that started at a moment, with intervals of a step.
func New(ref engine.Ref, started time.Time, step time.Duration) *Series {
	return &Series{Version: version, Ref: ref, Start: started, Step: step, Last: baseline{At: started}}
}

// Points is how many intervals the series has.
func (s *Series) Points() int {
	n := max(len(s.Total.CPUs), len(s.Total.Memory))
	for i := range s.Devices {
		n = max(n, len(s.Devices[i].Busy), len(s.Devices[i].Memory))
	}
	return n
}

// span is the intervals from one moment to another: the first and the last.
type span struct{ from, to int }

// reach makes intervals until a moment, with longer ones where that would be too many, and returns those
// since the last sample, or since at most a few before where fresh.
func (s *Series) reach(since, until time.Time) span {
	index := func(t time.Time) int { return max(int(t.Sub(s.Start)/s.Step), 0) }
	for index(until) >= MaxPoints {
		s.halveAll()
	}
	from, to := index(since), index(until)
	if to > from && until.Equal(s.Start.Add(time.Duration(to)*s.Step)) {
		to-- // it ends where the interval before ends
	}
	return span{min(from, to), to}
}

func (s *Series) halveAll() {
	s.Step *= 2
	tracks := []*Track{&s.Total}
	for i := range s.Nodes {
		tracks = append(tracks, &s.Nodes[i].Track)
	}
	for _, t := range tracks {
		t.CPUs.halveLine(averageOf)
		t.Memory.halveLine(math.Max)
	}
	for i := range s.Devices {
		s.Devices[i].Busy.halveLine(averageOf)
		s.Devices[i].Memory.halveLine(math.Max)
	}
}

// addAverage adds the average of a time. The interval in which it begins may have one of before: each counts by
// its part of the interval.
func (l *Line) addAverage(s *Series, at span, since time.Time, v float64) {
	l.growTo(at.to + 1)
	for i := at.from; i <= at.to; i++ {
		part := 1.0
		if before := since.Sub(s.Start.Add(time.Duration(i) * s.Step)); i == at.from && before > 0 && !math.IsNaN((*l)[i]) {
			part = 1 - float64(before)/float64(s.Step)
		}
		if part == 1 {
			(*l)[i] = v
		} else {
			(*l)[i] += part * (v - (*l)[i])
		}
	}
}

// addPeak adds a value of a moment, of which the intervals before are taken to be the same where nothing is
// known of them.
func (l *Line) addPeak(at span, v float64) {
	l.growTo(at.to + 1)
	for i := at.from; i < at.to; i++ {
		if math.IsNaN((*l)[i]) {
			(*l)[i] = v
		}
	}
	if was := (*l)[at.to]; math.IsNaN(was) || v > was {
		(*l)[at.to] = v
	}
}

// nearPast is for how many times its own pause a value of a moment stands for the time before it.
const nearPast = 3

// GPUSample is how busy a device of an attempt is now, as an exporter says.
type GPUSample struct {
	Node     string
	Index    int
	Instance string  // number of the MIG instance; empty: it is none
	Profile  string  // it is a MIG instance of that profile
	Busy     float64 // per cent; NaN: not known
	Used, Of int64   // bytes of its memory in use, and in all; 0: not known
}

// AddUsed adds what the attempt has used until a moment. source is Supervisor or Pod; pause is how often it is
// asked. What is not of after the last moment says nothing new.
func (s *Series) AddUsed(now time.Time, used *rusage.Record, source string, pause time.Duration) {
	since := s.Last.At
	if !now.After(since) {
		return
	}
	at := s.reach(since, now)
	s.addUsed(used, source, at, nearSpan(at, now.Sub(since), pause), since, now)
	s.Last.At = now
}

// AddGPUs adds what an exporter says of the attempt's devices at a moment.
func (s *Series) AddGPUs(now time.Time, gpus []GPUSample, pause time.Duration) {
	since := s.Last.Exported
	if since.IsZero() {
		since = s.Start
	}
	if !now.After(since) {
		return
	}
	at := nearSpan(s.reach(since, now), now.Sub(since), pause)
	for i := range gpus {
		s.addExported(&gpus[i], at, since)
	}
	s.Last.Exported = now
}

// nearSpan is the intervals for which a value of now stands.
func nearSpan(at span, past, pause time.Duration) span {
	if past > nearPast*pause {
		at.from = at.to
	}
	return at
}

func (s *Series) addUsed(used *rusage.Record, source string, at, near span, since, now time.Time) {
	if used.Total.Has(rusage.CPU) {
		s.Total.CPUs.addAverage(s, at, since, cpusBusy(&s.Last.CPU, used.Total.CPUTime(), now.Sub(since)))
		s.noteSource(source)
	}
	if used.Total.Now > 0 {
		s.Total.Memory.addPeak(near, float64(used.Total.Now))
		s.noteSource(source)
	}
	s.LeftNodes = used.LeftNodes + max(len(used.Nodes)-MaxNodes, 0)
	for i := range used.Nodes[:min(len(used.Nodes), MaxNodes)] {
		n := &used.Nodes[i]
		if len(used.Nodes) > 1 {
			s.addNode(n, at, near, since, now)
		}
		for k := range n.GPUs {
			s.addSampled(n.Name, &n.GPUs[k], at, near, since)
		}
	}
}

// findDevice is the track of a device; nil: there are too many, or another source measures it, which is better.
func (s *Series) findDevice(node string, index int, instance, source string) *DeviceTrack {
	i, found := slices.BinarySearchFunc(s.Devices, DeviceTrack{Node: node, Index: index, Instance: instance}, func(a, b DeviceTrack) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Index, b.Index), cmp.Compare(a.Instance, b.Instance))
	})
	switch {
	case !found && len(s.Devices) >= MaxDevices:
		return nil
	case !found:
		s.Devices = slices.Insert(s.Devices, i, DeviceTrack{Node: node, Index: index, Instance: instance, Source: source})
	case s.Devices[i].Source == DCGM && source == NVML:
		return nil
	}
	s.Devices[i].Source = source
	s.noteSource(source)
	return &s.Devices[i]
}

// addSampled adds what the server itself sampled of a GPU since the attempt began.
func (s *Series) addSampled(node string, g *rusage.GPU, at, near span, since time.Time) {
	d := s.findDevice(node, g.Index, "", NVML)
	if d == nil {
		return
	}
	key := node + "/" + strconv.Itoa(g.Index)
	last := s.Last.GPUs[key]
	if g.Samples < last.Samples { // the server began anew
		last = gpuBaseline{}
	}
	sum := g.Busy * float64(g.Samples)
	if n := g.Samples - last.Samples; n > 0 {
		d.Busy.addAverage(s, at, since, max(sum-last.Sum, 0)/float64(n))
	}
	if s.Last.GPUs == nil {
		s.Last.GPUs = map[string]gpuBaseline{}
	}
	s.Last.GPUs[key] = gpuBaseline{g.Samples, sum}
	d.Of = max(d.Of, g.Of)
	if g.Now > 0 {
		d.Memory.addPeak(near, float64(g.Now))
	}
}

// addExported adds what an exporter says of a device at a moment.
func (s *Series) addExported(g *GPUSample, near span, since time.Time) {
	d := s.findDevice(g.Node, g.Index, g.Instance, DCGM)
	if d == nil {
		return
	}
	d.Profile, d.Of = g.Profile, max(d.Of, g.Of)
	if !math.IsNaN(g.Busy) {
		d.Busy.addAverage(s, near, since, g.Busy)
	}
	if g.Used > 0 || g.Of > 0 {
		d.Memory.addPeak(near, float64(g.Used))
	}
}

// cpusBusy is how many CPUs were busy since the last sample.
func cpusBusy(last *time.Duration, cpu, past time.Duration) float64 {
	used := max(cpu-*last, 0)
	*last = max(cpu, *last)
	return used.Seconds() / past.Seconds()
}

func (s *Series) noteSource(name string) {
	if !slices.Contains(s.Sources, name) {
		s.Sources = append(s.Sources, name)
	}
}

func (s *Series) addNode(n *rusage.Node, at, near span, since, now time.Time) {
	k := slices.IndexFunc(s.Nodes, func(t NodeTrack) bool { return t.Name == n.Name })
	if k < 0 {
		k = len(s.Nodes)
		if k >= MaxNodes {
			return
		}
		s.Nodes = append(s.Nodes, NodeTrack{Name: n.Name})
	}
	if n.Has(rusage.CPU) {
		if s.Last.Nodes == nil {
			s.Last.Nodes = map[string]time.Duration{}
		}
		last := s.Last.Nodes[n.Name]
		s.Nodes[k].CPUs.addAverage(s, at, since, cpusBusy(&last, n.CPUTime(), now.Sub(since)))
		s.Last.Nodes[n.Name] = last
	}
	if n.Now > 0 {
		s.Nodes[k].Memory.addPeak(near, float64(n.Now))
	}
}

// cloneAll is a copy that shares nothing.
func (s *Series) cloneAll() *Series {
	out := *s
	cloneTrack := func(t *Track) { t.CPUs, t.Memory = slices.Clone(t.CPUs), slices.Clone(t.Memory) }
	cloneTrack(&out.Total)
	out.Nodes, out.Devices, out.Sources = slices.Clone(s.Nodes), slices.Clone(s.Devices), slices.Clone(s.Sources)
	for i := range out.Nodes {
		cloneTrack(&out.Nodes[i].Track)
	}
	for i := range out.Devices {
		out.Devices[i].Busy, out.Devices[i].Memory = slices.Clone(out.Devices[i].Busy), slices.Clone(out.Devices[i].Memory)
	}
	out.Last = baseline{At: s.Last.At}
	return &out
}

// GPUs is the average of how busy all devices were, in per cent, and the sum of their memory in use. A device
// of which nothing is known in an interval does not count there.
func (s *Series) GPUs() (busy, memory Line) {
	counts := make([]float64, s.Points())
	for i := range s.Devices {
		d := &s.Devices[i]
		busy.growTo(len(d.Busy))
		memory.growTo(len(d.Memory))
		for k, v := range d.Busy {
			switch {
			case math.IsNaN(v):
			case counts[k] == 0:
				busy[k], counts[k] = v, 1
			default:
				counts[k]++
				busy[k] += (v - busy[k]) / counts[k]
			}
		}
		for k, v := range d.Memory {
			switch {
			case math.IsNaN(v):
			case math.IsNaN(memory[k]):
				memory[k] = v
			default:
				memory[k] += v
			}
		}
	}
	return busy, memory
}

// idleBusy is up to how many per cent a device counts as idle.
const idleBusy = 1

// isMeasured reports whether somebody measured a device lately.
func (d *DeviceTrack) isMeasured(s *Series, now time.Time) bool {
	return len(d.Busy) > 0 && !s.Start.Add(time.Duration(len(d.Busy))*s.Step).Before(now.Add(-nearPast*max(s.Step, otherPause)))
}

// isIdle reports whether a device was measured and idle for at least so long until now.
func (d *DeviceTrack) isIdle(s *Series, now time.Time, least time.Duration) bool {
	if now.Sub(s.Start) < least {
		return false
	}
	first := max(int(now.Add(-least).Sub(s.Start)/s.Step), 0)
	if first >= len(d.Busy) || !d.isMeasured(s, now) {
		return false
	}
	return !slices.ContainsFunc(d.Busy[first:], func(v float64) bool { return math.IsNaN(v) || v > idleBusy })
}
