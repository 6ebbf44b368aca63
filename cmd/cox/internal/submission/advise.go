package submission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/spec/route"
)

// adviseFlags are the flags of cox advise, the facts aside: these are made from
// advise.Keys.
type adviseFlags struct {
	expect   string
	noServer bool
	format   cli.Format
}

func adviseCommand(a *cli.App) *cobra.Command {
	var f adviseFlags
	cmd := &cobra.Command{
		Use:   "advise [FILE] [facts]",
		Short: "Say which engine and runtime fit a job, and by which rules",
		Long: `Says which engine fits a job (Slurm, Kubernetes, k3s), what runs it there (Ray,
MPI, torchrun) and what must be added, with the facts and rules that decided.
Facts come from FILE, each with its line. Flags override the file, and are enough
without one. It needs no server; if one answers, its pools are judged too.

With --expect it is a check: exit code 4 if the advice is another one.`,
		Example: `  cox advise train.sbatch
  cox advise --nodes 8 --tightly-coupled --bare-metal
  cox advise rl.yaml --multi-tenant --expect "ray on kubernetes"
  cox advise train.sbatch -o json | jq .engine`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error { return printAdvice(a, cmd, &f, args) },
	}
	fl := cmd.Flags()
	for _, k := range route.Keys() {
		name := strings.TrimPrefix(route.FlagName(k), "--")
		if k == route.Nodes {
			fl.Int(name, 0, route.Meaning(k))
			continue
		}
		fl.Bool(name, false, route.Meaning(k))
	}
	fl.StringVar(&f.expect, "expect", "", "fail unless this is the advice: slurm, ray, \"ray on k3s\"")
	fl.BoolVar(&f.noServer, "no-server", false, "do not ask a server for its pools")
	cli.FormatFlag(cmd, &f.format, cli.AsJSON, cli.AsYAML)
	return cmd
}

func printAdvice(a *cli.App, cmd *cobra.Command, f *adviseFlags, args []string) error {
	facts, err := readFacts(a, cmd.Flags(), args)
	if err != nil {
		return err
	}
	advice := route.Advise(facts)
	if !f.noServer {
		judgePools(a, cmd, advice, args)
	}
	if f.format.IsData() {
		err = a.WriteData(f.format, advice)
	} else {
		_, err = fmt.Fprint(a.Out, printer.CleanLines(advice.Text()))
	}
	if err != nil || f.expect == "" {
		return err
	}
	return advice.Expect(f.expect)
}

// readFacts reads the file, if there is one, and lays the flags over it.
func readFacts(a *cli.App, fl *pflag.FlagSet, args []string) (*route.Facts, error) {
	facts, stated := &route.Facts{}, false
	if len(args) > 0 {
		data, err := readScript(args[0], "advise", a.In)
		if err != nil {
			return nil, err
		}
		if facts, err = textFacts(args[0], data, a.Now()); err != nil {
			return nil, cli.NotDone(err, "no advice")
		}
		stated = true
	}
	for _, k := range route.Keys() {
		flag := route.FlagName(k)
		name := strings.TrimPrefix(flag, "--")
		if !fl.Changed(name) {
			continue
		}
		stated = true
		value := 0
		if k == route.Nodes {
			var err error
			if value, err = fl.GetInt(name); err != nil || value < 1 {
				return nil, fault.New(fault.Invalid, "--nodes %d: work needs one node or more", value)
			}
		} else if yes, err := fl.GetBool(name); err == nil && yes {
			value = 1
		} else {
			flag += "=false"
		}
		facts.Override(k, value, flag)
	}
	if !stated {
		return nil, fault.New(fault.Invalid, "cox advise needs a file, or facts about the work").Advise("for example: cox advise train.sbatch, or cox advise --nodes 8 --tightly-coupled")
	}
	return facts, nil
}

// textFacts are the facts that a file states by itself.
func textFacts(name string, data []byte, now time.Time) (*route.Facts, error) {
	r, err := intake.ReadAlone(intake.Text{Form: intake.Detect(name, data), Name: name, Data: data}, now)
	if err != nil {
		return nil, err
	}
	return r.Facts()
}

// judgePools judges the pools of the server that answers: by the file what each of them could run,
// and where a submission goes; where flags have changed the facts, the engines alone.
func judgePools(a *cli.App, cmd *cobra.Command, advice *route.Advice, args []string) {
	changed := slices.ContainsFunc(route.Keys(), func(k route.Key) bool {
		return cmd.Flags().Changed(strings.TrimPrefix(route.FlagName(k), "--"))
	})
	if len(args) > 0 && !changed {
		if list := serverVerdicts(a, cmd.Context(), args[0]); len(list) > 0 {
			advice.Here = list
			return
		}
	}
	advice.Judge(serverPools(a, cmd.Context()))
}

// serverVerdicts is what the server says of its pools for a file; nil: none answers, or it is older.
func serverVerdicts(a *cli.App, ctx context.Context, name string) []route.PoolVerdict {
	c, err := a.Client()
	if err != nil || name == "-" {
		return nil
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, judging)
	defer cancel()
	data, err := readScript(name, "advise", a.In)
	if err != nil {
		return nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil
	}
	req := &api.Submit{Form: intake.Detect(name, data), File: name, Text: string(data), Dir: dir, Host: cli.Hostname()}
	_, req.Files = readHere(req)
	text, err := c.Advise(ctx, req)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			fmt.Fprintf(a.Err, "the server did not judge its pools within %s: what follows is said without it\n", judging)
		}
		return nil
	}
	var said struct {
		Here []route.PoolVerdict `json:"here"`
	}
	if json.Unmarshal(text, &said) != nil {
		return nil
	}
	return said.Here
}

// judging is how long a server may take to judge its pools: it may ask what they drive.
const judging = time.Minute

// serverPools are those of the server that answers, none if none does at once.
func serverPools(a *cli.App, ctx context.Context) []route.Pool {
	c, err := a.Client()
	if err != nil {
		return nil
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, cli.QuickTimeout)
	defer cancel()
	i, err := c.Info(ctx)
	if err != nil {
		return nil
	}
	var pools []route.Pool
	for _, p := range i.Pools {
		pools = append(pools, route.Pool{Name: p.Name, Engine: p.Engine, Able: engine.Abilities{Gang: engine.GangAbility(p.Gang)}})
	}
	return pools
}
