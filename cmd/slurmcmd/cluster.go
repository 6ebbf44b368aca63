package slurmcmd

import (
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

// ClusterOptions are -M, --clusters and --cluster. CheckClusters reads what they were given.
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

// CheckClusters checks that --clusters names the server's own cluster, which is the only one
// that a server knows. It returns the cluster's name, or "" where --clusters was not given.
// As in Slurm, "all" and an empty list mean every cluster, case does not matter, and unknown
// names beside the own one are reported and left out.
func (c *Command) CheckClusters() (name string, err error) {
	if !c.chosen.given {
		return "", nil
	}
	own, err := c.ClusterName()
	if err != nil {
		return "", err
	}
	names := Split(c.chosen.names)
	if len(names) == 0 || strings.EqualFold(c.chosen.names, "all") {
		return own, nil
	}
	found := false
	for _, n := range names {
		if strings.EqualFold(n, own) {
			found = true
			continue
		}
		c.Errorf("No cluster '%s' known by database.", n)
	}
	if !found {
		return "", fault.New(fault.NotFound, "'%s' can't be reached now, or it is an invalid entry for --cluster.", c.chosen.names).
			Advise("this server's cluster is %s; COX_SERVER names another server", own)
	}
	return own, nil
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
	if c.cluster = v.Get("name").Text(); c.cluster == "" {
		c.cluster = defaultCluster
	}
	return c.cluster, nil
}
