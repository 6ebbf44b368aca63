package kueue

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/policy"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// File is a text with the name by which its user knows it.
type File struct {
	Name string
	Text string
}

// maxSize bounds a file.
const maxSize = 8 << 20

// Import reads files of objects and returns the rules with what became of every
// field. The error is about text that is no YAML, or holds no object of Kueue.
func Import(files []File) (*account.Policy, *policy.Report, error) {
	im := &importer{p: &account.Policy{}, report: &policy.Report{}, orders: map[string]account.QueueOrder{}}
	found := false
	for i, f := range files {
		docs, err := yaml.ParseAll(spec.Source{Name: f.Name, Data: []byte(f.Text)}, maxSize)
		if err != nil {
			return nil, nil, err
		}
		from := len(im.report.Findings)
		for _, d := range docs {
			found = im.document(files[i].Name, d.Root) || found
		}
		slices.SortStableFunc(im.report.Findings[from:], func(a, b policy.Finding) int { return cmp.Compare(a.Line, b.Line) })
	}
	if !found {
		return nil, nil, fault.New(fault.Invalid, "there is no object of Kueue in %s", nameOf(files)).
			Advise("kubectl get resourceflavors,cohorts,clusterqueues,localqueues,workloadpriorityclasses -A -o yaml > queues.yaml; cox import kueue queues.yaml")
	}
	im.finish()
	return im.p, im.report, nil
}

