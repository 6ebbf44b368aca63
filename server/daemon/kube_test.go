package daemon

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: prod, context: {cluster: c, user: u, namespace: teams}}]
current-context: prod
`

// TestKubeSettings: what is wrong with settings is said with the field's name.
func TestKubeSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for settings, want := range map[string]string{
		``:                                                                                                "say which cluster: --kubeconfig FILE",
		`{"kubeconfig":"config"}`:                                                                         "settings: kubeconfig: config is no absolute name",
		`{"kubeconfig":"/no/such"}`:                                                                       "/no/such",
		`{"kubeconfig":"FILE","inside":true}`:                                                             "settings: inside: the way in is",
		`{"kubeconfig":"FILE","context":"test"}`:                                                          "test",
		`{"inside":true,"context":"test"}`:                                                                "settings: context: it means nothing",
		`{"kubeconfig":"FILE","namespace":"Teams"}`:                                                       `settings: namespace: "Teams": it must consist of`,
		`{"kubeconfig":"FILE","placed":true,"gang":"native"}`:                                             "settings: gang: with placed",
		`{"kubeconfig":"FILE","gang":"vulcano"}`:                                                          `settings: gang: there is no "vulcano"`,
		`{"kubeconfig":"FILE","gang":"native"}`:                                                           "settings: gang: with placed",
		`{"kubeconfig":"FILE","placed":false,"reserve":true}`:                                             "settings: reserve: nodes are kept where Coxswain chooses them",
		`{"kubeconfig":"FILE","placed":false,"gang":"vulcano"}`:                                           `settings: gang: there is no "vulcano"`,
		`{"kubeconfig":"FILE","queue":"q"}`:                                                               "settings: queue: with placed",
		`{"kubeconfig":"FILE","scheduler":"s"}`:                                                           "settings: scheduler: with placed",
		`{"kubeconfig":"FILE","placed":false,"approximate":true}`:                                         "settings: approximate: of all gangs",
		`{"kubeconfig":"FILE","placed":false,"gang":"kueue","queue":"q"}`:                                 "settings: gang: kueue is not used without",
		`{"kubeconfig":"FILE","placed":false,"gang":"kueue","approximate":true}`:                          "settings: gang: kueue is not used without",
		`{"kubeconfig":"FILE","placed":false,"gang":"kai"}`:                                               "settings: gang: kai is not used without",
		`{"kubeconfig":"FILE","placed":false,"gang":"coscheduling"}`:                                      "settings: gang: coscheduling is not used without",
		`{"kubeconfig":"FILE","placed":false,"queue":"Q"}`:                                                `settings: queue: "Q"`,
		`{"kubeconfig":"FILE","run_as":"root"}`:                                                           `settings: run_as: there is no "root"`,
		`{"kubeconfig":"FILE","gpu_metrics":"prometheus:9090"}`:                                           `settings: gpu_metrics: "prometheus:9090" is no http:// or https:// URL`,
		`{"kubeconfig":"FILE","image":"a b"}`:                                                             `settings: image: "a b" is no image`,
		`{"kubeconfig":"FILE","gpu_resource":"a b"}`:                                                      `settings: gpu_resource: "a b"`,
		`{"kubeconfig":"FILE","device_class":["A"]}`:                                                      `settings: device_class: "A"`,
		`{"kubeconfig":"FILE","device_class":[""]}`:                                                       `settings: device_class: one has no name`,
		`{"kubeconfig":"FILE","topology":["a b"]}`:                                                        `settings: topology: "a b"`,
		`{"kubeconfig":"FILE","node_selector":{"a":"b c"}}`:                                               `settings: node_selector: a: "b c"`,
		`{"kubeconfig":"FILE","priority_class":"A"}`:                                                      `settings: priority_class: "A"`,
		`{"kubeconfig":"FILE","pull_secrets":["A"]}`:                                                      `settings: pull_secrets: "A"`,
		`{"kubeconfig":"FILE","tolerations":[{"key":"a","operator":"exists"}]}`:                           `settings: tolerations: operator: there is no "exists"`,
		`{"kubeconfig":"FILE","tolerations":[{"key":"a","effect":"Never"}]}`:                              `settings: tolerations: effect: there is no "Never"`,
		`{"kubeconfig":"FILE","tolerations":[{"value":"a"}]}`:                                             "settings: tolerations: one has no key",
		`{"kubeconfig":"FILE","tolerations":[{"key":"a","operator":"Exists","value":"b"}]}`:               "settings: tolerations: a: Exists has no value",
		`{"kubeconfig":"FILE","paths":{"home":"pvc:home"}}`:                                               `settings: paths: "home" is no path prefix`,
		`{"kubeconfig":"FILE","paths":{"/home":"home"}}`:                                                  `settings: paths: /home: "home" is no volume`,
		`{"kubeconfig":"FILE","paths":{"/home":"nfs:10.0.0.5"}}`:                                          `settings: paths: /home: "nfs:10.0.0.5" is no volume`,
		`{"kubeconfig":"FILE","paths":{"/home":"hostPath:a"}}`:                                            `settings: paths: /home: "hostPath:a" is no volume`,
		`{"kubeconfig":"FILE","paths":{"/big":"emptyDir:lots"}}`:                                          `settings: paths: /big: "emptyDir:lots": "lots" is no size`,
		`{"kubeconfig":"FILE","paths":{"/big":"emptyDir:1Gi,ro"}}`:                                        `settings: paths: /big: "emptyDir:1Gi,ro": ro`,
		`{"kubeconfig":"FILE","paths":{"/home":"pvc:home,rw"}}`:                                           `settings: paths: /home: "pvc:home,rw": "rw" is nothing that pvc has`,
		`{"kubeconfig":"FILE","paths":{"/home":"pvc:home,sub=../x"}}`:                                     `settings: paths: /home: "pvc:home,sub=../x": sub`,
		`{"kubeconfig":"FILE","paths":{"/opt":"image,ro"}}`:                                               `settings: paths: /opt: "image,ro" is no volume`,
		`{"kubeconfig":"FILE","paths":{"/dev/shm":"emptyDir"}}`:                                           "settings: paths: /dev/shm has a setting",
		`{"kubeconfig":"FILE","run_as":"1000"}`:                                                           `settings: run_as: there is no "1000"`,
		`{"kubeconfig":"FILE","shm":"1"}`:                                                                 `settings: shm: "1" is no size`,
		`{"kubeconfig":"FILE","fs_group":-1}`:                                                             "settings: fs_group: -1 is none",
		`{"kubeconfig":"FILE","labels":{"a":"b c"}}`:                                                      `settings: labels: a: "b c"`,
		`{"kubeconfig":"FILE","annotations":{"coxswain.sh/job":"7"}}`:                                     "settings: annotations: coxswain.sh/job is set by Coxswain",
		`{"kubeconfig":"FILE","allow":["all"]}`:                                                           `settings: allow: there is no "all"`,
		`{"kubeconfig":"FILE","service_account":"A"}`:                                                     `settings: service_account: "A"`,
		`{"kubeconfig":"FILE","service_accounts":{"nlp":"A"}}`:                                            `settings: service_accounts: nlp: "A"`,
		`{"kubeconfig":"FILE","namespaces":{"nlp":"Team"}}`:                                               `settings: namespaces: nlp: "Team"`,
		`{"kubeconfig":"FILE","namespaces":{"nlp":""}}`:                                                   `settings: namespaces: nlp: ""`,
		`{"kubeconfig":"FILE","namespaces":{"":"team"}}`:                                                  "settings: namespaces: one has no account",
		`{"kubeconfig":"FILE","only_named":true}`:                                                         "settings: only_named: without namespaces every job",
		`{"kubeconfig":"FILE","impersonate":{"nlp":"ann"}}`:                                               `settings: impersonate: nlp: "ann" is nobody as whom`,
		`{"kubeconfig":"FILE","impersonate":{"nlp":"group:team"}}`:                                        `settings: impersonate: nlp: "group:team" is nobody as whom`,
		`{"kubeconfig":"FILE","impersonate":{"nlp":"serviceaccount:A"}}`:                                  `settings: impersonate: nlp: "serviceaccount:A"`,
		`{"kubeconfig":"FILE","impersonate":{"nlp":"serviceaccount:a_b:c"}}`:                              `settings: impersonate: nlp: "serviceaccount:a_b:c"`,
		`{"kubeconfig":"FILE","impersonate":{"user:":"user:ann"}}`:                                        "settings: impersonate: one is of nobody",
		`{"kubeconfig":"FILE","impersonate":{"nlp":"user:a\nb"}}`:                                         "settings: impersonate: nlp:",
		`{"kubeconfig":"FILE","reserve":true,"impersonate":{"nlp":"user:ann"}}`:                           "settings: impersonate: with reserve",
		`{"kubeconfig":"FILE","only_named":true,"namespaces":{"a":"b"},"impersonate":{"nlp":"user:ann"}}`: "settings: impersonate: jobs of account nlp are refused",
		`{"kubeconfig":"FILE","runtime_class":"A"}`:                                                       `settings: runtime_class: "A"`,
		`{"kubeconfig":"FILE","workdir":"home"}`:                                                          `settings: workdir: there is no "home"`,
		`{"kubeconfig":"FILE","paths":{"/cox/bin":"pvc:a"}}`:                                              "settings: paths: /cox/bin is used in every pod",
		`{"kubeconfig":"FILE","upload_room":"1"}`:                                                         `settings: upload_room: "1" is no size`,
		`{"kubeconfig":"FILE","checkpoints":"/scratch"}`:                                                  "settings: checkpoints: /scratch is on no volume",
		`{"kubeconfig":"FILE","paths":{"/a":"pvc:a"},"checkpoints":"/a/../b"}`:                            `settings: checkpoints: "/a/../b" is no directory`,
		`{"kubeconfig":"FILE","paths":{"/a":"emptyDir"},"checkpoints":"/a/b"}`:                            "settings: checkpoints: what is written to /a (emptyDir)",
		`{"kubeconfig":"FILE","paths":{"/a":"pvc:a,ro"},"checkpoints":"/a/b"}`:                            "settings: checkpoints: what is written to /a (pvc:a,ro)",
		`{"kubeconfig":"FILE","paths":{"/a":"ephemeral"}}`:                                                `settings: paths: /a: "ephemeral" is no volume`,
		`{"kubeconfig":"FILE","paths":{"/a":"ephemeral:much"}}`:                                           `settings: paths: /a: "ephemeral:much": "much" is no size`,
		`{"kubeconfig":"FILE","paths":{"/a":"ephemeral:1Gi,ro"}}`:                                         `settings: paths: /a: "ephemeral:1Gi,ro": ro`,
		`{"kubeconfig":"FILE","paths":{"/a":"ephemeral:1Gi,class=A_b"}}`:                                  `settings: paths: /a: "ephemeral:1Gi,class=A_b": class`,
		`{"kubeconfig":"FILE","paths":{"/a":"pvc:a,class=b"}}`:                                            `settings: paths: /a: "pvc:a,class=b": "class=b" is nothing that pvc has`,
		`{"kubeconfig":"FILE","paths":["/home"]}`:                                                         "settings: paths: array is not",
		`{"kubeconfig":"FILE","kontext":"a"}`:                                                             "settings: there is no field kontext; did you mean context?",
	} {
		settings = strings.ReplaceAll(settings, "FILE", file)
		e, err := openKube(context.Background(), "k8s-a", json.RawMessage(settings), Place{Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			e.Close()
			t.Errorf("%s is taken", settings)
			continue
		}
		if !strings.Contains(err.Error(), want) || fault.KindOf(err) != fault.Invalid || fault.Remedy(err) == "" {
			t.Errorf("%s: %v (%s; remedy %q), want %q", settings, err, fault.KindOf(err), fault.Remedy(err), want)
		}
	}
}

