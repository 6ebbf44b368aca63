package daemon

import (
	"context"
	"net"
	"time"

	"github.com/coxswain-sched/coxswain/internal/handover"
)

// listensAsSet says whether the gateway of before listens where the settings want it.
func (k *gatewayKeeper) listensAsSet() bool {
	return k.cfg.Gateway.Listen == "auto" || handover.SameAddress(k.cfg.Gateway.Listen, k.address)
}

// runningPID is the process of the gateway that runs; 0: none does.
func (k *gatewayKeeper) runningPID() int {
	if r := k.runningGateway(); r != nil {
		return r.PID
	}
	return 0
}

// shareAddress gets the socket of the gateway of before, which goes on until the next one has taken
// over. Where the settings have another address, it takes that. false: it cannot be had while the
// gateway of before runs.
func (k *gatewayKeeper) shareAddress(ctx context.Context) bool {
	talk, err := handover.Ask(k.dir, nil)
	if err != nil {
		k.log.Info("the gateway of before cannot hand its address over; it is ended first", "process", k.pid.Load(), "reason", err)
		return false
	}
	_ = talk.Close() // this server only wanted the listener
	l := talk.Listener.(*net.TCPListener)
	for said := false; !k.listensAsSet(); sleepFor(ctx, time.Second) {
		next, err := listenGateway(k.cfg.Gateway.Listen)
		if err == nil {
			_ = l.Close() // the gateway of before has it still
			l = next
			break
		}
		if _, port, _ := net.SplitHostPort(k.cfg.Gateway.Listen); handover.SameAddress(":"+port, ":"+portOf(k.address)) || ctx.Err() != nil {
			_ = l.Close()
			return false // the gateway of before is in the way itself
		}
		if !said {
			k.log.Error("the gateway stays where it is: its new address cannot be had; it is tried on", "address", k.currentAddress(), "error", err)
			said = true
		}
	}
	k.log.Info("the gateway of before is replaced: its settings or its version are others", "process", k.pid.Load())
	k.moving.Lock()
	defer k.moving.Unlock()
	k.listener, k.address = l, l.Addr().String()
	return true
}

// portOf is the port of an address.
func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}
