package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/service/endpoints"
)

// gatewayKeeper keeps a gateway beside the server: a process of its own, which outlives the server and
// is found again by the next one. The server has the address from its start on; the process starts with
// the first service.
type gatewayKeeper struct {
	binary  string
	version string
	dir     string // of the gateway's own files
	cfg     *config.Config
	tether  bool // it ends with the server
	hub     *endpoints.Hub
	log     *slog.Logger

	moving   sync.Mutex // guards address
	address  string
	listener *net.TCPListener // nil: the gateway of before has the address
	replace  bool             // the gateway of before was started otherwise than this server would
	pid      atomic.Int64     // of the gateway; 0: none runs
}

// Ports that are tried for gateway.listen: auto.
const (
	firstGatewayPort = 8080
	lastGatewayPort  = 8099
)

// openGateway finds the gateway that runs, or takes an address for one. nil: there is to be none.
func openGateway(binary, version string, cfg *config.Config, hub *endpoints.Hub, log *slog.Logger) (*gatewayKeeper, error) {
	if binary == "" || cfg.Gateway.Listen == "none" {
		return nil, nil
	}
	k := &gatewayKeeper{binary: binary, version: version, dir: filepath.Join(cfg.State.Dir, "gateway"), cfg: cfg, hub: hub, log: log}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return nil, fault.New(fault.KindOf(err), "folder of the gateway: %w", err)
	}
	record := k.runningGateway()
	if record != nil {
		k.address = record.Listen
		k.pid.Store(int64(record.PID))
		k.replace = record.Version != version || record.Args != strings.Join(k.args(), " ") || !k.listensAsSet()
		return k, nil
	}
	l, err := listenGateway(cfg.Gateway.Listen)
	if err != nil {
		return nil, err
	}
	k.listener, k.address = l, l.Addr().String()
	return k, nil
}

// listenGateway takes the address of a gateway.
func listenGateway(address string) (*net.TCPListener, error) {
	if address != "auto" {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, fault.New(fault.Conflict, "the gateway cannot listen on %s: %w", address, err).
				Advise("set gateway.listen to another address, to auto, or start without: cox up --no-gateway")
		}
		return l.(*net.TCPListener), nil
	}
	for port := firstGatewayPort; port <= lastGatewayPort; port++ {
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return l.(*net.TCPListener), nil
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

// args are the words with which the gateway is started.
func (k *gatewayKeeper) args() []string {
	c := &k.cfg.Gateway
	args := []string{"gateway", "--server", "unix://" + k.cfg.Listen.Socket, "--state-dir", k.dir, "--take-over"}
	if k.tether {
		args = append(args, "--end-with-server")
	} else {
		args = append(args, "--follow-server")
	}
	for _, f := range [][2]string{{"--tls-cert", c.Cert}, {"--tls-key", c.Key}, {"--access-log", c.AccessLog}, {"--metrics", c.Metrics}} {
		if f[1] != "" {
			args = append(args, f[0], f[1])
		}
	}
	return args
}

// runningGateway is the record of the gateway that runs; nil: none does.
func (k *gatewayKeeper) runningGateway() *api.GatewayRecord {
	lock, err := os.OpenFile(filepath.Join(k.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil
	}
	defer lock.Close()
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		return nil
	}
	return readGatewayRecord(k.dir)
}

func readGatewayRecord(dir string) *api.GatewayRecord {
	text, err := os.ReadFile(filepath.Join(dir, api.GatewayRecordFile))
	var r api.GatewayRecord
	if err != nil || json.Unmarshal(text, &r) != nil || r.PID <= 0 {
		return nil
	}
	return &r
}

// stopTime is how long a gateway may take to let requests end.
const gatewayStopTime = 40 * time.Second

// stopGateway ends a gateway and waits for its end.
func stopGateway(dir string, pid int) error {
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fault.New(fault.KindOf(err), "end the gateway, process %d: %w", pid, err)
	}
	k := gatewayKeeper{dir: dir}
	for late := time.Now().Add(gatewayStopTime); k.runningGateway() != nil; <-time.After(20 * time.Millisecond) {
		if time.Now().After(late) {
			return fault.New(fault.Unavailable, "the gateway, process %d, has not ended", pid).Advise("kill -9 %d ends it with the requests that are in flight", pid)
		}
	}
	return nil
}

