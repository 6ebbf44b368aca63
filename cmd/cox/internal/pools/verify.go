package pools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/internal/verify"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// verifyFlags are those of cox verify.
type verifyFlags struct {
	order   verify.Order
	timeout time.Duration
	format  cli.Format
}

// verified is what cox verify prints for programs.
type verified struct {
	Pool   string         `json:"pool"`
	OK     bool           `json:"ok"`
	Job    string         `json:"job"`
	State  string         `json:"state"`
	Checks []verify.Check `json:"checks"`
	Ranks  []verify.Rank  `json:"ranks"`
	Fabric *verify.Fabric `json:"fabric,omitempty"` // with --fabric
}

func verifyCommand(a *cli.App) *cobra.Command {
	f := verifyFlags{order: verify.Order{Nodes: 2, GPUs: -1}}
	cmd := &cobra.Command{
		Use:   "verify POOL",
		Short: "Run a small multi-node test job in a pool and check the result",
		Long: `Submits an ordinary job with one rank on each of two nodes to the pool, waits for it
and checks its output: all ranks belong to one job and ran at one time (each waits
until it has met the others), each sees its devices, and the job used no more leaves
of the topology than necessary. Exit code 1: the check failed. Ctrl-C cancels the job.

The nodes need not share anything. The output stays in the working directory, in
cox-verify-N.out.

--fabric also measures the network between the nodes: each rank gets 16 MB from the one
before it, then all run all-reduces of 1, 16 and 64 MB over TCP. A rank that never
joins and a slow link are named. The nodes need cox, or the directory of this one.
--nccl runs a command of yours on all ranks after that, and reads which network NCCL
uses there.`,
		Example: `  cox verify slurm-b
  cox verify slurm-b --dir /home/me --nodes 4 --gpus-per-node 8
  cox verify slurm-b --fabric --nodes 8
  cox verify slurm-b --fabric --nccl 'all_reduce_perf -b 1M -e 64M -g 1'
  cox verify local -o json | jq .ok`,
		Args:              needPool("verify"),
		ValidArgsFunction: completePools(a),
		RunE: a.WithServer(func(cmd *cobra.Command, c *client.Client, args []string) error {
			return verifyPool(a, cmd, c, args[0], &f)
		}),
	}
	fl := cmd.Flags()
	fl.IntVarP(&f.order.Nodes, "nodes", "N", f.order.Nodes, "number of nodes")
	fl.IntVar(&f.order.GPUs, "gpus-per-node", f.order.GPUs, "GPUs of each node (-1: one, if that many nodes have some)")
	fl.StringVarP(&f.order.Partition, "partition", "p", "", "partition to run in")
	fl.StringVarP(&f.order.Account, "account", "A", "", "account that pays (default: that of a job that names none)")
	fl.StringVarP(&f.order.Dir, "dir", "D", "", "working directory (default: this one; on Kubernetes /tmp)")
	fl.BoolVar(&f.order.Fabric, "fabric", false, "measure the network between the nodes")
	fl.StringVar(&f.order.NCCL, "nccl", "", "with --fabric: `COMMAND` that uses NCCL, to run on all ranks")
	cli.DurationFlag(fl, &f.timeout, "timeout", 15*time.Minute, "longest time to wait and run; then it is cancelled")
	cli.FormatFlag(cmd, &f.format, cli.AsJSON, cli.AsYAML)
	return cmd
}

func verifyPool(a *cli.App, cmd *cobra.Command, c *client.Client, pool string, f *verifyFlags) error {
	ctx := cmd.Context()
	nodes, err := f.findNodes(ctx, c, pool)
	if err != nil {
		return cli.NotDone(err, "not verified")
	}
	began := time.Now()
	ctx, stop := cli.Interruptible(ctx)
	defer stop()
	out, err := tryPool(a, ctx, c, pool, f, nodes)
	if cut := (*interrupted)(nil); errors.As(err, &cut) {
		a.ReportInterrupted(began, cut.how, cut.remedy)
		return nil
	}
	if err != nil {
		return cli.NotDone(err, "not verified")
	}
	if !out.OK {
		a.Code = 1
	}
	if f.format.IsData() {
		return a.WriteData(f.format, out)
	}
	return printVerified(a, out)
}

