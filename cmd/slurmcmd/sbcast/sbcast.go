package sbcast

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/env"
	stepsrun "github.com/coxswain-sched/coxswain/agent/step/srun"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/srun"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/getopt"
)

const usageText = `Usage: sbcast [-CfFjpstvV] SOURCE DEST
`

const helpText = `Usage: sbcast [OPTIONS] SOURCE DEST
  -f, --force              replace destination file as required
  -j, --jobid=#            the job to whose nodes the file goes, where it is not this one
  -p, --preserve           preserve modes and times of source file
  -v, --verbose            say what was copied
  -C, --compress[=lib]     no effect: the file goes as it is
  -F, --fanout=num         no effect
  -s, --size=num           no effect
  -t, --timeout=secs       give up after that many seconds
  -V, --version            print version information and exit
      --usage, --help      this text
`

// caster is what is asked for.
type caster struct {
	*slurmcmd.Command
	force, preserve, verbose bool
	job, timeout             string
	help, usage, version     bool
}

// Options lists the options of sbcast, for documents and tests.
func Options() []slurmcmd.Option { return (&caster{Command: &slurmcmd.Command{}}).options() }

func (c *caster) options() []slurmcmd.Option {
	return []slurmcmd.Option{
		slurmcmd.Autocomplete(),
		slurmcmd.Ignored("compress", 'C', getopt.Optional),
		slurmcmd.Ignored("exclude", 0, getopt.Required), // of --send-libs
		slurmcmd.Ignored("fanout", 'F', getopt.Required),
		slurmcmd.Flag("force", 'f', &c.force),
		slurmcmd.Flag("help", 0, &c.help),
		slurmcmd.Text("jobid", 'j', &c.job),
		slurmcmd.Flag("preserve", 'p', &c.preserve),
		{Long: "send-libs", Arg: getopt.Optional, Do: refuseLibraries},
		slurmcmd.Ignored("size", 's', getopt.Required),
		slurmcmd.Text("timeout", 't', &c.timeout),
		slurmcmd.Flag("usage", 0, &c.usage),
		slurmcmd.Flag("verbose", 'v', &c.verbose),
		slurmcmd.Flag("version", 'V', &c.version),
	}
}

// refuseLibraries is --send-libs, which may be switched off.
func refuseLibraries(value string) error {
	if value == "no" {
		return nil
	}
	return fault.New(fault.Unsupported, "--send-libs is not built yet").Advise("copy the libraries by sbcast too, and name their folder in LD_LIBRARY_PATH")
}

// Main is sbcast with its arguments. The result is its exit code.
func Main(args []string, stdio slurmcmd.Stdio) int {
	c := &caster{Command: slurmcmd.Begin("sbcast", stdio)}
	if len(args) > 0 && args[0] == receiveOption {
		return c.Finish(c.receiveFile(args[1:]))
	}
	return c.Finish(c.run(args))
}

func (c *caster) run(args []string) error {
	c.readEnvironment()
	rest, err := slurmcmd.Parse(c.options(), args)
	switch {
	case err != nil:
		return err
	case c.Told(c.help, helpText, false), c.Told(c.usage, usageText, c.version):
		return nil
	case len(rest) != 2:
		c.Errorf("Need two file names, have %d names", len(rest))
		c.Out.WriteString(usageText)
		c.Code = 1
		return nil
	}
	source, err := os.Open(rest[0])
	if err != nil {
		return slurmcmd.Textf("Can't open `%s`: %w", rest[0], errors.Unwrap(err))
	}
	defer source.Close()
	st, err := source.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return slurmcmd.Textf("Can't copy `%s`: it is no regular file", rest[0])
	}
	alloc, err := c.findAllocation()
	if err != nil {
		return err
	}
	return c.copyFile(alloc, source, st, rest[1])
}

// readEnvironment reads the variables of options that have an effect.
func (c *caster) readEnvironment() {
	c.force = c.Getenv("SBCAST_FORCE") != ""
	c.preserve = c.Getenv("SBCAST_PRESERVE") != ""
	c.timeout = c.Getenv("SBCAST_TIMEOUT")
}

// findAllocation finds the allocation: our own, or that of another job of this machine.
func (c *caster) findAllocation() (*step.Alloc, error) {
	name, _, _ := strings.Cut(c.job, ".")
	switch {
	case step.IsOwn(name, os.Getenv):
		return step.LoadOwn(name)
	case name == "":
		return nil, fault.New(fault.Invalid, "Need a job id to run this command.").Advise("run sbcast in a job's script, or name the job with --jobid")
	}
	a, err := srun.Allocation(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Unsupported, "job %s runs on another machine", name).Advise("run sbcast in the job's script")
	}
	return a, err
}

// copyFile runs the step that writes the file on the nodes.
func (c *caster) copyFile(a *step.Alloc, source *os.File, st fs.FileInfo, dest string) error {
	nodes := len(a.Nodes)
	if sharesFiles(a) {
		nodes = 1
	}
	n := strconv.Itoa(nodes)
	args := []string{"--quiet", "--overlap", "--mpi=none", "--gres=none", "--job-name=sbcast", "--nodes=" + n, "--ntasks=" + n, "--ntasks-per-node=1", "--cpus-per-task=1"}
	if c.timeout != "" {
		seconds, err := strconv.Atoi(c.timeout)
		if err != nil || seconds < 1 {
			return slurmcmd.Textf("Invalid numeric value %q for --timeout.", c.timeout)
		}
		args = append(args, "--time=0:"+c.timeout)
	}
	program, err := ownProgram(a)
	if err != nil {
		return err
	}
	write := writing{Name: filepath.Base(source.Name()), Dest: dest, Mode: st.Mode().Perm(), Force: c.force, Size: st.Size()}
	if c.preserve {
		write.Modified = st.ModTime()
	}
	args = slices.Concat(args, []string{"--"}, program, []string{receiveOption}, write.asWords())
	v := stepsrun.Invocation{
		Alloc: a, Args: args, Environ: env.Allocation(a, c.Environ()),
		Stdio: step.Stdio{In: source, Out: c.Raw, Err: withoutExits{c.Err}},
	}
	began := time.Now()
	if c.Code, _ = v.Run(); c.Code == 0 && c.verbose {
		c.Sayf("%s: %d bytes on %s nodes in %.1f s", dest, st.Size(), n, time.Since(began).Seconds())
	}
	return nil
}

// withoutExits leaves out what srun says of a task's exit code: the task has said what is wrong.
type withoutExits struct{ to io.Writer }

// Write takes whole lines, as srun writes them.
func (w withoutExits) Write(b []byte) (int, error) {
	if bytes.HasPrefix(b, []byte("srun: error: ")) && bytes.Contains(b, []byte(": Exited with exit code ")) {
		return len(b), nil
	}
	return w.to.Write(b)
}

// ownProgram is the command of sbcast on the nodes.
func ownProgram(a *step.Alloc) ([]string, error) {
	if name := filepath.Join(a.Bin, "sbcast"); a.Bin != "" {
		if _, err := os.Stat(name); err == nil {
			return []string{name}, nil
		}
	}
	if filepath.Base(os.Args[0]) == "sbcast" {
		name, err := exec.LookPath(os.Args[0])
		return []string{name}, err
	}
	self, err := os.Executable()
	return []string{self, "sbcast"}, err
}

// sharesFiles reports whether what one node of the job writes all others have.
func sharesFiles(a *step.Alloc) bool {
	for _, n := range a.Nodes {
		if !n.Virtual {
			return false
		}
	}
	return true
}
