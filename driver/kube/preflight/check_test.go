package preflight

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authzv1 "k8s.io/api/authorization/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/driver/kube/inventory"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// answers is an API server that says what a test has written down, by path. What is not
// there is 404. denied are the verbs and resources that may not be used.
type answers struct {
	t      *testing.T
	say    map[string]string
	denied map[string]bool // "create pods"
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	body, _ := io.ReadAll(r.Body)
	switch {
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		var v authzv1.SelfSubjectAccessReview
		if err := json.Unmarshal(body, &v); err != nil {
			a.t.Error(err)
		}
		what := v.Spec.ResourceAttributes
		name := what.Verb + " " + what.Resource
		if what.Subresource != "" {
			name += "/" + what.Subresource
		}
		if what.Namespace == "" {
			name += " everywhere"
		}
		v.Status.Allowed = !a.denied[name]
		if err := json.NewEncoder(w).Encode(v); err != nil {
			a.t.Error(err)
		}
		return
	case a.say[r.URL.Path] == "forbidden":
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"kind":"Status","status":"Failure","reason":"Forbidden","message":"no","code":403}`)
		return
	case a.say[r.URL.Path] == "":
		name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"kind":"Status","status":"Failure","reason":"NotFound","message":"not found","details":{"name":"`+name+`"},"code":404}`)
		return
	}
	io.WriteString(w, a.say[r.URL.Path])
}

// lookup is what Check looks at.
type lookup struct {
	cluster   *cluster.Cluster
	terms     settings.Terms
	inventory *inventory.Inventory
}

