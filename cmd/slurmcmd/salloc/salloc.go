package salloc

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/address"
	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
)

const usageText = `Usage: salloc [OPTIONS...] [COMMAND [ARGUMENTS...]]
Gets nodes, runs the command (or your shell) on this machine, and gives the nodes back
when it ends. srun in it starts steps on the nodes. Options of the nodes are those of
sbatch (-N, -n, -c, -t, -p, --gpus-per-node …).
  -I, --immediate[=SECONDS]   give up instead of waiting for nodes
  -K, --kill-command[=SIGNAL] what the command gets when the nodes are taken away
      --no-shell              keep the nodes and end: scancel gives them back
  -D, --chdir=DIR             where the command runs
      --bell                  ring the bell when the nodes are there
  -Q, --quiet                 print errors alone
Example: salloc -N2 -n8 --gpus-per-node=4 -t 2:00:00
`

// Main is salloc with its arguments. The result is its exit code.
func Main(args []string, stdio slurmcmd.Stdio) int {
	c := slurmcmd.Begin("salloc", stdio)
	if err := run(c, args); err != nil {
		c.Fail(err)
		setErrorCode(c, err)
	}
	return c.Exit()
}

// setErrorCode sets the exit code of an error of salloc itself that a user chose, if he did.
func setErrorCode(c *slurmcmd.Command, err error) {
	name := "SLURM_EXIT_ERROR"
	if errors.Is(err, slurmcmd.ErrBusy) {
		name = "SLURM_EXIT_IMMEDIATE"
	}
	if code, err := strconv.Atoi(c.Getenv(name)); err == nil {
		c.Code = code
	}
}

func run(c *slurmcmd.Command, args []string) error {
	l, err := parseLine(args, c.Environ())
	switch {
	case err != nil:
		return err
	case c.Told(l.help, usageText, l.version):
		return nil
	case l.noShell && len(l.command) > 0:
		return slurmcmd.Textf("a command and --no-shell exclude each other: %s", l.command[0])
	}
	if l.clusters != nil {
		c.ChooseClusters(*l.clusters)
	}
	_, pools, err := c.CheckPools()
	if err != nil {
		return err
	}
	s := &session{Command: c, line: l, pool: strings.Join(pools, ",")}
	if s.addr, err = address.Find("", ""); err != nil {
		return err
	}
	if l.chdir != "" { // also for the command
		if err := os.Chdir(l.chdir); err != nil {
			return slurmcmd.Textf("chdir: %v", err)
		}
	}
	defer s.close()
	if err := s.submit(); err != nil {
		return err
	}
	return s.serve()
}

// submit asks the server for the allocation.
func (s *session) submit() error {
	client, err := s.Client()
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	name := "interactive"
	if len(s.line.command) > 0 {
		name = filepath.Base(s.line.command[0])
	}
	host, _ := os.Hostname()
	mask := uint32(syscall.Umask(0o022))
	syscall.Umask(int(mask))
	req := &api.Submit{
		Form: api.FormAllocation, Args: append([]string{"--job-name=" + name}, s.line.options...),
		Environ: slices.DeleteFunc(slices.Clone(s.Environ()), isSbatchVariable), Dir: dir, Host: host, Umask: &mask, Pool: s.pool,
	}
	if !s.line.noShell {
		req.Lease = int64(leaseTime.Seconds())
	}
	if s.addr.Socket != "" && !s.line.noShell {
		if err := s.listen(); err != nil {
			return err
		}
		req.Client = s.listener.Name()
	}
	v, err := client.JSON("POST", "/v1/jobs", fastclient.Submit(req))
	if err != nil {
		return slurmcmd.AllocationError(err)
	}
	s.id = v.Get("id").Text()
	if !s.line.quiet {
		for _, w := range v.Get("warnings").Items() {
			s.SayWarning(w)
		}
	}
	return nil
}

// isSbatchVariable reports whether a variable of the environment is an option of sbatch, which
// salloc does not read.
func isSbatchVariable(v string) bool { return strings.HasPrefix(v, "SBATCH_") }
