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
			found = im.readDocument(files[i].Name, d.Root) || found
		}
		slices.SortStableFunc(im.report.Findings[from:], func(a, b policy.Finding) int { return cmp.Compare(a.Line, b.Line) })
	}
	if !found {
		return nil, nil, fault.New(fault.Invalid, "there is no object of Kueue in %s", nameOf(files)).
			Advise("kubectl get resourceflavors,cohorts,clusterqueues,localqueues,workloadpriorityclasses -A -o yaml > queues.yaml; cox import kueue queues.yaml")
	}
	im.finishImport()
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

// readDocument reads one document: an object, or a List of them as kubectl prints it.
func (im *importer) readDocument(file string, root *yaml.Node) bool {
	if scalarText(root.Get("kind")) == "List" {
		found := false
		for _, item := range listItems(root.Get("items")) {
			found = im.readDocument(file, item) || found
		}
		return found
	}
	o := newObject(im, file, root)
	read, known := kinds[o.kind]
	if !known {
		for _, n := range o.order {
			o.refuseValue(n, "an object of kind %q is no rule of a site", o.kind)
		}
		return false
	}
	read(im, o)
	o.reportUnread()
	return true
}

// kinds are the objects that are read.
var kinds = map[string]func(*importer, *object){
	"ResourceFlavor":        (*importer).readFlavor,
	"Cohort":                (*importer).readCohort,
	"ClusterQueue":          (*importer).clusterQueue,
	"LocalQueue":            (*importer).localQueue,
	"WorkloadPriorityClass": (*importer).priorityClass,
	"PriorityClass":         (*importer).priorityClass,
	"Topology":              (*importer).readTopology,
	"Configuration":         (*importer).readConfiguration,
}