// urlOf is where a route is reached.
func (k *gatewayKeeper) urlOf(r api.ServiceRoute) string {
	if k == nil {
		return ""
	}
	scheme, plain := "http", "80"
	if k.cfg.Gateway.Cert != "" {
		scheme, plain = "https", "443"
	}
	host, port, _ := net.SplitHostPort(k.currentAddress())
	if r.Host != "" {
		host = r.Host
	}
	if port != plain {
		host = net.JoinHostPort(host, port)
	}
	return scheme + "://" + host + r.Path
}

// info is what the server says of its gateway; nil: it has none.
func (k *gatewayKeeper) info() *api.GatewayInfo {
	if k == nil {
		return nil
	}
	return &api.GatewayInfo{Address: k.currentAddress(), PID: int(k.pid.Load())}
}

// currentAddress is the address of the gateway.
func (k *gatewayKeeper) currentAddress() string {
	k.moving.Lock()
	defer k.moving.Unlock()
	return k.address
}

// run keeps the gateway until ctx ends; it goes on without the server. Until there is a service the
// server answers on the address itself, that there is none.
func (k *gatewayKeeper) run(ctx context.Context) {
	if k == nil {
		return
	}
	var helpers sync.WaitGroup
	defer helpers.Wait()
	needed := make(chan struct{})
	watch, enough := context.WithCancel(ctx)
	defer enough()
	helpers.Go(func() {
		_ = k.hub.WatchRoutes(watch, func(r api.GatewayRoutes) error { // it ends with the first service
			if len(r.Services) == 0 {
				return nil
			}
			close(needed)
			return errNeeded
		})
	})
	if k.listener != nil {
		idle := k.answerIdle()
		defer func() { _ = idle.Close() }()
		select {
		case <-needed:
		case <-ctx.Done():
			return
		}
		k.startOften(ctx, func() { _ = idle.Close() })
		return
	}
	if !k.replace || !k.shareAddress(ctx) {
		k.awaitEnd(ctx)
		if !k.retakeAddress(ctx) {
			return
		}
	}
	k.startOften(ctx, func() {})
}

// awaitEnd waits until the gateway of before has ended, which one that is to be replaced is asked to do.
func (k *gatewayKeeper) awaitEnd(ctx context.Context) {
	pause := time.Second
	if k.replace {
		pid := int(k.pid.Load())
		k.log.Info("the gateway of before is replaced: its settings or its version are others", "process", pid)
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			k.log.Error("the gateway of before cannot be ended", "process", pid, "error", err)
		}
		pause = 50 * time.Millisecond
	}
	for k.runningGateway() != nil && ctx.Err() == nil {
		sleepFor(ctx, pause)
	}
}

// retakeAddress takes the address of a gateway that has ended, or another where the settings allow it.
// It tries until it has one; false: ctx has ended.
func (k *gatewayKeeper) retakeAddress(ctx context.Context) bool {
	own, said := k.currentAddress(), false
	if k.replace && k.cfg.Gateway.Listen != "auto" {
		own = k.cfg.Gateway.Listen
	}
	k.pid.Store(0)
	for ctx.Err() == nil {
		l, err := listenGateway(own)
		if err != nil {
			l, err = listenGateway(k.cfg.Gateway.Listen)
		}
		if err == nil {
			k.moving.Lock()
			defer k.moving.Unlock()
			k.listener, k.address = l, l.Addr().String()
			return true
		}
		if !said {
			k.log.Error("the gateway has ended and its address cannot be taken again; it is tried on", "error", err)
			said = true
		}
		sleepFor(ctx, time.Second)
	}
	return false
}

