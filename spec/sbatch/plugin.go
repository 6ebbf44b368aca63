package sbatch

import (
	"github.com/coxswain-sched/coxswain/model/containeropt"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/job"
)

// pluginOption is an option that is not sbatch's own: one that a site's plugin
// adds, or one that old versions or other commands have. Those of pyxis have documented
// arguments and are read like options; of the others only the name is known.
type pluginOption struct {
	name    string
	known   bool // arg is known
	arg     getopt.Arg
	what    string // completes "it …"
	now     string // today's name, for an old one
	instead string // the remedy, for one that is refused

	container bool // it says in which container the job runs
}

const (
	ofPyxis = "is an option of the pyxis plugin: this machine serves it, a Slurm pool passes it on, Kubernetes refuses what pods cannot do"
	ofImage = "is an option of the pyxis plugin: this machine and Kubernetes run the job in this image, a Slurm pool passes it on"
	ofSite  = "belongs to a plugin of some sites"
)

var plugins = append(containerOptions(), []pluginOption{
	{name: "image", what: ofSite + " (shifter)"},
	{name: "module", what: ofSite + " (shifter)"},
	{name: "volume", what: ofSite + " (shifter)"},
	{name: "uenv", what: ofSite + " (user environments)"},
	{name: "view", what: ofSite + " (user environments)"},
	{name: "environment", what: ofSite + " (container engine)"},
	{name: "quotatype", what: ofSite},
	{name: "ear", what: ofSite + " (energy management)"},
	{name: "ear-policy", what: ofSite + " (energy management)"},
	{name: "ear-cpufreq", what: ofSite + " (energy management)"},
	{name: "ear-verbose", what: ofSite + " (energy management)"},
	{name: "fpgalink", what: ofSite + " (FPGA links)"},
	{name: "power", what: "is gone since Slurm 23.11"},

	{name: "workdir", what: "is the old name of --chdir", now: "chdir"},
	{name: "share", what: "is the old name of --oversubscribe", now: "oversubscribe"},
	{name: "mem_bind", what: "is the old name of --mem-bind", now: "mem-bind"},

	{name: "x11", what: "is an option of srun and salloc", instead: "take it out of the script"},
	{name: "cpu_bind", what: "is the old name of srun's --cpu-bind", instead: "put it on the srun line"},
	{name: "cpu-bind", what: "is an option of srun", instead: "put it on the srun line"},
	{name: "jobid", what: "is an option of srun", instead: "put it on the srun line"},
	{name: "checkpoint", what: "is gone since Slurm 19.05", instead: "take it out; --signal sends the job a signal before its time limit"},
	{name: "mincores", what: "is the old name of --cores-per-socket", instead: "write --cores-per-socket"},
}...)

// containerOptions are the options of pyxis.
func containerOptions() []pluginOption {
	var out []pluginOption
	for _, o := range containeropt.Options {
		p := pluginOption{name: o.Name, known: true, container: true, what: ofPyxis}
		if o.Argument {
			p.arg = getopt.Required
		}
		switch {
		case o.Name == "container-image":
			p.what = ofImage
		case o.Refused != "":
			p.what = "is an option of the pyxis plugin: a Slurm pool passes it on, other pools refuse it"
		}
		out = append(out, p)
	}
	return out
}

// fillContainer fills in which container the job runs.
func (p *parser) fillContainer(s *job.Spec, set settings) {
	c := job.Container{}
	for d := range set.allOptions() {
		o := containeropt.Find(d.Option)
		if o == nil || o.Refused != "" { // its pool says what it does with it
			continue
		}
		if err := containeropt.Set(&s.Image, &c, d.Option, d.Value); err != nil {
			p.failOption(d, err, "")
		}
	}
	if !c.IsZero() {
		s.Container = &c
	}
}

// pluginByName finds a name that is known not to be sbatch's own.
func pluginByName(name string) *pluginOption {
	for i := range plugins {
		if plugins[i].name == name {
			return &plugins[i]
		}
	}
	return nil
}

// PluginTable are the options of plugins that are read, as rows of the table: each is passed on
// by some engines and named in a warning.
func PluginTable() []Option {
	var out []Option
	for i := range plugins {
		if pl := &plugins[i]; pl.known {
			out = append(out, Option{Name: pl.name, Arg: pl.arg, Status: OnSome, Why: pl.what})
		}
	}
	return out
}
