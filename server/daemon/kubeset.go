package daemon

import (
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/server/config"
)

// kubeSettings are those of a pool of the engine kube. docs/reference/kubernetes-settings.md has the table of
// them, made from the doc tags.
type kubeSettings struct {
	Kubeconfig string `json:"kubeconfig" doc:"a file that the server reads, absolute; needed, but for inside"`
	Context    string `json:"context" doc:"of the kubeconfig; left out: its current one"`
	Inside     bool   `json:"inside" doc:"the server runs in a pod of the cluster, and its service account is the way in"`
	Namespace  string `json:"namespace" doc:"where everything of the pool is made, but for jobs of the accounts below; left out: that of the context"`

	Namespaces  map[string]string `json:"namespaces" doc:"account → namespace in which its jobs are made (see Tenancy); those of all others are in the one above"`
	OnlyNamed   bool              `json:"only_named" doc:"jobs of accounts that namespaces does not name are refused"`
	Impersonate map[string]string `json:"impersonate" doc:"account, user:NAME of who submits, or * → as whom the objects of jobs are made: user:NAME, serviceaccount:NAME of the job's namespace, serviceaccount:NAMESPACE:NAME; without: as the account of the kubeconfig (see Tenancy)"`

	Placed *bool  `json:"placed" doc:"Coxswain chooses the nodes and binds the pods; that is so if it is left out. false: the cluster's own scheduler chooses"`
	Gang   string `json:"gang" doc:"native, volcano, kai, coscheduling or kueue: what begins pods together where the cluster's scheduler chooses; left out: the first of them that the cluster has and these settings let be used, and never Kueue"`

	Approximate bool   `json:"approximate" doc:"with gang kueue: it will do that gangs are all or none in quota alone"`
	Queue       string `json:"queue" doc:"in which the pool's jobs wait: of KAI or Kueue (a LocalQueue), where it is needed, or of Volcano; left out: Volcano's default"`
	Within      string `json:"within" doc:"with gang kueue: required=LABEL or preferred=LABEL, a level of the Topology of the queue's flavors in one domain of which the pods of each job are to be that does not say it itself (see Gangs)"`
	Scheduler   string `json:"scheduler" doc:"the scheduler that chooses the nodes of pods that are not placed; coscheduling needs it; left out: volcano, kai-scheduler, or the cluster's default"`

	Reserve bool `json:"reserve" doc:"nodes of the pool are kept for it: they get the taint coxswain.sh/pool=POOL:NoSchedule, and an admission policy, which --print-policy prints, keeps others off"`

	Handover bool `json:"handover" doc:"machines of the pool may change pools: the account needs the rights to close nodes, which --print-rbac prints then and cox pool check looks at"`

	Image      string `json:"image" doc:"container image of jobs that name none; left out: these are refused"`
	AgentImage string `json:"agent_image" doc:"the image that brings cox-pod into the pods; nothing starts without"`

	GPU      string            `json:"gpu_resource" doc:"the resource that counts as GPUs; left out: all whose names end in /gpu, and nvidia.com/mig-…"`
	Classes  []string          `json:"device_class" doc:"DeviceClasses of DRA, as gpu.nvidia.com, whose devices are the pool's GPUs: pods claim them; left out: GPUs are counted, and what DRA has is not used"`
	Topology []string          `json:"topology" doc:"labels of nodes that say where they lie, from the top down, or kueue:NAME, those of that Topology of Kueue's; left out: those of the only Topology of Kueue's that the cluster has, if the account may list them, else those of the table below"`
	Features []string          `json:"features" doc:"more labels of nodes whose values become features"`
	Selector map[string]string `json:"node_selector" doc:"labels that a node of the pool has; left out: all nodes are the pool's"`

	Tolerations   []kubeToleration  `json:"tolerations" doc:"taints that pods of the pool bear: objects of key, operator, value, effect, as in a pod. That of the pool itself, and those named like a GPU's resource, are borne anyway"`
	PriorityClass string            `json:"priority_class" doc:"of the pool's pods"`
	PullSecrets   []string          `json:"pull_secrets" doc:"secrets in the namespace by which images are pulled"`
	RunAs         string            `json:"run_as" doc:"submitter (the user and group who submitted; the default), image (the user of the image), or UID:GID for all"`
	FSGroup       *int64            `json:"fs_group" doc:"a number: the group that volumes are given to which can be given to one"`
	Shm           string            `json:"shm" doc:"size of /dev/shm, as 8Gi; it counts as the job's memory. Left out: what the container runtime gives, usually 64 MiB"`
	HostNetwork   bool              `json:"host_network" doc:"pods are on the network of their node"`
	LockMemory    bool              `json:"lock_memory" doc:"pods have the capability IPC_LOCK"`
	Account       string            `json:"service_account" doc:"of the pods, whose token is in them; left out: none is"`
	Accounts      map[string]string `json:"service_accounts" doc:"account → service account of the pods of its jobs; others have service_account"`
	RuntimeClass  string            `json:"runtime_class" doc:"of the pods, as nvidia"`
	Labels        map[string]string `json:"labels" doc:"more labels of the pods"`
	Annotations   map[string]string `json:"annotations" doc:"more annotations of the pods, as k8s.v1.cni.cncf.io/networks"`
	Allow         []string          `json:"allow" doc:"what jobs may ask of their pods by kubernetes in the native form, or by the pod templates of manifests: host_network, lock_memory, service_account, runtime_class, priority_class, labels, annotations, tolerations; by templates alone: secrets and config_maps (of the namespace, not of the file), host_path, host_pid, host_ipc, host_ports, privileged, run_as_user, resource_claims, affinity (to pods of others), and volume/TYPE for a type of volumes, as volume/nfs, volume/csi or volume/persistentVolumeClaim"`
	Paths         map[string]string `json:"paths" doc:"path prefix in pods → volume: pvc:NAME, nfs:SERVER:/PATH, hostPath:/PATH, emptyDir:SIZE, ephemeral:SIZE, image; behind it ,ro or ,sub=DIRECTORY (see Storage)"`
	WorkDir       string            `json:"workdir" doc:"what becomes of a working directory that none of paths has: refuse, empty (an empty one stands in its place), or upload (it comes with the job: cox submit --upload); left out: refuse where there are paths, else empty"`
	UploadRoom    string            `json:"upload_room" doc:"of workdir upload: the most that the directory has in each pod, unpacked and with what the job writes there, as 20Gi, or what the job asks for by --tmp, if that is more; beyond, the job fails. Left out: 10Gi"`
	Checkpoints   string            `json:"checkpoints" doc:"a directory below one of paths, on a volume that lasts and that all pods share, made by its administrator with the mode 1777, in which each job has one of its own for what it saves (COX_CHECKPOINT_DIR, see Checkpoints); left out: jobs have none"`
	Domain        string            `json:"cluster_domain" doc:"of the cluster's names; left out: cluster.local"`
	GPUMetrics    string            `json:"gpu_metrics" doc:"where the use of the nodes' GPUs is read: a page of a DCGM exporter, in which {node} stands for the name of each node, or the address of a Prometheus that scrapes it; left out: GPUs are not measured"`
}