func surveyOf(t *testing.T, a *answers, terms settings.Terms) *lookup {
	t.Helper()
	a.t = t
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"`+server.URL+`"}}],"users":[{"name":"u","user":{}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Open(cluster.Config{Kubeconfig: file})
	if err != nil {
		t.Fatal(err)
	}
	return &lookup{c, terms, inventory.New(c, terms, "abcdef")}
}

// good is a cluster in which nothing is missing.
func good() map[string]string {
	discovery := func(groups string) string { return `{"kind":"APIGroupDiscoveryList","items":[` + groups + `]}` }
	return map[string]string{
		"/version": `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`,
		"/api":     discovery(``),
		"/apis": discovery(`{"metadata":{"name":"scheduling.k8s.io"},"versions":[{"version":"v1alpha2","resources":[{"resource":"podgroups","scope":"Namespaced"}]}]},
			{"metadata":{"name":"admissionregistration.k8s.io"},"versions":[{"version":"v1","resources":[{"resource":"validatingadmissionpolicies","scope":"Cluster"}]}]},
			{"metadata":{"name":"resource.k8s.io"},"versions":[{"version":"v1","resources":[{"resource":"resourceslices","scope":"Cluster"}]}]}`),
		"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/coxswain-k8s-a": `{"spec":{}}`,
		"/apis/authentication.k8s.io/v1/selfsubjectreviews":                                      `{"status":{"userInfo":{"username":"anna o'neil","groups":["research","system:authenticated"]}}}`,
		"/api/v1/namespaces/cox":                             `{"metadata":{"name":"cox","labels":{"pod-security.kubernetes.io/enforce":"baseline"}}}`,
		"/api/v1/namespaces/cox/resourcequotas":              `{"items":[{"metadata":{"name":"q"},"status":{"hard":{"pods":"50","requests.nvidia.com/gpu":"8"},"used":{"pods":"3","requests.nvidia.com/gpu":"6"}}}]}`,
		"/api/v1/namespaces/cox/limitranges":                 `{"items":[{"metadata":{"name":"r"},"spec":{"limits":[{"type":"Container","max":{"cpu":"4"},"default":{"memory":"1Gi"}}]}}]}`,
		"/api/v1/namespaces/kube-system/services":            `{"items":[{"metadata":{"name":"kube-dns"},"spec":{"clusterIP":"10.96.0.10"}}]}`,
		"/api/v1/nodes":                                      `{"items":[` + hgx + `]}`,
		"/api/v1/pods":                                       `{"items":[{"metadata":{"name":"e","ownerReferences":[{"kind":"DaemonSet"}]},"spec":{"nodeName":"gpu-7","containers":[{"resources":{"requests":{"cpu":"500m","memory":"1Gi","nvidia.com/gpu":"2"}}}]}}]}`,
		"/apis/resource.k8s.io/v1/resourceslices":            `{"items":[{"spec":{"driver":"gpu.example.com","devices":[{"name":"a"},{"name":"b"}]}}]}`,
		"/apis/scheduling.k8s.io/v1/priorityclasses/high":    `{"metadata":{"name":"high"}}`,
		"/api/v1/namespaces/cox/secrets/pull":                `{"metadata":{"name":"pull"}}`,
		"/api/v1/namespaces/cox/persistentvolumeclaims/home": `{"metadata":{"name":"home","namespace":"cox"},"spec":{"accessModes":["ReadWriteMany"]},"status":{"phase":"Bound"}}`,
		"/api/v1/persistentvolumes/pv-a":                     `{"metadata":{"name":"pv-a","labels":{"topology.kubernetes.io/zone":"us-east-2a"}}}`,
		"/api/v1/persistentvolumes/pv-b":                     `{"metadata":{"name":"pv-b","labels":{"topology.kubernetes.io/zone":"us-east-2b"}}}`,
		"/apis/storage.k8s.io/v1/storageclasses":             `{"items":[{"metadata":{"name":"local"},"provisioner":"kubernetes.io/no-provisioner","volumeBindingMode":"WaitForFirstConsumer"}]}`,
	}
}

// hgx is the node of driver/kube/inventory's tests.
var hgx = func() string {
	text, err := os.ReadFile("../inventory/testdata/hgx.json")
	if err != nil {
		panic(err)
	}
	return string(text)
}()

var terms = settings.Terms{
	Pool: "k8s-a", Namespace: "cox", Image: "train:1", AgentImage: "agent:1", PriorityClass: "high", PullSecrets: []string{"pull"},
	Paths: []settings.Path{{Prefix: "/home", Volume: settings.Volume{Kind: settings.Claim, Name: "home"}}, {Prefix: "/data", Volume: settings.Volume{Kind: settings.NFS, Server: "10.0.0.5", Dir: "/export"}}},
}

func placed(t *settings.Terms) { t.Placed = true }

func reserved(t *settings.Terms) { t.Placed, t.Reserve = true, true }

const claimOf = "/api/v1/namespaces/cox/persistentvolumeclaims/home"

// home is that claim, with a mode and more of what it says.
func home(mode, more string) string {
	return `{"metadata":{"name":"home","namespace":"cox"},"spec":{"accessModes":["` + mode + `"]` + more + `},"status":{"phase":"Bound"}}`
}

const policyAt = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/coxswain-k8s-a"

// findings are those of a look, a line each.
func findings(t *testing.T, s *lookup) []string {
	t.Helper()
	found, err := Check(context.Background(), s.cluster, s.terms, s.inventory)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range found {
		if f.State != engine.Found && f.Mend == "" {
			t.Errorf("%s %s: nothing says what would mend it", f.What, f.Text)
		}
		out = append(out, string(f.State)+" "+f.What+": "+f.Text+" | "+f.Mend)
	}
	return out
}

// TestCheckOfAGoodCluster: all that is there is said, and nothing is called missing.
func TestCheckOfAGoodCluster(t *testing.T) {
	got := strings.Join(findings(t, surveyOf(t, &answers{say: good()}, terms)), "\n")
	for _, want := range []string{
		"found version: Kubernetes v1.36.3", "found identity: anna o'neil, of research, system:authenticated", "found namespace: cox", "found pod security: cox takes pods of the level baseline",
		"found rights: all that a pool", "found quota: q: pods 3 of 50, requests.nvidia.com/gpu 6 of 8", "found limit range: r: Container: at most cpu=4; Container: if nothing is said memory=1Gi",
		"found gangs: native is taken, the first of these that can be: native (podgroups.scheduling.k8s.io v1alpha2)", "found names: the cluster's name service is at 10.96.0.10",
		"found nodes: 1 of 1 take work", "found devices: 7 × h100 on 1 of 1 nodes", "warning devices: 1 are not healthy", "found topology: 1 places",
		"found others: 1 pods, 1 of them of DaemonSets, hold 0.5 CPUs, 1 GiB of memory and 2 GPUs", "warning devices with attributes: 2 of gpu.example.com",
		"found agent image: agent:1", "found image: train:1", "found priority class: high", "found pull secret: pull", "found paths: /home is claim home, bound", "found paths: /data is nfs:10.0.0.5:/export",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "missing ") {
		t.Errorf("something is called missing:\n%s", got)
	}
}

// TestCheckFinds: each thing that can be wrong is found, with what would mend it.
func TestCheckFinds(t *testing.T) {
	grant := `cox pool add k8s-a --engine kube --namespace cox --placed=false --set gang=native --set priority_class=high --set 'paths={"/home":"pvc:home"}' --print-rbac='user:anna o'\''neil' | kubectl apply -f -`
	for name, tt := range map[string]struct {
		path, say string
		denied    string
		change    func(*settings.Terms)
		want      string
		mend      string
	}{
		"an old cluster":         {path: "/version", say: `{"major":"1","minor":"26+","gitVersion":"v1.26.9-eks"}`, want: "missing version: Kubernetes v1.26.9-eks has no scheduling gates", mend: "upgrade"},
		"an older one":           {path: "/version", say: `{"major":"1","minor":"28","gitVersion":"v1.28.1"}`, want: "warning version: Kubernetes v1.28.1 is older than 1.30", mend: "upgrade"},
		"one of tomorrow":        {path: "/version", say: `{"major":"1","minor":"99","gitVersion":"v1.99.0"}`, want: "warning version: Kubernetes v1.99.0 is newer", mend: "cox verify k8s-a"},
		"no namespace":           {path: "/api/v1/namespaces/cox", say: "", want: "missing namespace: there is no namespace cox", mend: "kubectl create namespace cox"},
		"it is going":            {path: "/api/v1/namespaces/cox", say: `{"metadata":{"name":"cox","deletionTimestamp":"2026-01-01T00:00:00Z"}}`, want: "missing namespace: cox is being deleted", mend: "kubectl create namespace cox"},
		"restricted and NFS":     {path: "/api/v1/namespaces/cox", say: `{"metadata":{"name":"cox","labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`, want: "missing pod security: cox takes pods of the level restricted alone, and those of this pool are baseline: paths: /data is NFS", mend: "kubectl label --overwrite namespace cox pod-security.kubernetes.io/enforce=baseline"},
		"baseline, host network": {change: func(t *settings.Terms) { t.Shape.HostNetwork = true }, want: "missing pod security: cox takes pods of the level baseline alone, and those of this pool are privileged: host_network", mend: "enforce=privileged"},
		"baseline, allowed":      {change: func(t *settings.Terms) { t.Allow = []string{"lock_memory"} }, want: "warning pod security: jobs may ask for lock_memory, and cox takes such pods not", mend: "enforce=privileged"},
		"baseline, hostPath": {change: func(t *settings.Terms) {
			t.Paths = []settings.Path{{Prefix: "/d", Volume: settings.Volume{Kind: settings.Host, Dir: "/d"}}}
		}, want: "missing pod security: cox takes pods of the level baseline alone, and those of this pool are privileged", mend: "enforce=privileged"},
		"no right":            {denied: "create pods", want: "missing rights: create pods in namespace cox: jobs run in pods", mend: grant},
		"no right to a part":  {denied: "get pods/log", want: "missing rights: get pods/log in namespace cox: what jobs print", mend: grant},
		"no gangs allowed":    {denied: "create podgroups", want: "missing rights: create podgroups.scheduling.k8s.io in namespace cox", mend: grant},
		"no right to nodes":   {denied: "list nodes everywhere", want: "missing rights: list nodes in the whole cluster: what there is", mend: grant},
		"others not seen":     {denied: "list pods everywhere", want: "warning rights: list pods in the whole cluster: what others hold of the nodes", mend: grant},
		"nor if it is placed": {denied: "list pods everywhere", change: func(t *settings.Terms) { t.Placed = true }, want: "missing rights: list pods in the whole cluster", mend: "--namespace cox --set priority_class"},
		"Kueue's topology":    {denied: "list topologies everywhere", change: func(t *settings.Terms) { t.Placed, t.Topology = true, []string{"kueue:racks"} }, want: "missing rights: list topologies.kueue.x-k8s.io in the whole cluster", mend: `--namespace cox --set 'topology=["kueue:racks"]' --set priority_class`},
		"claims":              {denied: "create resourceclaims", change: func(t *settings.Terms) { t.Placed, t.Classes = true, []string{"gpu.a", "gpu.b"} }, want: "missing rights: create resourceclaims.resource.k8s.io in namespace cox", mend: `--namespace cox --set 'device_class=["gpu.a","gpu.b"]' --set priority_class`},
		"binding":             {denied: "create pods/binding", change: func(t *settings.Terms) { t.Placed = true }, want: "missing rights: create pods/binding in namespace cox", mend: "--namespace cox --set priority_class"},
		"no gangs":            {path: "/apis", say: `{"kind":"APIGroupDiscoveryList","items":[]}`, want: "warning gangs: the cluster has nothing that begins pods together: jobs on one node run, coupled ones on several are refused", mend: "--placed"},
		"another gang":        {change: func(t *settings.Terms) { t.Gang = render.KAI }, want: "missing gangs: kai is not there; there is native", mend: "leave gang"},
		"claims with Kueue": {path: "/apis", say: servedKinds(render.Kueue), change: func(t *settings.Terms) {
			t.Gang, t.Approximate, t.Queue, t.Classes = render.Kueue, true, "q", []string{"gpu.a"}
		}, want: "missing devices with attributes: jobs that ask for devices are refused: Kueue", mend: "take device_class from the settings"},
		"claims with Volcano":   {path: "/apis", say: servedKinds(render.Volcano), change: func(t *settings.Terms) { t.Classes = []string{"gpu.a"} }, want: "warning devices with attributes: Volcano gives claims devices only with predicate.DynamicResourceAllocationEnable: true", mend: "volcano-scheduler-configmap"},
		"others come":           {change: placed, want: "warning kept nodes: pods of others may take a node", mend: "--set reserve=true"},
		"no policy":             {change: reserved, want: "missing policy: there is no admission policy coxswain-k8s-a", mend: "cox pool add k8s-a --engine kube --namespace cox --set reserve=true --print-policy='user:anna o'\\''neil' | kubectl apply -f -"},
		"no policies":           {path: "/apis", say: `{"kind":"APIGroupDiscoveryList","items":[]}`, change: reserved, want: "missing policy: the cluster has no admission policies", mend: "upgrade"},
		"another's policy":      {path: policyAt, say: `{"spec":{}}`, change: reserved, want: "warning policy: coxswain-k8s-a is not the one for these settings and user:anna", mend: "--print-policy"},
		"no right to mark":      {denied: "patch nodes everywhere", change: reserved, want: "missing rights: patch nodes in the whole cluster: the taint", mend: "--set reserve=true --set priority_class"},
		"pods answer":           {path: "/api/v1/pods", say: `{"items":[{"metadata":{"name":"dns"},"status":{"phase":"Running","podIP":"127.0.0.77"}}]}`, want: "found pod addresses: they answer from this server (127.0.0.77)"},
		"pods do not answer":    {path: "/api/v1/pods", say: `{"items":[{"metadata":{"name":"dns"},"status":{"phase":"Running","podIP":"255.255.255.255"}}]}`, want: "warning pod addresses: they do not answer from this server", mend: "cox gateway manifest --server"},
		"no name service":       {path: "/api/v1/namespaces/kube-system/services", say: `{"items":[]}`, want: "warning names: kube-system has no service", mend: "CoreDNS"},
		"no GPUs":               {path: "/api/v1/nodes", say: `{"items":[{"metadata":{"name":"a"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}]}`, want: "warning devices: no node has GPUs", mend: "device plugin"},
		"no place":              {path: "/api/v1/nodes", say: `{"items":[{"metadata":{"name":"a"}}]}`, want: "warning topology: where nodes lie is not known", mend: "topology.kubernetes.io/zone"},
		"no node up":            {path: "/api/v1/nodes", say: `{"items":[{"metadata":{"name":"a"}}]}`, want: "missing nodes: 0 of 1 take work", mend: "kubectl describe nodes"},
		"nodes off":             {path: "/api/v1/nodes", say: `{"items":[` + hgx + `,{"metadata":{"name":"a1"},"spec":{"unschedulable":true}},{"metadata":{"name":"a2"},"spec":{"unschedulable":true}}]}`, want: "warning nodes: a[1-2]: its kubelet has not reported yet; cordoned (kubectl uncordon NODE)", mend: "kubectl describe node a1"},
		"no node of the pool":   {change: func(t *settings.Terms) { t.Selector = map[string]string{"a": "b"} }, want: "missing nodes: no node is the pool's", mend: "node_selector"},
		"nodes not seen":        {path: "/api/v1/nodes", say: "forbidden", want: "warning nodes: not looked at", mend: "right"},
		"namespace not seen":    {path: "/api/v1/namespaces/cox", say: "forbidden", want: "warning namespace: not looked at", mend: "--print-rbac="},
		"no gangs, nor a right": {path: "/apis", say: `{"kind":"APIGroupDiscoveryList","items":[]}`, denied: "create pods", want: "missing rights: create pods in namespace cox", mend: "--namespace cox --placed=false --set priority_class"},
		"groups of images":      {want: "warning groups: gpu-7: an image's /etc/group can have the job's user in more groups", mend: "containerd 2.0"},
		"groups by number":      {path: "/api/v1/nodes", say: `{"items":[{"metadata":{"name":"a"},"status":{"features":{"supplementalGroupsPolicy":true}}}]}`, want: "found groups: pods are in no group"},
		"two makers of GPUs":    {path: "/api/v1/nodes", say: `{"items":[` + hgx + `,{"metadata":{"name":"a1"},"status":{"allocatable":{"amd.com/gpu":"2"}}}]}`, want: "warning devices: jobs that ask for a GPU are refused: the pool's nodes have GPUs of several makers, amd.com/gpu and nvidia.com/gpu", mend: "gpu_resource"},
		"no agent":              {change: func(t *settings.Terms) { t.AgentImage = "" }, want: "missing agent image: nothing can be started", mend: "--agent-image"},
		"no image":              {change: func(t *settings.Terms) { t.Image = "" }, want: "warning image: without a default, jobs that name no image", mend: "--image"},
		"no files":              {change: func(t *settings.Terms) { t.Paths = nil }, want: "warning workdir: jobs find none of the files beside their script", mend: "--set workdir=upload, and cox submit --upload"},
		"no priority class":     {path: "/apis/scheduling.k8s.io/v1/priorityclasses/high", say: "", want: "missing priority class: there is no high", mend: "kubectl create priorityclass high"},
		"no pull secret":        {path: "/api/v1/namespaces/cox/secrets/pull", say: "", want: "missing pull secret: there is no pull", mend: "kubectl create secret docker-registry pull --namespace cox"},
		"no claim":              {path: "/api/v1/namespaces/cox/persistentvolumeclaims/home", say: "", want: "missing paths: there is no claim home", mend: "PersistentVolumeClaim home"},
		"a volume elsewhere":    {path: claimOf, say: home("ReadWriteMany", `,"volumeName":"pv-a"`), change: placed, want: "missing paths: /home: claim home; its volume pv-a is for nodes with topology.kubernetes.io/zone in (us-east-2a): 0 of 1, none", mend: "node_selector"},
		"its nodes":             {path: claimOf, say: home("ReadWriteMany", `,"volumeName":"pv-a"`), change: placed, want: "warning nodes: gpu-7: claim home (its volume pv-a) of path /home can only be on nodes with topology.kubernetes.io/zone in (us-east-2a)", mend: "kubectl describe node gpu-7"},
		"a volume of its zone":  {path: claimOf, say: home("ReadWriteMany", `,"volumeName":"pv-b"`), change: placed, want: "found paths: /home is claim home, bound; its volume pv-b is for nodes with topology.kubernetes.io/zone in (us-east-2b): 1 of 1, gpu-7"},
		"volumes not seen":      {denied: "get persistentvolumes everywhere", change: placed, want: "warning rights: get persistentvolumes in the whole cluster: which nodes can have the volumes", mend: "--print-rbac"},
		"classes not seen":      {denied: "list storageclasses everywhere", change: placed, want: "warning rights: list storageclasses.storage.k8s.io in the whole cluster: which nodes can have the volumes", mend: `'paths={"/home":"pvc:home"}'`},
		"volumes by hand":       {path: claimOf, say: home("ReadWriteMany", `,"storageClassName":"local"`), change: placed, want: "warning paths: /home: claim home has no volume, and nobody chooses one: its storage class local has those that were made by hand", mend: "volumeName"},
		"a claim for one pod":   {path: claimOf, say: home("ReadWriteOncePod", ""), want: "warning paths: /home: claim home is for one pod at a time", mend: "ReadWriteMany"},
		"a claim for one":       {path: "/api/v1/namespaces/cox/persistentvolumeclaims/home", say: `{"metadata":{"name":"home"},"spec":{"accessModes":["ReadWriteOnce"]}}`, want: "warning paths: /home: claim home is for one node at a time", mend: "ReadWriteMany"},
	} {
		say, terms := good(), terms
		if tt.path != "" {
			say[tt.path] = tt.say
		}
		if tt.change != nil {
			tt.change(&terms)
		}
		got := findings(t, surveyOf(t, &answers{say: say, denied: map[string]bool{tt.denied: true}}, terms))
		ok := false
		for _, line := range got {
			text, mend, _ := strings.Cut(line, " | ")
			ok = ok || strings.HasPrefix(text, tt.want) && strings.Contains(mend, tt.mend)
		}
		if !ok {
			t.Errorf("%s: no %q (%q) in\n%s", name, tt.want, tt.mend, strings.Join(got, "\n"))
		}
	}
}

// TestCheckOfFiles: who gives jobs their files, or says that they need none, is not warned.
//
// Seen to fail with: a warning whatever the settings are.
func TestCheckOfFiles(t *testing.T) {
	for what, change := range map[string]func(*settings.Terms){
		"paths":                  func(t *settings.Terms) { t.Paths = terms.Paths },
		"upload":                 func(t *settings.Terms) { t.WorkDir = settings.WorkDirUpload },
		"an empty one, as asked": func(t *settings.Terms) { t.WorkDir = settings.WorkDirEmpty },
		"a refusal":              func(t *settings.Terms) { t.WorkDir = settings.WorkDirRefused },
	} {
		terms := terms
		terms.Paths = nil
		change(&terms)
		if got := strings.Join(findings(t, surveyOf(t, &answers{say: good()}, terms)), "\n"); strings.Contains(got, "workdir") {
			t.Errorf("%s: it says\n%s", what, got)
		}
	}
}

// TestSurvey: nodes come with what others hold, and an inventory after the first look. Without
// the right to see others' pods a pool that places nothing works all the same.
func TestSurvey(t *testing.T) {
	ctx := context.Background()
	a := &answers{say: good()}
	s := surveyOf(t, a, settings.Terms{Pool: "k8s-a", Namespace: "cox", Placed: true})
	if s.inventory.Report() != nil {
		t.Error("an inventory before the first look")
	}
	m, ok, err := s.inventory.Machine(ctx, "gpu-7")
	if err != nil || !ok || m.Others.Devices["nvidia.com/gpu"] != 2 {
		t.Fatalf("%+v %v %v", m, ok, err)
	}
	if _, ok, err = s.inventory.Machine(ctx, "gpu-8"); ok || err != nil {
		t.Errorf("gpu-8: %v %v", ok, err)
	}
	inv := s.inventory.Report()
	if n := inv.Nodes[0]; n.GPUs != 7 || n.GPUsOthers != 2 || n.CPUs != 191 || n.CPUsOthers != 1 || n.State != "Ready" {
		t.Errorf("%+v", n)
	}
	a.say["/api/v1/pods"] = "forbidden"
	if _, err := s.inventory.Nodes(ctx); fault.KindOf(err) != fault.Permission {
		t.Errorf("placed, without seeing others: %v", err)
	}
	s = surveyOf(t, a, settings.Terms{})
	if nodes, err := s.inventory.Nodes(ctx); err != nil || len(nodes) != 1 {
		t.Errorf("%v %v", nodes, err)
	}
	if inv := s.inventory.Report(); len(inv.Unknown) != 1 {
		t.Errorf("%+v", inv)
	}
}

// servedKinds has a stand say what it has for gangs.
func servedKinds(begins render.GangKind) string {
	g, _ := gang.OfKind(begins)
	return `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"` + g.Resource.Group + `"},"versions":[{"version":"` + g.Resource.Version + `","resources":[{"resource":"` + g.Resource.Name + `","scope":"Namespaced"}]}]}]}`
}
