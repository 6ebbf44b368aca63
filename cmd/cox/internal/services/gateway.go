package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/gateway"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// gatewayFlags are the flags of cox gateway.
type gatewayFlags struct {
	listen, stateDir, metrics, access, cert, key string
	follow, tether, takeOver                     bool
	limits                                       gateway.Limits
	lock                                         *os.File // of stateDir, while this gateway has it
}

func gatewayCommand(a *cli.App) *cobra.Command {
	f := gatewayFlags{limits: gateway.DefaultLimits()}
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "Run a gateway: one address in front of all services",
		Long: `Runs a proxy in front of the services of a server. It finds the service of a
request by host and path, and sends it to a ready replica. cox up starts one on
127.0.0.1 by itself; start others where clients come from outside.

It reads the routes of the server and goes on with them while the server is away.
It needs an administrator's rights there, or a token of cox token create --role
gateway. SIGHUP opens the access log anew.
docs/reference/gateway.md has limits, log and metrics.`,
		Example: `  cox gateway --listen :80
  cox gateway --listen :443 --tls-cert cert.pem --tls-key key.pem
  cox gateway --server ssh://login1 --listen 127.0.0.1:8080
  cox gateway manifest --server https://cox.example.org --ca ca.pem | kubectl apply -f -`,
		Args: cobra.NoArgs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error { return f.serve(cmd, a, c) }),
	}
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", "127.0.0.1:8080", "`ADDRESS` for clients, host:port")
	fl.StringVar(&f.cert, "tls-cert", "", "`FILE` of a certificate (PEM); read again when it changes")
	fl.StringVar(&f.key, "tls-key", "", "`FILE` of its key (PEM)")
	fl.StringVar(&f.access, "access-log", "", "`FILE` that gets a line of JSON for each request")
	fl.StringVar(&f.metrics, "metrics", "", "loopback `ADDRESS` for Prometheus, host:port")
	fl.StringVar(&f.stateDir, "state-dir", "", "`FOLDER` that keeps the routes over a restart")
	fl.BoolVar(&f.takeOver, "take-over", false, "replace the gateway that uses --state-dir, without a gap")
	fl.BoolVar(&f.follow, "follow-server", false, "end when the server is away and has no service")
	fl.BoolVar(&f.tether, "end-with-server", false, "end when the server is away for 10 s")
	cli.DurationFlag(fl, &f.limits.Hold, "hold", f.limits.Hold, "longest wait of a request for a replica")
	fl.IntVar(&f.limits.Connections, "connections", f.limits.Connections, "connections of clients, at most")
	fl.IntVar(&f.limits.Requests, "requests", f.limits.Requests, "requests of a service at once, at most")
	cmd.AddCommand(gatewayManifestCommand(a))
	return cmd
}

// serve runs the gateway until a signal.
func (f *gatewayFlags) serve(cmd *cobra.Command, a *cli.App, c *client.Client) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var out io.Writer = a.Err
	var before takenOver
	if err := f.checkMetrics(); err != nil {
		return err
	}
	if f.takeOver && f.stateDir == "" {
		return fault.New(fault.Invalid, "--take-over needs --state-dir").Advise("name the folder of the gateway that runs: --state-dir FOLDER --take-over")
	}
	if f.stateDir != "" {
		dir, err := filepath.Abs(f.stateDir)
		if err != nil {
			return err
		}
		f.stateDir = dir
		if err := f.enterFolder(&before); err != nil {
			return err
		}
		defer f.leaveFolder()
		if os.Getenv("COX_DETACHED") != "" { // started by cox up
			log, err := openGatewayLog(filepath.Join(dir, "gateway.log"))
			if err != nil {
				return err
			}
			defer log.Close()
			out = log
			signal.Ignore(syscall.SIGINT)
		}
	}
	log := newGatewayLogger(out)
	g, err := gateway.New(gateway.Config{Source: c, StateDir: f.stateDir, Cert: f.cert, Key: f.key, Access: f.access, Limits: f.limits, Log: log})
	if err != nil {
		return err
	}
	l, err := f.openListener(&before)
	if err != nil {
		return err
	}
	metrics, err := f.listenMetrics()
	if err != nil && before.talk == nil {
		return errors.Join(err, l.Close())
	}
	if err := f.finishTakeOver(&before, g); err != nil {
		if metrics != nil {
			_ = metrics.Close()
		}
		return errors.Join(err, l.Close())
	}
	own, endOwn := context.WithCancel(ctx) // until another one takes over
	defer endOwn()
	// From here on no other gateway serves: what fails after a take-over is tried again.
	if err := f.writeRecord(l.Addr().String()); err != nil {
		if before.talk == nil {
			return errors.Join(err, l.Close())
		}
		go tryAgain(own, log, "cox up and cox down do not know this gateway", err, func() error { return f.writeRecord(l.Addr().String()) })
	}
	closeMetrics := f.serveMetrics(own, g, metrics, log)
	defer closeMetrics()
	stopOffer := f.offerListener(ctx, g, l, func() { endOwn(); closeMetrics() }, log)
	defer stopOffer()
	if f.follow || f.tether {
		ctx = endWithServer(ctx, g, f.tether)
	}
	go reopenLogs(ctx, g, log)
	go gateway.TuneCollector(ctx)
	fmt.Fprintf(a.Err, "gateway  http%s://%s in front of the services of %s\n", secureMark(f.cert), l.Addr(), c.Address())
	return g.Serve(ctx, l)
}