// kubeToleration is a toleration as a pod has it.
type kubeToleration struct {
	Key      string `json:"key"`
	Operator string `json:"operator"`
	Value    string `json:"value"`
	Effect   string `json:"effect"`
}

func wrongKube(field, remedy, format string, args ...any) error {
	return fault.New(fault.Invalid, "settings: "+field+": "+format, args...).Advise("%s", remedy)
}

func (s *kubeSettings) isPlaced() bool { return s.Placed == nil || *s.Placed }

// readTerms reads the settings of a pool.
func (s *kubeSettings) readTerms(pool string) (settings.Terms, error) {
	t := settings.Terms{
		Pool: pool, Namespace: s.Namespace, Placed: s.isPlaced(), Reserve: s.Reserve, Handover: s.Handover, Gang: render.GangKind(s.Gang), Approximate: s.Approximate, Queue: s.Queue, Scheduler: s.Scheduler, Image: s.Image, AgentImage: s.AgentImage,
		GPU: s.GPU, Classes: s.Classes, Topology: s.Topology, Features: s.Features, Selector: s.Selector,
		PriorityClass: s.PriorityClass, PullSecrets: s.PullSecrets, AsImage: s.RunAs == "image", Domain: s.Domain,
		WorkDir: settings.WorkDirRule(s.WorkDir), Namespaces: s.Namespaces, OnlyNamed: s.OnlyNamed, ServiceAccounts: s.Accounts,
	}
	if missing := gang.MissingSettings(&t, t.Gang); missing != "" && !t.Placed {
		return t, wrongKube("gang", "add "+missing+gangConsent(t.Gang), "%s is not used without", t.Gang)
	}
	for _, check := range []func() error{s.checkWords, func() error { return s.readTopology(&t) }, s.checkWay, s.checkNames, func() error { return s.checkReserve(pool) }, func() error { return s.readAccounts(&t) }, func() error { return s.readPodShape(&t) }, func() error { return s.readTolerations(&t) }, func() error { return s.readVolumes(&t) }} {
		if err := check(); err != nil {
			return t, err
		}
	}
	return t, nil
}

