package notify

import (
	"errors"
	"maps"
	"time"
)

// hostTurn is what one host has of the workers, with Config.PerHost: a host that does not answer
// holds one worker until it does, whoever's jobs write to it.
type hostTurn struct {
	sending int
	failing bool // the last message to it that ended was not taken, for a reason that may pass
}

// hosted is an outlet whose messages go to hosts of the users' choice.
type hosted interface{ hostOf(o *occasion) string }

// hostPause is after what time a message is looked at again for whose host no worker is free.
const hostPause = time.Second

// knownHosts is how many hosts are remembered; those to which nothing is sent are forgotten beyond
// it.
const knownHosts = 1024

// takeHost reports whether a worker sends a message now; false: it was put off, because its host has
// as many workers as it may have. The result is what to call with the message's end.
func (n *Notifier) takeHost(o *occasion) (release func(error), ok bool) {
	to, isHosted := n.outlet.(hosted)
	if n.config.PerHost <= 0 || !isHosted {
		return func(error) {}, true
	}
	host := to.hostOf(o)
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[host]
	if h == nil {
		if len(n.hosts) >= knownHosts {
			maps.DeleteFunc(n.hosts, func(_ string, h *hostTurn) bool { return h.sending == 0 })
		}
		h = &hostTurn{}
		n.hosts[host] = h
	}
	if h.sending >= n.config.PerHost || h.failing && h.sending > 0 {
		if !n.sendAfter(*o, hostPause) {
			n.dropMessage(&o.job)
		}
		return nil, false
	}
	h.sending++
	return func(err error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		h.sending--
		h.failing = errors.Is(err, errLater)
	}, true
}
