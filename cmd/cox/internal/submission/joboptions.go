package submission

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// jobOptions are sbatch's options as flags of cox run and cox submit, with their letters and
// meaning, and what sbatch has no option for. All of sbatch's table is taken; help shows those
// that people type most.
type jobOptions struct {
	given   []string // as options of sbatch, in the order of the command line
	options []string // -s
	env     []string // --env
	image   string
	wrap    string // --wrap

	webhook  string   // --notify-url
	notifyOn []string // --notify-on

	sameNodes     bool // --same-nodes
	excludeFailed bool // --exclude-failed
}

// shownOptions are the options that help shows, with the name of their value and what they say.
var shownOptions = map[string]string{
	"nodes": "`N` number of nodes, or MIN-MAX", "ntasks": "`N` number of tasks in all", "ntasks-per-node": "`N` number of tasks on each node",
	"cpus-per-task": "`N` CPUs of each task", "gpus": "`[TYPE:]N` GPUs in all", "gpus-per-node": "`[TYPE:]N` GPUs on each node",
	"gpus-per-task": "`[TYPE:]N` GPUs of each task", "gres": "`LIST` generic resources of each node, such as gpu:2", "mem": "`SIZE` memory on each node, such as 64G",
	"mem-per-cpu": "`SIZE` memory for each CPU", "time": "`TIME` time limit: minutes, H:M:S, D-H, or 4h",
	"partition": "`NAME` partition, or several joined by commas", "account": "`NAME` account that pays", "qos": "`NAME` quality of service",
	"job-name": "`NAME` name of the job", "array": "`INDICES` run an array of jobs, such as 0-15%4", "dependency": "`LIST` wait for other jobs, such as afterok:7",
	"begin": "`TIME` do not start before: now+1hour, 20:00", "output": "`FILE` file of the output; %j is the job's number", "error": "`FILE` file of the error output",
	"input": "`FILE` file of the standard input", "chdir": "`DIR` directory to run in", "export": "`NAMES` variables to take over: ALL, NONE, A,B=c",
	"nodelist": "`NODES` nodes that the job must have, such as n[1-4]", "exclude": "`NODES` nodes that the job must not have", "constraint": "`FEATURES` features that the nodes must have",
	"exclusive": "`user` share the nodes with no other job", "hold": "keep the job waiting until cox release", "reservation": "`NAME` reservation to run in",
	"licenses": "`LIST` licences to hold, such as matlab:2", "mail-type": "`EVENTS` send mail at these: BEGIN,END,FAIL", "mail-user": "`ADDRESS` send the mail there",
	"requeue": "`expedite` run again after a preemption or a lost node", "signal": "`SIGNAL[@SECONDS]` signal to send before the time limit", "comment": "`TEXT` text to keep with the job",
	"open-mode": "`MODE` append to output files, or truncate them",
}

// addTo adds the flags to a command that has its own already. Options of the sbatch command
// itself are left out.
func (o *jobOptions) addTo(a *cli.App, cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVarP(&o.options, "sbatch", "s", nil, "`OPTION` an option of sbatch: -s --mem=4G is --mem=4G")
	fl.StringArrayVar(&o.env, "env", nil, "`NAME=VALUE` variable to set in the job; NAME alone passes yours on")
	fl.StringVar(&o.image, "image", "", "`IMAGE` container image, where the pool has containers")
	fl.StringVar(&o.webhook, "notify-url", "", "`URL` webhook to tell when the job begins and ends")
	fl.StringSliceVar(&o.notifyOn, "notify-on", nil, "`EVENTS` tell it of these alone: begin,end,fail")
	fl.BoolVar(&o.sameNodes, "same-nodes", false, "after a failure or a requeue, run on the same nodes again")
	fl.BoolVar(&o.excludeFailed, "exclude-failed", false, "run again only on nodes on which it has not failed")
	fl.StringVar(&o.wrap, "wrap", "", "`COMMAND` run this as the batch script, instead of FILE")
	for _, opt := range slices.Concat(sbatch.Table(), sbatch.PluginTable()) {
		if opt.Command && opt.Same == "" && opt.Name != "clusters" || fl.Lookup(opt.Name) != nil {
			continue
		}
		letter := ""
		if opt.Short != 0 && fl.ShorthandLookup(string(opt.Short)) == nil {
			letter = string(opt.Short)
		}
		usage, shown := shownOptions[opt.Name]
		f := fl.VarPF(&optionValue{to: &o.given, option: opt}, opt.Name, letter, usage)
		f.Hidden = !shown
		switch opt.Arg {
		case getopt.None:
			f.NoOptDefVal = "true"
		case getopt.Optional:
			f.NoOptDefVal = cli.WithoutValue
		}
	}
	a.CompleteFlag(cmd, "partition", a.PartitionNames)
	a.CompleteFlag(cmd, "account", a.AccountNames)
	a.CompleteFlag(cmd, "qos", a.QOSNames)
	_ = cmd.RegisterFlagCompletionFunc("notify-on", cobra.FixedCompletions(job.NotifyEvents, cobra.ShellCompDirectiveNoFileComp))
	a.CompleteFlag(cmd, "nodelist", a.NodeNames)
	a.CompleteFlag(cmd, "exclude", a.NodeNames)
}

// source is what is to run.
type source struct {
	text intake.Text
	args []string // of the script
}

