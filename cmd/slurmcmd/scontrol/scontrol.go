package scontrol

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/fleet"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/getopt"
)

const helpText = `scontrol [OPTIONS] COMMAND
  show job|node|partition|config [NAME]
  show hostnames LIST, hostlist NAMES, hostlistsorted NAMES
  hold|uhold|release JOBS             jobs: 7, 7_3, 7_[1-4], lists of these, jobname=NAME
  requeue|requeuehold|suspend|resume|top JOBS
  update JobId=JOBS FIELD=VALUE...    TimeLimit, Partition, Account, QOS, Priority, Nice, JobName, Comment, StartTime, Deadline,
                                      Dependency, Requeue, ArrayTaskThrottle, NumNodes, ReqNodeList, ExcNodeList, Features
  update NodeName=NODES State=DRAIN|RESUME Reason=TEXT
  wait_job JOB, write batch_script JOB [FILE], ping, version
  -o, --oneliner   a record on one line        -d, --details        -Q, --quiet        --json
`

// Main is scontrol with its arguments. The result is its exit code.
func Main(args []string, stdio slurmcmd.Stdio) int {
	s := &command{Command: slurmcmd.Begin("scontrol", stdio)}
	return s.Finish(s.run(args))
}

// command is a running scontrol with its options.
type command struct {
	*slurmcmd.Command
	oneLine, details, quiet bool
	json                    bool
	jsonForm                string
	help, version           bool

	nodes []fleet.Node // for -d; nil: not asked yet
}

// Options lists the options of scontrol, for documents and tests.
func Options() []slurmcmd.Option { return (&command{Command: &slurmcmd.Command{}}).options() }

func (s *command) options() []slurmcmd.Option {
	return append(s.ClusterOptions(), []slurmcmd.Option{
		slurmcmd.Ignored("all", 'a', getopt.None),
		slurmcmd.Autocomplete(),
		slurmcmd.Flag("details", 'd', &s.details),
		slurmcmd.Ignored("federation", 0, getopt.None),
		slurmcmd.Flag("help", 'h', &s.help),
		slurmcmd.Ignored("future", 'F', getopt.None), // it adds nodes that are not there yet, of which there are none
		slurmcmd.Ignored("hide", 0, getopt.None),
		{Long: "json", Arg: getopt.Optional, Do: func(v string) error { s.json, s.jsonForm = true, v; return nil }},
		slurmcmd.Ignored("local", 0, getopt.None),
		slurmcmd.Flag("oneliner", 'o', &s.oneLine),
		slurmcmd.Flag("quiet", 'Q', &s.quiet),
		slurmcmd.Ignored("sibling", 0, getopt.None),
		slurmcmd.Refused("uid", 'u', getopt.Required, "run scontrol as that user"),
		slurmcmd.Alias("usage", "help"),
		slurmcmd.Ignored("verbose", 'v', getopt.None),
		slurmcmd.Flag("version", 'V', &s.version),
		slurmcmd.Refused("yaml", 0, getopt.Optional, "--json is there"),
	}...)
}

func (s *command) run(args []string) error {
	rest, err := slurmcmd.Parse(s.options(), args)
	switch {
	case err != nil:
		return err
	case s.version:
		s.Out.WriteString(slurmcmd.Version + "\n")
		return nil
	case s.help || len(rest) == 0:
		s.Out.WriteString(helpText)
		return nil
	}
	s.ChooseClustersFrom("SLURM_CLUSTERS")
	if _, err := s.CheckClusters(); err != nil {
		return err
	}
	return s.callWord(rest[0], rest[1:])
}

// words are the commands with the least number of letters that each needs.
var words = []struct {
	name string
	min  int
	do   func(s *command, args []string) error
}{
	{"show", 2, (*command).showEntity},
	{"hold", 2, func(s *command, a []string) error { return s.changeJobs("hold", "hold", a) }},
	{"uhold", 1, func(s *command, a []string) error { return s.changeJobs("uhold", "hold", a) }},
	{"holdu", 5, func(s *command, a []string) error { return s.changeJobs("holdu", "hold", a) }},
	{"release", 3, func(s *command, a []string) error { return s.changeJobs("release", "release", a) }},
	{"requeue", 3, func(s *command, a []string) error { return s.changeJobs("requeue", "requeue", a) }},
	{"requeuehold", 8, func(s *command, a []string) error { return s.changeJobs("requeuehold", "requeue", a) }},
	{"suspend", 2, func(s *command, a []string) error { return s.changeJobs("suspend", "suspend", a) }},
	{"resume", 3, func(s *command, a []string) error { return s.changeJobs("resume", "resume", a) }},
	{"top", 2, func(s *command, a []string) error { return s.changeJobs("top", "top", a) }},
	{"update", 1, (*command).updateEntity},
	{"create", 1, (*command).createReservation},
	{"delete", 1, (*command).deleteReservation},
	{"wait_job", 2, (*command).waitJob},
	{"write", 2, (*command).writeScript},
	{"ping", 3, (*command).pingServer},
	{"version", 4, func(s *command, _ []string) error { s.Out.WriteString(slurmcmd.Version + "\n"); return nil }},
	{"help", 2, func(s *command, _ []string) error { s.Out.WriteString(helpText); return nil }},
	{"exit", 1, func(*command, []string) error { return nil }},
	{"quit", 4, func(*command, []string) error { return nil }},
}