var errNeeded = errors.New("there is a service")

// answerIdle answers on the address as long as there is no gateway.
func (k *gatewayKeeper) answerIdle() *http.Server {
	s := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			http.Error(w, "404 Not Found\nthis server runs no service yet\ncox submit FILE with kind: service starts one", http.StatusNotFound)
		}),
	}
	if own, err := k.shareListener(); err == nil && k.cfg.Gateway.Cert == "" {
		go func() { _ = s.Serve(own) }() // until Close
	}
	return s
}

// shareListener is the listener once more, to be closed on its own.
func (k *gatewayKeeper) shareListener() (net.Listener, error) {
	f, err := k.listener.File()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.FileListener(f)
}

// startOften starts the gateway, and again whenever it has ended, until ctx ends. answers is called
// when one answers.
func (k *gatewayKeeper) startOften(ctx context.Context, answers func()) {
	defer k.listener.Close()
	for pause := 100 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, 10*time.Second) {
		began := time.Now()
		ended, err := k.startOnce()
		if err != nil {
			k.log.Error("the gateway did not start", "error", err)
			sleepFor(ctx, pause)
			continue
		}
		there := k.waitRecord(ctx) // it answers then
		for runs := true; runs; {
			select {
			case <-there:
				there = nil
				answers()
				k.log.Info("the gateway runs", "process", k.pid.Load(), "address", k.currentAddress())
			case err := <-ended:
				runs = false
				k.pid.Store(int64(k.runningPID())) // one that could not take over leaves that of before
				k.log.Warn("the gateway has ended; it is started again", "error", err)
			case <-ctx.Done():
				return
			}
		}
		if time.Since(began) > time.Minute {
			pause = 50 * time.Millisecond
		}
		sleepFor(ctx, pause)
	}
}

// startOnce starts a gateway apart from the server; ended gets the error of its end.
func (k *gatewayKeeper) startOnce() (ended <-chan error, err error) {
	log, err := os.OpenFile(filepath.Join(k.dir, "start.log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	socket, err := k.listener.File()
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	cmd := exec.Command(k.binary, k.args()...)
	cmd.Env = append(os.Environ(), "LISTEN_FDS=1", "LISTEN_PID=", "NOTIFY_SOCKET=", "COX_DETACHED=1")
	cmd.ExtraFiles = []*os.File{socket}
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	k.pid.Store(int64(cmd.Process.Pid))
	out := make(chan error, 1)
	go func() { // until the gateway ends, which may be after the server
		err := cmd.Wait()
		if text, unread := os.ReadFile(log.Name()); unread == nil && len(text) > 0 && err != nil {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(text[:min(len(text), 2000)])))
		}
		out <- err
	}()
	return out, nil
}

// waitRecord is closed when the gateway that was started has written its record.
func (k *gatewayKeeper) waitRecord(ctx context.Context) <-chan struct{} {
	there, started := make(chan struct{}), k.pid.Load()
	go func() {
		for ctx.Err() == nil {
			if r := readGatewayRecord(k.dir); r != nil && int64(r.PID) == started {
				close(there)
				return
			}
			if k.pid.Load() != started {
				return
			}
			sleepFor(ctx, 10*time.Millisecond)
		}
	}()
	return there
}

// release gives the address back, unless the gateway has it.
func (k *gatewayKeeper) release() {
	if k != nil && k.listener != nil {
		_ = k.listener.Close() // it may be closed already
	}
}

// end ends the gateway of a throw-away server.
func (k *gatewayKeeper) end() {
	if k == nil {
		return
	}
	if pid := int(k.pid.Load()); pid > 0 {
		if err := stopGateway(k.dir, pid); err != nil {
			k.log.Warn("the gateway of a throw-away server has not ended", "error", err)
		}
	}
}

func sleepFor(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
