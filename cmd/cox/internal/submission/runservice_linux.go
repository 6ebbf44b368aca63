package submission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/jobs"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/gateway"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/server/daemon"
)

// ownServer is a server that lives as long as cox run, with a gateway, in this process.
type ownServer struct {
	client *client.Client
	port   int // of the gateway, on 127.0.0.1
	dir    string
	stop   func() error
}

// startOwnServer starts a throw-away server of this machine and a gateway. What they do is logged.
func (f *runFlags) startOwnServer(ctx context.Context, log *slog.Logger) (_ *ownServer, err error) {
	dir, err := os.MkdirTemp("", "cox-run-")
	if err != nil {
		return nil, fault.New(fault.Exhausted, "make a temporary state directory: %w", err).Advise("set TMPDIR to a folder with room")
	}
	if os.Getuid() == 0 { // as a state directory of root's: users pass through to their own jobs
		if err := os.Chmod(dir, 0o711); err != nil {
			return nil, err
		}
	}
	c := config.Default()
	c.State.Dir, c.Listen.Socket, c.Listen.TCP, c.Jobs.UploadDir = dir, filepath.Join(dir, "cox.sock"), "none", ""
	if c.Room.Nodes = f.nodes; f.gpus >= 0 {
		c.Room.Nodes, c.Room.GPUsPerNode = max(c.Room.Nodes, 1), f.gpus
	}
	if f.network != "" {
		c.Room.Network = f.network
	}
	ctx, cancel := context.WithCancel(ctx)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- daemon.Run(ctx, daemon.Options{
			Config: c, Share: f.share, ThrowAway: true, Cox: cli.SlurmBinaryPath(), Version: cli.Version(), Log: log,
			Ready: func(daemon.Info) { close(ready) },
		})
	}()
	s := &ownServer{dir: dir}
	gatewayEnded := make(chan struct{})
	close(gatewayEnded)
	s.stop = func() error {
		cancel()
		<-gatewayEnded
		return errors.Join(<-ended, os.RemoveAll(dir))
	}
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if s.client, err = client.New(client.Options{URL: "unix://" + c.Listen.Socket}); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	listener, err := listenNearby(8080)
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	s.port = listener.Addr().(*net.TCPAddr).Port
	g, err := gateway.New(gateway.Config{Source: s.client, Log: log})
	if err != nil {
		return nil, errors.Join(err, listener.Close(), s.stop())
	}
	gatewayEnded = make(chan struct{})
	go func() {
		defer close(gatewayEnded)
		if err := g.Serve(ctx, listener); err != nil && ctx.Err() == nil {
			log.Error("the gateway has ended", "error", err)
		}
	}()
	return s, nil
}

// listenNearby listens on a port of 127.0.0.1, or on one of the next ones that is free.
func listenNearby(port int) (net.Listener, error) {
	for n := port; n < port+100; n++ {
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(n))); err == nil {
			return l, nil
		}
	}
	return net.Listen("tcp", "127.0.0.1:0")
}

// serviceRun is a service that lives as long as cox run.
type serviceRun struct {
	app     *cli.App
	client  *client.Client
	port    int    // of the gateway of this run; 0: the server knows its own
	dir     string // of the state of this run's own server
	name    string
	started time.Time
	quiet   bool
	signals <-chan os.Signal
}

// runService runs a service until a signal ends it, and returns the exit code of cox run: 0, or 1 if the
// service never became ready. server is nil where no server takes it.
func (f *runFlags) runService(ctx context.Context, a *cli.App, server *client.Client, sub *api.Submit, name string, log *slog.Logger, signals <-chan os.Signal) (code int, err error) {
	r := &serviceRun{app: a, client: server, started: a.Now(), quiet: f.quiet, signals: signals}
	if server == nil {
		own, err := f.startOwnServer(ctx, log)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, own.stop()) }()
		r.client, r.port, r.dir = own.client, own.port, own.dir
	}
	if r.port != 0 { // what the service prints is shown, and leaves no file behind
		sub.Args = append(sub.Args, "--output="+filepath.Join(r.dir, "output-%j"))
	}
	if there, err := r.client.Service(ctx, name); err == nil {
		return 0, fault.New(fault.Conflict, "service %s runs already, and cox run would end it", there.Name).Advise("cox submit FILE begins its next revision; cox service stop %s ends it", there.Name)
	}
	done, err := r.client.Submit(ctx, sub)
	if err != nil {
		return 0, err
	}
	if done.Service == nil {
		return 0, fault.New(fault.Unsupported, "the server takes this file for a job").Advise("it is older than this cox: cox --version, cox info")
	}
	r.name = done.Service.Name
	fmt.Fprint(a.Err, printer.Warnings(a.Page(a.Err), done.Warnings))
	r.note("service  %s, revision %d; Ctrl-C ends it", r.name, done.Service.Revision)
	return r.follow(ctx)
}

