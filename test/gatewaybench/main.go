// Command gatewaybench has the parts of scripts/bench-gateway.sh that are ours: the gateway alone, with
// routes from the command line and no server, and clients that hold idle event streams. It measures
// nothing about services; the rates come from wrk.
//
//	gatewaybench gateway LISTEN BACKEND…   run until SIGTERM; /debug/pprof on $PPROF
//	gatewaybench streams URL COUNT PID     open idle event streams, print the memory of a process
//	gatewaybench events LISTEN             a backend of event streams that say one thing and stay
package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof" // on its own address
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/gateway"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gatewaybench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	switch {
	case len(args) >= 3 && args[0] == "gateway":
		return runGateway(ctx, args[1], args[2:])
	case len(args) == 4 && args[0] == "streams":
		count, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		return holdStreams(args[1], count, args[3])
	case len(args) == 2 && args[0] == "events":
		return serveEvents(ctx, args[1])
	}
	return fmt.Errorf("what is %q? gateway LISTEN BACKEND…, streams URL COUNT PID, events LISTEN", args)
}

// fixed is a server whose routes do not change.
type fixed struct{ routes api.GatewayRoutes }

func (f *fixed) WatchRoutes(ctx context.Context, take func(api.GatewayRoutes) error) error {
	if err := take(f.routes); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func (*fixed) PutLoad(context.Context, api.GatewayLoad) error { return nil }

func runGateway(ctx context.Context, listen string, backends []string) error {
	route := api.ServiceRoute{Service: "bench"} // every host
	for i, address := range backends {
		route.Backends = append(route.Backends, api.Backend{ID: fmt.Sprintf("%d.1", i+1), Address: address, Revision: 1, Ready: true})
	}
	g, err := gateway.New(gateway.Config{Source: &fixed{api.GatewayRoutes{Version: 1, Reset: true, Services: []api.ServiceRoute{route}}}})
	if err != nil {
		return err
	}
	if at := os.Getenv("PPROF"); at != "" {
		go func() { fmt.Fprintln(os.Stderr, http.ListenAndServe(at, nil)) }() //nolint:gosec // for the benchmark
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	go gateway.TuneCollector(ctx)
	return g.Serve(ctx, l)
}

func serveEvents(ctx context.Context, listen string) error {
	s := &http.Server{Addr: listen, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // for the benchmark
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: here\n\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-ctx.Done():
		}
	})}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	if err := s.ListenAndServe(); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// holdStreams opens event streams one after another, waits for the first event of each, and prints the
// memory of a process before, with all of them, and per stream.
func holdStreams(url string, count int, pid string) error {
	host, path, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	before, err := residentMemory(pid)
	if err != nil {
		return err
	}
	for i := range count {
		c, err := net.Dial("tcp", host)
		if err != nil {
			return fmt.Errorf("stream %d: %w", i, err)
		}
		defer c.Close()
		fmt.Fprintf(c, "GET /%s HTTP/1.1\r\nHost: bench\r\n\r\n", path)
		lines := bufio.NewReaderSize(c, 512)
		for line := ""; !strings.HasPrefix(line, "data:"); {
			if line, err = lines.ReadString('\n'); err != nil {
				return fmt.Errorf("stream %d: %w", i, err)
			}
		}
	}
	time.Sleep(5 * time.Second) // the collector of the gateway comes to rest
	after, err := residentMemory(pid)
	if err != nil {
		return err
	}
	fmt.Printf("%d idle event streams: %.1f MB resident, %.1f MB before, %.1f kB a stream\n", count, float64(after)/1e6, float64(before)/1e6, float64(after-before)/float64(count)/1e3)
	return nil
}

// residentMemory is VmRSS of a process in bytes.
func residentMemory(pid string) (int64, error) {
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("process %s has no VmRSS", pid)
}
