package pools

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

func poolCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pool",
		Short: "List, show, add, check and remove pools",
		Long: `A pool is a set of nodes with the engine that runs jobs on them. The server has a
pool of its own machine; you can add others while it runs. docs/explanation/pools.md
says more. For administrators, except list and show.`,
		Example: "  cox pool list",
	}
	cmd.AddCommand(poolListCommand(a), poolShowCommand(a), poolAddCommand(a), poolCheckCommand(a), poolRemoveCommand(a))
	return cli.Group(cmd)
}

func poolListCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use: "list", Short: "List the pools, and whether their engines answer", Args: cobra.NoArgs,
		Example: "  cox pool list\n  cox pool list -o json | jq '.pools[] | select(.state!=\"up\")'",
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			list, err := c.Pools(cmd.Context())
			switch {
			case err != nil:
				return err
			case f.IsData():
				return a.WriteData(f, list)
			case f == cli.AsName:
				var names []string
				for i := range list.Pools {
					names = append(names, list.Pools[i].Name)
				}
				return a.WriteNames(names)
			}
			return printer.Pools(list.Pools).Write(a.Out, a.Page(a.Out))
		}),
	}
	a.ListFlags(cmd, &f, false)
	return cmd
}

func poolShowCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	var associations bool
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show a pool, what its engine can do and what it found there", Args: needPool("show"),
		Long: `For a pool that is another system, such as a site's own Slurm, it also shows
partitions, QOS, reservations, licences, and who holds what, as last seen. A star
marks the default. Only administrators see associations and names of other people.`,
		Example:           "  cox pool show slurm-b\n  cox pool show slurm-b --associations\n  cox pool show slurm-b -o yaml",
		ValidArgsFunction: completePools(a),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			list, err := c.Pools(cmd.Context())
			if err != nil {
				return err
			}
			p, err := poolNamed(list, args[0])
			if err != nil {
				return err
			}
			inv, err := PoolInventory(cmd.Context(), c, p.Name)
			switch {
			case err != nil:
				return err
			case f.IsData():
				return a.WriteData(f, struct {
					*api.Pool
					Inventory *fleet.Inventory `json:"inventory,omitempty"`
				}{p, inv})
			}
			page := a.Page(a.Out)
			if _, err = fmt.Fprint(a.Out, printer.Pool(page, p)); err != nil || inv == nil {
				return err
			}
			if err := printer.Stock(a.Out, page, inv, page.Now); err != nil || !associations {
				return err
			}
			fmt.Fprintf(a.Out, "\n%s\n", page.Paint(printer.Strong, "associations"))
			return printer.AssociationTable(inv).Write(a.Out, page)
		}),
	}
	cmd.Flags().BoolVar(&associations, "associations", false, "show accounts and users with their limits, too")
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML)
	return cmd
}

// PoolInventory is what the engine of a pool found; nil if it has nothing of the sort, or not
// yet.
func PoolInventory(ctx context.Context, c *client.Client, pool string) (*fleet.Inventory, error) {
	inv, err := c.Inventory(ctx, pool)
	switch fault.KindOf(err) {
	case fault.Unsupported, fault.Unavailable, fault.NotFound: // the last of an older server
		return nil, nil
	}
	return inv, err
}

func poolNamed(list *api.Pools, name string) (*api.Pool, error) {
	var names []string
	for i := range list.Pools {
		if list.Pools[i].Name == name {
			return &list.Pools[i], nil
		}
		names = append(names, list.Pools[i].Name)
	}
	return nil, fault.New(fault.NotFound, "there is no pool %s", name).Advise("pools here: %s", strings.Join(names, ", "))
}

// poolFlags describe a pool on a command line.
type poolFlags struct {
	engine, file string
	set          []string
	own          engineFlags
	force, dry   bool
	format       cli.Format
}

