package services

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/gateway"
	"github.com/coxswain-sched/coxswain/internal/handover"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// takenOver is the gateway that uses the folder before this one; without a talk there is none.
type takenOver struct {
	talk   *handover.Taking
	routes api.GatewayRoutes
}

// enterFolder keeps a second gateway out of the folder, or begins to take over from the first.
func (f *gatewayFlags) enterFolder(before *takenOver) error {
	if err := os.MkdirAll(f.stateDir, 0o700); err != nil {
		return fault.New(fault.KindOf(err), "folder of the gateway: %w", err).Advise("name one that you may write to with --state-dir")
	}
	err := f.lockFolder()
	if !f.takeOver || fault.KindOf(err) != fault.Conflict {
		return err
	}
	talk, asking := handover.Ask(f.stateDir, &before.routes)
	if asking != nil {
		return errors.Join(err, asking)
	}
	before.talk = talk
	return nil
}

// lockFolder takes the lock of the folder.
func (f *gatewayFlags) lockFolder() error {
	lock, err := os.OpenFile(filepath.Join(f.stateDir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fault.New(fault.KindOf(err), "folder of the gateway: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(fault.New(fault.Conflict, "another gateway uses %s", f.stateDir).Advise("name another folder with --state-dir, or replace it: --take-over"), lock.Close())
	}
	f.lock = lock
	return nil
}

// leaveFolder gives the lock back.
func (f *gatewayFlags) leaveFolder() {
	if f.lock != nil {
		_ = f.lock.Close() // another gateway may have it
	}
}

// openListener takes the socket that systemd or cox up hands over, else that of the gateway of before,
// else it listens.
func (f *gatewayFlags) openListener(before *takenOver) (l net.Listener, err error) {
	defer func() {
		if before.talk != nil && l != before.talk.Listener {
			_ = before.talk.Listener.Close() // clients of the older address would wait in it
		}
	}()
	pid := os.Getenv("LISTEN_PID")
	if os.Getenv("LISTEN_FDS") == "1" && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		file := os.NewFile(3, "socket") // the first after the standard ones (sd_listen_fds)
		defer file.Close()
		return net.FileListener(file)
	}
	if before.talk != nil && handover.SameAddress(f.listen, before.talk.Listener.Addr().String()) {
		return before.talk.Listener, nil
	}
	if l, err = net.Listen("tcp", f.listen); err != nil {
		return nil, fault.New(fault.Conflict, "the gateway cannot listen on %s: %w", f.listen, err).Advise("give another address: --listen 127.0.0.1:8081")
	}
	return l, nil
}

// lockTime is how long the gateway of before may take to give its lock back once it has let go.
const lockTime = 5 * time.Second

// finishTakeOver has the gateway of before let go. Its routes count until the server tells them.
func (f *gatewayFlags) finishTakeOver(before *takenOver, g *gateway.Server) error {
	if before.talk == nil {
		return nil
	}
	defer before.talk.Close()
	before.routes.Reset = true
	g.Apply(before.routes)
	if err := before.talk.Ready(); err != nil {
		return err
	}
	for late := time.Now().Add(lockTime); ; <-time.After(5 * time.Millisecond) {
		if err := f.lockFolder(); fault.KindOf(err) != fault.Conflict || time.Now().After(late) {
			return err
		}
	}
}

// offerListener offers the listener to the gateway that replaces this one, until the function that it
// returns is called. endOwn ends what the two cannot both have.
func (f *gatewayFlags) offerListener(ctx context.Context, g *gateway.Server, l net.Listener, endOwn func(), log *slog.Logger) func() {
	if f.stateDir == "" {
		return func() {}
	}
	ctx, stop := context.WithCancel(ctx)
	offer := handover.Offer{
		Dir: f.stateDir, Listener: l, State: func() any { return g.Routes() },
		LetGo: func() {
			log.Info("another gateway takes over; requests in flight go on")
			g.HandOver()
			endOwn()
			f.leaveFolder()
		},
		Failed: func(err error) { log.Warn("the listener could not be handed over", "err", err) },
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := offer.Serve(ctx); err != nil {
			log.Warn("the next version of this gateway cannot take over without a gap", "err", err)
		}
	})
	return func() { stop(); serving.Wait() }
}