func (r *serviceRun) note(format string, args ...any) {
	if !r.quiet {
		fmt.Fprintf(r.app.Err, format+"\n", args...)
	}
}

// follow shows the output of the service and its state until a signal comes or it has failed, and ends
// it. It goes on while its server is away for a short time.
func (r *serviceRun) follow(ctx context.Context) (code int, err error) {
	logs, stopLogs := context.WithCancel(ctx)
	shown := make(chan error, 1)
	go func() {
		quiet := func(error) {} // that the server is away is said below
		shown <- jobs.FollowService(logs, r.app, r.client, r.name, client.LogOptions{Follow: true}, quiet)
	}()
	defer func() {
		stopLogs()
		<-shown
	}()
	look := time.NewTicker(lookAtService / 6)
	defer look.Stop()
	at := &serviceLook{app: r.app, client: r.client, name: r.name}
	for told := ""; ; {
		s, err := at.next(ctx)
		switch {
		case err != nil:
			return 0, err
		case s == nil: // the server is away
		case s.Rollout != nil && s.Rollout.Phase == string(service.Halted):
			r.note("failed   %s", printer.Clean(s.Rollout.Why))
			return 1, r.end(ctx)
		default:
			if state := r.stateLine(s); state != told {
				told = state
				r.note("%s", state)
			}
		}
		select {
		case sig := <-r.signals:
			r.note("\n%s: draining and ending it; once more kills", sig)
			return 0, r.end(ctx)
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-look.C:
		}
	}
}

// stateLine is one line about the service: "ready    http://llm.localhost:8080: 1 replica".
func (r *serviceRun) stateLine(s *api.Service) string {
	if s.Replicas.Ready > 0 && s.Replicas.Ready >= s.Replicas.Want {
		return fmt.Sprintf("ready    %s: %s", r.address(s), printer.Count(s.Replicas.Ready, "replica"))
	}
	for i := range s.Parts {
		switch p := &s.Parts[i]; {
		case p.Ready:
		case p.State == job.Pending.String() && r.app.Now().Sub(r.started) > patienceOfRun:
			return printer.Clean("waits    " + p.Why)
		case p.Try > 0:
			return printer.Clean(fmt.Sprintf("again    replica %d is begun the %s time", p.Index, ordinal(p.Try+1)))
		}
	}
	return fmt.Sprintf("starts   %d of %s ready", s.Replicas.Ready, printer.Count(s.Replicas.Want, "replica"))
}

// ordinal is "2nd".
func ordinal(n uint32) string {
	end := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			end = "st"
		case 2:
			end = "nd"
		case 3:
			end = "rd"
		}
	}
	return strconv.FormatUint(uint64(n), 10) + end
}

// patienceOfRun is how long a service may wait for room before that is said.
const patienceOfRun = time.Second

// address is where the service is reached.
func (r *serviceRun) address(s *api.Service) string {
	if r.port == 0 && s.URL != "" {
		return s.URL
	}
	if r.port == 0 {
		return s.Host + s.Path
	}
	return "http://" + net.JoinHostPort(s.Host, strconv.Itoa(r.port)) + s.Path
}

// end stops the service and waits until it is gone; another signal kills its replicas.
func (r *serviceRun) end(ctx context.Context) error {
	again := time.NewTicker(lookAtService / 6)
	defer again.Stop()
	at := &serviceLook{app: r.app, client: r.client, name: r.name}
	for asked := false; ; {
		look := at.next
		if !asked {
			look = at.stop
		}
		s, err := look(ctx)
		asked = asked || s != nil
		switch {
		case fault.KindOf(err) == fault.NotFound:
			r.note("ended    after %s", printer.Duration(r.app.Now().Sub(r.started)))
			return nil
		case err != nil:
			return err
		}
		select {
		case <-r.signals:
			if s == nil {
				return fault.New(fault.Unavailable, "the server is away, so service %s cannot be ended", r.name).Advise("cox service stop %s when it answers", r.name)
			}
			r.note("killing")
			if err := at.endure(ctx, r.kill(ctx, s)); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
		}
	}
}

// kill ends the replicas of a service at once.
func (r *serviceRun) kill(ctx context.Context, s *api.Service) error {
	var ids []string
	for i := range s.Parts {
		if s.Parts[i].Job != 0 {
			ids = append(ids, s.Parts[i].Job.String())
		}
	}
	if len(ids) == 0 {
		return nil
	}
	now := 0.0
	_, err := r.client.Change(ctx, &api.Change{Verb: "cancel", Select: api.Select{IDs: ids}, Grace: &now})
	return err
}
