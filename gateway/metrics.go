package gateway

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/coxswain-sched/coxswain/api"
)

// metrics are the numbers of the gateway for Prometheus.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	first    *prometheus.HistogramVec
	unknown  prometheus.Counter
	cut      prometheus.Counter
	open     atomic.Int64 // connections of clients

	mu        sync.Mutex
	revisions map[string][]uint32 // whose numbers are kept, by service, ascending
}

// mostRevisions is how many revisions of a service have numbers, the newest ones; a server keeps as many.
const mostRevisions = 10

// latencyBounds are the buckets of the histogram, and of what is posted to the server. They are not written to.
var latencyBounds = api.LatencyBounds()

// meter has the numbers of one revision of a service.
type meter struct {
	revision uint32
	codes    [6]prometheus.Counter // by the first digit of the status
	first    prometheus.Observer
}

func newMetrics(g *Server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(), revisions: map[string][]uint32{},
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cox_gateway_requests_total", Help: "Requests that have ended, by service, revision (0: no replica got it) and class of the status."}, []string{"service", "revision", "code"}),
		first: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cox_gateway_first_byte_seconds", Help: "Time from the head of a request until the head of its answer.",
			Buckets: latencyBounds,
		}, []string{"service", "revision"}),
		unknown: prometheus.NewCounter(prometheus.CounterOpts{Name: "cox_gateway_unknown_requests_total", Help: "Requests for a host or a path that no service has."}),
		cut:     prometheus.NewCounter(prometheus.CounterOpts{Name: "cox_gateway_refused_connections_total", Help: "Connections of clients that were refused because there were too many."}),
	}
	m.registry.MustRegister(m.requests, m.first, m.unknown, m.cut, collector{g})
	return m
}

// meterOf returns the numbers of a revision; 0 is for requests that no replica got.
func (g *Server) meterOf(service string, revision uint32) *meter {
	g.metrics.noteRevision(service, revision)
	m, text := &meter{revision: revision}, strconv.FormatUint(uint64(revision), 10)
	for i := 1; i < len(m.codes); i++ {
		m.codes[i] = g.metrics.requests.WithLabelValues(service, text, strconv.Itoa(i)+"xx")
	}
	m.first = g.metrics.first.WithLabelValues(service, text)
	return m
}

// noteRevision notes that a revision has numbers, and forgets those of the oldest ones.
func (m *metrics) noteRevision(service string, revision uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.revisions[service]
	at, known := slices.BinarySearch(list, revision)
	if known || revision == 0 {
		return
	}
	list = slices.Insert(list, at, revision)
	for len(list) > mostRevisions {
		m.forgetNumbers(prometheus.Labels{"service": service, "revision": strconv.FormatUint(uint64(list[0]), 10)})
		list = list[1:]
	}
	m.revisions[service] = list
}

// forgetService forgets the numbers of a service that has gone.
func (m *metrics) forgetService(service string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.revisions, service)
	m.forgetNumbers(prometheus.Labels{"service": service})
}

func (m *metrics) forgetNumbers(of prometheus.Labels) {
	m.requests.DeletePartialMatch(of)
	m.first.DeletePartialMatch(of)
}

// count counts a request that has ended.
func (g *Server) count(x *exchange) {
	if x.service == nil {
		g.metrics.unknown.Inc()
		return
	}
	m := x.meter
	if m == nil {
		m = x.service.unmet
	}
	if i := x.status / 100; i < len(m.codes) && i > 0 {
		m.codes[i].Inc()
	}
	if x.first > 0 {
		m.first.Observe(x.first.Seconds())
	}
}

// collector has the numbers that are read when they are asked for.
type collector struct{ g *Server }

var (
	inFlightDesc    = prometheus.NewDesc("cox_gateway_requests_in_flight", "Requests that are in flight at replicas, by service and revision.", []string{"service", "revision"}, nil)
	heldDesc        = prometheus.NewDesc("cox_gateway_requests_held", "Requests that wait for a replica.", []string{"service"}, nil)
	retriedDesc     = prometheus.NewDesc("cox_gateway_retries_total", "Tries beyond the first.", []string{"service"}, nil)
	backendsDesc    = prometheus.NewDesc("cox_gateway_replicas", "Replicas with an address, by service, revision and state: ready, left-out (its connections fail), not-ready.", []string{"service", "revision", "state"}, nil)
	connectionsDesc = prometheus.NewDesc("cox_gateway_connections", "Connections of clients that are open.", nil, nil)
	connectedDesc   = prometheus.NewDesc("cox_gateway_server_connected", "1 if the stream of routes from the server is open.", nil, nil)
)

// Describe lists the numbers (prometheus.Collector).
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{inFlightDesc, heldDesc, retriedDesc, backendsDesc, connectionsDesc, connectedDesc} {
		out <- d
	}
}

// Collect reads the numbers (prometheus.Collector).
func (c collector) Collect(out chan<- prometheus.Metric) {
	for name, s := range c.g.table.Load().named {
		s.collectNumbers(name, out)
	}
	out <- prometheus.MustNewConstMetric(connectionsDesc, prometheus.GaugeValue, float64(c.g.metrics.open.Load()))
	connected := 0.0
	if c.g.connected.Load() {
		connected = 1
	}
	out <- prometheus.MustNewConstMetric(connectedDesc, prometheus.GaugeValue, connected)
}

// handler serves the numbers.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// collectNumbers writes the numbers of one service.
func (s *service) collectNumbers(name string, out chan<- prometheus.Metric) {
	type key struct {
		revision uint32
		state    string
	}
	replicas, inFlight := map[key]int{}, map[uint32]int{}
	s.mu.Lock()
	held, now := s.held, time.Now()
	for _, b := range s.backends {
		inFlight[b.Revision] += b.inFlight
		switch {
		case !b.listed:
		case !b.ready:
			replicas[key{b.Revision, "not-ready"}]++
		case b.isUsable(now):
			replicas[key{b.Revision, "ready"}]++
		default:
			replicas[key{b.Revision, "left-out"}]++
		}
	}
	s.mu.Unlock()
	text := func(revision uint32) string { return strconv.FormatUint(uint64(revision), 10) }
	for revision, n := range inFlight {
		out <- prometheus.MustNewConstMetric(inFlightDesc, prometheus.GaugeValue, float64(n), name, text(revision))
	}
	for k, n := range replicas {
		out <- prometheus.MustNewConstMetric(backendsDesc, prometheus.GaugeValue, float64(n), name, text(k.revision), k.state)
	}
	out <- prometheus.MustNewConstMetric(heldDesc, prometheus.GaugeValue, float64(held), name)
	out <- prometheus.MustNewConstMetric(retriedDesc, prometheus.CounterValue, float64(s.retried.Load()), name)
}