// productLabels name the type of a node's GPUs.
var productLabels = []string{"nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "gpu.nvidia.com/model"}

func (im *importer) readFlavor(o *object) {
	f := account.Flavor{Name: o.name}
	if labels := o.get("spec", "nodeLabels"); labels != nil {
		for _, l := range labels.Fields {
			if slices.Contains(productLabels, l.Name) {
				f.GPUType = typeOf(l.Value.Text)
				o.noteAbout(l.Value, "gpu_type %s: say what the nodes' devices are called here", f.GPUType)
				continue
			}
			f.Features = append(f.Features, l.Name+"="+l.Value.Text)
			o.noteAbout(l.Value, "a feature %q that its nodes must have", l.Name+"="+l.Value.Text)
		}
	}
	o.refuseValue(o.get("spec", "nodeTaints"), "nodes of the site take every job: keep others off by allow_accounts of a partition")
	o.refuseValue(o.get("spec", "tolerations"), "nodes of the site take every job")
	o.addVerdict(o.get("spec", "topologyName"), policy.Elsewhere, "the topology is a property of nodes")
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

func (im *importer) accountNamed(name string) *account.Account {
	i := slices.IndexFunc(im.p.Accounts, func(a account.Account) bool { return a.Name == name })
	if i < 0 {
		im.p.Accounts = append(im.p.Accounts, account.Account{Name: name, Quota: &account.Quota{}})
		i = len(im.p.Accounts) - 1
	}
	return &im.p.Accounts[i]
}

// readParent puts an account below another, which an object of its own may describe.
func (im *importer) readParent(o *object, name string) {
	for _, field := range []string{"cohort", "cohortName", "parent", "parentName"} {
		if n := o.get("spec", field); scalarText(n) != "" {
			im.accountNamed(n.Text)
			im.accountNamed(name).Parent = n.Text
			o.noteKept(n)
		}
	}
}

func (im *importer) readCohort(o *object) {
	im.accountNamed(o.name)
	im.readParent(o, o.name)
	im.readAmounts(o, o.name)
	im.readWeight(o, o.name)
}

func (im *importer) clusterQueue(o *object) {
	im.accountNamed(o.name)
	im.readParent(o, o.name)
	im.readAmounts(o, o.name)
	im.readWeight(o, o.name)
	q := im.accountNamed(o.name).Quota
	switch n := o.get("spec", "queueingStrategy"); scalarText(n) {
	case "StrictFIFO":
		im.orders[o.name] = account.Strict
		o.noteKept(n)
	case "BestEffortFIFO":
		o.noteKept(n)
		fallthrough
	default:
		im.orders[o.name] = account.BestEffort
	}
	im.readPreemption(o, q)
	im.readFungibility(o, q)
	if n := o.get("spec", "namespaceSelector"); n != nil {
		if len(n.Fields)+len(n.Items) == 0 {
			o.noteKept(n)
		} else {
			o.refuseValue(n, "there are no namespaces: write who may use it under users of account %s", o.name)
		}
	}
	switch n := o.get("spec", "stopPolicy"); scalarText(n) {
	case "None":
		o.noteKept(n)
	default:
		o.refuseValue(n, "an account cannot be stopped: write limits: {group_jobs: 0} for it")
	}
	o.refuseValue(o.get("spec", "admissionChecks"), "there are no checks before admission")
	o.refuseValue(o.get("spec", "admissionChecksStrategy"), "there are no checks before admission")
	o.refuseValue(o.get("spec", "admissionScope"), "users of an account go by fair_share")
}

func (im *importer) readWeight(o *object, name string) {
	n := o.get("spec", "fairSharing", "weight")
	if n == nil {
		return
	}
	w, ok := parseDecimal(scalarText(n))
	if !ok {
		o.refuseValue(n, "%q is no weight", scalarText(n))
		return
	}
	im.accountNamed(name).Quota.Weight = &w
	o.noteKept(n)
}

func (im *importer) readPreemption(o *object, q *account.Quota) {
	victims := func(to *account.Victims, words map[string]account.Victims, names ...string) {
		n := o.get(append([]string{"spec", "preemption"}, names...)...)
		if n == nil {
			return
		}
		v, ok := words[scalarText(n)]
		if !ok {
			o.refuseValue(n, "%q is no policy of preemption", scalarText(n))
			return
		}
		*to = v
		if v != account.NoVictims {
			im.p.Preemption.By = []string{"quota"}
		}
		o.noteKept(n)
	}
	victims(&q.Within, map[string]account.Victims{"Never": account.NoVictims, "LowerPriority": account.LowerPriority, "LowerOrNewerEqualPriority": account.LowerOrNewer}, "withinClusterQueue")
	victims(&q.Reclaim, map[string]account.Victims{"Never": account.NoVictims, "LowerPriority": account.LowerPriority, "Any": account.AnyVictims}, "reclaimWithinCohort")
	victims(&q.Borrowing, map[string]account.Victims{"Never": account.NoVictims, "LowerPriority": account.LowerPriority}, "borrowWithinCohort", "policy")
	if n := o.get("spec", "preemption", "borrowWithinCohort", "maxPriorityThreshold"); n != nil {
		if v, err := strconv.ParseInt(scalarText(n), 10, 32); err == nil && q.Borrowing != account.NoVictims {
			q.MaxPriority = &v
			o.noteKept(n)
		} else {
			o.refuseValue(n, "it bounds whom borrowing stops, and it stops nobody")
		}
	}
}

func (im *importer) readFungibility(o *object, q *account.Quota) {
	fall := func(to *account.FallOver, name string) {
		n := o.get("spec", "flavorFungibility", name)
		switch scalarText(n) {
		case "":
			return
		case "Borrow", "Preempt", "MayStopSearch":
			*to = account.StopHere
		case "TryNextFlavor":
			*to = account.NextFlavor
		default:
			o.refuseValue(n, "%q says neither to stop nor to go on", scalarText(n))
			return
		}
		o.noteKept(n)
	}
	fall(&q.Borrow, "whenCanBorrow")
	fall(&q.Preempt, "whenCanPreempt")
	switch n := o.get("spec", "flavorFungibility", "preference"); scalarText(n) {
	case "PreemptionOverBorrowing":
		q.Prefer = account.PreemptFirst
		o.noteKept(n)
	case "BorrowingOverPreemption":
		o.noteKept(n)
	}
}

func (im *importer) localQueue(o *object) {
	cq := o.get("spec", "clusterQueue")
	o.noteAbout(cq, "jobs name account %s themselves (--account); its users stand there", scalarText(cq))
	o.noteAbout(o.get("metadata", "namespace"), "there are no namespaces: its users become users of account %s", scalarText(cq))
	o.refuseValue(o.get("spec", "fairSharing"), "users of an account go by fair_share")
	if n := o.get("spec", "stopPolicy"); scalarText(n) == "None" {
		o.noteKept(n)
	}
}

func (im *importer) priorityClass(o *object) {
	n := nodeBelow(o.root, "value")
	v, err := strconv.ParseInt(scalarText(n), 10, 64)
	switch {
	case err != nil || v < 0 || v > 1<<32-1:
		o.refuseValue(n, "a QOS has a priority between 0 and 4294967295")
		return
	case slices.ContainsFunc(im.p.QOS, func(q account.QOS) bool { return q.Name == o.name }):
		o.refuseValue(n, "there is a QOS %s already", o.name)
		return
	}
	q := account.QOS{Name: o.name, Priority: uint32(v)}
	if d := nodeBelow(o.root, "description"); scalarText(d) != "" && !strings.ContainsAny(scalarText(d), "\n\t\r") {
		q.Note = d.Text
		o.noteKept(d)
	}
	im.p.QOS = append(im.p.QOS, q)
	o.noteAbout(n, "QOS %s, which jobs name by --qos; it counts by priority.qos", o.name)
	o.refuseValue(nodeBelow(o.root, "globalDefault"), "default_qos of an account says what jobs get that name none")
	o.refuseValue(nodeBelow(o.root, "preemptionPolicy"), "quotas say who may be stopped for whom")
}

func (im *importer) readTopology(o *object) {
	o.addVerdict(o.get("spec"), policy.Elsewhere, "the topology is a property of nodes")
}

// readConfiguration is Kueue's own, of which the fair sharing is a rule of the site.
func (im *importer) readConfiguration(o *object) {
	if n := nodeBelow(o.root, "fairSharing", "enable"); n != nil {
		im.fair = scalarText(n) == "true"
		o.noteKept(n)
	}
	for _, n := range listItems(nodeBelow(o.root, "fairSharing", "preemptionStrategies")) {
		switch scalarText(n) {
		case "LessThanOrEqualToFinalShare":
			im.strategies = append(im.strategies, account.FinalShare)
		case "LessThanInitialShare":
			im.strategies = append(im.strategies, account.InitialShare)
		default:
			o.refuseValue(n, "%q is no strategy", scalarText(n))
			continue
		}
		o.noteKept(n)
	}
	for _, f := range o.root.Fields {
		if f.Name != "fairSharing" && f.Name != "apiVersion" && f.Name != "kind" {
			o.addVerdict(f.Value, policy.Elsewhere, "it is about Kueue's own process")
		}
	}
}

// reportQueueOrder says once, at the root, in which order the queues of a tree go where all of them
// go in the same.
func (im *importer) reportQueueOrder() {
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

// finishImport settles what objects decide together.
func (im *importer) finishImport() {
	if len(im.p.QOS) > 0 && im.p.Priority.QOS == 0 {
		im.p.Priority.QOS = 1 // so that the classes order jobs as they did
	}
	for i := range im.p.Accounts {
		a := &im.p.Accounts[i]
		if a.Parent == "" && im.fair {
			a.Quota.Fair, a.Quota.Strategies = true, im.strategies
		}
	}
	im.reportQueueOrder()
	for _, x := range im.p.Check() {
		im.report.Add(policy.Finding{File: "(together)", What: x.Path + ": " + x.Message, Verdict: policy.Refused, How: "mend it in the file before it is applied: " + x.Remedy})
	}
}
