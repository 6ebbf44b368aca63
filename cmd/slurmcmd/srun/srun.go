package srun

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/coxswain-sched/coxswain/agent/ownlimit"
	stepsrun "github.com/coxswain-sched/coxswain/agent/step/srun"
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/address"
	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/model/fault"
)

const usageText = `Usage: srun [OPTIONS...] COMMAND [ARGUMENTS...]
Outside of a job: starts a job, runs the command in every task, and stays with it.
Options of the job are those of sbatch (-N, -n, -c, -t, -p, --gpus-per-node …), those
of its step are those of srun (-l, -o, -i, -K, -W, --multi-prog …): see
docs/reference/srun-outside.md.
`

// Main is srun outside of an allocation. The result is its exit code.
func Main(args []string, stdio slurmcmd.Stdio) int {
	c := slurmcmd.Begin("srun", stdio)
	if err := run(c, args); err != nil {
		c.Fail(err)
		setErrorCode(c)
	}
	return c.Exit()
}

// setErrorCode sets the exit code of an error of srun itself that a user chose, if he did.
func setErrorCode(c *slurmcmd.Command) {
	if code, err := strconv.Atoi(c.Getenv("SLURM_EXIT_ERROR")); err == nil {
		c.Code = code
	}
}

func run(c *slurmcmd.Command, args []string) error {
	l, err := parseLine(args, c.Environ())
	switch {
	case err != nil:
		return err
	case l.job != "":
		return joinJob(c, l.job, args)
	case c.Told(l.help, usageText, l.version):
		return nil
	case len(l.command) == 0:
		return slurmcmd.Textf("No command given to execute.")
	}
	if l.clusters != nil {
		c.ChooseClusters(*l.clusters)
	}
	c.ChooseClustersFrom("SLURM_CLUSTERS")
	_, pools, err := c.CheckPools()
	if err != nil {
		return err
	}
	s := &session{Command: c, line: l, pool: strings.Join(pools, ",")}
	s.Err = &locked{w: s.Err}
	if code, ok := stepsrun.CheckOptions(l.step, s.Err); !ok {
		c.Code = code
		setErrorCode(c)
		return nil
	}
	if s.addr, err = address.Find("", ""); err != nil {
		return err
	}
	if l.terminal && s.addr.Socket == "" {
		return errNoTerminal
	}
	defer s.close()
	if err := s.submitJob(); err != nil {
		return err
	}
	if s.tested {
		return nil
	}
	return s.awaitJob()
}

// errNoTerminal is --pty where the nodes are not of this machine.
var errNoTerminal = fault.New(fault.Unsupported, "--pty needs nodes of this machine").Advise("salloc, and in it: cox shell $SLURM_JOB_ID")

// submitJob hands the command to the server.
func (s *session) submitJob() (err error) {
	if s.client, err = s.Client(); err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	mask := uint32(syscall.Umask(0o022))
	syscall.Umask(int(mask))
	req := &api.Submit{
		Form: api.FormCommand, Args: append([]string{"--job-name=" + filepath.Base(s.line.command[0])}, s.line.options...),
		Command: s.line.command, Step: s.line.step, KillBad: &s.line.killBad,
		Environ: s.Environ(), Dir: dir, Host: host, Umask: &mask, Limits: ownlimit.Texts(), TestOnly: s.line.testOnly, Pool: s.pool,
	}
	if s.addr.Socket != "" && !s.line.testOnly {
		if err := s.listen(); err != nil {
			return err
		}
		req.Client = s.listener.Name()
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
