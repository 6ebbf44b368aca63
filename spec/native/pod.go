package native

import (
	"maps"
	"reflect"
	"slices"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

var aPairs = form{text: "{NAME: value, …}", schema: func() schema {
	return schema{"type": "object", "additionalProperties": schema{"type": []string{"string", "number", "boolean", "null"}}}
}}

// podFields are the fields of kubernetes, in the order in which Render writes them.
var podFields = []field[job.Pod]{
	{name: "pods", form: form{text: "node, task", schema: patternSchema(`^(node|task)$`)}, doc: "one pod of each node (as if left out), or of each task", also: []string{"pod_per", "per"}, set: setPodsPer},
	{name: "shm", form: aSize, doc: "size of /dev/shm; counts as memory of the job", also: []string{"shared_memory", "shm_size"}, set: func(p *parser, o *job.Pod, v value) { o.SharedMemory = int64(p.parseSize(v)) }},
	{name: "host_network", form: aBool, doc: "the network of the node", also: []string{"hostNetwork"}, set: boolField(func(o *job.Pod) *bool { return &o.HostNetwork })},
	{name: "lock_memory", form: aBool, doc: "the capability IPC_LOCK, for RDMA", also: []string{"memlock", "ipc_lock"}, set: boolField(func(o *job.Pod) *bool { return &o.LockMemory })},
	{name: "service_account", form: aText, doc: "whose token the pods have", also: []string{"serviceAccountName"}, set: textField(func(o *job.Pod) *string { return &o.ServiceAccount })},
	{name: "runtime_class", form: aText, doc: "what runs the containers", also: []string{"runtimeClassName"}, set: textField(func(o *job.Pod) *string { return &o.RuntimeClass })},
	{name: "priority_class", form: aText, doc: "of the pods, in the cluster", also: []string{"priorityClassName"}, set: textField(func(o *job.Pod) *string { return &o.PriorityClass })},
	{name: "labels", form: aPairs, doc: "more labels of the pods", set: pairsField(func(o *job.Pod) *map[string]string { return &o.Labels })},
	{name: "annotations", form: aPairs, doc: "more annotations of the pods, as those that name their networks", set: pairsField(func(o *job.Pod) *map[string]string { return &o.Annotations })},
	{name: "node_selector", form: aPairs, doc: "labels of nodes, where the cluster's scheduler chooses them; else write constraint", also: []string{"nodeSelector"}, set: pairsField(func(o *job.Pod) *map[string]string { return &o.NodeSelector })},
	{name: "tolerations", form: aList, doc: "taints that the pods bear: KEY or KEY=VALUE, :EFFECT behind it for that effect alone", set: func(p *parser, o *job.Pod, v value) { o.Tolerations = p.parseList(v) }},
}

func setPod(p *parser, d *draft, v value) {
	if v.Kind != yaml.Mapping {
		p.failValue(v, "write shm: 8G and its like, one a line below kubernetes:", "is %s where fields are expected", v.Kind)
		return
	}
	d.spec.Pod = &job.Pod{}
	decodeFields(p, v.path, v.Node, podFields, d.spec.Pod)
	if reflect.DeepEqual(d.spec.Pod, &job.Pod{}) {
		d.spec.Pod = nil
	}
}

// setPodsPer reads of what there is a pod each.
func setPodsPer(p *parser, o *job.Pod, v value) {
	s, ok := p.parseText(v)
	if ok && s != "node" && s != "task" {
		p.failValue(v, "write pods: task, or leave it out for a pod of each node", "%s is neither node nor task", shortName(s))
	}
	o.PerTask = s == "task"
}

// pairsField reads names and texts.
func pairsField[T any](of func(*T) *map[string]string) func(*parser, *T, value) {
	return func(p *parser, to *T, v value) {
		if v.Kind != yaml.Mapping {
			p.failValue(v, "write NAME: value, one a line", "is %s where names with values are expected", v.Kind)
			return
		}
		m := map[string]string{}
		for _, f := range v.Fields {
			s, ok := "", true
			if f.Value.Kind != yaml.Null {
				s, ok = p.parseText(value{Node: f.Value, path: v.path + "." + f.Name, name: f.Name, at: f.Place})
			}
			if ok {
				m[f.Name] = s
			}
		}
		*of(to) = m
	}
}

// writePod writes what is asked of pods.
func (w *writer) writePod(o *job.Pod) {
	if o == nil {
		return
	}
	w.openGroup("kubernetes")
	if o.PerTask {
		w.writeText("pods", "task")
	}
	w.writeSize("shm", resource.Amount(o.SharedMemory), o.SharedMemory > 0)
	w.writeFlag("host_network", o.HostNetwork)
	w.writeFlag("lock_memory", o.LockMemory)
	w.writeText("service_account", o.ServiceAccount)
	w.writeText("runtime_class", o.RuntimeClass)
	w.writeText("priority_class", o.PriorityClass)
	for _, m := range []struct {
		name string
		of   map[string]string
	}{{"labels", o.Labels}, {"annotations", o.Annotations}, {"node_selector", o.NodeSelector}} {
		if len(m.of) == 0 {
			continue
		}
		w.openGroup(m.name)
		for _, k := range slices.Sorted(maps.Keys(m.of)) {
			w.writeKeyed(k, quoteText(m.of[k]))
		}
		w.closeGroup()
	}
	w.writeList("tolerations", o.Tolerations)
	w.closeGroup()
}