// readTopology reads how near each other the pods of a job are to be.
func (s *kubeSettings) readTopology(t *settings.Terms) error {
	if s.Within == "" {
		return nil
	}
	if t.Placed || t.Gang != render.Kueue {
		return wrongKube("within", "leave it; where Coxswain chooses the nodes, jobs are placed near by the topology anyway", "Kueue alone is told that")
	}
	how, label, _ := strings.Cut(s.Within, "=")
	if wrong := validation.IsQualifiedName(label); how != "required" && how != "preferred" || len(wrong) > 0 {
		return wrongKube("within", "write required=LABEL or preferred=LABEL, as required=topology.kubernetes.io/zone", "%.100q says neither", s.Within)
	}
	t.Within.Label, t.Within.Wished = label, how == "preferred"
	return nil
}

// gangConsent says what a kind of gang does not promise; empty: nothing.
func gangConsent(k render.GangKind) string {
	if k == render.Kueue {
		return ": it admits a gang's pods when there is quota for all, and does not see to it that nodes have room for all at once"
	}
	return ""
}

// remedyPlaced is for settings of pools whose nodes the cluster's own scheduler chooses.
const remedyPlaced = "leave it; or --set placed=false, where the cluster's own scheduler chooses the nodes"

func (s *kubeSettings) checkWay() error {
	switch {
	case s.Kubeconfig != "" && s.Inside:
		return wrongKube("inside", "leave one of them", "the way in is the kubeconfig or the service account of the server's pod")
	case s.Kubeconfig != "" && !path.IsAbs(s.Kubeconfig):
		return wrongKube("kubeconfig", "write it from / on: the server has a working directory of its own", "%.100s is no absolute name", s.Kubeconfig)
	case s.Context != "" && s.Kubeconfig == "":
		return wrongKube("context", "add kubeconfig, or leave it", "it means nothing without kubeconfig")
	case s.isPlaced() && s.Gang != "":
		return wrongKube("gang", remedyPlaced, "with placed, which is so if it is left out, Coxswain binds the pods itself")
	case s.isPlaced() && s.Queue != "":
		return wrongKube("queue", remedyPlaced, "with placed, which is so if it is left out, Coxswain binds the pods itself")
	case s.isPlaced() && s.Scheduler != "":
		return wrongKube("scheduler", remedyPlaced, "with placed, which is so if it is left out, Coxswain binds the pods itself")
	case s.Approximate && s.Gang != string(render.Kueue):
		return wrongKube("approximate", "leave it, or add gang=kueue", "of all gangs Kueue's alone are all or none in quota, and not on nodes")
	case s.Reserve && !s.isPlaced():
		return wrongKube("reserve", "leave one of them", "nodes are kept where Coxswain chooses them, and placed is false")
	}
	return nil
}

