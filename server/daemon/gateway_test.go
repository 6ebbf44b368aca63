package daemon

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/service/endpoints"
)

// TestGatewayAddress: an address of one's own is taken or refused by name, and URLs follow it.
func TestGatewayAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cfg := config.Default()
	cfg.State.Dir = t.TempDir()
	cfg.Gateway.Listen = taken.Addr().String()
	if _, err := openGateway("/cox", "1", &cfg, nil, nil); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), taken.Addr().String()) || !strings.Contains(fault.Remedy(err), "--no-gateway") {
		t.Errorf("a taken address: %v", err)
	}
	cfg.Gateway.Listen = "none"
	if k, err := openGateway("/cox", "1", &cfg, nil, nil); k != nil || err != nil || k.urlOf(api.ServiceRoute{}) != "" || k.info() != nil {
		t.Errorf("none: %v %v", k, err)
	}
	cfg.Gateway.Listen = "127.0.0.1:0"
	k, err := openGateway("/cox", "1", &cfg, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer k.listener.Close()
	_, port, _ := net.SplitHostPort(k.address)
	if got := k.urlOf(api.ServiceRoute{Host: "chat.localhost", Path: "/v1"}); got != "http://chat.localhost:"+port+"/v1" {
		t.Errorf("the URL is %s", got)
	}
	if got := k.urlOf(api.ServiceRoute{Path: "/v1"}); got != "http://"+k.address+"/v1" {
		t.Errorf("the URL of every host is %s", got)
	}
	cfg.Gateway.Cert, k.address = "/cert", "10.0.0.1:443"
	if got := k.urlOf(api.ServiceRoute{Host: "chat.example.org"}); got != "https://chat.example.org" {
		t.Errorf("the URL with TLS is %s", got)
	}
}

// TestGatewayIsStartedAgain: until there is a service the server answers by itself; then the gateway is
// started, and again when it has ended, before and after it answered.
func TestGatewayIsStartedAgain(t *testing.T) {
	cfg := config.Default()
	cfg.State.Dir, cfg.Gateway.Listen = t.TempDir(), "127.0.0.1:0"
	hub := endpoints.New(endpoints.Config{})
	script := filepath.Join(cfg.State.Dir, "cox")
	text := `#!/bin/sh
cd ` + cfg.State.Dir + `/gateway
echo >> starts
[ $(wc -l < starts) -gt 1 ] || exit 7
echo '{"pid": '$$'}' > gateway.json
exec sleep 100
`
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	k, err := openGateway(script, "1", &cfg, hub, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { k.run(ctx) })
	defer ended.Wait()
	defer cancel()
	resp, err := http.Get("http://" + k.address + "/")
	if err != nil {
		t.Fatal(err)
	}
	page, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound || !strings.Contains(string(page), "this server runs no service yet") || k.info().PID != 0 {
		t.Errorf("without a service: %s %s %+v", resp.Status, page, k.info())
	}
	hub.SetService(api.ServiceRoute{Service: "chat", Host: "chat.localhost"}, "")
	hub.Complete()
	running := func(after int) int {
		for late := time.Now().Add(20 * time.Second); time.Now().Before(late); <-time.After(10 * time.Millisecond) {
			if r := readGatewayRecord(k.dir); r != nil && r.PID != after && r.PID == k.info().PID {
				return r.PID
			}
		}
		t.Fatal("the gateway was not started")
		return 0
	}
	first := running(0)
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second := running(first)
	defer func() { _ = syscall.Kill(second, syscall.SIGKILL) }()
	starts, err := os.ReadFile(filepath.Join(k.dir, "starts"))
	if err != nil || len(starts) != 3 {
		t.Errorf("%d starts, %v", len(starts), err)
	}
}

// TestGatewayIsTakenOver: the gateway that holds the lock is the server's, if it was started as this
// server would; a record without a lock is of a gateway that has ended.
func TestGatewayIsTakenOver(t *testing.T) {
	cfg := config.Default()
	cfg.State.Dir, cfg.Gateway.Listen = t.TempDir(), "127.0.0.1:0"
	first, err := openGateway("/cox", "1", &cfg, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.listener.Close()
	record := `{"pid": 4194304, "listen": "127.0.0.1:8085", "version": "1", "args": "` + strings.Join(first.args(), " ") + `"}`
	if err := os.WriteFile(filepath.Join(first.dir, api.GatewayRecordFile), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	dead, err := openGateway("/cox", "1", &cfg, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dead.listener.Close()
	if dead.address == "127.0.0.1:8085" || dead.info().PID != 0 {
		t.Errorf("a gateway that has ended: %+v", dead.info())
	}
	lock, err := os.OpenFile(filepath.Join(first.dir, "lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if other, err := openGateway("/cox", "2", &cfg, nil, nil); err != nil || !other.replace || other.listener != nil {
		t.Errorf("a gateway of another version: %v", err)
	}
	lives, err := openGateway("/cox", "1", &cfg, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lives.listener != nil || lives.info().Address != "127.0.0.1:8085" || lives.info().PID != 4194304 {
		t.Errorf("a gateway that runs: %+v", lives.info())
	}
}

// TestGatewayTakesAnotherAddress: where the address of a gateway that has ended is taken, auto takes
// another and says so.
func TestGatewayTakesAnotherAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cfg := config.Default()
	cfg.State.Dir, cfg.Gateway.Listen = t.TempDir(), "auto"
	k := &gatewayKeeper{dir: cfg.State.Dir, cfg: &cfg, log: slog.New(slog.DiscardHandler), address: taken.Addr().String()}
	if !k.retakeAddress(t.Context()) {
		t.Fatal("it has no address")
	}
	defer k.release()
	if got := k.info().Address; got != k.listener.Addr().String() || got == taken.Addr().String() {
		t.Errorf("the address is said to be %s", got)
	}
}