func nameOf(files []File) string {
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// importer is the rules while they are made.
type importer struct {
	p          *account.Policy
	report     *policy.Report
	fair       bool
	strategies []account.Strategy
	orders     map[string]account.QueueOrder // of ClusterQueues
}

// document reads one document: an object, or a List of them as kubectl prints it.
func (im *importer) document(file string, root *yaml.Node) bool {
	if text(root.Get("kind")) == "List" {
		found := false
		for _, item := range items(root.Get("items")) {
			found = im.document(file, item) || found
		}
		return found
	}
	o := newObject(im, file, root)
	read, known := kinds[o.kind]
	if !known {
		for _, n := range o.order {
			o.refuse(n, "an object of kind %q is no rule of a site", o.kind)
		}
		return false
	}
	read(im, o)
	o.rest()
	return true
}

// kinds are the objects that are read.
var kinds = map[string]func(*importer, *object){
	"ResourceFlavor":        (*importer).flavor,
	"Cohort":                (*importer).cohort,
	"ClusterQueue":          (*importer).clusterQueue,
	"LocalQueue":            (*importer).localQueue,
	"WorkloadPriorityClass": (*importer).priorityClass,
	"PriorityClass":         (*importer).priorityClass,
	"Topology":              (*importer).topology,
	"Configuration":         (*importer).configuration,
}

// productLabels name the type of a node's GPUs.
var productLabels = []string{"nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "gpu.nvidia.com/model"}

func (im *importer) flavor(o *object) {
	f := account.Flavor{Name: o.name}
	if labels := o.get("spec", "nodeLabels"); labels != nil {
		for _, l := range labels.Fields {
			if slices.Contains(productLabels, l.Name) {
				f.GPUType = typeOf(l.Value.Text)
				o.about(l.Value, "gpu_type %s: say what the nodes' devices are called here", f.GPUType)
				continue
			}
			f.Features = append(f.Features, l.Name+"="+l.Value.Text)
			o.about(l.Value, "a feature %q that its nodes must have", l.Name+"="+l.Value.Text)
		}
	}
	o.refuse(o.get("spec", "nodeTaints"), "nodes of the site take every job: keep others off by allow_accounts of a partition")
	o.refuse(o.get("spec", "tolerations"), "nodes of the site take every job")
	o.tell(o.get("spec", "topologyName"), policy.Elsewhere, "the topology is a property of nodes")
	im.p.Flavors = append(im.p.Flavors, f)
}

// typeOf makes a type of device of a product: NVIDIA-H100-80GB-HBM3 is h100.
func typeOf(product string) string {
	for part := range strings.SplitSeq(strings.ToLower(product), "-") {
		if part != "nvidia" && part != "tesla" && part != "amd" {
			return part
		}
	}
	return strings.ToLower(product)
}

func (im *importer) account(name string) *account.Account {
	i := slices.IndexFunc(im.p.Accounts, func(a account.Account) bool { return a.Name == name })
	if i < 0 {
		im.p.Accounts = append(im.p.Accounts, account.Account{Name: name, Quota: &account.Quota{}})
		i = len(im.p.Accounts) - 1
	}
	return &im.p.Accounts[i]
}

// parent puts an account below another, which an object of its own may describe.
func (im *importer) parent(o *object, name string) {
	for _, field := range []string{"cohort", "cohortName", "parent", "parentName"} {
		if n := o.get("spec", field); text(n) != "" {
			im.account(n.Text)
			im.account(name).Parent = n.Text
			o.kept(n)
		}
	}
}

func (im *importer) cohort(o *object) {
	im.account(o.name)
	im.parent(o, o.name)
	im.amounts(o, o.name)
	im.weight(o, o.name)
}

func (im *importer) clusterQueue(o *object) {
	im.account(o.name)
	im.parent(o, o.name)
	im.amounts(o, o.name)
	im.weight(o, o.name)
	q := im.account(o.name).Quota
	switch n := o.get("spec", "queueingStrategy"); text(n) {
	case "StrictFIFO":
		im.orders[o.name] = account.Strict
		o.kept(n)
	case "BestEffortFIFO":
		o.kept(n)
		fallthrough
	default:
		im.orders[o.name] = account.BestEffort
	}
	im.preemption(o, q)
	im.fungibility(o, q)
	if n := o.get("spec", "namespaceSelector"); n != nil {
		if len(n.Fields)+len(n.Items) == 0 {
			o.kept(n)
		} else {
			o.refuse(n, "there are no namespaces: write who may use it under users of account %s", o.name)
		}
	}
	switch n := o.get("spec", "stopPolicy"); text(n) {
	case "None":
		o.kept(n)
	default:
		o.refuse(n, "an account cannot be stopped: write limits: {group_jobs: 0} for it")
	}
	o.refuse(o.get("spec", "admissionChecks"), "there are no checks before admission")
	o.refuse(o.get("spec", "admissionChecksStrategy"), "there are no checks before admission")
	o.refuse(o.get("spec", "admissionScope"), "users of an account go by fair_share")
}

func (im *importer) weight(o *object, name string) {
	n := o.get("spec", "fairSharing", "weight")
	if n == nil {
		return
	}
	w, ok := decimal(text(n))
	if !ok {
		o.refuse(n, "%q is no weight", text(n))
		return
	}
	im.account(name).Quota.Weight = &w
	o.kept(n)
}

func (im *importer) preemption(o *object, q *account.Quota) {
	victims := func(to *account.Victims, words map[string]account.Victims, names ...string) {
		n := o.get(append([]string{"spec", "preemption"}, names...)...)
		if n == nil {
			return
		}
		v, ok := words[text(n)]
		if !ok {
			o.refuse(n, "%q is no policy of preemption", text(n))
			return
		}
		*to = v
		if v != account.NoVictims {
			im.p.Preemption.By = []string{"quota"}
		}
		o.kept(n)
	}
	victims(&q.Within, map[string]account.Victims{"Never": account.NoVictims, "LowerPriority": account.LowerPriority, "LowerOrNewerEqualPriority": account.LowerOrNewer}, "withinClusterQueue")
	victims(&q.Reclaim, map[string]account.Victims{"Never": account.NoVictims, "LowerPriority": account.LowerPriority, "Any": account.AnyVictims}, "reclaimWithinCohort")
	victims(&q.Borrowing, map[string]account.Victims{"Never": account.NoVictims, "LowerPriority": account.LowerPriority}, "borrowWithinCohort", "policy")
	if n := o.get("spec", "preemption", "borrowWithinCohort", "maxPriorityThreshold"); n != nil {
		if v, err := strconv.ParseInt(text(n), 10, 32); err == nil && q.Borrowing != account.NoVictims {
			q.MaxPriority = &v
			o.kept(n)
		} else {
			o.refuse(n, "it bounds whom borrowing stops, and it stops nobody")
		}
	}
}

func (im *importer) fungibility(o *object, q *account.Quota) {
	fall := func(to *account.FallOver, name string) {
		n := o.get("spec", "flavorFungibility", name)
		switch text(n) {
		case "":
			return
		case "Borrow", "Preempt", "MayStopSearch":
			*to = account.StopHere
		case "TryNextFlavor":
			*to = account.NextFlavor
		default:
			o.refuse(n, "%q says neither to stop nor to go on", text(n))
			return
		}
		o.kept(n)
	}
	fall(&q.Borrow, "whenCanBorrow")
	fall(&q.Preempt, "whenCanPreempt")
	switch n := o.get("spec", "flavorFungibility", "preference"); text(n) {
	case "PreemptionOverBorrowing":
		q.Prefer = account.PreemptFirst
		o.kept(n)
	case "BorrowingOverPreemption":
		o.kept(n)
	}
}

func (im *importer) localQueue(o *object) {
	cq := o.get("spec", "clusterQueue")
	o.about(cq, "jobs name account %s themselves (--account); its users stand there", text(cq))
	o.about(o.get("metadata", "namespace"), "there are no namespaces: its users become users of account %s", text(cq))
	o.refuse(o.get("spec", "fairSharing"), "users of an account go by fair_share")
	if n := o.get("spec", "stopPolicy"); text(n) == "None" {
		o.kept(n)
	}
}

func (im *importer) priorityClass(o *object) {
	n := down(o.root, "value")
	v, err := strconv.ParseInt(text(n), 10, 64)
	switch {
	case err != nil || v < 0 || v > 1<<32-1:
		o.refuse(n, "a QOS has a priority between 0 and 4294967295")
		return
	case slices.ContainsFunc(im.p.QOS, func(q account.QOS) bool { return q.Name == o.name }):
		o.refuse(n, "there is a QOS %s already", o.name)
		return
	}
	q := account.QOS{Name: o.name, Priority: uint32(v)}
	if d := down(o.root, "description"); text(d) != "" && !strings.ContainsAny(text(d), "\n\t\r") {
		q.Note = d.Text
		o.kept(d)
	}
	im.p.QOS = append(im.p.QOS, q)
	o.about(n, "QOS %s, which jobs name by --qos; it counts by priority.qos", o.name)
	o.refuse(down(o.root, "globalDefault"), "default_qos of an account says what jobs get that name none")
	o.refuse(down(o.root, "preemptionPolicy"), "quotas say who may be stopped for whom")
}

func (im *importer) topology(o *object) {
	o.tell(o.get("spec"), policy.Elsewhere, "the topology is a property of nodes")
}

// configuration is Kueue's own, of which the fair sharing is a rule of the site.
func (im *importer) configuration(o *object) {
	if n := down(o.root, "fairSharing", "enable"); n != nil {
		im.fair = text(n) == "true"
		o.kept(n)
	}
	for _, n := range items(down(o.root, "fairSharing", "preemptionStrategies")) {
		switch text(n) {
		case "LessThanOrEqualToFinalShare":
			im.strategies = append(im.strategies, account.FinalShare)
		case "LessThanInitialShare":
			im.strategies = append(im.strategies, account.InitialShare)
		default:
			o.refuse(n, "%q is no strategy", text(n))
			continue
		}
		o.kept(n)
	}
	for _, f := range o.root.Fields {
		if f.Name != "fairSharing" && f.Name != "apiVersion" && f.Name != "kind" {
			o.tell(f.Value, policy.Elsewhere, "it is about Kueue's own process")
		}
	}
}

// agree says once, at the root, in which order the queues of a tree go where all of them
// go in the same.
func (im *importer) agree() {
	parent := map[string]string{}
	for i := range im.p.Accounts {
		parent[im.p.Accounts[i].Name] = im.p.Accounts[i].Parent
	}
	root := func(name string) string {
		for range im.p.Accounts { // a circle is reported elsewhere
			if parent[name] == "" {
				break
			}
			name = parent[name]
		}
		return name
	}
	orders := map[string][]account.QueueOrder{}
	for name, o := range im.orders {
		orders[root(name)] = append(orders[root(name)], o)
	}
	for i := range im.p.Accounts {
		a := &im.p.Accounts[i]
		of := orders[root(a.Name)]
		same := len(of) > 0 && !slices.ContainsFunc(of, func(o account.QueueOrder) bool { return o != of[0] })
		switch own := im.orders[a.Name]; {
		case same && a.Parent == "" && of[0] == account.Strict:
			a.Quota.Order = account.Strict
		case !same && own == account.Strict:
			a.Quota.Order = own
		}
	}
}

// finish settles what objects decide together.
func (im *importer) finish() {
	if len(im.p.QOS) > 0 && im.p.Priority.QOS == 0 {
		im.p.Priority.QOS = 1 // so that the classes order jobs as they did
	}
	for i := range im.p.Accounts {
		a := &im.p.Accounts[i]
		if a.Parent == "" && im.fair {
			a.Quota.Fair, a.Quota.Strategies = true, im.strategies
		}
	}
	im.agree()
	for _, x := range im.p.Check() {
		im.report.Add(policy.Finding{File: "(together)", What: x.Path + ": " + x.Message, Verdict: policy.Refused, How: "mend it in the file before it is applied: " + x.Remedy})
	}
}
