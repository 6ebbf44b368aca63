package slurmjson

import (
	"strings"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// Partitions writes the document of scontrol show partitions; nodes are all nodes there are.
func Partitions(c *slurmcmd.Command, form string, list []*fleet.Partition, nodes []fleet.Node) error {
	if err := CheckForm(form); err != nil {
		return err
	}
	cluster, err := c.ClusterName()
	if err != nil {
		return err
	}
	doc := beginDocument("partitions")
	for _, p := range list {
		doc.scontrolPartition(p, nodes, cluster)
		if err := doc.flushLarge(c.Out, false); err != nil {
			return err
		}
	}
	return doc.endDocument(c)
}

// scontrolPartition writes one element of partitions[], in Slurm's order.
func (w *w) scontrolPartition(p *fleet.Partition, nodes []fleet.Node, cluster string) {
	const unset = `{"set":false,"infinite":false,"number":0}`
	const unlimited = `{"set":false,"infinite":true,"number":0}`
	sum := p.Sum(nodes)
	w.openValue("", '{')
	w.openValue("nodes", '{')
	w.emptyStrings("allowed_allocation")
	w.stringField("configured", hostlist.Compress(p.Nodes))
	w.intField("total", int64(len(p.Nodes)))
	w.close('}')
	w.rawField("accounts", `{"allowed":"","deny":""}`)
	w.rawField("groups", `{"allowed":""}`)
	w.rawField("qos", `{"allowed":"","deny":"","assigned":""}`)
	w.emptyStrings("alternate")
	w.openValue("tres", '{')
	w.emptyStrings("billing_weights")
	w.stringField("configured", sum.TRES())
	w.close('}')
	w.stringField("cluster", cluster)
	w.stringList("select_type", "CPU", "MEMORY")
	w.openValue("cpus", '{')
	w.rawField("task_binding", "0")
	w.intField("total", sum.CPUs)
	w.close('}')
	w.openValue("defaults", '{')
	w.rawField("memory_per_cpu", "0")
	w.rawField("partition_memory_per_cpu", unset)
	w.rawField("partition_memory_per_node", unlimited)
	w.numberField("time", p.DefaultTime > 0, false, p.DefaultTime/60)
	w.emptyStrings("job")
	w.close('}')
	w.rawField("grace_time", "0")
	w.openValue("maximums", '{')
	w.rawField("cpus_per_node", unlimited)
	w.rawField("cpus_per_socket", unlimited)
	w.rawField("memory_per_cpu", "0")
	w.rawField("partition_memory_per_cpu", unset)
	w.rawField("partition_memory_per_node", unlimited)
	w.rawField("nodes", unlimited)
	w.rawField("shares", "1")
	w.rawField("oversubscribe", `{"jobs":1,"flags":[]}`)
	w.numberField("time", p.TimeLimit > 0, p.TimeLimit == 0, p.TimeLimit/60)
	w.rawField("over_time_limit", unset)
	w.close('}')
	w.rawField("minimums", `{"nodes":0}`)
	w.stringField("name", p.Name)
	w.emptyStrings("node_sets")
	w.rawField("priority", `{"job_factor":1,"tier":1}`)
	w.rawField("timeouts", `{"resume":`+unset+`,"suspend":`+unset+`}`)
	w.openValue("partition", '{')
	w.stringList("state", strings.ToUpper(p.State))
	w.close('}')
	w.rawField("suspend_time", unset)
	w.close('}')
}