func poolAddCommand(a *cli.App) *cobra.Command {
	var f poolFlags
	cmd := &cobra.Command{
		Use:   "add NAME --engine KIND",
		Short: "Look at a pool, and add it if nothing is missing",
		Long: `The server connects to the engine, asks for its kind and its nodes, and checks
everything that jobs will need: versions, rights, shared directories. It prints each
missing thing with the command that corrects it, and then does not add the pool,
unless you give --force. The pool survives a restart of the server.

Settings of an engine are given with --set, or in a file (YAML or JSON).
docs/explanation/slurm.md has those of Slurm, docs/reference/kubernetes-settings.md
those of Kubernetes. Some, such as --local, have flags of their own. A value that is
JSON is read as JSON, any other as text. Do not put secrets there, only the places
where they are.`,
		Example: `  cox pool add slurm-b --engine slurm --local --shared /home/.cox --dry-run    # look at it, and do nothing
  cox pool add slurm-b --engine slurm --ssh me@login1 --shared /home/me/.cox
  cox pool add slurm-b --engine slurm --rest https://ctl:6820 --shared /home/.cox --set token_file=/etc/coxswain/token
  cox pool add slurm-b --engine slurm --settings slurm-b.yaml
  cox pool add k8s-a --engine kube --kubeconfig ~/.kube/config --context prod --namespace cox --dry-run
  cox pool add k8s-a --engine kube --namespace cox --print-rbac=user:cox | kubectl apply -f -
  cox pool add k8s-a --engine kube --namespace cox --set reserve=true --print-rbac=user:cox --print-policy=user:cox | kubectl apply -f -`,
		Args: needPool("add"),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			if all := f.own.requestedManifests(); len(all) > 0 {
				return printManifests(a, args[0], all, &f)
			}
			if err := addPool(a, cmd.Context(), c, args[0], &f); err != nil {
				if f.dry {
					return err
				}
				return cli.NotDone(err, "not added")
			}
			return nil
		}),
	}
	fl := cmd.Flags()
	fl.StringVar(&f.engine, "engine", "", "the kind of engine")
	f.own.add(fl)
	fl.StringArrayVar(&f.set, "set", nil, "setting of this kind of engine, NAME=VALUE")
	fl.StringVar(&f.file, "settings", "", "file of settings (YAML or JSON; -: standard input)")
	fl.BoolVar(&f.force, "force", false, "add it even if something is missing")
	fl.BoolVar(&f.dry, "dry-run", false, "only check it; exit code 4 if something is missing")
	cli.FormatFlag(cmd, &f.format, cli.AsJSON, cli.AsYAML)
	a.CompleteFlag(cmd, "engine", func(ctx context.Context, c *client.Client) ([]string, error) {
		list, err := c.Pools(ctx)
		if err != nil {
			return nil, err
		}
		return list.Engines, nil
	})
	return cmd
}

func addPool(a *cli.App, ctx context.Context, c *client.Client, name string, f *poolFlags) error {
	if f.engine == "" {
		list, err := c.Pools(ctx)
		if err != nil {
			return err
		}
		return fault.New(fault.Invalid, "pool %s needs a kind of engine", name).Advise("%s", engineHint(list.Engines))
	}
	settings, err := poolSettings(a, f)
	if err != nil {
		return err
	}
	done, err := c.AddPool(ctx, &api.NewPool{Name: name, Engine: f.engine, Settings: settings, Check: f.dry, Force: f.force})
	if err != nil {
		return err
	}
	if done.Added {
		if err := waitOpened(ctx, c, name); err != nil {
			return err
		}
	}
	return printFindings(a, done, f.format)
}

// waitOpened waits until an added pool takes work, so that the next command can submit to it. It
// waits at most 15 s: the engine has just answered, and pool list shows what goes wrong later.
func waitOpened(ctx context.Context, c *client.Client, name string) error {
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); {
		list, err := c.Pools(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list.Pools, func(p api.Pool) bool { return p.Name == name })
		if i < 0 || list.Pools[i].State != api.PoolOpening {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// printManifests prints what an administrator of Kubernetes applies for a pool. No server is
// asked.
func printManifests(a *cli.App, name string, all []printed, f *poolFlags) error {
	if f.engine != "kube" {
		return fault.New(fault.Invalid, "--%s is of --engine kube", all[0].flag).Advise("cox pool add %s --engine kube --namespace NAME --%s", name, all[0].flag)
	}
	settings, err := poolSettings(a, f)
	if err != nil {
		return err
	}
	for i, p := range all {
		text, err := p.text(name, settings, p.who)
		if err != nil {
			return err
		}
		if i > 0 {
			text = "---\n" + text
		}
		if _, err := fmt.Fprint(a.Out, text); err != nil {
			return err
		}
	}
	return nil
}

func engineHint(kinds []string) string {
	if len(kinds) == 0 {
		return "this server has no kind of engine with which a pool could be added"
	}
	return "--engine " + strings.Join(kinds, ", --engine ")
}

// poolSettings are those of the file with those of --set over them.
func poolSettings(a *cli.App, f *poolFlags) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if f.file != "" {
		data, err := a.ReadDocument(f.file)
		if err != nil {
			return nil, err
		}
		b, err := yaml.YAMLToJSON(data)
		if err == nil {
			err = json.Unmarshal(b, &all)
		}
		if err != nil {
			return nil, fault.New(fault.Invalid, "%s: these are no settings: %w", f.file, err).Advise("write NAME: VALUE, one a line")
		}
		if all == nil { // the file says null
			all = map[string]json.RawMessage{}
		}
	}
	for _, s := range f.set {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, fault.New(fault.Invalid, "--set %s: this is not NAME=VALUE", s).Advise("--set partition=gpu")
		}
		if all[name] = json.RawMessage(value); !json.Valid(all[name]) {
			b, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			all[name] = b
		}
	}
	if err := f.own.mergeInto(f.engine, all, f.set); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, nil
	}
	return json.Marshal(all)
}