// TestKubeTerms: every setting arrives.
func TestKubeTerms(t *testing.T) {
	var set kubeSettings
	if err := ReadSettings([]byte(`{"namespace":"n","placed":false,"gang":"kueue","approximate":true,"queue":"q","within":"preferred=a/b","scheduler":"s","image":"i:1","agent_image":"a:1","gpu_resource":"nvidia.com/gpu","topology":["a/b"],"features":["c"],"node_selector":{"d":"e"},
		"tolerations":[{"key":"k","value":"v","effect":"NoSchedule"}],"priority_class":"p","pull_secrets":["s"],"run_as":"image","cluster_domain":"x.local",
		"paths":{"/scratch":"nfs:fd00::5:/export/s","/home":"pvc:home","/data":"hostPath:/mnt/data,ro,sub=a/b","/big":"emptyDir:20Gi,memory","/opt":"image","/own":"ephemeral:1Gi,class=fast"},"workdir":"empty","upload_room":"20Gi","checkpoints":"/scratch/saved",
		"fs_group":100,"shm":"8Gi","host_network":true,"lock_memory":true,"service_account":"sa","runtime_class":"nvidia","labels":{"l":"1"},"annotations":{"a":"2"},"allow":["labels"],
		"namespaces":{"nlp":"team"},"only_named":true,"impersonate":{"nlp":"user:ann","user:bob":"serviceaccount:runner","*":"serviceaccount:x:y"},"service_accounts":{"nlp":"reader"}}`), &set); err != nil {
		t.Fatal(err)
	}
	got, err := set.readTerms("k8s-a")
	if err != nil {
		t.Fatal(err)
	}
	group := int64(100)
	want := settings.Terms{
		Pool: "k8s-a", Namespace: "n", Gang: render.Kueue, Approximate: true, Queue: "q", Within: render.Near{Label: "a/b", Wished: true}, Scheduler: "s", Image: "i:1", AgentImage: "a:1", GPU: "nvidia.com/gpu", Topology: []string{"a/b"}, Features: []string{"c"}, Selector: map[string]string{"d": "e"},
		Tolerations: []corev1.Toleration{{Key: "k", Value: "v", Effect: "NoSchedule"}}, PriorityClass: "p", PullSecrets: []string{"s"}, AsImage: true, Domain: "x.local", WorkDir: settings.WorkDirEmpty, UploadRoom: 20 << 30, Checkpoints: "/scratch/saved", Allow: []string{"labels"},
		Namespaces: map[string]string{"nlp": "team"}, OnlyNamed: true, ServiceAccounts: map[string]string{"nlp": "reader"},
		Impersonate: map[string]settings.Subject{"nlp": {Kind: "User", Name: "ann"}, "user:bob": {Kind: "ServiceAccount", Name: "runner"}, "*": {Kind: "ServiceAccount", Namespace: "x", Name: "y"}},
		Shape: render.Shape{
			FSGroup: &group, SharedMemory: 8 << 30, HostNetwork: true, LockMemory: true, ServiceAccount: "sa", RuntimeClass: "nvidia",
			Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "2"},
		},
		Paths: []settings.Path{
			{Prefix: "/big", Volume: settings.Volume{Kind: settings.Empty, Size: 20 << 30, Memory: true}},
			{Prefix: "/data", Volume: settings.Volume{Kind: settings.Host, Dir: "/mnt/data", Sub: "a/b", ReadOnly: true}},
			{Prefix: "/home", Volume: settings.Volume{Kind: settings.Claim, Name: "home"}},
			{Prefix: "/opt", Volume: settings.Volume{Kind: settings.OfImage}},
			{Prefix: "/own", Volume: settings.Volume{Kind: settings.Fresh, Size: 1 << 30, Class: "fast"}},
			{Prefix: "/scratch", Volume: settings.Volume{Kind: settings.NFS, Server: "fd00::5", Dir: "/export/s"}},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got, err := (&kubeSettings{Classes: []string{"gpu.example.com"}}).readTerms("k8s-a"); err != nil || !slices.Equal(got.Classes, []string{"gpu.example.com"}) {
		t.Errorf("device_class: %+v %v", got, err)
	}
	for run, want := range map[string]int64{"": -1, "image": -1, "1000:100": 1000} {
		set.RunAs = run
		if got, err := set.readTerms("k8s-a"); err != nil || got.AsImage != (run == "image") || (got.Shape.User == nil) != (want < 0) || want >= 0 && (*got.Shape.User != want || *got.Shape.Group != 100) {
			t.Errorf("run_as %q: %+v %v", run, got.Shape, err)
		}
	}
	if p, ok := got.PathOf("/home/me/x"); !ok || p.Volume.String() != "pvc:home" {
		t.Errorf("%+v %v", p, ok)
	}
	for _, p := range got.Paths {
		if v, err := settings.ParseVolume(p.Volume.String()); err != nil || v != p.Volume {
			t.Errorf("%s is read as %+v %v", p.Volume, v, err)
		}
	}
	if p, ok := got.PathOf("/homes"); ok {
		t.Errorf("/homes is on %v", p)
	}
}

// TestKubePolicy: it is for those who are named, and for pools whose name a taint can have.
func TestKubePolicy(t *testing.T) {
	for _, x := range []struct{ pool, settings, who, want string }{
		{"k8s-a", `{"namespace":"cox"}`, "", `request.userInfo.username == \"system:serviceaccount:cox:coxswain\"`},
		{"k8s-a", `{"namespace":"cox"}`, "user:ann", `request.userInfo.username == \"ann\"`},
		{"k8s-a", `{"namespace":"cox","reserve":true}`, `group:a"b`, `\"a\\\"b\" in request.userInfo.groups`},
		{"k8s-a", `{}`, "user:ann", "in which namespace are the pods of the pool?"},
		{"k8s-a", `{"namespace":"cox","placed":false}`, "user:ann", "settings: placed"},
		{"k8s-", `{"namespace":"cox","reserve":true}`, "user:ann", `settings: reserve: "k8s-" can be no taint's value`},
	} {
		text, err := KubePolicy(x.pool, json.RawMessage(x.settings), x.who)
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, x.want) {
			t.Errorf("%s %s %s: no %q in\n%s", x.pool, x.settings, x.who, x.want, text)
		}
	}
}

