// Package command reaches a Slurm cluster by its commands: sbatch, squeue, sacct, sinfo,
// scancel, scontrol. Where they run is for a Runner to say: on this machine, or on a login
// node over SSH.
//
// It asks for fields by name with a separator of its own, which Slurm 22.05 and all later
// ones answer alike, and not for --json, which 22.05 has for some commands only and whose
// form changes with each version. Host lists are expanded here.
//
// A command that does not answer before its context ends is killed, and what it was to do
// is unknown (fault.Unavailable): an sbatch may have submitted all the same. Exit codes
// and Slurm's words on standard error tell a refusal from a cluster that does not answer.
package command

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Runner runs a command where the cluster's commands are.
type Runner interface {
	// Run returns what it printed and its exit code. An error means that nobody knows
	// whether it ran.
	Run(ctx context.Context, c Call) (Result, error)
	Close() error
}

// Call is one command.
type Call struct {
	Name  string
	Args  []string
	Env   []string // NAME=VALUE, beside what the Runner has
	Job   []string // NAME=VALUE, in an open file of number 3: a job's environment, which is the user's
	Stdin []byte
	User  string // as whom; empty: as the Runner
}

// Result is how a command ended.
type Result struct {
	Stdout, Stderr []byte
	Code           int
}

// Site is a site.Site.
type Site struct {
	run Runner
	uid bool   // root says whose jobs are
	as  string // who runs what changes jobs; empty: as the Runner

	me atomic.Pointer[site.Person] // as whom commands run; nil: not asked yet

	stateless atomic.Bool  // squeue cannot ask for states alone
	seen      site.Records // as they were last read
}

var _ site.Site = (*Site)(nil)

// New reaches a cluster by a Runner, which it closes.
func New(r Runner) *Site { return &Site{run: r} }

// NewUID is New for root, who tells sbatch whose a job is (--uid, --gid) and stays root, so
// that Slurm checks root's rights, not the user's; New has the user run sbatch.
func NewUID(r Runner) *Site { return &Site{run: r, uid: true} }

// As is site.Acting's.
func (s *Site) As(user string) site.Site {
	if s.uid {
		return s
	}
	return &Site{run: s.run, as: user}
}

// Close closes the Runner.
func (s *Site) Close() error { return s.run.Close() }

// sep stands between fields: no field of Slurm's has it.
const sep = "\x1f"

// epoch has Slurm print times as seconds.
var epoch = []string{"SLURM_TIME_FORMAT=%s"}

// runQuery runs a command.
func (s *Site) runQuery(ctx context.Context, name string, args ...string) ([]byte, error) {
	r, err := s.run.Run(ctx, Call{Name: name, Args: args, Env: epoch, User: s.as})
	switch {
	case err != nil:
		return nil, noAnswerError(name, err)
	case r.Code != 0:
		return nil, refusalError(name, &r)
	}
	return r.Stdout, nil
}

// noAnswerError makes an error of a command that gave no answer, with what often mends it.
func noAnswerError(name string, err error) error {
	f := fault.New(fault.Unavailable, "%s: %w", name, err)
	for _, m := range []struct{ words, mend string }{
		{"Host key verification failed", "compare the login's host key with its administrator, then note it: ssh-keyscan HOST >>FILE, and --set ssh_known_hosts=FILE"},
		{"Permission denied", "give the login a key, with its public part in authorized_keys there: --set ssh_key=FILE; nothing asks for a password"},
		{"Could not resolve hostname", "is the name of the login right? ssh's own configuration counts with --set ssh_config=FILE"},
		{context.DeadlineExceeded.Error(), "is slurmctld up (scontrol ping), and slurm.conf where the pool's settings say (--set conf=/PATH/slurm.conf)?"},
	} {
		if strings.Contains(err.Error(), m.words) {
			return f.Advise("%s", m.mend)
		}
	}
	return f
}

// silence are words of Slurm's for a cluster that does not answer, or not now.
var silence = []string{
	"Unable to contact slurm controller", "Socket timed out", "Connection refused", "Connection timed out", "Zero Bytes were transmitted",
	"Transport endpoint is not connected", "Slurm backup controller in standby mode", "try again", "Resource temporarily unavailable", "slurm_persist_conn_open", "Unable to connect to database",
	"socket error", "Connection reset", "Broken pipe", "slurm_msg_sendto", "slurm_receive_msg", "slurm_send_recv", "Communication", "No route to host",
	"Unexpected message received", "Protocol authentication error", "Resource temporarily unavailable", "Failed to confirm allocation", "Slurm temporarily unable", "Unable to process configuration file",
	"Error generating job credential", "Requested operation is presently disabled",
}

