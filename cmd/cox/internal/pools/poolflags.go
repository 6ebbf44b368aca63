package pools

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// settingFlag is a setting of a pool that has a flag of its own.
type settingFlag struct {
	flag, name string   // of the setting
	engines    []string // whose it is
}

// settingFlags are these settings.
var settingFlags = []settingFlag{
	{"local", "local", []string{"slurm"}},
	{"ssh", "ssh", []string{"slurm"}},
	{"rest", "rest", []string{"slurm"}},
	{"shared", "shared", []string{"slurm"}},
	{"placed", "placed", []string{"slurm", "kube"}},
	{"partition", "partition", []string{"slurm"}},
	{"reservation", "reservation", []string{"slurm"}},
	{"kubeconfig", "kubeconfig", []string{"kube"}},
	{"context", "context", []string{"kube"}},
	{"namespace", "namespace", []string{"kube"}},
	{"image", "image", []string{"kube"}},
	{"agent-image", "agent_image", []string{"kube"}},
}

// engineFlags are the settings that were said by flags of their own.
type engineFlags struct {
	flags *pflag.FlagSet
	rbac  string // who has the roles that are printed
	keeps string // who is let past the policy that is printed
}

func (s *engineFlags) add(fl *pflag.FlagSet) {
	s.flags = fl
	fl.Bool("local", false, "reach Slurm with its commands on the server's machine")
	fl.String("ssh", "", "reach Slurm with its commands on a login node, [user@]host")
	fl.String("rest", "", "reach Slurm by slurmrestd: http://HOST:PORT, https://HOST:PORT, unix:/PATH; beside it, --local or --ssh does what slurmrestd cannot")
	fl.String("shared", "", "directory that Slurm's nodes share, for locks")
	fl.Bool("placed", false, "Coxswain chooses the nodes; without it Slurm does. Default of Kubernetes pools")
	fl.String("partition", "", "Slurm's partition for all jobs of the pool")
	fl.String("reservation", "", "Slurm's reservation for all jobs of the pool")
	fl.String("kubeconfig", "", "reach Kubernetes with this file; the server reads it")
	fl.String("context", "", "context of the kubeconfig (default: its current one)")
	fl.String("namespace", "", "Kubernetes namespace for everything that the pool creates")
	fl.String("image", "", "container image of jobs that name none")
	fl.String("agent-image", "", "container image that brings cox-pod into the pods")
	fl.StringVar(&s.rbac, "print-rbac", "", "print the roles that such a pool needs in Kubernetes, for kubectl apply -f -, and do nothing else; `WHO` has them: user:NAME, group:NAME or serviceaccount:NAMESPACE:NAME, behind =")
	fl.Lookup("print-rbac").NoOptDefVal = nobodyNamed
	fl.StringVar(&s.keeps, "print-policy", "", "print the admission policy that keeps others off the nodes of such a pool, for kubectl apply -f -, and do nothing else; `WHO` is let past, said as with --print-rbac")
	fl.Lookup("print-policy").NoOptDefVal = nobodyNamed
}

// nobodyNamed is what --help shows of --print-rbac without =WHO.
const nobodyNamed = "serviceaccount:NAMESPACE:coxswain"

// requestedManifests are the manifests that are to be printed, in this order; none: the pool is added.
func (s *engineFlags) requestedManifests() (out []printed) {
	for _, p := range []printed{{"print-rbac", s.rbac, kubeRights}, {"print-policy", s.keeps, kubePolicy}} {
		if s.flags.Changed(p.flag) {
			if p.who == nobodyNamed {
				p.who = ""
			}
			out = append(out, p)
		}
	}
	return out
}

// printed is a manifest for Kubernetes. Who is meant by it may be empty: nobody is named.
type printed struct {
	flag, who string
	text      func(pool string, settings json.RawMessage, who string) (string, error)
}

// mergeInto adds the flags that were said. What --set says too is refused, as is what another kind
// of engine has; flags outrank a file.
func (s *engineFlags) mergeInto(engine string, all map[string]json.RawMessage, set []string) error {
	if ssh, _ := s.flags.GetString("ssh"); ssh != "" && s.flags.Changed("local") && s.flags.Lookup("local").Value.String() == "true" {
		return fault.New(fault.Invalid, "--local and --ssh %s: Slurm's commands run on the server's machine or on a login node", ssh).Advise("leave one of them; --rest goes with either")
	}
	for _, f := range settingFlags {
		flag := s.flags.Lookup(f.flag)
		if !flag.Changed {
			continue
		}
		if (engine == "slurm" || engine == "kube") && !slices.Contains(f.engines, engine) {
			return fault.New(fault.Invalid, "--%s is of --engine %s, not of %s", f.flag, strings.Join(f.engines, " and "), engine).Advise("leave it, or see cox pool add --help")
		}
		for _, t := range set {
			if strings.HasPrefix(t, f.name+"=") {
				return fault.New(fault.Invalid, "--%s and --set %s", f.flag, t).Advise("leave one of them: they are the same setting")
			}
		}
		var value any = flag.Value.String()
		switch {
		case flag.Value.Type() == "bool":
			value = flag.Value.String() == "true"
		case f.flag == "kubeconfig" && flag.Value.String() != "":
			file, err := filepath.Abs(flag.Value.String())
			if err != nil {
				return err
			}
			value = file
		}
		b, err := json.Marshal(value)
		if err != nil {
			return err
		}
		all[f.name] = b
	}
	return nil
}
