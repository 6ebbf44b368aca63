// Package metrics reads one number off the Prometheus page of a replica: the sum over the series of a
// gauge. What it reads comes from programs of users, so size, time and addresses are bounded; no
// redirect is followed and no proxy is asked.
package metrics

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
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Bounds of one page.
const (
	MostBytes = 1 << 20
	Timeout   = 2 * time.Second
)

// DefaultPath is the path of the page where nothing is said.
const DefaultPath = "/metrics"

// Reader reads pages. It is safe for concurrent use.
type Reader struct{ client *http.Client }

// NewReader makes a reader that keeps few connections. Within is how long one page may take; 0: Timeout.
func NewReader(within time.Duration) *Reader {
	within = cmp.Or(max(within, 0), Timeout)
	transport := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: within}).DialContext,
		ResponseHeaderTimeout: within, MaxIdleConnsPerHost: 1, MaxIdleConns: 64, IdleConnTimeout: 30 * time.Second,
	}
	return &Reader{&http.Client{
		Transport: transport, Timeout: within,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes the connections that it keeps.
func (r *Reader) Close() { r.client.CloseIdleConnections() }

// Read returns the sum of the series of a gauge on a page. An error says what is wrong with the page.
func (r *Reader) Read(ctx context.Context, address, path, name string) (float64, error) {
	if path == "" {
		path = DefaultPath
	}
	page, query, _ := strings.Cut(path, "?")
	u := url.URL{Scheme: "http", Host: address, Path: page, RawQuery: query}
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, err
	}
	ask.Header.Set("Accept", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	answer, err := r.client.Do(ask)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s answers %s", path, answer.Status)
	}
	body := &io.LimitedReader{R: answer.Body, N: MostBytes + 1}
	sum, err := SumGauge(body, name)
	if body.N <= 0 {
		return 0, fmt.Errorf("%s is larger than %d MiB", path, MostBytes>>20)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return sum, nil
}

// SumGauge returns the sum of the series of a gauge in a text of Prometheus' exposition format.
func SumGauge(page io.Reader, name string) (float64, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	if err != nil {
		return 0, fmt.Errorf("it is no Prometheus page: %w", err)
	}
	family := families[name]
	if family == nil {
		return 0, fmt.Errorf("it has no number %s", name)
	}
	sum := 0.0
	for _, m := range family.GetMetric() {
		switch family.GetType() {
		case dto.MetricType_GAUGE:
			sum += m.GetGauge().GetValue()
		case dto.MetricType_UNTYPED:
			sum += m.GetUntyped().GetValue()
		default:
			return 0, fmt.Errorf("%s is a %s; the number of replicas can follow a gauge only", name, strings.ToLower(family.GetType().String()))
		}
	}
	if math.IsNaN(sum) || math.IsInf(sum, 0) || sum < 0 {
		return 0, errors.New(name + " is negative or no number")
	}
	return sum, nil
}
