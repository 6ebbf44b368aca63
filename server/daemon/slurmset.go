package daemon

import (
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/sbatchargs"
	"github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// slurmSettings are those of a pool of the engine slurm. Names of files are absolute, and of
// this machine but for those of which it is said.
type slurmSettings struct {
	// The ways in: one of them, or rest with one of the others beside it, which then does
	// what slurmrestd cannot.
	Local bool   `json:"local"`
	SSH   string `json:"ssh"`  // [user@]host, or a name in ssh's configuration
	REST  string `json:"rest"` // http://HOST:PORT, https://HOST:PORT or unix:/PATH

	Conf     string `json:"conf"`     // SLURM_CONF for the commands, where they run
	Commands string `json:"commands"` // folder of the commands, where they run

	SSHPort       int    `json:"ssh_port"`
	SSHKey        string `json:"ssh_key"`
	SSHConfig     string `json:"ssh_config"`
	SSHKnownHosts string `json:"ssh_known_hosts"`

	RESTVersion  string   `json:"rest_version"`
	RESTCA       string   `json:"rest_ca"`
	TokenFile    string   `json:"token_file"`    // with a token that somebody renews
	TokenCommand []string `json:"token_command"` // that prints one for user %u
	TokenKey     string   `json:"token_key"`     // slurmctld's own (jwt_key)
	User         string   `json:"user"`          // whom slurmrestd is asked as, or %u of the login that looks at the cluster

	Shared string `json:"shared"` // directory of locks, as nodes see it
	Locks  string `json:"locks"`  // "node", or "node:/DIR": they are on each node, and nothing is shared

	UploadDir string `json:"upload_dir"` // for directories that come with jobs: the nodes and this machine share it

	ServicePorts string `json:"service_ports"` // FIRST-LAST, from which services have their ports

	ContainerRuntime sbatchargs.ContainerRuntime `json:"container_runtime"` // how the nodes run images; absent: pyxis

	Placed      bool     `json:"placed"`
	Partition   string   `json:"partition"`
	Reservation string   `json:"reservation"`
	Options     []string `json:"options"` // more of sbatch's, for every job

	Identity   string   `json:"identity"`   // as whom jobs are handed over; slurm.Modes
	Become     []string `json:"become"`     // words before a command of user %u
	Root       bool     `json:"root"`       // jobs of root too
	Privileged *bool    `json:"privileged"` // the way in is root or an operator to Slurm; absent: if it is root of this machine
}

// isLocalRoot reports whether commands run as root of this machine.
func (s *slurmSettings) isLocalRoot() bool { return s.Local && os.Geteuid() == 0 }

// perUser reports whether there are tokens for each user.
func (s *slurmSettings) perUser() bool {
	return s.TokenKey != "" || slices.ContainsFunc(s.TokenCommand, func(w string) bool { return strings.Contains(strings.ReplaceAll(w, "%%", ""), "%u") })
}

func (s *slurmSettings) isPrivileged() bool {
	if s.Privileged != nil {
		return *s.Privileged
	}
	return s.isLocalRoot()
}

// jobOptions are those for every job.
func (s *slurmSettings) jobOptions() []string {
	out := slices.Clone(s.Options)
	if s.Partition != "" {
		out = append(out, "--partition="+s.Partition)
	}
	if s.Reservation != "" {
		out = append(out, "--reservation="+s.Reservation)
	}
	return out
}

// need is a setting that means nothing without others.
type need struct {
	name string
	set  bool
	with bool
	of   string // the others
}

// checkSettings says what is wrong.
func (s *slurmSettings) checkSettings() error {
	switch {
	case !s.Local && s.SSH == "" && s.REST == "":
		return fault.New(fault.Invalid, "say how the server reaches the cluster: --local, --ssh LOGIN or --rest URL").
			Advise("--local if Slurm's commands are on the server's machine, --ssh LOGIN if they are on a login node, --rest URL for slurmrestd")
	case s.Local && s.SSH != "":
		return fault.New(fault.Invalid, "settings: local and ssh: the commands run here or on %.70s", s.SSH).Advise("leave one of them")
	case strings.HasPrefix(s.SSH, "-") || strings.ContainsAny(s.SSH, " \t\n"):
		return fault.New(fault.Invalid, "settings: ssh: %.70q is no login", s.SSH).Advise("write [user@]host, or a name in ssh's configuration")
	case s.SSHPort < 0 || s.SSHPort > 65535:
		return fault.New(fault.Invalid, "settings: ssh_port: %d is no port", s.SSHPort).Advise("write 1 to 65535; 22 is what ssh takes itself")
	}
	commands := s.Local || s.SSH != ""
	for _, n := range []need{
		{"conf", s.Conf != "", commands || len(s.TokenCommand) > 0, "local, ssh or token_command"},
		{"commands", s.Commands != "", commands, "local or ssh"},
		{"ssh_port", s.SSHPort != 0, s.SSH != "", "ssh"},
		{"ssh_key", s.SSHKey != "", s.SSH != "", "ssh"},
		{"ssh_config", s.SSHConfig != "", s.SSH != "", "ssh"},
		{"ssh_known_hosts", s.SSHKnownHosts != "", s.SSH != "", "ssh"},
		{"rest_version", s.RESTVersion != "", s.REST != "", "rest"},
		{"rest_ca", s.RESTCA != "", strings.HasPrefix(s.REST, "https://"), "rest, with an address that begins with https://"},
		{"token_file", s.TokenFile != "", s.REST != "", "rest"},
		{"token_command", len(s.TokenCommand) > 0, s.REST != "", "rest"},
		{"token_key", s.TokenKey != "", s.REST != "", "rest"},
		{"user", s.User != "", s.REST != "" || s.hasUserLogins(), "rest, or an ssh login with %u"},
		{"become", len(s.Become) > 0, commands && !s.hasUserLogins(), "local, or ssh without %u"},
	} {
		if n.set && !n.with {
			return fault.New(fault.Invalid, "settings: %s means nothing without %s", n.name, n.of).Advise("leave it, or add %s", n.of)
		}
	}
	if err := s.checkTokens(); err != nil {
		return err
	}
	if err := s.checkLocks(); err != nil {
		return err
	}
	if err := s.checkFiles(); err != nil {
		return err
	}
	if err := s.checkIdentity(); err != nil {
		return err
	}
	if err := s.checkUploadDir(); err != nil {
		return err
	}
	if r := s.ContainerRuntime; r != "" && !slices.Contains(sbatchargs.ContainerRuntimes, r) {
		return fault.New(fault.Invalid, "settings: container_runtime: %.70q is none of pyxis, podman, apptainer, enroot, none", r).Advise("name what runs images on the nodes")
	}
	if _, err := s.servicePorts(); err != nil {
		return err
	}
	return s.checkOptions()
}

// servicePorts is the range from which services have their ports; zero: nothing is said.
func (s *slurmSettings) servicePorts() (out [2]int, err error) {
	if s.ServicePorts == "" {
		return out, nil
	}
	first, last, ok := strings.Cut(s.ServicePorts, "-")
	for i, text := range []string{first, last} {
		n, err := strconv.Atoi(text)
		ok = ok && err == nil && n >= 1024 && n <= 65535
		out[i] = n
	}
	if !ok || out[1]-out[0] < script.PortBlock-1 {
		return out, fault.New(fault.Invalid, "settings: service_ports: %.70q is no range of ports", s.ServicePorts).
			Advise("write FIRST-LAST, for example %d-%d: at least %d ports from 1024 to 65535", slurm.FirstServicePort, slurm.LastServicePort, script.PortBlock)
	}
	return out, nil
}

func (s *slurmSettings) checkTokens() error {
	var given []string
	for name, set := range map[string]bool{"token_file": s.TokenFile != "", "token_command": len(s.TokenCommand) > 0, "token_key": s.TokenKey != ""} {
		if set {
			given = append(given, name)
		}
	}
	slices.Sort(given)
	switch {
	case len(given) > 1:
		return fault.New(fault.Invalid, "settings: %s: tokens come from one place", strings.Join(given, " and ")).Advise("leave one of them")
	case len(given) == 0 && s.REST != "" && !strings.HasPrefix(s.REST, "unix:"):
		return fault.New(fault.Invalid, "settings: where do tokens for %.100s come from?", s.REST).
			Advise(`token_file=FILE that somebody writes anew; token_command=["scontrol","token","username=%%u","lifespan=3600"]; or token_key=FILE, slurmctld's own`)
	}
	return nil
}

// onNodes is the directory on each node in which the locks are; empty: the nodes share one.
func (s *slurmSettings) onNodes() string {
	if s.Locks == "node" {
		return "/var/tmp"
	}
	dir, _ := strings.CutPrefix(s.Locks, "node:")
	return dir
}

// plain are the characters that the name of a directory of locks on nodes may have: it stands
// in scripts, and is compared with those of mounts.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-"

func (s *slurmSettings) checkLocks() error {
	dir := s.onNodes()
	switch {
	case s.Locks == "" && s.Shared == "":
		return fault.New(fault.Invalid, "settings: shared is needed: a directory that all nodes of the cluster share, for locks by which no job begins twice").
			Advise("--shared DIR, in which everybody may create files: mkdir -m 1733 DIR (it is made if it is not there); where nodes share nothing: --placed --set locks=node, for which docs/explanation/slurm-node-locks.md says what is weaker")
	case s.Locks == "":
		return nil
	case s.Shared != "":
		return fault.New(fault.Invalid, "settings: shared and locks: the locks are in a directory that nodes share, or on each node").Advise("leave one of them; shared is the better one")
	case s.Locks != "node" && !strings.HasPrefix(s.Locks, "node:"), !path.IsAbs(dir), path.Clean(dir) == "/", strings.Trim(dir, plain) != "", strings.Contains(dir, ".."):
		return fault.New(fault.Invalid, "settings: locks: %.70q is no place for locks", s.Locks).Advise("write node (they are in /var/tmp), or node:/DIR with letters, digits and /._-")
	case !s.Placed:
		return fault.New(fault.Invalid, "settings: locks=node needs placed: where Slurm chooses the nodes it may begin a job again on another one, which has no lock of it").Advise("add --placed, or --shared DIR in its place")
	case !s.Local && s.SSH == "":
		return fault.New(fault.Invalid, "settings: locks=node needs Slurm's commands: slurmrestd does not say when slurmctld began").Advise("add --local or --ssh LOGIN beside --rest, or --shared DIR in its place")
	}
	return nil
}

func (s *slurmSettings) checkFiles() error {
	for _, f := range []struct{ name, file string }{
		{"shared", s.Shared},
		{"upload_dir", s.UploadDir},
		{"conf", s.Conf},
		{"commands", s.Commands},
		{"ssh_key", s.SSHKey},
		{"ssh_config", s.SSHConfig},
		{"ssh_known_hosts", s.SSHKnownHosts},
		{"rest_ca", s.RESTCA},
		{"token_file", s.TokenFile},
		{"token_key", s.TokenKey},
	} {
		if f.file != "" && !path.IsAbs(f.file) && (f.name != "ssh_config" || f.file != "none") {
			return fault.New(fault.Invalid, "settings: %s: %.100s is no absolute name", f.name, f.file).Advise("write it from / on: the server has a working directory of its own")
		}
		if strings.ContainsAny(f.file, "\n\x00\"") {
			return fault.New(fault.Invalid, "settings: %s: %.100q has a character that no such name may have here", f.name, f.file).Advise("take another name")
		}
	}
	return nil
}

// seen are options that the engine says of each job itself.
var seen = []string{"array", "comment", "dependency", "begin", "hold", "wait", "test-only", "parsable", "wrap", "clusters", "job-name", "output", "error", "input", "chdir", "uid", "gid", "export", "requeue", "no-requeue"}

func (s *slurmSettings) checkOptions() error {
	for _, o := range s.Options {
		name, _, _ := strings.Cut(strings.TrimPrefix(o, "--"), "=")
		switch {
		case !strings.HasPrefix(o, "--") || name == "":
			return fault.New(fault.Invalid, "settings: options: %.70q is no long option of sbatch's", o).Advise(`write options=["--name=value"]`)
		case slices.Contains(seen, name):
			return fault.New(fault.Invalid, "settings: options: --%s is not for all jobs of a pool: the engine says it of each", name).Advise("leave it")
		case name == "partition" && s.Partition != "", name == "reservation" && s.Reservation != "":
			return fault.New(fault.Invalid, "settings: options: --%s is said by %[1]s too", name).Advise("leave one of them")
		}
	}
	for name, value := range map[string]string{"partition": s.Partition, "reservation": s.Reservation} {
		if strings.ContainsAny(value, " \t\n=") || strings.HasPrefix(value, "-") {
			return fault.New(fault.Invalid, "settings: %s: %.70q is no name of one", name, value).Advise("scontrol show %s lists them", name)
		}
	}
	return nil
}

// checkUploadDir refuses directories for jobs that could not have them: they belong to the job's owner
// where this server is root's, and to the server's user elsewhere.
func (s *slurmSettings) checkUploadDir() error {
	service := s.submitIdentity().Mode == slurm.AsService
	switch {
	case s.UploadDir == "":
		return nil
	case os.Geteuid() == 0 && service && !s.Local:
		return fault.New(fault.Invalid, "settings: upload_dir: all jobs run as one user of the cluster, whom this server cannot give directories to").Advise("add identity, so that jobs run as their owners, or run the server as that user")
	case os.Geteuid() != 0 && !service:
		return fault.New(fault.Invalid, "settings: upload_dir: jobs run as their owners, and this server is not root and cannot give directories to them").Advise("run the server as root, or leave upload_dir out")
	}
	return nil
}