// checkReserve looks whether a taint and a ConfigMap can have the pool's name.
func (s *kubeSettings) checkReserve(pool string) error {
	if wrong := append(validation.IsValidLabelValue(pool), validation.IsDNS1123Subdomain("coxswain-"+pool)...); s.Reserve && len(wrong) > 0 {
		return wrongKube("reserve", "give the pool another name", "%.70q can be no taint's value: %s", pool, settings.Misnamed(wrong))
	}
	return nil
}

// checkNames looks whether names are ones that Kubernetes takes.
func (s *kubeSettings) checkNames() error {
	label := func(field, value string) error {
		if wrong := validation.IsDNS1123Label(value); value != "" && len(wrong) > 0 {
			return wrongKube(field, "write a name that kubectl get shows", "%.70q: %s", value, settings.Misnamed(wrong))
		}
		return nil
	}
	long := func(field, value string) error {
		if wrong := validation.IsDNS1123Subdomain(value); value != "" && len(wrong) > 0 {
			return wrongKube(field, "write a name that kubectl get shows", "%.70q: %s", value, settings.Misnamed(wrong))
		}
		return nil
	}
	named := func(field, value string) error { // of which none is left out
		if value == "" {
			return wrongKube(field, "write a name that kubectl get shows", "one has no name")
		}
		return long(field, value)
	}
	qualified := func(field, value string) error {
		if wrong := validation.IsQualifiedName(value); len(wrong) > 0 {
			return wrongKube(field, "kubectl describe node shows the names", "%.70q: %s", value, settings.Misnamed(wrong))
		}
		return nil
	}
	err := firstError(label("namespace", s.Namespace), long("queue", s.Queue), long("scheduler", s.Scheduler), long("priority_class", s.PriorityClass), long("cluster_domain", s.Domain))
	for _, n := range s.PullSecrets {
		err = firstError(err, long("pull_secrets", n))
	}
	if s.GPU != "" {
		err = firstError(err, qualified("gpu_resource", s.GPU))
	}
	for _, n := range s.Classes {
		err = firstError(err, named("device_class", n))
	}
	for _, n := range s.Topology {
		if name, kueue := strings.CutPrefix(n, settings.KueueTopology); kueue && len(s.Topology) == 1 && (name == "" || len(validation.IsDNS1123Subdomain(name)) == 0) {
			continue
		}
		err = firstError(err, qualified("topology", n))
	}
	for _, n := range s.Features {
		err = firstError(err, qualified("features", n))
	}
	for _, n := range slices.Sorted(maps.Keys(s.Selector)) {
		err = firstError(err, qualified("node_selector", n))
		if wrong := validation.IsValidLabelValue(s.Selector[n]); len(wrong) > 0 {
			err = firstError(err, wrongKube("node_selector", "kubectl get nodes --show-labels shows the values", "%s: %.70q: %s", n, s.Selector[n], settings.Misnamed(wrong)))
		}
	}
	return err
}

