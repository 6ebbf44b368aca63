package slurmcmd_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sacct"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/salloc"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sattach"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sbcast"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/scancel"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/scontrol"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sinfo"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sprio"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/squeue"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sshare"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/sstat"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/srunopt"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// slurmOption is an option as Slurm's command declares it.
type slurmOption struct {
	long   string
	letter byte
	arg    getopt.Arg
	same   string // the first name of the option
	old    bool   // of 22.05 alone
}

// readSlurmOptions reads testdata/options, by command.
func readSlurmOptions(t *testing.T) map[string][]slurmOption {
	b, err := os.ReadFile("testdata/options")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]slurmOption{}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if f[0] == "#" {
			continue
		}
		o := slurmOption{long: f[1], same: f[1], arg: getopt.Arg(slices.Index([]string{"none", "required", "optional"}, f[3]))}
		if f[2] != "-" {
			o.letter = f[2][0]
		}
		switch {
		case len(f) == 6:
			o.same = f[5]
		case len(f) == 5:
			o.old = true
		}
		out[f[0]] = append(out[f[0]], o)
	}
	return out
}

// optionTables are our commands' options.
func optionTables() map[string]getopt.Table {
	tables := map[string]getopt.Table{"srun": srunopt.Table{}}
	var list getopt.List
	for _, o := range sbatch.Table() {
		list = append(list, getopt.Option{Long: o.Name, Short: o.Short, Arg: o.Arg, Same: o.Same})
	}
	tables["sbatch"] = list
	tables["salloc"] = salloc.Options()
	for name, options := range map[string][]slurmcmd.Option{
		"squeue": squeue.Options(), "sinfo": sinfo.Options(), "sacct": sacct.Options(), "scancel": scancel.Options(),
		"scontrol": scontrol.Options(), "sprio": sprio.Options(), "sshare": sshare.Options(), "sstat": sstat.Options(),
		"sattach": sattach.Options(), "sbcast": sbcast.Options(),
	} {
		tables[name] = slurmcmd.TableOf(options)
	}
	return tables
}

// mainName is the main name of the option that a long name or an abbreviation means; empty: none
// or several.
func mainName(table getopt.Table, name string) string {
	i, _ := table.Long(name)
	if i < 0 {
		return ""
	}
	o := table.Option(i)
	return o.Canonical()
}

// abbreviated is what Slurm's getopt takes an abbreviation for: its first name; empty: it is ambiguous.
func abbreviated(all []slurmOption, text string) (first string) {
	for _, o := range all {
		if o.long == text {
			return o.same
		}
	}
	for _, o := range all {
		switch {
		case o.old || !strings.HasPrefix(o.long, text):
		case first == "":
			first = o.same
		case first != o.same:
			return ""
		}
	}
	return first
}

// hasNewer reports whether a text also abbreviates an option of a later Slurm or of a plugin,
// which sbatch and srun know.
func hasNewer(table getopt.Table, all []slurmOption, text string) bool {
	_, possible := table.Long(text)
	return slices.ContainsFunc(possible, func(name string) bool {
		return !slices.ContainsFunc(all, func(o slurmOption) bool { return o.long == name })
	})
}

// TestEveryCommandOfScontrol: each command of Slurm's scontrol, and its shortest abbreviation, is
// served or refused by its name.
func TestEveryCommandOfScontrol(t *testing.T) {
	for word, least := range map[string]int{
		"abort": 5, "all": 2, "cancel_reboot": 3, "cluster": 2, "completing": 2, "create": 2, "delete": 1, "details": 3, "errnumstr": 2, "exit": 2,
		"fsdampeningfactor": 3, "getaddrs": 8, "gethost": 7, "help": 2, "hide": 2, "hold": 4, "holdu": 5, "listjobs": 5, "listpids": 1, "liststeps": 5,
		"notify": 1, "oneliner": 1, "pidinfo": 3, "ping": 3, "power": 2, "quit": 4, "reboot": 3, "reconfigure": 3, "release": 3, "requeue": 3,
		"requeuehold": 11, "resume": 3, "schedloglevel": 3, "setdebug": 3, "setdebugflags": 9, "show": 3, "shutdown": 8, "suspend": 2, "takeover": 8,
		"token": 3, "top": 3, "uhold": 5, "update": 1, "verbose": 4, "version": 4, "wait_job": 2, "write": 5,
	} {
		for _, text := range []string{word, word[:least], strings.ToUpper(word)} {
			r := serverOfEverything(t).Run(scontrol.Main, "", text)
			if strings.Contains(r.Err, "invalid keyword: "+strings.ToLower(text)) {
				t.Errorf("scontrol %s: %s", text, r.Err)
			}
		}
	}
	if r := serverOfEverything(t).Run(scontrol.Main, "", "reconfig"); !strings.Contains(r.Err, "reconfigure is not built yet") {
		t.Errorf("scontrol reconfig: %s", r.Err)
	}
}

// TestEveryOptionOfSlurm: each long name, letter and unambiguous abbreviation that Slurm's own
// commands take is the same option here: served, or refused by its name. None is "unrecognized".
func TestEveryOptionOfSlurm(t *testing.T) {
	tables := optionTables()
	for command, all := range readSlurmOptions(t) {
		table := tables[command]
		for _, o := range all {
			if command == "sbatch" && o.old {
				continue // spec/sbatch follows the newest Slurm, and compares with it
			}
			at, _ := table.Long(o.long)
			if at < 0 {
				t.Errorf("%s --%s is not known", command, o.long)
				continue
			}
			have := table.Option(at)
			if command == "sbatch" && o.long == "get-user-env" {
				continue // a value is read as the old form that it is: spec/sbatch
			}
			wider := have.Arg == getopt.Numbers && o.arg == getopt.Optional || have.Arg == getopt.Optional && o.arg == getopt.None
			if have.Arg != o.arg && !wider {
				t.Errorf("%s --%s: argument %v, Slurm's %v", command, o.long, have.Arg, o.arg)
			}
			if mainName(table, o.long) != mainName(table, o.same) {
				t.Errorf("%s --%s is not another name of --%s", command, o.long, o.same)
			}
			if o.letter != 0 {
				i := table.Short(o.letter)
				if i < 0 {
					t.Errorf("%s -%c is not known", command, o.letter)
				} else if short := table.Option(i); short.Canonical() != have.Canonical() {
					t.Errorf("%s -%c is --%s, not --%s", command, o.letter, short.Canonical(), o.long)
				}
			}
			for n := 1; n < len(o.long) && !o.old; n++ {
				text := o.long[:n]
				same := abbreviated(all, text)
				if same == "" || hasNewer(table, all, text) {
					continue
				}
				if mainName(table, text) != mainName(table, same) {
					t.Errorf("%s --%s is %q, Slurm's --%s", command, text, mainName(table, text), same)
				}
			}
		}
	}
}
