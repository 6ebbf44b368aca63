package jobs

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/series"
	"github.com/coxswain-sched/coxswain/server/transport"
)

// SeriesReader reads how jobs used what they hold; *series.Recorder is one.
type SeriesReader interface {
	// Read returns the series of a job; fault.NotFound: there is none.
	Read(job.ID) (*series.Series, error)
}

func (s *Service) registerSeries() {
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/jobs/{job}/series", Verb: auth.SeeJob, ID: "getSeries", Tag: "jobs", Owned: true,
		Summary: "How a job used CPUs, memory and devices over its time",
		About: "At most 240 equal intervals of the last attempt. Of a job that nobody measured, points is 0. " +
			"The number of an array names a task of it, as with getJob.",
	}, func(c *call, in *JobPath) (*api.Series, error) {
		v, err := c.findAny(in.Job, auth.SeeJob)
		if err != nil {
			return nil, err
		}
		return c.seriesOf(&v)
	})
}

func (c *call) seriesOf(v *state.View) (*api.Series, error) {
	out := &api.Series{Job: v.Job.ID, Name: v.Job.Name(), State: v.Job.State.String(), Nodes: []api.NodeSeries{}, Devices: []api.DeviceSeries{}, Sources: []string{}}
	held := v.Demand()
	out.HeldCPUs, out.HeldMemory, out.HeldGPUs = held.CPUs, held.Memory, held.GPUs
	empty := []*float64{}
	out.CPUs, out.Memory, out.GPUs, out.GPUMemory = empty, empty, empty, empty
	if c.s.cfg.Series == nil {
		out.Note = "this server keeps no series"
		return out, nil
	}
	s, err := c.s.cfg.Series.Read(v.Job.ID)
	if fault.KindOf(err) == fault.NotFound && err != nil || err == nil && s.Points() == 0 {
		out.Note = c.whyNoSeries(v)
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	out.Start, out.Step, out.Points, out.LeftNodes = s.Start, s.Step.Seconds(), s.Points(), s.LeftNodes
	out.CPUs, out.Memory = shownLine(s.Total.CPUs), shownLine(s.Total.Memory)
	out.Sources = append(out.Sources, s.Sources...)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		out.Nodes = append(out.Nodes, api.NodeSeries{Node: n.Name, CPUs: shownLine(n.CPUs), Memory: shownLine(n.Memory)})
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		out.Devices = append(out.Devices, api.DeviceSeries{Node: d.Node, Index: d.Index, Instance: d.Instance, Profile: d.Profile, Source: d.Source, Of: d.Of, Busy: shownLine(d.Busy), Memory: shownLine(d.Memory)})
	}
	busy, memory := s.GPUs()
	out.GPUs, out.GPUMemory = shownLine(busy), shownLine(memory)
	return out, nil
}

// askWithin is how long an engine may take to say why it measures nothing.
const askWithin = 5 * time.Second

// whyNoSeries says why a job has no series.
func (c *call) whyNoSeries(v *state.View) string {
	switch {
	case v.Job.Started.IsZero():
		return "the job has not started"
	case v.Job.State != job.Running:
		return "nobody measured the job, or its series was removed: a job that ended within seconds has none, and series are kept as long as the history, and as long as there is room (state.series)"
	}
	by := c.s.poolSampler(v.Pool)
	if by == nil {
		return "pool " + v.Pool + " gives no series: its engine does not say what running jobs use"
	}
	ctx, cancel := context.WithTimeout(c.Ctx(), askWithin)
	defer cancel()
	_, err := by.Usage(ctx, v.Ref)
	if k := fault.KindOf(err); err == nil || k == fault.Conflict || k == fault.NotFound {
		return "nothing was measured yet"
	}
	text := "pool " + v.Pool + " gives no series: " + err.Error()
	if remedy := fault.Remedy(err); remedy != "" {
		text += "; " + remedy
	}
	return text
}

// shownLine is a line as the API has it.
func shownLine(l series.Line) []*float64 {
	out := make([]*float64, len(l))
	for i, v := range l {
		if !math.IsNaN(v) {
			v = series.RoundDigits(v)
			out[i] = &v
		}
	}
	return out
}
