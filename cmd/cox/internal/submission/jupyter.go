package submission

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/agent/ownlimit"
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/interactive"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// jupyterFlags are the flags of cox jupyter.
type jupyterFlags struct {
	job   jobOptions
	pool  string
	setup string
	port  int
	keep  bool
}

func jupyterCommand(a *cli.App) *cobra.Command {
	var f jupyterFlags
	cmd := &cobra.Command{
		Use:   "jupyter [flags]",
		Short: "Run a notebook on the nodes, and reach it from this machine",
		Long: `Submits a job that runs "jupyter lab" (or "jupyter notebook"), waits until it answers,
and prints its address. The address leads to this machine, and from here through the
server to the job, so it works from a laptop and for pods. Ctrl-C ends the notebook
and its job; --keep leaves it running.

The options of the job are those of cox submit. Jupyter has to be installed where the
job runs; --setup activates the environment that has it. The token in the address is
new for each notebook.`,
		Example: `  cox jupyter --gpus 1 -t 4h
  cox jupyter --gpus 1 --setup 'source ~/env/bin/activate'
  cox jupyter --pool k8s-a --image jupyter/pytorch-notebook --gpus 1`,
		Args: cobra.NoArgs,
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			return runJupyter(a, cmd.Context(), c, &f)
		}),
	}
	fl := cmd.Flags()
	fl.StringVar(&f.pool, "pool", "", "pool to run in (default: the best one)")
	fl.StringVar(&f.setup, "setup", "", "`COMMAND` of the shell to run first, such as 'source env/bin/activate'")
	fl.IntVar(&f.port, "port", 0, "`PORT` of this machine (default: Jupyter's own, or a free one)")
	fl.BoolVar(&f.keep, "keep", false, "leave the notebook running when this command ends")
	f.job.addTo(a, cmd)
	a.CompleteFlag(cmd, "pool", a.PoolNames)
	return cmd
}

// exitNoJupyter is the exit code of the job where Jupyter is not installed, as a shell has it for a
// command that is not found.
const exitNoJupyter = 127

// jupyterScript is the batch script of a notebook. Jupyter itself looks for a free port from 8888
// on. The token is in the script, which only the owner of the job may read.
func jupyterScript(setup, token string) string {
	return `#!/bin/bash
` + setup + `
if ! command -v jupyter >/dev/null 2>&1; then
  echo "jupyter is not installed on $(uname -n)" >&2
  exit ` + strconv.Itoa(exitNoJupyter) + `
fi
export JUPYTER_TOKEN=` + token + `
kind=lab
jupyter lab --version >/dev/null 2>&1 || kind=notebook
[ "$(id -u)" != 0 ] || set -- --allow-root
exec jupyter "$kind" --no-browser --ip=127.0.0.1 --port=8888 "$@"
`
}

// jupyterAddress is where Jupyter says that it can be reached.
var jupyterAddress = regexp.MustCompile(`http://(?:127\.0\.0\.1|localhost):(\d+)(/[^\s?]*)`)

// notebook is a job that runs Jupyter.
type notebook struct {
	*jupyterFlags
	app    *cli.App
	client *client.Client
	id     string
	token  string
}

