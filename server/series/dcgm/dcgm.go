// Package dcgm reads what NVIDIA's DCGM exporter says of GPUs, from the exporter itself or from a Prometheus
// that scrapes it, and finds the devices of a job among them.
//
// Three numbers are read: how busy a GPU is (DCGM_FI_DEV_GPU_UTIL, or DCGM_FI_PROF_GR_ENGINE_ACTIVE, which is the
// only one that MIG instances have), and its memory in use and free. A device is a job's if the exporter says that
// it is in a pod of the job, or has the UUID of a device that the job holds. A MIG instance has its parent's UUID
// there: it is found by its profile if the parent has one such instance. Nothing is found by the number of a device
// alone: a device plugin or Slurm chooses devices itself, and another job's numbers are not shown.
//
// A page is bounded in size and time, and values that DCGM leaves blank are not known. Nothing is written.
package dcgm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/server/series"
)

// Bounds of what is read.
const (
	mostBytes = 32 << 20 // of one page
	within    = 5 * time.Second
	allWithin = 10 * time.Second // all pages
	fresh     = 10 * time.Second // for which an answer is given again
	atOnce    = 16               // pages that are read at a time
	nodePlace = "{node}"         // in a URL: the name of a node
)

// wanted are the numbers that a Prometheus is asked for.
const wanted = `{__name__=~"DCGM_FI_DEV_GPU_UTIL|DCGM_FI_PROF_GR_ENGINE_ACTIVE|DCGM_FI_DEV_FB_USED|DCGM_FI_DEV_FB_FREE"}`

// Config says where numbers come from, and what they are compared with.
type Config struct {
	URL   string // see config.CheckExporter
	Pods  func(engine.Ref) []engine.PodName
	Nodes func(context.Context) []fleet.Node // of the pool, for the UUIDs of devices
}

// Source reads exporters. It is safe for concurrent use.
type Source struct {
	cfg    Config
	client *http.Client

	mu      sync.Mutex
	last    []series.ExportedGPU
	at      time.Time
	devices map[deviceKey]fleet.Device
	asked   []string // the nodes of the last answer: of a URL with their names, others are another question
}

type deviceKey struct {
	node  string
	index int
}

var _ series.Exporter = (*Source)(nil)

// New makes a source.
func New(cfg Config) *Source {
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: within}).DialContext, ResponseHeaderTimeout: within, MaxIdleConns: 64, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute}
	return &Source{cfg: cfg, client: &http.Client{Transport: transport, Timeout: within}}
}

// Look reads all pages. An error is of those that could not be read; the others count.
func (s *Source) Look(ctx context.Context, nodes []string) ([]series.ExportedGPU, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.at) < fresh && (!strings.Contains(s.cfg.URL, nodePlace) || slices.Equal(s.asked, nodes)) {
		return s.last, nil
	}
	all, err := s.readAll(ctx, nodes)
	s.last, s.at, s.asked = all, time.Now(), nodes
	s.devices = map[deviceKey]fleet.Device{}
	for _, n := range s.cfg.Nodes(ctx) {
		for _, d := range n.Devices {
			s.devices[deviceKey{n.Name, d.Index}] = d
		}
	}
	return all, err
}

func (s *Source) readAll(ctx context.Context, nodes []string) ([]series.ExportedGPU, error) {
	ctx, cancel := context.WithTimeout(ctx, allWithin)
	defer cancel()
	u, err := url.Parse(strings.ReplaceAll(s.cfg.URL, nodePlace, "node"))
	if err != nil {
		return nil, err
	}
	if strings.Trim(u.Path, "/") == "" { // a Prometheus
		u.Path, u.RawQuery = "/federate", url.Values{"match[]": {wanted}}.Encode()
		return s.readPage(ctx, u.String(), "")
	}
	if !strings.Contains(s.cfg.URL, nodePlace) {
		return s.readPage(ctx, s.cfg.URL, "")
	}
	pages, errs := make([][]series.ExportedGPU, len(nodes)), make([]error, len(nodes))
	var reading sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for i, node := range nodes {
		room <- struct{}{}
		reading.Go(func() {
			defer func() { <-room }()
			pages[i], errs[i] = s.readPage(ctx, strings.ReplaceAll(s.cfg.URL, nodePlace, node), node)
		})
	}
	reading.Wait()
	var failed error
	for _, err := range errs { // the first is enough to say
		failed = cmp.Or(failed, err)
	}
	return slices.Concat(pages...), failed
}

