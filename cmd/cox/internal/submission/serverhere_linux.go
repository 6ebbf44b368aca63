package submission

import (
	"context"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/agent/ownlimit"
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/address"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// serverHere returns a client of the server that serves this machine: the one that commands talk to
// if it is on this machine, else the one at the machine's or the user's socket. nil: none answers.
// A server that --server names has to be here and to answer.
func serverHere(a *cli.App, ctx context.Context) (*client.Client, error) {
	env := address.System()
	at, err := env.Find(a.Server, "")
	if err != nil {
		return nil, err
	}
	if !isHere(at) {
		if a.Server != "" {
			return nil, fault.New(fault.Invalid, "--server %s is not on this machine, and cox run runs its job here", a.Server).
				Advise("cox submit --wait --server %s sends the job there and waits for it", a.Server)
		}
		env.Getenv = func(name string) string {
			if name == "COX_SERVER" {
				return ""
			}
			return os.Getenv(name)
		}
		if at, err = env.Find("", ""); err != nil {
			return nil, err
		}
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	network, to := at.Network()
	conn, err := dialer.DialContext(ctx, network, to)
	if err != nil {
		if a.Server != "" {
			return nil, at.Explain(err)
		}
		return nil, nil //nolint:nilerr // nobody is there, or nobody whom the caller may ask
	}
	_ = conn.Close() // the client has its own
	return client.New(client.Options{URL: at.String()})
}

// isHere reports whether an address is of this machine: a socket, or loopback.
func isHere(at address.Address) bool {
	if at.Socket != "" {
		return true
	}
	u, err := url.Parse(at.URL)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// roomFlags describe the virtual nodes of a run of its own.
var roomFlags = []string{"virtual-nodes", "virtual-gpus", "state-dir", "by-address", "network", "share", "verbose"}

// checkRoomFlags refuses flags about virtual nodes for a job that goes through a server's queue.
func checkRoomFlags(cmd *cobra.Command, server *client.Client) error {
	for _, name := range roomFlags {
		if cmd.Flags().Changed(name) {
			return fault.New(fault.Invalid, "--%s is for a run on virtual nodes of its own, and this job goes through the queue of the server at %s", name, server.Address()).
				Advise("leave --%s out, or add --here: the job then runs past the queue, and shares CPUs and memory with the server's jobs", name)
		}
	}
	return nil
}

// submissions are the requests as the server takes them, in the same order.
func (f *runFlags) submissions(cmd *cobra.Command, sources []source, requests []*intake.Request) ([]*api.Submit, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	env, err := f.job.variables()
	if err != nil {
		return nil, err
	}
	notify, err := f.job.notify()
	if err != nil {
		return nil, err
	}
	rerun, err := f.job.rerun()
	if err != nil {
		return nil, err
	}
	mask := cli.Umask()
	var out []*api.Submit
	for i, r := range requests {
		from := sources[i]
		s := &api.Submit{
			Form: from.text.Form, File: from.text.Name, Text: string(from.text.Data), ScriptArgs: from.args, Command: from.text.Command,
			Args: f.job.args(), Env: env, Image: f.job.image, Notify: notify, Rerun: rerun, Environ: os.Environ(), Dir: dir, Host: cli.Hostname(), Umask: &mask, Limits: ownlimit.Texts(), Strict: f.strict, Once: f.once,
		}
		if _, given := r.Spec.Source.Given["requeue"]; !given && s.Form == api.FormSbatch {
			s.Args = append(s.Args, "--no-requeue") // somebody waits for it here: it runs once, unless it says otherwise
		}
		_, s.Files = readHere(s)
		s.Provenance = collectProvenance(cmd.Context(), s)
		out = append(out, s)
	}
	return out, nil
}
