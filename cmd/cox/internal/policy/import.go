package policy

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/policy"
	"github.com/coxswain-sched/coxswain/policy/kueue"
	"github.com/coxswain-sched/coxswain/policy/slurm"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/spec"
)

// importFlags is what the imports have in common.
type importFlags struct {
	output, report string
	brief, strict  bool
}

func importCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Make queues.yaml from the configuration of Slurm or Kueue, with a report",
		Long: `Reads the configuration of another system and writes the site's rules for cox apply.
The report, on standard error, lists every setting: kept, harmless, for another file
and, at the end, different here and missing. It asks no server, and changes nothing
before cox apply.`,
		Example: `  cox import slurm /etc/slurm dump.cfg -o queues.yaml --config cox.yaml
  cox import kueue kueue.yaml -o queues.yaml`,
	}
	cmd.AddCommand(importSlurmCommand(a), importKueueCommand(a))
	return cli.Group(cmd)
}

// addFlags adds what the imports have in common.
func (i *importFlags) addFlags(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVarP(&i.output, "output", "o", "", "write the rules to this file (default: standard output)")
	fl.StringVar(&i.report, "report", "", "write the report to this file (default: standard error)")
	fl.BoolVarP(&i.brief, "brief", "b", false, "report only what is different here and what is missing")
	fl.BoolVar(&i.strict, "strict", false, "write nothing if a setting is refused (exit 2)")
}

func importSlurmCommand(a *cli.App) *cobra.Command {
	var i importFlags
	var cluster, server string
	cmd := &cobra.Command{
		Use:   "slurm FILE|DIRECTORY…",
		Short: "Make queues.yaml and cox.yaml from slurm.conf and sacctmgr dump",
		Long: `Reads slurm.conf with the files that it includes, gres.conf, topology.conf or
topology.yaml, and the output of sacctmgr dump; also of sacctmgr show qos -P, if the
dump has no QOS. The report names other files of Slurm as not used. The import
detects what each file is; in a directory it reads all files of Slurm. To make dumps:
sacctmgr dump CLUSTER file=dump.cfg; sacctmgr show qos -P > qos.txt. Instead of
slurm.conf, the output of scontrol show config works; it has no partitions and nodes.

--output gets the rules, for cox apply. --config gets the partitions and nodes, for
cox up: a server needs them before it accepts rules of those partitions. Its nodes
are virtual, with the cluster's names, so that you can try the rules on one machine.
To run jobs on the cluster itself, add it as a pool (docs/explanation/slurm.md), which
has its partitions already. --cluster describes the machines for cox simulate.
docs/reference/import-slurm-directives.md has every directive.`,
		Example: `  cox import slurm /etc/slurm dump.cfg qos.txt -o queues.yaml --config cox.yaml
  cox up -d --config cox.yaml
  cox apply -f queues.yaml --dry-run`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fault.New(fault.Invalid, "name the files to import").Advise("cox import slurm /etc/slurm/slurm.conf dump.cfg (sacctmgr dump CLUSTER file=dump.cfg makes the second)")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := slurmFiles(a, args)
			if err != nil {
				return err
			}
			r, err := slurm.Read(files, slurm.Options{Include: func(from, name string) (slurm.File, error) { return readIncluded(a, from, name) }})
			if err != nil {
				return err
			}
			conf, err := serverConfig(r, server, args)
			if err != nil {
				return cli.NotDone(err, "nothing was written")
			}
			if err := writeImported(a, &i, "slurm", args, r.Policy, r.Report); err != nil {
				return err
			}
			if err := writeServer(a, r, server, i.output, conf); err != nil {
				return err
			}
			return writeMachines(a, r.Cluster, cluster, i.output)
		},
	}
	i.addFlags(cmd)
	cmd.Flags().StringVar(&server, "config", "", "write partitions and nodes to this file, for cox up --config")
	cmd.Flags().StringVar(&cluster, "cluster", "", "write the machines to this file, for cox simulate")
	return cmd
}

// slurmFiles reads files and, of directories, those that are Slurm's.
func slurmFiles(a *cli.App, args []string) (files []slurm.File, err error) {
	var names []string
	for _, name := range args {
		entries, err := os.ReadDir(name)
		if err != nil {
			names = append(names, name) // no directory, or not there, which reading it says
			continue
		}
		had := len(names)
		for _, e := range entries {
			if slurm.Named(e.Name()) && !e.IsDir() {
				names = append(names, filepath.Join(name, e.Name()))
			}
		}
		if len(names) == had {
			return nil, fault.New(fault.Invalid, "%s: this directory has no file that is Slurm's by its name", name).Advise("name the files: cox import slurm slurm.conf dump.cfg")
		}
	}
	for _, name := range names {
		data, err := a.ReadDocument(name)
		if err != nil {
			return nil, err
		}
		files = append(files, slurm.File{Name: name, Text: string(data)})
	}
	return files, nil
}