// TestKubeOpens: a cluster that does not answer is opened all the same, and the look says so.
func TestKubeOpens(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := openKube(context.Background(), "k8s-a", mustMarshal(t, map[string]any{"kubeconfig": file, "context": "prod"}), Place{Dir: filepath.Join(dir, "k8s-a"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	other, err := openKube(context.Background(), "k8s-b", mustMarshal(t, map[string]any{"kubeconfig": file, "placed": false}), Place{Dir: filepath.Join(dir, "k8s-b"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if !other.(engine.Delegator).Delegates() || e.(engine.Delegator).Delegates() {
		t.Error("it is not placed=false that leaves the nodes to the cluster")
	}
	if _, err := e.(engine.Checker).Check(ctx); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
}

func mustMarshal(t *testing.T, v any) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestKubeDocs: the table of the settings in docs/reference/kubernetes-settings.md is that of the code. With
// COX_UPDATE=1 it is written.
func TestKubeDocs(t *testing.T) {
	const begin, end = "<!-- settings: written by the tests of package serve -->\n", "<!-- settings end -->\n"
	flags := map[string]string{"kubeconfig": "--kubeconfig", "context": "--context", "namespace": "--namespace", "placed": "--placed", "image": "--image", "agent_image": "--agent-image"}
	var b strings.Builder
	b.WriteString("| setting | is |\n|---|---|\n")
	kind := reflect.TypeFor[kubeSettings]()
	for i := range kind.NumField() {
		f := kind.Field(i)
		name, doc := f.Tag.Get("json"), f.Tag.Get("doc")
		if doc == "" {
			t.Errorf("%s has no doc", name)
		}
		if flags[name] != "" {
			name = flags[name]
		}
		kind := f.Type.Kind()
		if kind == reflect.Pointer { // left out is not the same as nothing
			kind = f.Type.Elem().Kind()
		}
		form := map[reflect.Kind]string{reflect.Bool: " (true, false)", reflect.Slice: " (a list)", reflect.Map: " (an object)"}[kind]
		b.WriteString("| `" + name + "`" + form + " | " + doc + " |\n")
	}
	file := filepath.Join("..", "..", "docs", "reference", "kubernetes-settings.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the settings", file)
	}
	if old == b.String() {
		return
	}
	if os.Getenv("COX_UPDATE") == "" {
		t.Fatalf("%s is not as the code has it: COX_UPDATE=1 go test ./server/daemon -run TestKubeDocs\n%s", file, cmp.Diff(old, b.String()))
	}
	if err := os.WriteFile(file, []byte(before+begin+b.String()+end+after), 0o644); err != nil { //nolint:gosec // a document
		t.Fatal(err)
	}
}

// TestSettingsThatLeadElsewhere: those that say how the next pods are made do not.
// Seen to fail without the namespaces of accounts in the comparison.
func TestSettingsThatLeadElsewhere(t *testing.T) {
	const before = `{"kubeconfig":"/a","namespace":"cox","image":"i","namespaces":{"nlp":"nlp"}}`
	for now, same := range map[string]bool{
		`{"kubeconfig":"/a","namespace":"cox","image":"j","namespaces":{"nlp":"nlp"},"priority_class":"low","placed":true}`: true,
		`{"kubeconfig":"/b","namespace":"cox","namespaces":{"nlp":"nlp"}}`:                                                  false,
		`{"kubeconfig":"/a","namespace":"box","namespaces":{"nlp":"nlp"}}`:                                                  false,
		`{"kubeconfig":"/a","namespace":"cox","namespaces":{"nlp":"cox"}}`:                                                  false,
		`{"kubeconfig":"/a","namespace":"cox","namespaces":{"nlp":"nlp"},"placed":false}`:                                   false,
		`{"inside":true,"namespace":"cox","namespaces":{"nlp":"nlp"}}`:                                                      false,
		`{"insid":true}`: false,
	} {
		spec := func(settings string) state.PoolSpec {
			return state.PoolSpec{Name: "k8s", Engine: "kube", Settings: []byte(settings)}
		}
		if got := sameSite(spec(before), spec(now)); got != same {
			t.Errorf("%s: the same place: %v", now, got)
		}
	}
	if slurm := (state.PoolSpec{Name: "s", Engine: "slurm"}); sameSite(slurm, slurm) {
		t.Error("of Slurm all settings lead somewhere")
	}
}
