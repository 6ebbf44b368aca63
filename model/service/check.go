package service

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// label is a label of a DNS name (RFC 1123).
var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// metricName is a name of Prometheus' text format.
var metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]{0,199}$`)

// CheckName reports why a text is no name of a service or of a port.
func CheckName(s string) error {
	switch {
	case s == "":
		return errors.New("the name is empty")
	case !label.MatchString(s):
		return fmt.Errorf("%.70q is not made of lower case letters, digits and hyphens, 63 of them at most", s)
	}
	return nil
}

// HealthHost is the host by which a probe asks a gateway whether it knows routes. No service has it.
const HealthHost = "health.cox-gateway.internal"

// CheckHost reports why a text is no name of a host.
func CheckHost(s string) error {
	if len(s) > 253 {
		return fmt.Errorf("the name of the host has %d characters, more than 253", len(s))
	}
	if s == HealthHost {
		return fmt.Errorf("%s is the host of probes of the gateway", s)
	}
	for part := range strings.SplitSeq(s, ".") {
		if !label.MatchString(part) {
			return fmt.Errorf("%.70q is no name of a host", s)
		}
	}
	return nil
}

// CheckPath reports why a text is no prefix of paths. One slash at its end is allowed and means nothing
// (Spec.PathName).
func CheckPath(s string) error {
	switch {
	case s == "":
		return nil
	case s[0] != '/' || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("#?%\\", r) }):
		return fmt.Errorf("%.70q is no path of a URL", s)
	case strings.Contains(s, "//"):
		return fmt.Errorf("%.70q has two slashes in a row", s)
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "." || part == ".." {
			return fmt.Errorf("%.70q has the segment %s", s, part)
		}
	}
	return nil
}

// CheckMetric reports why a text is no name of a metric.
func CheckMetric(s string) error {
	if !metricName.MatchString(s) {
		return fmt.Errorf("%.70q is no name of a metric", s)
	}
	return nil
}

// FullName is a service's name with the account that it belongs to: "team/chat", or "chat" without one.
func FullName(account, name string) string {
	if account == "" {
		return name
	}
	return account + "/" + name
}

// ControllerName is the name of a service's controller: "service/team/chat".
func ControllerName(account, name string) string {
	return ControllerKind + "/" + FullName(account, name)
}

// HostName is the name under which the gateway finds the service: that of its route, or NAME.localhost.
func (s *Spec) HostName() string {
	if s.Route.Host != "" {
		return s.Route.Host
	}
	return s.Name + ".localhost"
}

// PathName is the prefix of the paths that the service answers, without a slash at its end; empty: every
// path.
func (s *Spec) PathName() string { return strings.TrimRight(s.Route.Path, "/") }
