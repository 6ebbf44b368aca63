package notify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// WebhookPolicy says where the webhooks that jobs name may lead. Users choose these URLs and the server
// connects to them, so without a bound they would reach services that only the server can reach.
type WebhookPolicy struct {
	Public bool     // any host, at addresses of the public Internet
	Hosts  []string // these hosts, at any address: "hooks.example.org", or "*.example.org" for all below it
}

// PublicHosts is the word for WebhookPolicy.Public in a list of hosts.
const PublicHosts = "public"

// ParseWebhookPolicy reads a list of hosts and the word public. An empty list allows nothing.
func ParseWebhookPolicy(list []string) (WebhookPolicy, error) {
	var p WebhookPolicy
	for _, h := range list {
		name := strings.TrimPrefix(strings.ToLower(h), "*.")
		switch {
		case h == PublicHosts:
			p.Public = true
		case name == "" || strings.ContainsAny(name, "/*@ \t?#"):
			return p, fmt.Errorf("%q is neither %s nor a host such as hooks.example.org or *.example.org", h, PublicHosts)
		default:
			p.Hosts = append(p.Hosts, strings.ToLower(h))
		}
	}
	return p, nil
}

// Check says why a job may not have this webhook, as far as its text tells. Names are resolved when a
// message is sent, and addresses are checked then (publicTransport).
func (p WebhookPolicy) Check(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return fault.New(fault.Invalid, "is no URL")
	}
	name := u.Hostname()
	switch {
	case p.listsHost(name):
		return nil
	case !p.Public && len(p.Hosts) == 0:
		return fault.New(fault.Permission, "the site's policy forbids webhooks of jobs").
			Advise("use mail: --mail-type=END; an administrator allows webhooks by notify.job_webhooks in the server's configuration")
	case !p.Public:
		return fault.New(fault.Permission, "%.100q is not among the hosts that the site's policy allows for webhooks of jobs: %s", name, strings.Join(p.Hosts, ", ")).
			Advise("use one of them; an administrator adds others to notify.job_webhooks in the server's configuration")
	case isNearby(name):
		return fault.New(fault.Permission, "%.100q is an address inside the site, and the site's policy allows webhooks of jobs only at public addresses", name).
			Advise("use a public host; an administrator allows this one by adding it to notify.job_webhooks in the server's configuration")
	}
	return nil
}

// listsHost reports whether the policy names a host.
func (p WebhookPolicy) listsHost(name string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return slices.ContainsFunc(p.Hosts, func(h string) bool {
		if below, ok := strings.CutPrefix(h, "*"); ok {
			return strings.HasSuffix(name, below) && len(name) > len(below)
		}
		return name == h
	})
}

// isNearby reports whether a host is not public for what it is called.
func isNearby(name string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if ip, err := netip.ParseAddr(name); err == nil {
		return !isPublic(ip)
	}
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || strings.HasSuffix(name, ".local") || strings.HasSuffix(name, ".internal")
}

// publicTransport connects to the addresses that the policy allows, whatever a name resolves to at that
// moment. It uses no proxy: a proxy would resolve the name again.
func (p WebhookPolicy) publicTransport() *http.Transport {
	listed := &net.Dialer{Timeout: 5 * time.Second}
	public := &net.Dialer{Timeout: 5 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !isPublic(at.Addr()) {
			return &refusedAddress{address}
		}
		return nil
	}}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			name, _, err := net.SplitHostPort(address)
			if err == nil && p.listsHost(name) {
				return listed.DialContext(ctx, network, address)
			}
			return public.DialContext(ctx, network, address)
		},
		TLSHandshakeTimeout: 5 * time.Second, ResponseHeaderTimeout: 10 * time.Second, MaxResponseHeaderBytes: 16 << 10,
		DisableKeepAlives: true, ForceAttemptHTTP2: true,
	}
}

// refusedAddress is an address that the policy does not allow.
type refusedAddress struct{ address string }

func (e *refusedAddress) Error() string {
	return e.address + " is not public, and notify.job_webhooks does not name its host"
}

func asRefused(err error, to **refusedAddress) bool { return errors.As(err, to) }

// notPublic are the blocks beside those that package netip knows: those that are no hosts of the public
// Internet, and those that carry another address inside (IANA's special-purpose registries).
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"), netip.MustParsePrefix("::/96"),
}

// isPublic reports whether an address is a host of the public Internet.
func isPublic(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() {
		return false
	}
	return !slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(ip) })
}