func secureMark(cert string) string {
	if cert == "" {
		return ""
	}
	return "s"
}

// writeRecord tells cox up and cox down which process the gateway is.
func (f *gatewayFlags) writeRecord(address string) error {
	if f.stateDir == "" {
		return nil
	}
	text, err := json.Marshal(api.GatewayRecord{PID: os.Getpid(), Listen: address, Args: strings.Join(os.Args[1:], " "), Version: cli.Version()})
	if err != nil {
		return err
	}
	name := filepath.Join(f.stateDir, api.GatewayRecordFile)
	if err := os.WriteFile(name+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// tryAgain tries what has failed until it does not, or ctx ends.
func tryAgain(ctx context.Context, log *slog.Logger, what string, err error, f func() error) {
	log.Warn(what+"; trying again", "err", err)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for err != nil {
		select {
		case <-tick.C:
			err = f()
		case <-ctx.Done():
			return
		}
	}
}

// checkMetrics refuses an address of the numbers that is not this machine's alone.
func (f *gatewayFlags) checkMetrics() error {
	if f.metrics == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(f.metrics)
	ip := net.ParseIP(host)
	if err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fault.New(fault.Invalid, "--metrics %s is no loopback address with a port", f.metrics).Advise("--metrics 127.0.0.1:9180; the numbers name all services, and nobody is asked who he is")
	}
	return nil
}

// listenMetrics listens at the address of the numbers; nil: there is none.
func (f *gatewayFlags) listenMetrics() (net.Listener, error) {
	if f.metrics == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", f.metrics)
	if err != nil {
		return nil, fault.New(fault.Conflict, "the gateway cannot serve its metrics on %s: %w", f.metrics, err).Advise("give another port with --metrics")
	}
	return l, nil
}

// serveMetrics serves the numbers until the function that it returns is called. Without a listener it
// gets one when the address is free, unless ctx ends: the gateway of before may have it.
func (f *gatewayFlags) serveMetrics(ctx context.Context, g *gateway.Server, l net.Listener, log *slog.Logger) func() {
	if f.metrics == "" {
		return func() {}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", g.Metrics())
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if l == nil {
			var err error
			listen := func() error { l, err = f.listenMetrics(); return err }
			if listen() != nil {
				tryAgain(ctx, log, "the metrics are not served", err, listen)
			}
			if l == nil {
				return
			}
		}
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the metrics are no longer served", "err", err)
		}
	}()
	return func() { _ = s.Close() }
}

// followTime is how long a gateway that follows its server waits for it, if there is no service.
const followTime = 10 * time.Second

// endWithServer ends the context when the server is away for some seconds and no service is known, or
// always.
func endWithServer(ctx context.Context, g *gateway.Server, always bool) context.Context {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		defer stop()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		last := time.Now() // that it was needed
		for time.Since(last) < followTime {
			if g.Connected() || g.HasServices() && !always {
				last = time.Now()
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx
}

// reopenLogs begins the access log anew at each SIGHUP.
func reopenLogs(ctx context.Context, g *gateway.Server, log *slog.Logger) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case <-hup:
			if err := g.Reopen(); err != nil {
				log.Warn("the access log goes on in the old file", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}