func firstError(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *kubeSettings) checkWords() error {
	if s.Gang != "" && !slices.Contains(gang.Kinds(), s.Gang) {
		return wrongKube("gang", "there are "+strings.Join(gang.Kinds(), ", "), "there is no %.70q", s.Gang)
	}
	if !slices.Contains([]string{"", "refuse", "empty", "upload"}, s.WorkDir) {
		return wrongKube("workdir", "write refuse, empty or upload", "there is no %.70q", s.WorkDir)
	}
	if err := config.CheckExporter(s.GPUMetrics); err != nil {
		return fault.New(fault.Invalid, "settings: gpu_metrics: %w", err).Advise("%s", fault.Remedy(err))
	}
	for field, image := range map[string]string{"image": s.Image, "agent_image": s.AgentImage} {
		if strings.ContainsAny(image, " \t\n\"") || strings.HasPrefix(image, "-") {
			return wrongKube(field, "write REGISTRY/NAME:TAG", "%.100q is no image", image)
		}
	}
	return nil
}

func (s *kubeSettings) readTolerations(t *settings.Terms) error {
	for _, x := range s.Tolerations {
		switch {
		case !slices.Contains([]string{"", "Exists", "Equal"}, x.Operator):
			return wrongKube("tolerations", "write Exists or Equal", "operator: there is no %.70q", x.Operator)
		case !slices.Contains([]string{"", "NoSchedule", "PreferNoSchedule", "NoExecute"}, x.Effect):
			return wrongKube("tolerations", "write NoSchedule, PreferNoSchedule or NoExecute, or leave it for all", "effect: there is no %.70q", x.Effect)
		case x.Key == "" && x.Operator != "Exists":
			return wrongKube("tolerations", "add key, or operator: Exists for every taint", "one has no key")
		case x.Operator == "Exists" && x.Value != "":
			return wrongKube("tolerations", "leave value, or write operator: Equal", "%s: Exists has no value", x.Key)
		}
		t.Tolerations = append(t.Tolerations, corev1.Toleration{Key: x.Key, Operator: corev1.TolerationOperator(x.Operator), Value: x.Value, Effect: corev1.TaintEffect(x.Effect)})
	}
	return nil
}

func (s *kubeSettings) readVolumes(t *settings.Terms) error {
	for _, prefix := range slices.Sorted(maps.Keys(s.Paths)) {
		switch {
		case !path.IsAbs(prefix) || path.Clean(prefix) != prefix || prefix == "/" || strings.ContainsAny(prefix, ":,\n"):
			return wrongKube("paths", `write {"/home": "pvc:home"}`, "%.100q is no path prefix", prefix)
		case prefix == "/dev/shm":
			return wrongKube("paths", "set shm", "/dev/shm has a setting of its own")
		case slices.ContainsFunc([]string{"/cox", "/cox-attempt", "/proc", "/sys", "/dev"}, func(dir string) bool { return prefix == dir || strings.HasPrefix(prefix, dir+"/") }):
			return wrongKube("paths", "take another directory", "%s is used in every pod", prefix)
		}
		v, err := settings.ParseVolume(s.Paths[prefix])
		if err != nil {
			return wrongKube("paths", fault.Remedy(err), "%s: %w", prefix, err)
		}
		t.Paths = append(t.Paths, settings.Path{Prefix: prefix, Volume: v})
	}
	return s.checkCheckpoints(t)
}

// checkCheckpoints looks whether what is saved in a directory of the pods is there for a job's next
// attempt.
func (s *kubeSettings) checkCheckpoints(t *settings.Terms) error {
	dir := s.Checkpoints
	if dir == "" {
		return nil
	}
	if !path.IsAbs(dir) || path.Clean(dir) != dir || strings.ContainsAny(dir, "\n\x00") {
		return wrongKube("checkpoints", "write /scratch/checkpoints", "%.100q is no directory from / on, in its shortest form", dir)
	}
	p, ok := t.PathOf(dir)
	switch {
	case !ok:
		return wrongKube("checkpoints", "name a directory below one of paths", "%s is on no volume", dir)
	case !p.Volume.Lasts():
		return wrongKube("checkpoints", "name a directory of a claim, of NFS, or of a file system that all nodes have", "what is written to %s (%s) is not there for a job's next attempt", p.Prefix, p.Volume)
	}
	t.Checkpoints = dir
	return nil
}