// readPage reads one page, of a node if one is named.
func (s *Source) readPage(ctx context.Context, address, node string) ([]series.ExportedGPU, error) {
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	ask.Header.Set("Accept", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	answer, err := s.client.Do(ask)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", address, answer.Status)
	}
	body := &io.LimitedReader{R: answer.Body, N: mostBytes + 1}
	all, err := parsePage(body, node)
	if body.N <= 0 {
		err = fmt.Errorf("the page is larger than %d MiB", mostBytes>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return all, nil
}

// parsePage reads a page in Prometheus' text format. node is of whom it is; empty: the labels say it.
func parsePage(page io.Reader, node string) ([]series.ExportedGPU, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	if err != nil {
		return nil, fmt.Errorf("it is no Prometheus page: %w", err)
	}
	type key struct{ node, uuid, gpu, instance, namespace, pod string }
	found := map[key]*series.ExportedGPU{}
	var order []key
	each := func(name string, take func(g *series.ExportedGPU, v float64)) {
		for _, m := range families[name].GetMetric() {
			l := labelsOf(m)
			k := key{cmp.Or(node, l["Hostname"]), l["UUID"], l["gpu"], l["GPU_I_ID"], cmp.Or(l["exported_namespace"], l["namespace"]), cmp.Or(l["exported_pod"], l["pod"])}
			v, ok := knownValue(m)
			if !ok || k.uuid == "" && k.gpu == "" {
				continue
			}
			g := found[k]
			if g == nil {
				index, err := strconv.Atoi(k.gpu)
				if err != nil {
					index = -1
				}
				g = &series.ExportedGPU{UUID: k.uuid, Instance: k.instance, Profile: l["GPU_I_PROFILE"], Index: index, Node: k.node, Namespace: k.namespace, Pod: k.pod, Busy: math.NaN()}
				found[k] = g
				order = append(order, k)
			}
			take(g, v)
		}
	}
	each("DCGM_FI_PROF_GR_ENGINE_ACTIVE", func(g *series.ExportedGPU, v float64) { g.Busy = min(max(100*v, 0), 100) })
	each("DCGM_FI_DEV_GPU_UTIL", func(g *series.ExportedGPU, v float64) {
		if g.Instance == "" || math.IsNaN(g.Busy) { // what an instance has there is the whole GPU's
			g.Busy = min(max(v, 0), 100)
		}
	})
	each("DCGM_FI_DEV_FB_USED", func(g *series.ExportedGPU, v float64) { g.Used, g.Of = bytesOf(v), g.Of+bytesOf(v) })
	each("DCGM_FI_DEV_FB_FREE", func(g *series.ExportedGPU, v float64) { g.Of += bytesOf(v) })
	if len(order) == 0 && len(families) > 0 {
		return nil, errors.New("it has no numbers of GPUs (DCGM_FI_DEV_GPU_UTIL and its like)")
	}
	out := make([]series.ExportedGPU, len(order))
	for i, k := range order {
		out[i] = *found[k]
	}
	return out, nil
}

// bytesOf is a number of mebibytes that a GPU can have.
func bytesOf(mebi float64) int64 { return int64(min(max(mebi, 0), 1<<30)) << 20 }

func labelsOf(m *dto.Metric) map[string]string {
	out := map[string]string{}
	for _, l := range m.GetLabel() {
		out[l.GetName()] = l.GetValue()
	}
	return out
}

// blank is from where on a value is one of DCGM's blanks (2^63 less a few).
const blank = 1e15

func knownValue(m *dto.Metric) (float64, bool) {
	v := m.GetGauge().GetValue()
	if m.GetGauge() == nil {
		v = m.GetUntyped().GetValue()
	}
	return v, !math.IsNaN(v) && math.Abs(v) < blank
}

// Match finds the devices of an attempt. In pods they are named by their number on the node.
func (s *Source) Match(all []series.ExportedGPU, of *series.Attempt) (out []series.GPUSample) {
	if s.cfg.Pods != nil {
		for _, pod := range s.cfg.Pods(of.Ref) {
			for i := range all {
				if g := &all[i]; g.Pod == pod.Name && g.Namespace == pod.Namespace {
					out = append(out, sampleOf(g, cmp.Or(pod.Node, g.Node), g.Index))
				}
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range of.Claims {
		for _, held := range of.Claims[i].Devices {
			d, ok := s.devices[deviceKey{of.Claims[i].Node, held.Index}]
			if !ok || d.Declared {
				continue
			}
			if g := findDevice(all, &d); g != nil {
				out = append(out, sampleOf(g, of.Claims[i].Node, d.Index))
			}
		}
	}
	return out
}

func sampleOf(g *series.ExportedGPU, node string, index int) series.GPUSample {
	return series.GPUSample{Node: node, Index: index, Instance: g.Instance, Profile: g.Profile, Busy: g.Busy, Used: g.Used, Of: g.Of}
}

// findDevice finds a device; nil: it is not there, or several may be it.
func findDevice(all []series.ExportedGPU, d *fleet.Device) (found *series.ExportedGPU) {
	for i := range all {
		g := &all[i]
		switch {
		case d.Profile != "":
			if g.UUID != d.Parent || g.Instance == "" || g.Profile != d.Profile {
				continue
			}
		case d.UUID == "" || g.UUID != d.UUID || g.Instance != "":
			continue
		}
		if found != nil && (found.Instance != g.Instance || found.UUID != g.UUID) {
			return nil
		}
		found = g
	}
	return found
}