// serverConfig makes the server's configuration of what was read, and checks it as cox up does. Empty:
// nobody asked for it.
func serverConfig(r *slurm.Result, to string, args []string) ([]byte, error) {
	switch {
	case to == "":
		return nil, nil
	case len(r.Server.Partitions()) == 0 && r.Cluster.Nodes() == 0:
		return nil, fault.New(fault.Invalid, "--config=%s: no file has partitions or nodes", to).Advise("add slurm.conf to the command")
	}
	text, err := r.Server.Write(strings.Join(args, ", "))
	if err != nil {
		return nil, err
	}
	if _, err := config.Parse(to, text); err != nil {
		return nil, fault.New(fault.Invalid, "slurm.conf has names or values that a server cannot have: %w", err).Advise("change them in a copy of slurm.conf, and import the copy")
	}
	return text, nil
}

// writeServer writes the server's configuration, and says what the rules need of the server.
func writeServer(a *cli.App, r *slurm.Result, to, rules string, text []byte) error {
	parts := r.Server.Partitions()
	if to == "" {
		if len(parts) > 0 && len(r.Policy.Partitions) > 0 && rules != "" && rules != "-" {
			fmt.Fprintf(a.Err, "the rules are about partitions %s, which the server must have: --config cox.yaml writes them for cox up, and a pool of the cluster has them\n", strings.Join(parts, ", "))
		}
		return nil
	}
	if err := cli.WriteFile(to, text); err != nil {
		return err
	}
	for _, note := range r.Server.Notes() {
		fmt.Fprintf(a.Err, "%s: %s\n", to, note)
	}
	fmt.Fprintf(a.Err, "%s: %s; cox up --config %s starts a server with them on this machine\n", to, r.Cluster, to)
	return nil
}

// writeMachines writes the machines that were declared, and says how the cluster becomes a pool.
func writeMachines(a *cli.App, c *slurm.Cluster, to, rules string) error {
	switch {
	case to != "" && c.Nodes() == 0:
		return fault.New(fault.Invalid, "--cluster=%s: no file has NodeName lines", to).Advise("add slurm.conf to the command")
	case to != "":
		if err := cli.WriteFile(to, c.Write()); err != nil {
			return err
		}
		fmt.Fprintf(a.Err, "%s: %s; cox simulate TRACE --cluster %s --policy %s\n", to, c, to, cmp.Or(rules, "queues.yaml"))
	case c.Nodes() == 0 || rules == "" || rules == "-":
		return nil
	}
	if c.Pool() != "" {
		fmt.Fprintf(a.Err, "to run jobs on the cluster itself (%s): %s\n", c, c.Pool())
	}
	return nil
}

func importKueueCommand(a *cli.App) *cobra.Command {
	var i importFlags
	cmd := &cobra.Command{
		Use:   "kueue FILE…",
		Short: "Make queues.yaml of Kueue's objects",
		Long: `Reads ResourceFlavor, Cohort, ClusterQueue, LocalQueue, WorkloadPriorityClass,
Topology and Kueue's Configuration, as YAML of v1beta1 or v1beta2, several in a file
or a List. This prints them:
kubectl get resourceflavors,cohorts,clusterqueues,localqueues,workloadpriorityclasses -A -o yaml`,
		Example: `  cox import kueue kueue.yaml -o queues.yaml
  cox apply -f queues.yaml --dry-run`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fault.New(fault.Invalid, "name the files to import").Advise("cox import kueue kueue.yaml (kubectl get clusterqueues,resourceflavors,cohorts -A -o yaml > kueue.yaml makes it)")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			var files []kueue.File
			for _, name := range args {
				data, err := a.ReadDocument(name)
				if err != nil {
					return err
				}
				files = append(files, kueue.File{Name: name, Text: string(data)})
			}
			p, report, err := kueue.Import(files)
			var located *spec.Error
			if errors.As(err, &located) {
				return cli.NotDone(err, "nothing was written")
			}
			if err != nil {
				return err
			}
			return writeImported(a, &i, "kueue", args, p, report)
		},
	}
	i.addFlags(cmd)
	return cmd
}

// readIncluded reads a file that another includes: beside it, unless its name is whole.
func readIncluded(a *cli.App, from, name string) (slurm.File, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(from), name)
	}
	data, err := a.ReadDocument(name)
	return slurm.File{Name: name, Text: string(data)}, err
}

// writeImported writes what was made of another system's configuration.
func writeImported(a *cli.App, i *importFlags, of string, args []string, p *account.Policy, report *policy.Report) error {
	to := a.Err
	if i.report != "" {
		f, err := os.Create(i.report)
		if err != nil {
			return fault.New(fault.KindOf(err), "write the report: %w", err)
		}
		defer f.Close()
		to = f
	}
	report.Write(to, i.brief)
	if n := report.Count(policy.Refused); i.strict && n > 0 {
		return cli.NotDone(fault.New(fault.Invalid, "%s refused: the lines that say refused above", settings(n)).Advise("leave --strict out to write the rules without them"), "nothing was written")
	}
	text := append([]byte("# made by cox import "+of+" of "+strings.Join(args, ", ")+"; docs/reference/queues.md has every field\n"), policy.Write(p)...)
	if i.output == "" || i.output == "-" {
		_, err := a.Out.Write(text)
		return err
	}
	if err := cli.WriteFile(i.output, text); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "%s: %s; cox apply -f %s --dry-run shows what it changes\n", i.output, policy.Count(p), i.output)
	return nil
}

// settings counts settings: "1 setting is", "3 settings are".
func settings(n int) string {
	if n == 1 {
		return "1 setting is"
	}
	return fmt.Sprintf("%d settings are", n)
}
