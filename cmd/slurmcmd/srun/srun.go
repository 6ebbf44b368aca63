package srun

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/address"
	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
)

const usageText = `Usage: srun [OPTIONS...] COMMAND [ARGUMENTS...]
Outside of a job: starts a job that runs the command in every task, and stays with it.
Options: those of sbatch (-N, -n, -c, -t, -p, --gpus-per-node …). Inside of a job srun
starts a step: see docs/reference/srun.md.
`

// Main is srun outside of an allocation. The result is its exit code.
func Main(args []string, stdio slurmcmd.Stdio) int {
	c := slurmcmd.Begin("srun", stdio)
	return c.Finish(run(c, args))
}

func run(c *slurmcmd.Command, args []string) error {
	l, err := parseLine(args)
	switch {
	case err != nil:
		return err
	case c.Told(l.help, usageText, l.version):
		return nil
	case len(l.command) == 0:
		return slurmcmd.Textf("No command given to execute.")
	}
	if l.clusters != nil {
		c.ChooseClusters(*l.clusters)
	}
	c.ChooseClustersFrom("SLURM_CLUSTERS")
	if _, err := c.CheckClusters(); err != nil {
		return err
	}
	a, err := address.Find("", "")
	if err != nil {
		return err
	}
	s := &session{Command: c, addr: a, line: l, pipes: pipes{out: -1, err: -1}}
	s.Err = &locked{w: s.Err}
	defer s.pipes.close()
	if err := s.connectServer(); err != nil {
		return err
	}
	if err := s.submitJob(); err != nil {
		return err
	}
	if s.tested {
		return nil
	}
	return s.awaitJob()
}

// session is a job that srun stays with.
type session struct {
	*slurmcmd.Command
	addr   address.Address
	line   *line
	client *fastclient.Client
	pipes  pipes
	id     string
	tested bool // --test-only: there is no job
}

func (s *session) connectServer() (err error) {
	s.client, err = s.Client()
	return err
}

// submitJob hands the command to the server.
func (s *session) submitJob() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	mask := uint32(syscall.Umask(0o022))
	syscall.Umask(int(mask))
	options := append([]string{"--job-name=" + filepath.Base(s.line.command[0])}, s.line.options...)
	if s.addr.Socket != "" && !s.line.output {
		if err := s.pipes.openPipes(!s.line.errors); err != nil {
			return fmt.Errorf("make a pipe for the job's output: %w", err)
		}
		options = append(options, "--output="+s.pipes.name("out"))
		if !s.line.errors {
			options = append(options, "--error="+s.pipes.name("err"))
		}
	}
	if name, ok := inputFile(); ok && !s.line.input {
		options = append(options, "--input="+name)
	}
	req := &api.Submit{Form: api.FormCommand, Args: options, Command: s.line.command, Environ: s.Environ(), Dir: dir, Host: host, Umask: &mask, TestOnly: s.line.testOnly}
	if s.line.isSingleTask() {
		req.Form, req.Command = api.FormSbatch, nil
		req.Args = append(req.Args, "--no-requeue") // of a batch script, which this is not for srun's user
		req.File, req.Text = s.line.batchScript()
	}
	v, err := s.client.JSON("POST", "/v1/jobs", fastclient.Submit(req))
	if err != nil {
		return slurmcmd.AllocationError(err)
	}
	s.id = v.Get("id").Text()
	if !s.line.quiet {
		for _, o := range s.line.unused {
			s.Sayf("--%s has no effect here: %s", o.Name(), o.JobWhy)
		}
		for _, w := range v.Get("warnings").Items() {
			s.SayWarning(w)
		}
	}
	if v.Get("test_only").Bool() {
		s.tested = true
		s.PrintEstimate(v.Get("estimate"))
	}
	return nil
}

// inputFile is the name of standard input if it is a file.
func inputFile() (string, bool) {
	st, err := os.Stdin.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return "", false
	}
	name, err := os.Readlink("/proc/self/fd/0")
	return name, err == nil
}

// sayEnd takes the exit code, and says what went wrong where that is no matter of the
// command's own exit code.
func (s *session) sayEnd(v fastclient.Value) {
	s.Code = slurmcmd.ExitCode(v)
	state, message := v.Get("state").Text(), v.Get("message").Text()
	switch {
	case state == "COMPLETED" || s.line.quiet:
	case message != "":
		s.Errorf("job %s %s: %s", s.id, state, message)
	case state != "FAILED":
		s.Errorf("job %s: %s", s.id, state)
	case s.line.isSingleTask(): // of several tasks their nodes have spoken
		node := ""
		for _, c := range v.Get("claims").Items() {
			node = c.Get("node").Text()
			break
		}
		s.Errorf("%s: task 0: %s", node, endText(s.Code))
	}
}

// endText is how a task ended, in srun's words.
func endText(code int) string {
	if code > 128 {
		return syscall.Signal(code - 128).String()
	}
	return fmt.Sprintf("Exited with exit code %d", code)
}

// followOutput copies the output through the API, over a connection of its own.
func (s *session) followOutput() {
	c := fastclient.New(s.addr)
	defer c.Close()
	r, err := c.Get(fastclient.Query("/v1/jobs/"+s.id+"/logs", "follow", "true"), "text/plain")
	if err == nil {
		_, err = io.Copy(s.Raw, r)
	}
	if err != nil {
		s.Errorf("the output of job %s: %v", s.id, err)
	}
}

// passSignal sends a signal to the job; an interrupt or a request to end cancels it.
func (s *session) passSignal(sig syscall.Signal) {
	var o fastclient.Object
	o.Raw("select", fastclient.Select(&api.Select{IDs: []string{s.id}}))
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		o.Text("verb", api.VerbCancel)
	default:
		o.Text("verb", api.VerbSignal)
		o.Text("signal", fmt.Sprint(int(sig)))
		o.True("full", s.line.isSingleTask()) // then the command is the batch script
	}
	c := fastclient.New(s.addr)
	defer c.Close()
	if _, err := c.JSON("POST", "/v1/jobs/change", o.End()); err != nil {
		s.Errorf("pass on %v: %v", sig, err)
	} else if sig == syscall.SIGINT {
		s.Sayf("job %s is being cancelled", s.id)
	}
}

// sayQueued says that the job waits, and why.
func (s *session) sayQueued() {
	if s.line.quiet {
		return
	}
	c := fastclient.New(s.addr)
	defer c.Close()
	v, err := c.JSON("GET", "/v1/jobs/"+s.id, nil)
	if err != nil || v.Get("state").Text() != "PENDING" {
		return
	}
	why := ""
	if v.Has("why") {
		why = ": " + slurmcmd.ReasonText(v.Get("why"))
	}
	s.Sayf("job %s queued and waiting for resources%s", s.id, why)
}