// missing are commands of Slurm's that are not there, with the least number of letters that each
// needs and what is instead.
var missing = []struct {
	name    string
	min     int
	instead string
}{
	{"abort", 5, "cox down"},
	{"cancel_reboot", 3, ""},
	{"checkpoint", 3, ""},
	{"cluster", 2, "-M names the cluster"},
	{"completing", 2, "squeue -t CG"},
	{"errnumstr", 2, ""},
	{"fsdampeningfactor", 3, ""},
	{"getaddrs", 8, "scontrol show node NAME has NodeAddr"},
	{"gethost", 7, "scontrol show node NAME has NodeAddr"},
	{"getent", 6, ""},
	{"listjobs", 5, "squeue -w NODE"},
	{"listpids", 1, "cox show JOB"},
	{"liststeps", 5, "squeue -s"},
	{"notify", 1, ""},
	{"pidinfo", 3, ""},
	{"power", 2, ""},
	{"reboot", 3, ""},
	{"reboot_nodes", 7, ""},
	{"reconfigure", 3, "restart the server: jobs go on"},
	{"schedloglevel", 3, ""},
	{"setdebug", 3, "cox up -v"},
	{"setdebugflags", 9, "cox up -v"},
	{"shutdown", 8, "cox down"},
	{"takeover", 8, ""},
	{"token", 3, "cox token create"},
	{"all", 2, "it belongs to the interactive form, which is not built yet: write --all before the command"},
	{"details", 3, "it belongs to the interactive form, which is not built yet: write --details before the command"},
	{"hide", 2, "it belongs to the interactive form, which is not built yet: write --hide before the command"},
	{"oneliner", 1, "it belongs to the interactive form, which is not built yet: write --oneliner before the command"},
	{"verbose", 4, "it belongs to the interactive form, which is not built yet: write --verbose before the command"},
}

func (s *command) callWord(word string, args []string) error {
	word = strings.ToLower(word)
	for _, w := range words {
		if len(word) >= w.min && strings.HasPrefix(w.name, word) {
			if s.json && w.name != "show" {
				return fault.New(fault.Unsupported, "%s --json is not built yet", w.name).Advise("leave --json out; show job, node and partition have it")
			}
			return w.do(s, args)
		}
	}
	for _, m := range missing {
		if len(word) < m.min || !strings.HasPrefix(m.name, word) {
			continue
		}
		err := fault.New(fault.Unsupported, "%s is not built yet", m.name)
		if m.instead != "" {
			return err.Advise("%s", m.instead)
		}
		return err
	}
	return plainErrorf("invalid keyword: %s", word)
}

func plainErrorf(format string, args ...any) error {
	return &slurmcmd.PlainError{Text: fmt.Sprintf(format, args...)}
}

// pingServer says whether a server answers.
func (s *command) pingServer(_ []string) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	v, err := c.JSON("GET", "/v1", nil)
	if err != nil {
		host := s.Getenv("HOSTNAME")
		fmt.Fprintf(s.Out, "Slurmctld(primary) at %s is DOWN\n", host)
		return err
	}
	fmt.Fprintf(s.Out, "Slurmctld(primary) at %s is UP\n", v.Get("host").Text())
	return nil
}

// waitPoll is how often a job that waits is looked at.
const waitPoll = 50 * time.Millisecond

// waitJob stays until a job's allocation is ready: until the job runs and is no longer CONFIGURING.
func (s *command) waitJob(args []string) error {
	if len(args) == 0 {
		return plainErrorf("too few arguments for keyword:wait_job")
	}
	c, err := s.Client()
	if err != nil {
		return err
	}
	for {
		v, err := c.JSON("GET", "/v1/jobs/"+fastclient.Segment(args[0]), nil)
		if slurmcmd.IsNotFound(err) {
			return plainErrorf("scontrol: error: Job is not running: %s: Invalid job id specified", args[0])
		}
		if err != nil {
			return err
		}
		switch state := v.Get("state").Text(); {
		case state == "PENDING", slices.Contains(v.Get("flags").Texts(), "CONFIGURING"):
			time.Sleep(waitPoll)
			continue
		case state == "RUNNING", state == "SUSPENDED":
			fmt.Fprintf(s.Err, "scontrol: Nodes are ready for job %s\n", args[0])
			return nil
		}
		return plainErrorf("scontrol: error: Job %s is in state %s", args[0], v.Get("state").Text())
	}
}
