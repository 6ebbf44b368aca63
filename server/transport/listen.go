package transport

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/auth/fileperm"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// ListenSocket makes the server's unix socket. Where root listens, every user of
// the machine may connect and is known by his process; otherwise the owner alone.
// A socket that nobody answers at is replaced; one that is in use is fault.Conflict.
// Two servers that start at once do not both get it.
func ListenSocket(path string) (net.Listener, error) {
	folder, socket := fs.FileMode(0o700), fs.FileMode(0o600)
	if os.Geteuid() == 0 {
		folder, socket = 0o755, 0o666
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, folder); err != nil {
		return nil, fault.New(fault.KindOf(err), "folder of the socket: %w", err).Advise("set listen.socket to a place that you may write to")
	}
	if err := fileperm.Way(path); err != nil {
		return nil, fault.New(fault.KindOf(err), "folder of the socket: %w", err).Advise("%s; or set listen.socket to another place", fault.Remedy(err))
	}
	unlock, err := lockSocket(path)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := clearStale(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		kind := fault.KindOf(err)
		if errors.Is(err, unix.EINVAL) {
			kind = fault.Invalid
		}
		return nil, fault.New(kind, "listen at %s: %w", path, err).Advise("set listen.socket to a short path that you may write to")
	}
	if err := os.Chmod(path, socket); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// lockSocket keeps others from looking at the socket while it is looked at here. The
// lock is a file of its own: whoever may read a folder may lock that, and hold a server
// up for ever.
func lockSocket(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fault.New(fault.KindOf(err), "lock of the socket: %w", err).Advise("remove %s.lock if nobody uses it, or set listen.socket to another path", path)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// clearStale removes a socket that a killed server left. It connects first: what
// answers is in use.
func clearStale(path string) error {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fault.New(fault.KindOf(err), "look at %s: %w", path, err)
	case st.Mode().Type() != fs.ModeSocket:
		return fault.New(fault.Conflict, "%s is there and is no socket", path).Advise("remove it, or set listen.socket to another path")
	}
	c, err := net.DialTimeout("unix", path, 5*time.Second)
	if err == nil {
		_ = c.Close()
		return inUse(path)
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return fault.New(fault.Conflict, "somebody may be using the socket %s: %w", path, err).Advise("see who: ss -xlp src %s", path)
	}
	if err := os.Remove(path); err != nil {
		return fault.New(fault.KindOf(err), "remove the stale socket: %w", err)
	}
	return nil
}

func inUse(addr string) error {
	return fault.New(fault.Conflict, "a server answers at %s already", addr).
		Advise("use it, stop it with cox down, or give this one another address: listen.socket, listen.tcp")
}

// ListenTCP listens on a loopback address.
func ListenTCP(addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fault.New(fault.Invalid, "listen.tcp: %q is no address: %w", addr, err).Advise("write 127.0.0.1:7461")
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fault.New(fault.Invalid, "listen.tcp: %s is not a loopback address, and tokens would cross the network unencrypted", addr).
			Advise("listen on 127.0.0.1 and forward the port over SSH")
	}
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, inUse(addr)
	}
	if err != nil {
		return nil, fault.New(fault.KindOf(err), "listen at %s: %w", addr, err)
	}
	return l, nil
}

// Bounds against idle clients and large heads; Config has those against slow ones.
const (
	idleTime  = 3 * time.Minute
	maxHeader = 256 << 10 // exec's request is in one
	drainTime = 10 * time.Second
)

// Serve answers on the listeners until ctx ends: then no new request is taken,
// streams end, and running requests have some seconds. The listeners are closed.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	h := &http.Server{
		Handler: s, ConnContext: s.acceptConn, ReadHeaderTimeout: s.cfg.Patience, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog:  slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug), // broken handshakes and the like
		ConnState: s.ConnStateChanged,
	}
	h.RegisterOnShutdown(func() { s.once.Do(func() { close(s.ending) }) })
	ended := make(chan error, len(listeners))
	var wg sync.WaitGroup
	for _, l := range listeners {
		wg.Go(func() {
			if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				ended <- fmt.Errorf("listener %s: %w", l.Addr(), err)
			}
		})
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	limit, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if serr := h.Shutdown(limit); serr != nil {
		s.Log.Warn("requests were cut off", "error", serr)
		_ = h.Close()
	}
	wg.Wait()
	s.Close()
	return err
}