// fullDisk are slurmctld's words for a job whose script it could not save: it may take it later.
const fullDisk = "I/O error writing script/environment to file"

// noConfig are words of a command's that finds no slurm.conf, and no slurmctld that has one.
const noConfig = "Could not establish a configuration source"

// refusalError makes an error of what a command said.
func refusalError(name string, r *Result) error {
	said := strings.TrimSpace(string(r.Stderr))
	if r.Code == 127 || r.Code == 126 { // a shell's, of what it cannot run
		return fault.New(fault.Unavailable, "%s cannot be run: %s", name, oneLine(said)).Advise("is Slurm's client installed there, and in PATH?")
	}
	if strings.Contains(said, fullDisk) {
		return fault.New(fault.Unavailable, "%s: %s", name, oneLine(said)).Advise("make room in slurmctld's StateSaveLocation (scontrol show config)")
	}
	if strings.Contains(said, noConfig) {
		return fault.New(fault.Unavailable, "%s: %s", name, oneLine(said)).Advise("name the cluster's configuration in the pool's settings: --set conf=/PATH/slurm.conf (SLURM_CONF is not taken from who calls)")
	}
	for _, words := range silence {
		if strings.Contains(said, words) {
			return fault.New(fault.Unavailable, "%s: %s", name, oneLine(said))
		}
	}
	if said == "" {
		return fault.New(fault.Unavailable, "%s ended with exit code %d and said nothing", name, r.Code)
	}
	kind := fault.Invalid
	switch {
	case strings.Contains(said, "Access/permission denied"), strings.Contains(said, "Access denied"):
		kind = fault.Permission
	case strings.Contains(said, "Invalid job id"):
		kind = fault.NotFound
	}
	return fault.New(kind, "%s: %s", name, oneLine(said))
}

// oneLine joins what a command said, without the name that it begins each line with.
func oneLine(said string) string {
	var out []string
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if _, text, ok := strings.Cut(line, ": error: "); ok {
			line = text
		}
		if line != "" && !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "; ")
}

// Cluster is site.Site's.
func (s *Site) Cluster(ctx context.Context) (site.Cluster, error) {
	out, err := s.runQuery(ctx, "scontrol", "show", "config")
	if err != nil {
		return site.Cluster{}, err
	}
	var c site.Cluster
	for line := range strings.Lines(string(out)) {
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "ClusterName":
			c.Name = value
		case "SLURM_VERSION":
			c.Version = value
		case "BOOT_TIME":
			c.Booted = parseTime(value)
		case "MinJobAge":
			n, _ := strconv.Atoi(strings.TrimSuffix(value, " sec"))
			c.MinAge = time.Duration(n) * time.Second
		case "MaxArraySize":
			n, _ := strconv.ParseUint(value, 10, 32)
			c.MaxArray = uint32(n)
		case "AccountingStorageType":
			c.Accounts = value != "(null)" && !strings.HasSuffix(value, "/none")
		case "AccountingStoreFlags":
			c.Comments = strings.Contains(value, "job_comment")
		case "ProctrackType":
			c.Tracks = strings.HasSuffix(value, "/cgroup")
		case "TaskPlugin":
			c.Limits = strings.Contains(value, "cgroup")
		}
	}
	if c.Name == "" || c.Version == "" {
		return c, fault.New(fault.Unavailable, "scontrol show config says no ClusterName or no SLURM_VERSION")
	}
	return c, nil
}

// Submit is site.Site's.
func (s *Site) Submit(ctx context.Context, j *site.Submission) (uint32, error) {
	r, err := s.runSbatch(ctx, j)
	if err != nil {
		return 0, err
	}
	out := string(r.Stdout)
	number, _, _ := strings.Cut(strings.TrimSpace(out), ";") // …;cluster in a federation
	id, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return 0, fault.New(fault.Unavailable, "sbatch answered %q, which is no number of a job", out)
	}
	return uint32(id), nil
}

// runSbatch runs it for a job, with more options before the job's own.
func (s *Site) runSbatch(ctx context.Context, j *site.Submission, more ...string) (*Result, error) {
	env := "3"
	if len(j.Components) > 0 { // sbatch reads and closes it for each component
		env = "/proc/self/fd/3"
	}
	return s.callSbatch(ctx, j, nil, append(more, "--export=ALL", "--export-file="+env))
}