// findNodes looks whether the pool can have such a gang at all, and returns its nodes.
func (f *verifyFlags) findNodes(ctx context.Context, c *client.Client, pool string) ([]verify.Node, error) {
	if f.order.Nodes < 1 {
		return nil, fault.New(fault.Invalid, "--nodes=%d: a gang has one node or more", f.order.Nodes).Advise("--nodes 2")
	}
	switch {
	case f.order.NCCL != "" && !f.order.Fabric:
		return nil, fault.New(fault.Invalid, "--nccl says what to run with --fabric").Advise("add --fabric")
	case strings.ContainsAny(f.order.NCCL, "\n\x00"):
		return nil, fault.New(fault.Invalid, "--nccl: a command of one line is expected").Advise("put several lines into a script on the nodes")
	}
	if d := f.order.Dir; d != "" && (!filepath.IsAbs(d) || strings.ContainsAny(d, " \t\n'\"")) {
		return nil, fault.New(fault.Invalid, "--dir %s: this is no absolute name without blanks and quotes", d).Advise("name a directory that is there on the nodes, from / on")
	}
	list, err := c.Pools(ctx)
	if err != nil {
		return nil, err
	}
	p, err := poolNamed(list, pool)
	if err != nil {
		return nil, err
	}
	if f.order.Dir == "" && p.Engine == "kube" {
		f.order.Dir = "/tmp" // this one need not be in the pods
	}
	if p.State != "" && p.State != "up" {
		return nil, fault.New(fault.Conflict, "pool %s is %s", pool, strings.TrimSuffix(p.State+": "+p.Why, ": ")).Advise("cox pool check %s", pool)
	}
	all, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	var out []verify.Node
	up, with, folded := 0, 0, false
	for i := range all.Nodes {
		n := &all.Nodes[i]
		if n.Pool != pool {
			continue
		}
		folded = folded || strings.HasPrefix(n.Name, "@") // the engine's own scheduler has them
		if n.State != "up" {
			continue
		}
		up++
		if len(n.Devices) > 0 {
			with++
		}
		out = append(out, verify.Node{Name: n.Name, Leaf: strings.Join(n.Path, "/"), Free: n.CPUs-n.CPUsUsed >= 1 && (f.order.GPUs == 0 || len(n.Devices) == 0 || freeDevices(n) >= max(f.order.GPUs, 1))})
	}
	if folded { // what its own scheduler has may not have been asked for yet: that says then what is too much
		out, up, with = nil, f.order.Nodes, 0
		inv, err := PoolInventory(ctx, c, pool)
		if err != nil {
			return nil, err
		}
		if inv != nil && len(inv.Nodes) > 0 {
			up = len(inv.Nodes)
			for i := range inv.Nodes {
				with += min(inv.Nodes[i].GPUs, 1)
			}
		}
	}
	if up < f.order.Nodes {
		return nil, fault.New(fault.Conflict, "pool %s has %s that are up, and the gang needs %d", pool, printer.Count(up, "node"), f.order.Nodes).
			Advise("cox nodes --pool %s shows them; --nodes 1 tries the pool without a gang", pool)
	}
	if f.order.GPUs < 0 {
		f.order.GPUs = 0
		if with >= f.order.Nodes {
			f.order.GPUs = 1
		}
	}
	return out, nil
}

func freeDevices(n *api.Node) (free int) {
	for i := range n.Devices {
		if len(n.Devices[i].Jobs) == 0 && n.Devices[i].Foreign == 0 {
			free++
		}
	}
	return free
}

// tryPool runs the gang and judges it.
func tryPool(a *cli.App, ctx context.Context, c *client.Client, pool string, f *verifyFlags, nodes []verify.Node) (*verified, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if f.order.Fabric {
		f.order.Binary, _ = os.Executable() // nodes may share its directory
	}
	mask := cli.Umask()
	done, err := c.Submit(ctx, &api.Submit{
		Form: api.FormSbatch, File: verify.Name, Text: string(verify.Script(&f.order)), Environ: verifyEnviron(os.Environ()), Dir: dir, Host: cli.Hostname(), Pool: pool, Umask: &mask,
	})
	if err != nil {
		return nil, err
	}
	id := done.ID.String()
	printProgress(a, f, "job %s: %s of pool %s, %s on each", id, printer.Count(f.order.Nodes, "node"), pool, printer.Count(f.order.GPUs, "GPU"))
	j, err := waitVerified(a, ctx, c, id, f.timeout)
	if err != nil {
		return nil, err
	}
	var said []byte
	if logs, err := c.Logs(ctx, id, client.LogOptions{}); err == nil {
		said, err = io.ReadAll(logs)
		if err = errors.Join(err, logs.Close()); err != nil {
			return nil, err
		}
	} else if fault.KindOf(err) != fault.NotFound {
		return nil, err
	}
	out := &verified{Pool: pool, Job: id, State: j.State, Ranks: verify.Read(string(said)), OK: j.State == "COMPLETED"}
	nameNodes(out.Ranks, j.Claims, nodes)
	end := verify.Check{What: "end", OK: out.OK, Text: strings.TrimSpace(j.State + " " + j.Message), Mend: "cox show " + id + " and cox logs " + id + " tell more"}
	if end.OK {
		end.Mend = ""
	}
	out.Checks = verify.Judge(&f.order, out.Ranks, nodes)
	if f.order.Fabric {
		out.Fabric = verify.ReadFabric(string(said))
		out.Checks = append(out.Checks, verify.JudgeFabric(&f.order, out.Ranks, out.Fabric, heldNodes(j.Claims))...)
	}
	out.Checks = append(out.Checks, end)
	for _, k := range out.Checks {
		out.OK = out.OK && k.OK
	}
	return out, nil
}