// readSource reads the file of the arguments, or takes the command or --wrap. from is the form that
// the file is said to have, empty: it is found out.
func (o *jobOptions) readSource(a *cli.App, cmd *cobra.Command, args []string, from string) (source, error) {
	verb := cmd.Name()
	switch {
	case o.wrap != "" && len(args) > 0:
		return source{}, fault.New(fault.Invalid, "--wrap and %s exclude each other", args[0]).Advise("put all of it into --wrap, or leave --wrap out")
	case o.wrap != "":
		src := sbatch.Wrap(o.wrap)
		return source{text: intake.Text{Form: api.FormSbatch, Name: src.Name, Data: src.Data}}, nil
	case len(args) == 0:
		if n := len(o.given); n > 0 && strings.HasPrefix(o.given[n-1], "--qos=") && verb == "run" {
			return source{}, fault.New(fault.Invalid, "there is nothing to run after -q %s: -q is --qos, as with sbatch", o.given[n-1][len("--qos="):]).Advise("-Q is --quiet")
		}
		return source{}, fault.New(fault.Invalid, "there is nothing to %s", verb).
			Advise("cox %s FILE, cox %s - for standard input, or cox %s -- COMMAND", verb, verb, verb)
	case cmd.ArgsLenAtDash() == 0:
		return source{text: intake.Text{Form: api.FormCommand, Command: args}}, nil
	}
	data, err := readScript(args[0], verb, a.In)
	if err != nil {
		return source{}, err
	}
	form, err := formOf(from, args[0], data)
	if err != nil {
		return source{}, err
	}
	hintAboutArgs(a, cmd, args[0], args[1:])
	return source{intake.Text{Form: form, Name: args[0], Data: data}, args[1:]}, nil
}

// args are the options of sbatch that were given.
func (o *jobOptions) args() []string { return slices.Concat(o.given, o.options) }

// variables are those of --env as NAME=VALUE.
func (o *jobOptions) variables() ([]string, error) {
	out := make([]string, 0, len(o.env))
	for _, v := range o.env {
		if !strings.Contains(v, "=") {
			value, ok := os.LookupEnv(v)
			if !ok {
				return nil, fault.New(fault.Invalid, "--env %s: there is no such variable in your environment", v).Advise("write --env %s=VALUE", v)
			}
			v += "=" + value
		}
		out = append(out, v)
	}
	return out, nil
}

// rerun is what --same-nodes and --exclude-failed say.
func (o *jobOptions) rerun() (string, error) {
	switch {
	case o.sameNodes && o.excludeFailed:
		return "", fault.New(fault.Invalid, "--same-nodes and --exclude-failed exclude each other: the job cannot stay on a node and leave it").Advise("give one of them")
	case o.sameNodes:
		return string(job.RerunSameNodes), nil
	case o.excludeFailed:
		return string(job.RerunExcludeFailed), nil
	}
	return "", nil
}

// notify is the webhook of --notify-url, nil for none.
func (o *jobOptions) notify() (*job.Notify, error) {
	switch {
	case o.webhook == "" && len(o.notifyOn) > 0:
		return nil, fault.New(fault.Invalid, "--notify-on says when, and nothing says whom to tell").Advise("add --notify-url https://…, or --mail-type %s for mail", strings.ToUpper(strings.Join(o.notifyOn, ",")))
	case o.webhook == "":
		return nil, nil
	}
	return &job.Notify{Webhook: o.webhook, On: o.notifyOn}, nil
}

// array is the value of --array, empty if it is not given.
func (o *jobOptions) array() string {
	for _, g := range o.given {
		if v, ok := strings.CutPrefix(g, "--array="); ok {
			return v
		}
	}
	return ""
}

// checkOutput refuses a format as the name of the output file: until version 1.0 it was one.
func (o *jobOptions) checkOutput(has ...string) error {
	for _, g := range o.given {
		name, ok := strings.CutPrefix(g, "--output=")
		if ok && slices.Contains(has, name) {
			return fault.New(fault.Invalid, "-o %s: -o names the job's output file here, as with sbatch", name).Advise("--format %s for the format; -o ./%s for a file of that name", name, name)
		}
	}
	return nil
}

// optionValue is one option of sbatch as a flag.
type optionValue struct {
	to     *[]string
	option sbatch.Option
	last   string
}

func (v *optionValue) String() string { return v.last }

// Type is "string" where an empty value is refused (cli.Execute).
func (v *optionValue) Type() string {
	if v.option.Arg == getopt.None {
		return "bool"
	}
	return "string"
}

func (v *optionValue) Set(s string) error {
	name := "--" + v.option.Name
	switch {
	case v.option.Arg == getopt.None && s != "true":
		return fmt.Errorf("it takes no value")
	case v.option.Arg == getopt.None || s == cli.WithoutValue:
		v.last = s
		*v.to = append(*v.to, name)
		return nil
	case v.option.Name == "time" || v.option.Name == "time-min":
		s = cli.SlurmTime(s)
	}
	v.last = s
	*v.to = append(*v.to, name+"="+s)
	return nil
}

// hintAboutArgs tells that an argument of the script looks like an option of cox: it is the
// script's, as with sbatch.
func hintAboutArgs(a *cli.App, cmd *cobra.Command, file string, args []string) {
	for _, arg := range args {
		name, letter := strings.TrimLeft(arg, "-"), ""
		switch dashes := len(arg) - len(name); {
		case arg == "--":
			return // said on purpose
		case dashes == 2:
			name, _, _ = strings.Cut(name, "=")
		case dashes == 1 && name != "":
			name, letter = "", name[:1]
		default:
			continue
		}
		if name != "" && cmd.Flags().Lookup(name) == nil || letter != "" && cmd.Flags().ShorthandLookup(letter) == nil || name+letter == "" {
			continue
		}
		fmt.Fprintf(a.Err, "hint: %s after %s goes to the script; options of %s come before %s\n", arg, file, cmd.CommandPath(), file)
		return
	}
}
