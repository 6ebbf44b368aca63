package interactive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/agent/portdial"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func forwardCommand(a *cli.App) *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "forward JOB[.RANK | .NODE] [LOCAL:]PORT…",
		Short: "Reach ports of a running job from this machine",
		Long: `Listens on this machine and carries every connection to a port inside the job, on its
first node, or the node of a rank, or a node by name. The connections go through the
server, so this works from another machine, and for pods. LOCAL is the port here
(default: the same; 0 or ":PORT": any free one). Ctrl-C ends it.`,
		Example: `  cox forward 7 8888
  cox forward 7 9000:8000 6006 # two ports
  cox forward 7.v2 :8265       # of node v2, at any free port here`,
		ValidArgsFunction: a.CompleteJobs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			if len(args) < 2 {
				return fault.New(fault.Invalid, "cox forward needs a job and a port").Advise("for example: cox forward 7 8888")
			}
			p, err := parsePlace(args[0])
			if err != nil {
				return err
			}
			var ports []portPair
			for _, text := range args[1:] {
				pair, err := parsePort(text)
				if err != nil {
					return err
				}
				ports = append(ports, pair)
			}
			return forwardPorts(a, cmd.Context(), c, p, address, ports)
		}),
	}
	cmd.Flags().StringVar(&address, "address", "127.0.0.1", "listen at this `ADDRESS` of this machine; others reach the job through any but 127.0.0.1")
	return cmd
}

// portPair is a port of this machine and the one of the job that it leads to.
type portPair struct{ local, remote int }

// parsePort reads PORT, LOCAL:PORT or :PORT.
func parsePort(text string) (portPair, error) {
	local, remote, two := strings.Cut(text, ":")
	if !two {
		remote = local
	}
	number := func(s string, least int) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < least || n > 65535 {
			return 0, fault.New(fault.Invalid, "%s: %q is no port", text, s).Advise("write PORT or LOCAL:PORT, each from 1 to 65535: 8888, 9000:8888, :8888")
		}
		return n, nil
	}
	var pair portPair
	var err error
	if pair.remote, err = number(remote, 1); err != nil {
		return pair, err
	}
	if local != "" {
		pair.local, err = number(local, 0)
	}
	return pair, err
}

// forwarder carries connections to one port of a job.
type forwarder struct {
	client *client.Client
	place  place
	port   int // of the job
	lines  *lineWriter
	open   sync.WaitGroup
}

// forwardPorts listens at all ports and serves them until ctx ends or the user interrupts.
func forwardPorts(a *cli.App, ctx context.Context, c *client.Client, p place, address string, ports []portPair) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	lines := &lineWriter{w: a.Err}
	var serving sync.WaitGroup
	var listeners []net.Listener
	closeAll := func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}
	defer serving.Wait()
	defer closeAll()
	for _, pair := range ports {
		f := &forwarder{client: c, place: p, port: pair.remote, lines: lines}
		if err := f.checkPort(ctx); err != nil {
			return err
		}
		l, err := listenAt(address, pair)
		if err != nil {
			return err
		}
		listeners = append(listeners, l)
		fmt.Fprintf(a.Out, "%s → port %d of job %s\n", l.Addr(), pair.remote, p.job)
		serving.Go(func() { f.serve(ctx, l) })
	}
	<-ctx.Done()
	return nil
}

// listenAt listens at the local port of a pair.
func listenAt(address string, pair portPair) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(pair.local)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fault.New(fault.Conflict, "port %d of this machine is in use", pair.local).Advise("choose another: cox forward JOB %d:%d, or :%d for any", pair.local+1, pair.remote, pair.remote)
	}
	if err != nil {
		return nil, fault.New(fault.KindOf(err), "listen: %w", err).Advise("choose another address or port")
	}
	return l, nil
}

// checkPort says early what is wrong: a job that does not run is an error, a port at which nothing
// listens yet is said.
func (f *forwarder) checkPort(ctx context.Context) error {
	var said strings.Builder
	code, err := f.client.Exec(ctx, f.place.job, f.place.command("cox", portdial.Command, strconv.Itoa(f.port), portdial.CheckWord), client.ExecStreams{Stdout: &said, Stderr: &said})
	switch {
	case err != nil:
		return err
	case code.Status == portdial.ExitRefused:
		f.lines.say("nothing listens on port %d of job %s yet: connections are closed until something does", f.port, f.place.job)
	case !code.OK():
		return fault.New(fault.Unavailable, "port %d of job %s: %s", f.port, f.place.job, strings.TrimSpace(said.String())).Advise("cox shell %s shows what runs there", f.place.job)
	}
	return nil
}

// serve accepts connections until the listener is closed, and waits for those that are open.
func (f *forwarder) serve(ctx context.Context, l net.Listener) {
	defer f.open.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		f.open.Go(func() { f.carry(ctx, conn) })
	}
}

// carry carries one connection to its end.
func (f *forwarder) carry(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var said strings.Builder
	code, err := f.client.Exec(ctx, f.place.job, f.place.command("cox", portdial.Command, strconv.Itoa(f.port)), client.ExecStreams{Stdin: conn, Stdout: conn, Stderr: &said})
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, net.ErrClosed), errors.Is(err, io.EOF), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET): // who connected has gone
	case err != nil:
		f.lines.say("port %d: %v", f.port, err)
	case code.Status == portdial.ExitRefused:
		f.lines.say("port %d: nothing listens on it in job %s", f.port, f.place.job)
	case !code.OK():
		f.lines.say("port %d: %s", f.port, strings.TrimSpace(said.String()))
	}
}

// lineWriter writes lines of several goroutines, each of them once in a row.
type lineWriter struct {
	mu   sync.Mutex
	w    io.Writer
	last string
}

func (l *lineWriter) say(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := fmt.Sprintf(format, v...)
	if line != l.last {
		fmt.Fprintln(l.w, line)
	}
	l.last = line
}