// callSbatch runs it for a job, with variables that sbatch reads and options before the job's own.
func (s *Site) callSbatch(ctx context.Context, j *site.Submission, env, options []string) (*Result, error) {
	user, whose := j.User, []string(nil)
	if s.uid && user != "" {
		p, err := s.lookUpUser(ctx, user)
		if err != nil {
			return nil, err
		}
		user, whose = "", []string{fmt.Sprintf("--uid=%d", p.UID), fmt.Sprintf("--gid=%d", p.GID)} // else the group is root's
	}
	args := append(append(append(options, "--parsable"), whose...), j.Options...)
	if j.Dir != "" {
		args = append(args, "--chdir="+j.Dir)
	}
	for _, opts := range j.Components {
		args = append(append(append(args, ":"), whose...), opts...)
	}
	if len(j.Args) > 0 {
		args = append(append(args, "/dev/stdin"), j.Args...) // arguments are those of a named file only
	}
	r, err := s.run.Run(ctx, Call{Name: "sbatch", Args: args, Env: append(sbatchVariables(j.Env), env...), Job: exactEnvironment(j.Env), Stdin: j.Script, User: user})
	switch {
	case err != nil:
		return nil, fault.New(fault.Unavailable, "sbatch: %w", err)
	case r.Code != 0:
		return nil, refusalError("sbatch", &r)
	}
	return &r, nil
}

// sbatchVariables are the variables of a job's environment that ask sbatch for something. sbatch has no
// others of the job's: what tells the system's libraries, or Slurm's, what to load would be
// loaded with the rights of whoever runs it.
func sbatchVariables(env []string) []string {
	var out []string
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "SBATCH_") && !slices.Contains([]string{"SBATCH_ARRAY_INX", "SBATCH_CLUSTERS", "SBATCH_EXPORT", "SBATCH_GET_USER_ENV", "SBATCH_WAIT"}, name) {
			out = append(out, v)
		}
	}
	return out
}

// exactEnvironment is a job's environment; one variable at least, for sbatch takes its own else.
func exactEnvironment(env []string) []string {
	if len(env) == 0 {
		return []string{"LC_ALL=C"}
	}
	return env
}

// End is site.Site's.
func (s *Site) End(ctx context.Context, id uint32) error {
	return s.runScancel(ctx, []string{strconv.FormatUint(uint64(id), 10)})
}

// Kill is site.Site's. scancel's SIGKILL to a job as a whole is a cancellation, in which
// processes get SIGTERM and KillWait; one to each step, and to the script, is what it says.
func (s *Site) Kill(ctx context.Context, id uint32) error {
	out, err := s.runQuery(ctx, "squeue", "--steps", "--noheader", "--jobs="+strconv.FormatUint(uint64(id), 10), "--Format=StepID:"+sep)
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	var steps []string
	for step := range strings.FieldsFuncSeq(string(out), func(r rune) bool { return r == '\n' || string(r) == sep }) {
		_, name, _ := strings.Cut(strings.TrimSpace(step), ".")
		if _, err := strconv.ParseUint(name, 10, 32); err == nil { // not batch, extern
			steps = append(steps, strings.TrimSpace(step))
		}
	}
	if len(steps) > 0 {
		if err := s.runScancel(ctx, append([]string{"--signal=KILL"}, steps...)); err != nil && fault.KindOf(err) == fault.Unavailable {
			return err // a step that has ended since is no error
		}
	}
	return s.runScancel(ctx, []string{"--signal=KILL", "--batch", strconv.FormatUint(uint64(id), 10)})
}

// Signal is site.Site's.
func (s *Site) Signal(ctx context.Context, id uint32, signal int, to site.Scope) error {
	args := []string{"--signal=" + strconv.Itoa(signal)}
	switch to {
	case site.ToBatch:
		args = append(args, "--batch")
	case site.ToAll:
		args = append(args, "--full")
	}
	return s.runScancel(ctx, append(args, strconv.FormatUint(uint64(id), 10)))
}

// runScancel runs scancel. It says nothing of jobs that have ended or that it does not know,
// unless it is asked to, and ends with 0 then.
func (s *Site) runScancel(ctx context.Context, args []string) error {
	_, err := s.runQuery(ctx, "scancel", args...)
	if err != nil && (fault.KindOf(err) == fault.NotFound || strings.Contains(err.Error(), "Job/step already completing or completed")) {
		return nil
	}
	return err
}

// Suspend is site.Site's.
func (s *Site) Suspend(ctx context.Context, id uint32, held bool) error {
	verb := "resume"
	if held {
		verb = "suspend"
	}
	_, err := s.runQuery(ctx, "scontrol", verb, strconv.FormatUint(uint64(id), 10))
	return err
}

