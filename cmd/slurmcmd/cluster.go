package slurmcmd

import (
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/getopt"
)

// defaultCluster is the cluster's name where the server does not tell one.
const defaultCluster = "cox"

// clusterChoice is what -M or its variable said.
type clusterChoice struct {
	names string
	given bool
}

// ClusterOptions are -M, --clusters and --cluster. CheckClusters or CheckPools reads what they were given.
func (c *Command) ClusterOptions() []Option {
	return []Option{
		{Long: "clusters", Short: 'M', Arg: getopt.Required, Do: func(s string) error { c.ChooseClusters(s); return nil }},
		Alias("cluster", "clusters"),
	}
}

// ChooseClusters notes the value of --clusters.
func (c *Command) ChooseClusters(names string) { c.chosen = clusterChoice{names, true} }

// ChooseClustersFrom takes --clusters from a variable of the environment where the option
// was not given.
func (c *Command) ChooseClustersFrom(variable string) {
	if v, ok := c.LookupEnv(variable); ok && !c.chosen.given {
		c.ChooseClusters(v)
	}
}

// CheckClusters checks --clusters of a command that cannot act on some pools alone: it names the server's own
// cluster. It returns the cluster's name, or "" where --clusters was not given. A pool's name is refused.
func (c *Command) CheckClusters() (name string, err error) {
	name, pools, err := c.CheckPools()
	if err == nil && len(pools) > 0 {
		return "", fault.New(fault.Unsupported, "--clusters=%s: it names a pool, and %s is about all pools", c.chosen.names, c.Name).
			Advise("leave --clusters out; sbatch, srun, salloc, squeue, sinfo and scancel take names of pools")
	}
	return name, err
}

// CheckPools checks what --clusters names: the server's own cluster, which is all of its pools, or some of these:
// to those who submit jobs, pools are what clusters are to Slurm. It returns the cluster's name, or the pools, or
// nothing where --clusters was not given. As in Slurm, "all" and an empty list mean every cluster, case does not
// matter, and unknown names beside known ones are reported and left out.
func (c *Command) CheckPools() (name string, pools []string, err error) {
	if !c.chosen.given {
		return "", nil, nil
	}
	own, err := c.ClusterName()
	if err != nil {
		return "", nil, err
	}
	names := Split(c.chosen.names)
	if len(names) == 0 || strings.EqualFold(c.chosen.names, "all") {
		return own, nil, nil
	}
	all := false
	for _, n := range names {
		if strings.EqualFold(n, own) {
			all = true
			continue
		}
		i := slices.IndexFunc(c.pools, func(p string) bool { return strings.EqualFold(p, n) })
		switch {
		case i < 0:
			c.Errorf("No cluster '%s' known by database.", n)
		case !slices.Contains(pools, c.pools[i]):
			pools = append(pools, c.pools[i])
		}
	}
	switch {
	case all:
		return own, nil, nil
	case len(pools) == 0:
		return "", nil, fault.New(fault.NotFound, "'%s' can't be reached now, or it is an invalid entry for --cluster.", c.chosen.names).
			Advise("this server's cluster is %s, and cox pool list shows its pools; COX_SERVER names another server", own)
	}
	return "", pools, nil
}

// WriteClusterHeading writes the line that Slurm has above its tables with -M. Without a
// name it writes nothing.
func (c *Command) WriteClusterHeading(name string) {
	if name != "" {
		c.Out.WriteString("CLUSTER: " + name + "\n")
	}
}

// ClusterName is the name of the server's cluster. The server is asked once.
func (c *Command) ClusterName() (string, error) {
	if c.cluster != "" {
		return c.cluster, nil
	}
	client, err := c.Client()
	if err != nil {
		return "", err
	}
	v, err := client.JSON("GET", "/v1", nil)
	if err != nil {
		return "", err
	}
	for _, p := range v.Get("pools").Items() {
		c.pools = append(c.pools, p.Get("name").Text())
	}
	if c.cluster = v.Get("name").Text(); c.cluster == "" {
		c.cluster = defaultCluster
	}
	return c.cluster, nil
}
