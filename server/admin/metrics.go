package admin

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/health"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/server/transport"
)

// collector reads what the catalogue names.
type collector struct {
	http    *transport.Metrics
	stats   func() query.Stats
	damaged func() int
	checks  func() map[string]uint64
	use     func() map[string]health.DeviceUse // nil: nobody watches what jobs do
	version string
}

// metric is one line of docs/reference/metrics.md and of the exposition.
type metric struct {
	name, help string
	kind       prometheus.ValueType
	histogram  bool
	labels     []string
	read       func(m *collector, st *query.Stats, emit func(value float64, labels ...string))
	dist       func(st *query.Stats) state.Histogram
	dists      func(st *query.Stats, emit func(h state.Histogram, label string))
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

func byKey(f func(*query.Stats) map[string]int) func(*collector, *query.Stats, func(float64, ...string)) {
	return func(_ *collector, st *query.Stats, emit func(float64, ...string)) {
		m := f(st)
		for _, k := range slices.Sorted(maps.Keys(m)) {
			emit(float64(m[k]), k)
		}
	}
}

func byName(f func(*query.Stats) map[string]uint64) func(*collector, *query.Stats, func(float64, ...string)) {
	return func(_ *collector, st *query.Stats, emit func(float64, ...string)) {
		m := f(st)
		for _, k := range slices.Sorted(maps.Keys(m)) {
			emit(float64(m[k]), k)
		}
	}
}

func oneSample(f func(*collector, *query.Stats) float64) func(*collector, *query.Stats, func(float64, ...string)) {
	return func(m *collector, st *query.Stats, emit func(float64, ...string)) { emit(f(m, st)) }
}

// catalogue is every metric, in the order of the documentation.
var catalogue = []metric{
	{name: "cox_jobs", kind: gauge, labels: []string{"state"}, help: "Jobs in memory by state: those that wait or hold something, and those that ended a moment ago.", read: byKey(func(s *query.Stats) map[string]int { return s.Jobs })},
	{name: "cox_jobs_waiting", kind: gauge, labels: []string{"reason"}, help: "Pending jobs by the code of their first reason.", read: byKey(func(s *query.Stats) map[string]int { return s.Waiting })},
	{name: "cox_jobs_submitted_total", kind: counter, help: "Jobs accepted, tasks of arrays each.", read: oneSample(func(_ *collector, s *query.Stats) float64 { return float64(s.Submitted) })},
	{name: "cox_jobs_started_total", kind: counter, help: "Attempts that were given an allocation.", read: oneSample(func(_ *collector, s *query.Stats) float64 { return float64(s.Started) })},
	{name: "cox_jobs_ended_total", kind: counter, labels: []string{"state"}, help: "Jobs that ended, by final state.", read: byName(func(s *query.Stats) map[string]uint64 { return s.Ended })},
	{name: "cox_job_wait_seconds", histogram: true, help: "Time from eligible to allocated.", dist: func(s *query.Stats) state.Histogram { return s.Wait }},
	{name: "cox_job_start_seconds", histogram: true, labels: []string{"devices"}, help: "Time from eligible to running, by the number of devices of the job: " + strings.Join(state.SizeClasses[:], ", ") + ".", dists: readStarts},
	{name: "cox_checkpoint_age_seconds", kind: gauge, labels: []string{"pool"}, help: "Longest time since the last checkpoint, or since the start of the attempt, of the running jobs that have reported a checkpoint before.", read: readUnsaved},
	{name: "cox_pool_state", kind: gauge, labels: []string{"pool", "state"}, help: "1 for the state of each pool: up, opening, silent, broken, gone.", read: readPools},
	{name: "cox_devices", kind: gauge, labels: []string{"state"}, help: "Devices by state: free, used, shared, foreign, fenced, down.", read: byKey(func(s *query.Stats) map[string]int { return s.Devices })},
	{name: "cox_devices_measured", kind: gauge, labels: []string{"pool"}, help: "Devices that jobs hold and of which it is known whether they are used: of this machine by the CPU time of the jobs, of other pools by a DCGM exporter. A device that jobs share counts once. A pool without measurements has no value.", read: readUse(func(u health.DeviceUse) int { return u.Measured })},
	{name: "cox_devices_idle", kind: gauge, labels: []string{"pool"}, help: "Of cox_devices_measured, those that none of their jobs has used for the time of jobs.idle: of this machine, where the job has used no CPU time on the node; of other pools, those that a DCGM exporter says were idle.", read: readUse(func(u health.DeviceUse) int { return u.Idle })},
	{name: "cox_nodes", kind: gauge, labels: []string{"state"}, help: "Nodes by state.", read: byKey(func(s *query.Stats) map[string]int { return s.Nodes })},
	{name: "cox_node_fences", kind: gauge, labels: []string{"what"}, help: "What failed checks keep from new work: node, device.", read: byKey(func(s *query.Stats) map[string]int { return s.Fenced })},
	{name: "cox_node_checks_failed_total", kind: counter, labels: []string{"check"}, help: "Checks of nodes that failed, by name; those that warn are not counted.", read: readChecks},
	{name: "cox_decision_seconds", histogram: true, help: "Time that a decision of the scheduling core took.", dist: func(s *query.Stats) state.Histogram { return s.Decision }},
	{name: "cox_preempted_attempts_total", kind: counter, help: "Attempts that ended to make room for others.", read: oneSample(func(_ *collector, s *query.Stats) float64 { return float64(s.Preempted) })},
	{name: "cox_preempted_device_seconds_total", kind: counter, help: "Seconds that these had run, times the devices that they held.", read: oneSample(func(_ *collector, s *query.Stats) float64 { return s.PreemptedTime })},
	{name: "cox_lost_device_seconds_total", kind: counter, help: "Of that, what was lost: the time since their start or their last checkpoint.", read: oneSample(func(_ *collector, s *query.Stats) float64 { return s.LostTime })},
	{name: "cox_decisions_refused_total", kind: counter, help: "Decisions of the core that the ledger refused. Anything but 0 is a defect.", read: oneSample(func(_ *collector, s *query.Stats) float64 { return float64(s.Refused) })},
	{name: "cox_journal_write_seconds", histogram: true, help: "Time until a batch of the journal was durable.", dist: func(s *query.Stats) state.Histogram { return s.Append }},
	{name: "cox_journal_batch_records", histogram: true, help: "Records in a batch of the journal.", dist: func(s *query.Stats) state.Histogram { return s.Batch }},
	{name: "cox_journal_seq", kind: gauge, help: "Number of the newest record of the journal.", read: oneSample(func(_ *collector, s *query.Stats) float64 { return float64(s.Seq) })},
	{name: "cox_journal_projected_seq", kind: gauge, help: "Number of the newest record that the projection reflects.", read: oneSample(func(_ *collector, s *query.Stats) float64 { return float64(s.Projected) })},
	{name: "cox_state_damaged", kind: gauge, help: "Parts of the state that were found damaged since the server began. Anything but 0 needs an administrator: cox info names them.", read: oneSample(func(m *collector, _ *query.Stats) float64 { return float64(m.damaged()) })},
	{name: "cox_inbox", kind: gauge, help: "Requests and reports that wait for the control loop.", read: oneSample(func(_ *collector, s *query.Stats) float64 { return float64(s.Inbox) })},
	{name: "cox_engine_calls_total", kind: counter, labels: []string{"verb"}, help: "Calls to the engine.", read: byName(func(s *query.Stats) map[string]uint64 { return s.Calls })},
	{name: "cox_engine_errors_total", kind: counter, labels: []string{"verb"}, help: "Calls to the engine without success.", read: byName(func(s *query.Stats) map[string]uint64 { return s.Errors })},
	{name: "cox_http_requests_total", kind: counter, labels: []string{"route", "code"}, help: "Requests that were answered.", read: readRequests},
	{name: "cox_http_request_seconds", histogram: true, labels: []string{"route"}, help: "Time from the request's head to the end of its answer."},
	{name: "cox_http_connections", kind: gauge, help: "Open connections.", read: oneSample(func(m *collector, _ *query.Stats) float64 { return float64(m.http.Conns.Load()) })},
	{name: "cox_http_refused_total", kind: counter, help: "Requests refused for who asked: no identity, a wrong token, no right. The log has one line for a source and minute.", read: oneSample(func(m *collector, _ *query.Stats) float64 { return float64(m.http.Refused.Load()) })},
	{name: "cox_http_panics_total", kind: counter, help: "Requests that panicked. Anything but 0 is a defect.", read: oneSample(func(m *collector, _ *query.Stats) float64 { return float64(m.http.Panics.Load()) })},
	{name: "cox_watchers", kind: gauge, help: "Watches that are open.", read: oneSample(func(m *collector, _ *query.Stats) float64 { return float64(m.http.Watchers.Load()) })},
	{name: "cox_watchers_cut_total", kind: counter, help: "Watches that ended because nobody read, or the connection broke.", read: oneSample(func(m *collector, _ *query.Stats) float64 { return float64(m.http.Cut.Load()) })},
	{name: "cox_waiters", kind: gauge, help: "Requests that wait for the end of a job.", read: oneSample(func(m *collector, _ *query.Stats) float64 { return float64(m.http.Waiters.Load()) })},
	{name: "cox_info", kind: gauge, labels: []string{"version", "api"}, help: "Always 1.", read: func(m *collector, _ *query.Stats, emit func(float64, ...string)) {
		emit(1, m.version, transport.APIVersion)
	}},
}

func readStarts(s *query.Stats, emit func(state.Histogram, string)) {
	for i, h := range s.Begin {
		emit(h, state.SizeClasses[i])
	}
}

func readUnsaved(_ *collector, s *query.Stats, emit func(float64, ...string)) {
	for _, pool := range slices.Sorted(maps.Keys(s.Unsaved)) {
		emit(s.Unsaved[pool], pool)
	}
}

func readPools(_ *collector, s *query.Stats, emit func(float64, ...string)) {
	for _, pool := range slices.Sorted(maps.Keys(s.Pools)) {
		emit(1, pool, s.Pools[pool])
	}
}

func readUse(number func(health.DeviceUse) int) func(*collector, *query.Stats, func(float64, ...string)) {
	return func(m *collector, _ *query.Stats, emit func(float64, ...string)) {
		if m.use == nil {
			return
		}
		use := m.use()
		for _, pool := range slices.Sorted(maps.Keys(use)) {
			emit(float64(number(use[pool])), pool)
		}
	}
}

func readChecks(m *collector, _ *query.Stats, emit func(float64, ...string)) {
	failed := m.checks()
	for _, check := range slices.Sorted(maps.Keys(failed)) {
		emit(float64(failed[check]), check)
	}
}

func readRequests(m *collector, _ *query.Stats, emit func(float64, ...string)) {
	for _, r := range m.http.Routes {
		for code := range r.Codes {
			if n := r.Codes[code].Load(); n > 0 {
				emit(float64(n), r.Name, strconv.Itoa(code))
			}
		}
	}
}

// Describe implements prometheus.Collector.
func (m *collector) Describe(ch chan<- *prometheus.Desc) {
	for i := range catalogue {
		ch <- catalogue[i].promDesc()
	}
}

func (d *metric) promDesc() *prometheus.Desc {
	return prometheus.NewDesc(d.name, d.help, d.labels, nil)
}

// Collect implements prometheus.Collector.
func (m *collector) Collect(ch chan<- prometheus.Metric) {
	st := m.stats()
	for i := range catalogue {
		d := &catalogue[i]
		desc := d.promDesc()
		switch {
		case d.dist != nil:
			h := d.dist(&st)
			ch <- prometheus.MustNewConstHistogram(desc, h.Count, h.Sum, cumulativeCounts(h.Bounds, h.Counts))
		case d.dists != nil:
			d.dists(&st, func(h state.Histogram, label string) {
				ch <- prometheus.MustNewConstHistogram(desc, h.Count, h.Sum, cumulativeCounts(h.Bounds, h.Counts), label)
			})
		case d.histogram:
			m.collectTimes(desc, ch)
		default:
			d.read(m, &st, func(v float64, labels ...string) {
				ch <- prometheus.MustNewConstMetric(desc, d.kind, v, labels...)
			})
		}
	}
}

func (m *collector) collectTimes(desc *prometheus.Desc, ch chan<- prometheus.Metric) {
	for _, r := range m.http.Routes {
		var counts [len(r.Took)]uint64
		var n uint64
		for i := range counts {
			counts[i] = r.Took[i].Load()
			n += counts[i]
		}
		if n > 0 {
			ch <- prometheus.MustNewConstHistogram(desc, n, time.Duration(r.Nanos.Load()).Seconds(), cumulativeCounts(transport.Bounds[:], counts[:]), r.Name)
		}
	}
}

// cumulativeCounts turns counts between bounds into counts up to bounds.
func cumulativeCounts(bounds []float64, counts []uint64) map[float64]uint64 {
	out := map[float64]uint64{}
	var n uint64
	for i, b := range bounds {
		if i < len(counts) {
			n += counts[i]
		}
		out[b] = n
	}
	return out
}

func (s *service) registerMetrics() {
	reg := prometheus.NewRegistry()
	checks := func() map[string]uint64 { return nil }
	if s.cfg.Health != nil {
		checks = s.cfg.Health.Failures
	}
	all := &collector{checks: checks, use: s.cfg.DeviceUse, http: s.Metrics, stats: s.cfg.Plane.Stats, damaged: func() int { return len(s.cfg.Plane.Damages()) }, version: s.cfg.Version}
	reg.MustRegister(all, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	h := promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 20 * time.Second, DisableCompression: true})
	addStreamRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/metrics", Verb: auth.Metrics, ID: "metrics", Tag: "server", Media: []string{"text/plain"},
		Summary: "Metrics for Prometheus", About: "docs/reference/metrics.md lists them.",
	}, func(c *call, _ *transport.Nothing) error {
		h.ServeHTTP(c.W, c.R)
		return nil
	})
}

// MetricsDoc is docs/reference/metrics.md.
func MetricsDoc() []byte {
	var b bytes.Buffer
	b.WriteString("# Metrics\n\nGET /metrics in Prometheus' text format: on the socket for every user of the machine, on TCP with a token. " +
		"No names of users or jobs. [Prometheus and Grafana](../how-to/prometheus.md) says how to scrape it. This file is made from the code (`go test ./server -run TestDocs -update`); metrics of the Go runtime and of the process come beside these.\n\n" +
		"| metric | type | labels | |\n|---|---|---|---|\n")
	for i := range catalogue {
		d := &catalogue[i]
		kind := "gauge"
		switch {
		case d.histogram:
			kind = "histogram"
		case d.kind == counter:
			kind = "counter"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.name, kind, strings.Join(d.labels, ", "), d.help)
	}
	return b.Bytes()
}
