package handover

import "net"

// SameAddress says whether a listener that has the address actual is what wanted asks for: the same
// port, or any with port 0, and the same host, where all ways to say "every address" are one.
func SameAddress(wanted, actual string) bool {
	wantHost, wantPort, err := net.SplitHostPort(wanted)
	if err != nil {
		return false
	}
	host, port, err := net.SplitHostPort(actual)
	if err != nil {
		return false
	}
	number, err := net.LookupPort("tcp", wantPort)
	is, failed := net.LookupPort("tcp", port)
	if err != nil || failed != nil || number != is && number != 0 {
		return false
	}
	if isEvery(wantHost) || isEvery(host) {
		return isEvery(wantHost) && isEvery(host)
	}
	if wantHost == host {
		return true
	}
	ip, err := net.ResolveIPAddr("ip", wantHost)
	return err == nil && ip.IP.Equal(net.ParseIP(host))
}

// isEvery says whether a host stands for every address.
func isEvery(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}