// Update is site.Site's.
func (s *Site) Update(ctx context.Context, id uint32, c site.Change) error {
	number := strconv.FormatUint(uint64(id), 10)
	if c.Comment != nil {
		if _, err := s.runQuery(ctx, "scontrol", "update", "JobId="+number, "Comment="+*c.Comment); err != nil {
			return err
		}
	}
	if c.Partition != "" {
		if _, err := s.runQuery(ctx, "scontrol", "update", "JobId="+number, "Partition="+c.Partition); err != nil {
			return err
		}
	}
	for verb, wanted := range map[string]bool{"hold": c.Hold, "release": c.Release} {
		if wanted {
			if _, err := s.runQuery(ctx, "scontrol", verb, number); err != nil {
				return err
			}
		}
	}
	return nil
}

// inventory are the fields asked of sinfo, once for each partition of a node.
var inventory = []string{
	"NodeList", "StateComplete", "CPUs", "Sockets", "Memory", "Gres", "GresUsed", "Features", "Partition", "AllocMem", "CPUsState", "NodeAddr", "NodeHost", "Reason", "Comment", "Extra",
}

// Nodes is site.Site's.
func (s *Site) Nodes(ctx context.Context) ([]site.Node, error) {
	out, err := s.runQuery(ctx, "sinfo", "--noheader", "--Node", "--all", "--Format="+squeueFormat(inventory))
	if err != nil {
		return nil, err
	}
	var nodes []site.Node
	at := map[string]int{}
	all := strings.Split(strings.TrimRight(string(out), " \n"), sep) // a record ends with a separator; a comment may have lines
	if len(all)%len(inventory) != 1 || all[len(all)-1] != "" {
		return nil, fault.New(fault.Unavailable, "sinfo answered %.200q, of which %d fields a node were expected", out, len(inventory))
	}
	for value := range slices.Chunk(all[:len(all)-1], len(inventory)) {
		field := map[string]string{}
		for i, name := range inventory {
			field[name] = strings.TrimSpace(value[i])
		}
		i, known := at[field["NodeList"]]
		if !known {
			n, err := parseNode(field)
			if err != nil {
				return nil, fault.New(fault.Unavailable, "node %s, as sinfo has it: %w", field["NodeList"], err)
			}
			i = len(nodes)
			at[n.Name], nodes = i, append(nodes, n)
		}
		if part := strings.TrimSuffix(field["Partition"], "*"); part != "" && !slices.Contains(nodes[i].Parts, part) {
			nodes[i].Parts = append(nodes[i].Parts, part)
		}
	}
	places, err := s.readTopology(ctx)
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		nodes[i].Path = places[nodes[i].Name]
	}
	return nodes, s.fillInstances(ctx, nodes)
}

// parseNode reads a node.
func parseNode(field map[string]string) (n site.Node, err error) {
	number := func(name string) (x int) {
		if err == nil {
			x, err = strconv.Atoi(field[name])
		}
		return x
	}
	n = site.Node{
		Name: field["NodeList"], Address: field["NodeAddr"], Host: field["NodeHost"], State: field["StateComplete"], Reason: field["Reason"],
		CPUs: number("CPUs"), Sockets: number("Sockets"), Memory: int64(number("Memory")) << 20, UsedBytes: int64(number("AllocMem")) << 20,
		GRES: emptyIfNone(field["Gres"]), Taken: emptyIfNone(field["GresUsed"]), Comment: emptyIfNone(field["Comment"]), Extra: emptyIfNone(field["Extra"]),
	}
	if n.Reason == "none" {
		n.Reason = ""
	}
	if f := emptyIfNone(field["Features"]); f != "" {
		n.Features = strings.Split(f, ",")
		slices.Sort(n.Features)
	}
	if used, _, ok := strings.Cut(field["CPUsState"], "/"); ok && err == nil {
		n.UsedCPUs, err = strconv.Atoi(used)
	}
	words := strings.FieldsFunc(strings.ToLower(n.State), func(r rune) bool { return r == '+' || r == '*' || r == '~' || r == '#' })
	has := func(some ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(some, w) })
	}
	n.Down = has("down", "error", "future", "unknown", "not_responding", "powered_down", "power_down", "powering_down", "fail") || strings.Contains(n.State, "*")
	n.Drained = has("drain", "drained", "draining", "maint", "reboot_issued", "reboot_requested")
	n.Available = !n.Down && !n.Drained
	return n, err
}

func emptyIfNone(text string) string {
	if text == "(null)" {
		return ""
	}
	return text
}