func runJupyter(a *cli.App, ctx context.Context, c *client.Client, f *jupyterFlags) error {
	switch {
	case f.job.wrap != "":
		return fault.New(fault.Invalid, "--wrap has no place here: the job runs Jupyter").Advise("--setup runs a command first")
	case f.job.array() != "":
		return fault.New(fault.Invalid, "--array has no place here: a notebook is one job").Advise("leave it out")
	case f.port < 0 || f.port > 65535:
		return fault.New(fault.Invalid, "--port=%d is no port", f.port).Advise("write a number from 1 to 65535, or leave it out")
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	n := &notebook{jupyterFlags: f, app: a, client: c}
	if err := n.submit(ctx); err != nil {
		return markNotSubmitted(err)
	}
	err := n.serve(ctx)
	if f.keep && (err == nil || ctx.Err() != nil) {
		fmt.Fprintf(a.Err, "job %s goes on: cox forward %s 8888 reaches it again, cox cancel %s ends it\n", n.id, n.id, n.id)
		return nil
	}
	n.cancel()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// submit submits the job.
func (n *notebook) submit(ctx context.Context) error {
	var secret [24]byte
	_, _ = rand.Read(secret[:]) // never fails
	n.token = hex.EncodeToString(secret[:])
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	env, err := n.job.variables()
	if err != nil {
		return err
	}
	mask := cli.Umask()
	done, err := n.client.Submit(ctx, &api.Submit{
		Form: api.FormSbatch, File: "jupyter", Text: jupyterScript(n.setup, n.token), Pool: n.pool,
		Args: slices.Concat([]string{"--job-name=jupyter", "--output=jupyter-%j.log", "--no-requeue"}, n.job.args()), Env: env, Image: n.job.image, Environ: os.Environ(),
		Dir: dir, Host: cli.Hostname(), Umask: &mask, Limits: ownlimit.Texts(),
	})
	if err != nil {
		return err
	}
	n.id = done.ID.String()
	fmt.Fprint(n.app.Err, printer.Warnings(n.app.Page(n.app.Err), done.Warnings))
	fmt.Fprintf(n.app.Err, "job %s submitted; waiting for the notebook (cox logs -f %s shows its output)\n", n.id, n.id)
	return nil
}

// serve waits for the notebook, prints its address, and stays until ctx or the job ends.
func (n *notebook) serve(ctx context.Context) error {
	spin := n.app.ShowSpinner(func() string { return "waiting for the notebook of job " + n.id })
	port, path, last, err := n.awaitAddress(ctx)
	spin()
	if err != nil {
		return err
	}
	if port == 0 {
		return n.explainEnd(ctx, last)
	}
	w, err := interactive.OpenForward(ctx, n.client, n.id, cmp.Or(n.port, port), port, n.port == 0, n.app.Err)
	if err != nil {
		return err
	}
	defer w.Close()
	base := "http://127.0.0.1:" + strconv.Itoa(w.Port())
	if err := n.awaitAnswer(ctx, base); err != nil {
		return err
	}
	fmt.Fprintf(n.app.Out, "%s%s?token=%s\n", base, path, n.token)
	if !n.keep {
		fmt.Fprintln(n.app.Err, "Ctrl-C ends the notebook and its job")
	}
	ended, err := n.client.Wait(ctx, n.id)
	if err != nil {
		return err
	}
	n.app.Code = ended.Exit.Shell()
	fmt.Fprintf(n.app.Err, "job %s has ended: %s %s\n", n.id, ended.State, ended.Message)
	return nil
}

// awaitAddress reads the output of the job until Jupyter says where it listens. Port 0: the job ended
// before; last are its last lines.
func (n *notebook) awaitAddress(ctx context.Context) (port int, path string, last []string, err error) {
	out, err := n.client.Logs(ctx, n.id, client.LogOptions{Follow: true})
	if err != nil {
		return 0, "", nil, err
	}
	defer out.Close()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if m := jupyterAddress.FindStringSubmatch(lines.Text()); m != nil {
			port, err = strconv.Atoi(m[1])
			return port, m[2], nil, err
		}
		if last = append(last, lines.Text()); len(last) > 10 {
			last = last[1:]
		}
	}
	return 0, "", last, ctx.Err()
}

// explainEnd is the error of a notebook that did not start.
func (n *notebook) explainEnd(ctx context.Context, last []string) error {
	ended, err := n.client.Wait(ctx, n.id)
	if err != nil {
		return err
	}
	if ended.Exit.Status == exitNoJupyter {
		return fault.New(fault.Unsupported, "job %s: jupyter is not installed where the job ran", n.id).
			Advise("install it there (pip install jupyterlab), or activate the environment that has it: cox jupyter --setup 'source env/bin/activate'")
	}
	for _, line := range last {
		fmt.Fprintln(n.app.Err, "  "+printer.Clean(line))
	}
	text := strings.TrimSpace(ended.Message)
	if text == "" {
		text = fmt.Sprintf("exit %d", ended.Exit.Shell())
	}
	return fault.New(fault.Conflict, "job %s ended before the notebook started: %s, %s", n.id, ended.State, text).Advise("cox logs %s has its output", n.id)
}

// answerTime is how long Jupyter may take to answer once it has said where it listens.
const answerTime = time.Minute

// awaitAnswer waits until the notebook answers through the forwarded port.
func (n *notebook) awaitAnswer(ctx context.Context, base string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "token "+n.token)
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode < http.StatusInternalServerError {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fault.New(fault.Unavailable, "the notebook of job %s does not answer", n.id).Advise("cox logs %s has its output", n.id)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// cancel ends the job. What is wrong with it is said: the command ends in any case.
func (n *notebook) cancel() {
	ctx, stop := context.WithTimeout(context.Background(), answerTime)
	defer stop()
	ch, err := n.client.Change(ctx, &api.Change{Select: api.Select{IDs: []string{n.id}}, Verb: api.VerbCancel})
	switch {
	case err != nil:
		fmt.Fprintf(n.app.Err, "job %s could not be cancelled: %v\n", n.id, err)
	case ch.Changed > 0:
		fmt.Fprintf(n.app.Err, "job %s cancelled\n", n.id)
	}
}