// printFindings says what was found, and what came of it.
func printFindings(a *cli.App, done *api.PoolDone, f cli.Format) error {
	if done.Missing > 0 && !done.Added {
		a.Code = fault.Conflict.ExitCode()
	}
	if f.IsData() {
		return a.WriteData(f, done)
	}
	said := fmt.Sprintf("pool %s: nothing is missing", done.Name)
	switch {
	case done.Added:
		said = fmt.Sprintf("pool %s added: cox submit --pool %s FILE runs a job there", done.Name, done.Name)
	case done.Missing > 0:
		said = fmt.Sprintf("pool %s: %s missing", done.Name, printer.Count(done.Missing, "thing"))
	}
	_, err := fmt.Fprint(a.Out, printer.Findings(a.Page(a.Out), done.Findings)+printer.Clean(said)+"\n")
	return err
}

func poolCheckCommand(a *cli.App) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use:               "check NAME",
		Short:             "Have the engine of a pool look whether all is there that work needs",
		Long:              "Prints what was found and what is missing, with the command that corrects it.\nExit code 4: something is missing.",
		Example:           "  cox pool check slurm-b",
		Args:              needPool("check"),
		ValidArgsFunction: completePools(a),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			done, err := c.CheckPool(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return printFindings(a, done, f)
		}),
	}
	cli.FormatFlag(cmd, &f, cli.AsJSON, cli.AsYAML)
	return cmd
}

func poolRemoveCommand(a *cli.App) *cobra.Command {
	force := false
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Take a pool away in which no job runs and for which none waits",
		Long: `The server forgets how to reach the pool. It does not touch what the engine manages:
it stops no node and ends no job of others. Nodes that were reserved for the pool
(reserve) are released.

It is refused while the pool owns machines on which another pool has nodes: hand them
over first (cox node move). With --force the other pool has them as they are. Make sure
yourself that the engine of the removed pool starts nothing there any more and that
nothing runs there; Coxswain does not look.`,
		Example:           "  cox pool remove slurm-b",
		Args:              needPool("remove"),
		ValidArgsFunction: completePools(a),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			if err := c.RemovePool(cmd.Context(), args[0], force); err != nil {
				return cli.NotDone(err, "not removed")
			}
			_, err := fmt.Fprintf(a.Out, "pool %s is gone; what others run there was not touched\n", printer.Clean(args[0]))
			return err
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "remove it although it owns machines on which another pool has nodes")
	return cmd
}

// poolCommandName is how a command about a pool is called.
func poolCommandName(verb string) string {
	if verb == "verify" {
		return "cox verify"
	}
	return "cox pool " + verb
}

func needPool(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		e := fault.New(fault.Invalid, "%s needs the name of a pool", poolCommandName(verb))
		if len(args) == 2 && regexp.MustCompile(`^(user|group|serviceaccount):`).MatchString(args[1]) {
			return fault.New(fault.Invalid, "%s is no name of a pool", args[1]).Advise("who has the roles stands behind =, as in --print-rbac=%s", args[1])
		}
		if len(args) > 1 {
			e = fault.New(fault.Invalid, "one pool at a time: %s", strings.Join(args, ", "))
		}
		if verb == "add" {
			return e.Advise("for example: cox pool add slurm-b --engine slurm --ssh login1 --shared /home/.cox")
		}
		if verb == "verify" {
			return e.Advise("cox pool list shows the pools")
		}
		return e.Advise("cox pool %s NAME   (cox pool list shows them)", verb)
	}
}

// completePools offers the names of pools.
func completePools(a *cli.App) cobra.CompletionFunc {
	return a.CompleteArgument(a.PoolNames)
}

// NodesInPools keeps the nodes of some pools. A pool that does not exist is an error.
func NodesInPools(ctx context.Context, c *client.Client, nodes []api.Node, pools []string) ([]api.Node, error) {
	if len(pools) == 0 {
		return nodes, nil
	}
	out := slices.DeleteFunc(slices.Clone(nodes), func(n api.Node) bool { return !slices.Contains(pools, n.Pool) })
	var list *api.Pools
	for _, name := range pools {
		if slices.ContainsFunc(out, func(n api.Node) bool { return n.Pool == name }) {
			continue
		}
		var err error
		if list == nil {
			if list, err = c.Pools(ctx); err != nil {
				return nil, err
			}
		}
		if _, err = poolNamed(list, name); err != nil {
			return nil, err
		}
	}
	return out, nil
}
