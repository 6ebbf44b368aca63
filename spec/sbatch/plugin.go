package sbatch

import "github.com/coxswain-sched/coxswain/model/getopt"

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
}

const (
	ofPyxis = "is an option of the pyxis plugin: a Slurm pool passes it on, elsewhere the program runs without it"
	ofImage = "is an option of the pyxis plugin: Kubernetes runs the job in this image and a Slurm pool passes it on, on other machines the program runs without the image"
	ofSite  = "belongs to a plugin of some sites"
)

var plugins = []pluginOption{
	{name: "container-image", known: true, arg: getopt.Required, what: ofImage},
	{name: "container-mounts", known: true, arg: getopt.Required, what: ofPyxis},
	{name: "container-workdir", known: true, arg: getopt.Required, what: ofPyxis},
	{name: "container-name", known: true, arg: getopt.Required, what: ofPyxis},
	{name: "container-save", known: true, arg: getopt.Required, what: ofPyxis},
	{name: "container-env", known: true, arg: getopt.Required, what: ofPyxis},
	{name: "container-mount-home", known: true, what: ofPyxis},
	{name: "no-container-mount-home", known: true, what: ofPyxis},
	{name: "container-remap-root", known: true, what: ofPyxis},
	{name: "no-container-remap-root", known: true, what: ofPyxis},
	{name: "container-entrypoint", known: true, what: ofPyxis},
	{name: "no-container-entrypoint", known: true, what: ofPyxis},
	{name: "container-entrypoint-log", known: true, what: ofPyxis},
	{name: "container-writable", known: true, what: ofPyxis},
	{name: "container-readonly", known: true, what: ofPyxis},

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