// heldNodes are the nodes of a job in the order of its ranks, one on each; nil: they are not known.
func heldNodes(held []api.Claim) (out []string) {
	for i := range held {
		if strings.HasPrefix(held[i].Node, "@") {
			return nil
		}
		out = append(out, held[i].Node)
	}
	return out
}

// nameNodes gives ranks their nodes' names where they have others of their own, as in pods: those of
// what the job held, which has one node for each rank, in their order.
func nameNodes(ranks []verify.Rank, held []api.Claim, nodes []verify.Node) {
	known := func(name string) bool {
		return slices.ContainsFunc(nodes, func(n verify.Node) bool { return n.Name == name })
	}
	for i := range ranks {
		if r := &ranks[i]; !known(r.Node) && r.Rank >= 0 && r.Rank < len(held) && known(held[r.Rank].Node) {
			r.Node = held[r.Rank].Node
		}
	}
}

// verifyEnviron leaves out what the caller's own job, if it is in one, says of itself.
func verifyEnviron(environ []string) (out []string) {
	for _, v := range environ {
		if !strings.HasPrefix(v, "SLURM") && !strings.HasPrefix(v, "SBATCH_") && !strings.HasPrefix(v, "CUDA_VISIBLE_DEVICES=") && !strings.HasPrefix(v, "ROCR_VISIBLE_DEVICES=") && !strings.HasPrefix(v, "NVIDIA_VISIBLE_DEVICES=") {
			out = append(out, v)
		}
	}
	return out
}

// waitVerified waits for the gang's end, and has it cancelled when its time is over.
func waitVerified(a *cli.App, ctx context.Context, c *client.Client, id string, timeout time.Duration) (*api.Job, error) {
	short, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	j, err := c.Wait(short, id)
	if err == nil || short.Err() == nil {
		return j, err
	}
	after, stop := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second) // somebody may have interrupted it
	defer stop()
	how := "job " + id + " has not ended"
	why := ""
	if w, err := c.Job(after, id); err == nil {
		how = cli.StateAndWhy(w)
		if w.Why != nil {
			why = ": " + w.Why.String()
		}
	}
	_, gone := c.Change(after, &api.Change{Select: api.Select{IDs: []string{id}}, Verb: "cancel", Reason: "cox verify no longer waits for it"})
	switch {
	case ctx.Err() != nil && gone != nil:
		return nil, &interrupted{how, fmt.Sprintf("it could not be cancelled (%v): cox cancel %s", gone, id)}
	case ctx.Err() != nil:
		return nil, &interrupted{how, "it is cancelled"}
	}
	return nil, errors.Join(fault.New(fault.Conflict, "job %s has not ended within %s%s", id, timeout, why).Advise("it is cancelled; cox why and cox nodes say what holds the pool; --timeout lets it wait longer"), gone)
}

// interrupted is a wait that somebody ended: how far the job was, and what has become of it.
type interrupted struct{ how, remedy string }

func (i *interrupted) Error() string { return "interrupted; " + i.how }

// printProgress tells people how far it is.
func printProgress(a *cli.App, f *verifyFlags, format string, args ...any) {
	if !f.format.IsData() {
		fmt.Fprintf(a.Err, format+"\n", args...)
	}
}

func printVerified(a *cli.App, v *verified) error {
	t := printer.Table{Columns: []printer.Column{{Title: "RANK", Right: true}, {Title: "NODE"}, {Title: "JOB"}, {Title: "STARTED"}, {Title: "MET", Right: true}, {Title: "DEVICES"}}}
	for i := range v.Ranks {
		r := &v.Ranks[i]
		var row []printer.Cell
		for _, s := range []string{fmt.Sprint(r.Rank), r.Node, r.Job, r.Started.Format("15:04:05.000"), fmt.Sprintf("%d/%d", r.Seen, r.Of), strings.Join(r.Devices, ",")} {
			row = append(row, printer.Cell{Text: printer.Clean(s)})
		}
		t.Rows = append(t.Rows, row)
	}
	if len(t.Rows) > 0 {
		if err := t.Write(a.Out, a.Page(a.Out)); err != nil {
			return err
		}
	}
	var found []api.Finding
	for _, k := range v.Checks {
		f := api.Finding{What: k.What, State: "ok", Text: k.Text, Mend: k.Mend}
		if !k.OK {
			f.State = "failed"
		}
		found = append(found, f)
	}
	said := fmt.Sprintf("pool %s runs gangs as it should", v.Pool)
	if !v.OK {
		said = fmt.Sprintf("pool %s: job %s did not run as a gang has to", v.Pool, v.Job)
	}
	_, err := fmt.Fprint(a.Out, printer.Findings(a.Page(a.Out), found)+printer.Clean(said)+"\n")
	return err
}
