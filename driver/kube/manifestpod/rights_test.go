package manifestpod_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/manifestpod"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
)

// podWith is a pod template with a fragment of JSON in its spec.
func podWith(spec string) string {
	if spec != "" {
		spec += ","
	}
	return `{"spec":{` + spec + `"containers":[{"name":"main","image":"busybox"}]}}`
}

// containerWith is one with a fragment in its container.
func containerWith(fields string) string {
	return `{"spec":{"containers":[{"name":"main","image":"busybox",` + fields + `}]}}`
}

// attemptOf is an attempt of one pod of a template in a pool.
func attemptOf(t *testing.T, template string, terms *settings.Terms, change func(*podspec.Set, *job.Spec)) (*render.Attempt, *manifestpod.Work, error) {
	t.Helper()
	set := &podspec.Set{Kind: "Pod", Name: "a", Roles: []podspec.Role{{Name: "pod", Replicas: 1, PodName: "a", Template: json.RawMessage(template)}}}
	spec := &job.Spec{Program: job.Program{Kind: job.Pods}, Owner: job.Owner{UID: 1000, GID: 100}, Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}}}}
	if change != nil {
		change(set, spec)
	}
	script, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	j := &job.Job{ID: 1, Spec: spec}
	w, err := manifestpod.Parse(j, script, terms)
	if err != nil {
		return nil, nil, err
	}
	a := &render.Attempt{
		Server: "server", Nodes: []render.Node{{Node: fleet.Node{Name: "n1"}}}, Template: w,
		Launch:   &engine.Launch{Ref: engine.Ref{Allocation: 1, Attempt: 1}, Job: j, Script: script, Claims: []fleet.Claim{{Node: "n1", Tasks: 1}}},
		Settings: render.Settings{Namespace: "default", Placed: terms.Placed, AsImage: terms.AsImage, Shape: terms.Shape, PriorityClass: terms.PriorityClass, PullSecrets: terms.PullSecrets, Tolerations: terms.Tolerate()},
	}
	return a, w, a.CheckJob()
}

// TestRights: each field that reaches beyond a job is refused by its path, with the word that an administrator would
// add, and passes with it. What no pool can have is refused with it, too.
//
// Seen to fail with: a rule left out of uses.
func TestRights(t *testing.T) {
	for _, c := range []struct{ allow, template, path string }{
		{"host_network", podWith(`"hostNetwork":true`), "spec.hostNetwork"},
		{"host_network", containerWith(`"livenessProbe":{"httpGet":{"port":80,"host":"10.0.0.1"}}`), "spec.containers[0].livenessProbe.httpGet.host"},
		{"host_network", containerWith(`"readinessProbe":{"tcpSocket":{"port":80,"host":"10.0.0.1"}}`), "spec.containers[0].readinessProbe.tcpSocket.host"},
		{"host_network", containerWith(`"lifecycle":{"postStart":{"httpGet":{"port":80,"host":"10.0.0.1"}}}`), "spec.containers[0].lifecycle.postStart.httpGet.host"},
		{"host_pid", podWith(`"hostPID":true`), "spec.hostPID"},
		{"host_ipc", podWith(`"hostIPC":true`), "spec.hostIPC"},
		{"host_ports", containerWith(`"ports":[{"containerPort":80,"hostPort":80}]`), "spec.containers[0].ports[0].hostPort"},
		{"host_path", podWith(`"volumes":[{"name":"v","hostPath":{"path":"/"}}]`), "spec.volumes[0].hostPath"},
		{"volume/nfs", podWith(`"volumes":[{"name":"v","nfs":{"server":"s","path":"/"}}]`), "spec.volumes[0].nfs"},
		{"volume/csi", podWith(`"volumes":[{"name":"v","csi":{"driver":"d"}}]`), "spec.volumes[0].csi"},
		{"volume/persistentVolumeClaim", podWith(`"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"c"}}]`), "spec.volumes[0].persistentVolumeClaim"},
		{"volume/ephemeral", podWith(`"volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{"spec":{}}}}]`), "spec.volumes[0].ephemeral"},
		{"service_account", podWith(`"serviceAccountName":"admin"`), "spec.serviceAccountName"},
		{"service_account", podWith(`"serviceAccount":"admin"`), "spec.serviceAccountName"},
		{"service_account", podWith(`"automountServiceAccountToken":true`), "spec.automountServiceAccountToken"},
		{"service_account", podWith(`"volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}}]`), "spec.volumes[0].projected.sources[0].serviceAccountToken"},
		{"secrets", podWith(`"volumes":[{"name":"v","secret":{"secretName":"theirs"}}]`), "spec.volumes[0].secret.secretName"},
		{"secrets", podWith(`"volumes":[{"name":"v","projected":{"sources":[{"secret":{"name":"theirs"}}]}}]`), "spec.volumes[0].projected.sources[0].secret.name"},
		{"secrets", podWith(`"imagePullSecrets":[{"name":"theirs"}]`), "spec.imagePullSecrets[0].name"},
		{"secrets", containerWith(`"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"theirs","key":"k"}}}]`), "spec.containers[0].env[0].valueFrom.secretKeyRef.name"},
		{"secrets", containerWith(`"envFrom":[{"secretRef":{"name":"theirs"}}]`), "spec.containers[0].envFrom[0].secretRef.name"},
		{"secrets", podWith(`"initContainers":[{"name":"i","image":"b","envFrom":[{"secretRef":{"name":"theirs"}}]}]`), "spec.initContainers[0].envFrom[0].secretRef.name"},
		{"config_maps", containerWith(`"envFrom":[{"configMapRef":{"name":"theirs"}}]`), "spec.containers[0].envFrom[0].configMapRef.name"},
		{"privileged", containerWith(`"securityContext":{"privileged":true}`), "spec.containers[0].securityContext.privileged"},
		{"privileged", containerWith(`"securityContext":{"allowPrivilegeEscalation":true}`), "spec.containers[0].securityContext.allowPrivilegeEscalation"},
		{"privileged", containerWith(`"securityContext":{"capabilities":{"add":["SYS_ADMIN"]}}`), "spec.containers[0].securityContext.capabilities.add: SYS_ADMIN"},
		{"lock_memory", containerWith(`"securityContext":{"capabilities":{"add":["IPC_LOCK"]}}`), "capabilities.add: IPC_LOCK"},
		{"privileged", containerWith(`"securityContext":{"procMount":"Unmasked"}`), "spec.containers[0].securityContext.procMount"},
		{"privileged", containerWith(`"securityContext":{"seccompProfile":{"type":"Unconfined"}}`), "spec.containers[0].securityContext.seccompProfile"},
		{"privileged", containerWith(`"securityContext":{"appArmorProfile":{"type":"Unconfined"}}`), "spec.containers[0].securityContext.appArmorProfile"},
		{"privileged", containerWith(`"securityContext":{"seLinuxOptions":{"type":"spc_t"}}`), "spec.containers[0].securityContext.seLinuxOptions"},
		{"privileged", podWith(`"securityContext":{"sysctls":[{"name":"kernel.x","value":"1"}]}`), "spec.securityContext.sysctls"},
		{"privileged", containerWith(`"volumeMounts":[{"name":"v","mountPath":"/v","mountPropagation":"Bidirectional"}]`), "spec.containers[0].volumeMounts: /v"},
		{"run_as_user", podWith(`"securityContext":{"runAsUser":0}`), "spec.securityContext.runAsUser"},
		{"run_as_user", podWith(`"securityContext":{"fsGroup":7}`), "spec.securityContext.fsGroup"},
		{"run_as_user", podWith(`"securityContext":{"supplementalGroups":[7]}`), "spec.securityContext.supplementalGroups"},
		{"run_as_user", containerWith(`"securityContext":{"runAsGroup":0}`), "spec.containers[0].securityContext.runAsGroup"},
		{"priority_class", podWith(`"priorityClassName":"system-node-critical"`), "spec.priorityClassName"},
		{"runtime_class", podWith(`"runtimeClassName":"kata"`), "spec.runtimeClassName"},
		{"tolerations", podWith(`"tolerations":[{"key":"dedicated","operator":"Exists","effect":"NoExecute"}]`), "spec.tolerations[0]"},
		{"affinity", podWith(`"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname","labelSelector":{},"namespaceSelector":{}}]}}`), "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"},
		{"affinity", podWith(`"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{"topologyKey":"kubernetes.io/hostname","labelSelector":{}}}]}}`), "preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm"},
		{"affinity", podWith(`"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"theirs"}}}]}}`), "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"},
		{"affinity", `{"metadata":{"labels":{"app":"x"}},"spec":{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"x"}},"namespaces":["theirs"]}]}},"containers":[{"name":"c"}]}}`, "spec.affinity.podAntiAffinity"},
		{"affinity", `{"metadata":{"labels":{"app":"x"}},"spec":{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchExpressions":[{"key":"app","operator":"NotIn","values":["x"]}]}}]}},"containers":[{"name":"c"}]}}`, "spec.affinity.podAntiAffinity"},
		{"labels", `{"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"q"}},"spec":{"containers":[{"name":"c"}]}}`, "metadata.labels: kueue.x-k8s.io/queue-name"},
		{"annotations", `{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"n"}},"spec":{"containers":[{"name":"c"}]}}`, "metadata.annotations: k8s.v1.cni.cncf.io/networks"},

		{"", podWith(`"nodeName":"n7"`), "spec.nodeName"},
		{"", containerWith(`"restartPolicy":"Always"`), "spec.containers[0].restartPolicy"},
		{"", podWith(`"schedulerName":"mine"`), "spec.schedulerName"},
		{"", podWith(`"priority":2000000000`), "spec.priority"},
		{"", podWith(`"schedulingGates":[{"name":"g"}]`), "spec.schedulingGates"},
		{"", podWith(`"ephemeralContainers":[{"name":"e","image":"b"}]`), "spec.ephemeralContainers"},
		{"", podWith(`"resourceClaims":[{"name":"r","resourceClaimName":"c"}]`), "spec.resourceClaims"},
		{"", podWith(`"resources":{"limits":{"cpu":"8"}}`), "spec.resources"},
		{"", podWith(`"tolerations":[{"operator":"Exists"}]`), "spec.tolerations[0]"},
		{"", podWith(`"tolerations":[{"key":"coxswain.sh/pool","operator":"Exists"}]`), "spec.tolerations[0]"},
		{"", `{"metadata":{"labels":{"coxswain.sh/server":"x"}},"spec":{"containers":[{"name":"c"}]}}`, "metadata.labels: coxswain.sh/server"},
		{"", `{"metadata":{"finalizers":["x/y"]},"spec":{"containers":[{"name":"c"}]}}`, "metadata.finalizers"},
	} {
		terms := &settings.Terms{Pool: "kube", Placed: true}
		_, _, err := attemptOf(t, c.template, terms, nil)
		if err == nil || !strings.Contains(err.Error(), "pod template of pod: "+strings.TrimPrefix(c.path, ".")) && !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: %v, want a refusal of %s", c.template, err, c.path)
			continue
		}
		if c.allow == "" {
			terms.Allow = settings.Allowances()
			if _, _, err := attemptOf(t, c.template, terms, nil); fault.KindOf(err) != fault.Unsupported || fault.Remedy(err) == "" {
				t.Errorf("%s with all that a pool can allow: %v", c.path, err)
			}
			continue
		}
		if fault.KindOf(err) != fault.Permission || !strings.Contains(fault.Remedy(err), "`allow: ["+c.allow+"]`") {
			t.Errorf("%s: %v: the remedy is %q", c.path, err, fault.Remedy(err))
		}
		if !slices.Contains(settings.Allowances(), c.allow) {
			t.Errorf("%s is nothing that a pool can allow", c.allow)
		}
		terms.Allow = []string{c.allow}
		if _, _, err := attemptOf(t, c.template, terms, nil); err != nil {
			t.Errorf("%s with allow %s: %v", c.path, c.allow, err)
		}
	}
}

// TestHarmless: what reaches no further than its pod passes in every pool.
func TestHarmless(t *testing.T) {
	for _, template := range []string{
		podWith(``),
		podWith(`"volumes":[{"name":"v","emptyDir":{"medium":"Memory"}},{"name":"d","downwardAPI":{}},{"name":"p","projected":{"sources":[{"downwardAPI":{}}]}}]`),
		podWith(`"volumes":[{"name":"v","configMap":{"name":"kube-root-ca.crt"}}]`),
		podWith(`"serviceAccountName":"default","automountServiceAccountToken":false,"schedulerName":"default-scheduler","restartPolicy":"Always"`),
		podWith(`"nodeSelector":{"disk":"ssd"},"affinity":{},"topologySpreadConstraints":[],"terminationGracePeriodSeconds":5,"shareProcessNamespace":true`),
		podWith(`"tolerations":[{"key":"nvidia.com/gpu","operator":"Exists","effect":"NoSchedule"},{"key":"dedicated","operator":"Exists","effect":"NoSchedule"},{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}]`),
		`{"metadata":{"labels":{"app":"x"}},"spec":{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"x"}}}],"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{"topologyKey":"zone","labelSelector":{"matchExpressions":[{"key":"app","operator":"In","values":["x"]}]}}}]}},"containers":[{"name":"c"}]}}`,
		podWith(`"securityContext":{"runAsUser":1000,"runAsGroup":100,"runAsNonRoot":true,"fsGroup":100}`),
		containerWith(`"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"],"add":["NET_BIND_SERVICE"]},"readOnlyRootFilesystem":true}`),
		containerWith(`"livenessProbe":{"httpGet":{"port":80,"path":"/"}},"lifecycle":{"preStop":{"exec":{"command":["true"]}}}`),
		`{"metadata":{"creationTimestamp":null,"labels":{"app":"x","app.kubernetes.io/name":"y"},"annotations":{"prometheus.io/scrape":"true"}},"spec":{"containers":[{"name":"c"}]}}`,
	} {
		if _, _, err := attemptOf(t, template, &settings.Terms{Pool: "kube", Placed: true}, nil); err != nil {
			t.Errorf("%s: %v (%s)", template, err, fault.Remedy(err))
		}
	}
	rootToo := &settings.Terms{Pool: "kube", Placed: true, AsImage: true}
	if _, _, err := attemptOf(t, podWith(`"securityContext":{"runAsUser":0}`), rootToo, nil); err != nil {
		t.Errorf("where work runs as the user of its image: %v", err)
	}
}

// TestStrict: a field that Kubernetes does not know is refused by its path, as nothing would come of it.
func TestStrict(t *testing.T) {
	for template, want := range map[string]string{
		podWith(`"volums":[]`):     `unknown field "spec.volums"`,
		containerWith(`"enV":[]`):  `unknown field "spec.containers[0].enV"`,
		podWith(`"hostPID":"yes"`): "the pod template of pod",
	} {
		if _, _, err := attemptOf(t, template, &settings.Terms{Placed: true}, nil); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", template, err, want)
		}
	}
}

// decided are the fields of pods, containers and their security settings of which it was decided whether they reach
// beyond the job. A newer version of the API with another field fails here, until that is decided for it in uses,
// placementUses, resourceUses, volumeUses, referenceUses or securityUses.
var decided = map[reflect.Type]string{
	reflect.TypeFor[corev1.PodSpec](): "Volumes InitContainers Containers EphemeralContainers RestartPolicy TerminationGracePeriodSeconds ActiveDeadlineSeconds DNSPolicy NodeSelector " +
		"ServiceAccountName DeprecatedServiceAccount AutomountServiceAccountToken NodeName HostNetwork HostPID HostIPC ShareProcessNamespace SecurityContext ImagePullSecrets Hostname Subdomain " +
		"Affinity SchedulerName Tolerations HostAliases PriorityClassName Priority DNSConfig ReadinessGates RuntimeClassName EnableServiceLinks PreemptionPolicy Overhead TopologySpreadConstraints " +
		"SetHostnameAsFQDN OS HostUsers SchedulingGates ResourceClaims Resources HostnameOverride SchedulingGroup EvictionResponders",
	reflect.TypeFor[corev1.Container](): "Name Image Command Args WorkingDir Ports EnvFrom Env Resources ResizePolicy RestartPolicy RestartPolicyRules VolumeMounts VolumeDevices LivenessProbe ReadinessProbe " +
		"StartupProbe Lifecycle TerminationMessagePath TerminationMessagePolicy ImagePullPolicy SecurityContext Stdin StdinOnce TTY",
	reflect.TypeFor[corev1.SecurityContext]():    "Capabilities Privileged SELinuxOptions WindowsOptions RunAsUser RunAsGroup RunAsNonRoot ReadOnlyRootFilesystem AllowPrivilegeEscalation ProcMount SeccompProfile AppArmorProfile",
	reflect.TypeFor[corev1.PodSecurityContext](): "SELinuxOptions WindowsOptions RunAsUser RunAsGroup RunAsNonRoot SupplementalGroups SupplementalGroupsPolicy FSGroup Sysctls FSGroupChangePolicy SeccompProfile AppArmorProfile SELinuxChangePolicy",
	reflect.TypeFor[corev1.VolumeProjection]():   "Secret DownwardAPI ConfigMap ServiceAccountToken ClusterTrustBundle PodCertificate",
	reflect.TypeFor[corev1.EnvVarSource]():       "FieldRef ResourceFieldRef ConfigMapKeyRef SecretKeyRef FileKeyRef",
	reflect.TypeFor[corev1.EnvFromSource]():      "Prefix ConfigMapRef SecretRef",
	reflect.TypeFor[corev1.LifecycleHandler]():   "Exec HTTPGet TCPSocket Sleep",
	reflect.TypeFor[corev1.ProbeHandler]():       "Exec HTTPGet TCPSocket GRPC",
}

func TestEveryFieldIsDecided(t *testing.T) {
	for of, text := range decided {
		known := strings.Fields(text)
		for i := range of.NumField() {
			if name := of.Field(i).Name; !slices.Contains(known, name) {
				t.Errorf("%s.%s: decide in rights.go whether it reaches beyond the job", of, name)
			}
		}
		if len(known) != of.NumField() {
			t.Errorf("%s has %d fields, and %d are listed", of, of.NumField(), len(known))
		}
	}
	// Each type of volume is the pod's own, or has a word in the setting allow.
	own := []string{"emptyDir", "configMap", "secret", "downwardAPI", "projected", "image", "hostPath"}
	of := reflect.TypeFor[corev1.VolumeSource]()
	for i := range of.NumField() {
		kind, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if known := slices.Contains(settings.Allowances(), settings.VolumeAllowance(kind)); known == slices.Contains(own, kind) {
			t.Errorf("volumes of type %s: allowed by a word: %v", kind, known)
		}
	}
}

// TestPodOfTemplate: a pod is its template and what the attempt needs; what the template leaves open is as the
// pool has it.
func TestPodOfTemplate(t *testing.T) {
	template := `{"metadata":{"labels":{"app":"x"}},"spec":{"restartPolicy":"OnFailure","terminationGracePeriodSeconds":7,"dnsConfig":{"searches":["corp"]},
		"initContainers":[{"name":"side","image":"s","restartPolicy":"Always"}],
		"containers":[{"name":"main","image":"b","resources":{"limits":{"nvidia.com/gpu":1}},"readinessProbe":{"httpGet":{"port":80}},"env":[{"name":"ME","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}],
		"volumes":[{"name":"c","configMap":{"name":"file"}},{"name":"s","secret":{"secretName":"token"}},{"name":"d","downwardAPI":{"items":[{"path":"n","fieldRef":{"fieldPath":"metadata.name"}}]}}]}}`
	uid := int64(1000)
	a, w, err := attemptOf(t, template, &settings.Terms{Pool: "kube", Placed: true, PullSecrets: []string{"registry"}}, func(s *podspec.Set, spec *job.Spec) {
		spec.Secrets = []job.Secret{{Name: "token.key"}}
		s.ConfigMaps = []podspec.ConfigMap{{Name: "file", Data: map[string]string{"k": "v"}}}
		s.Secrets = []podspec.Secret{{Name: "token", Keys: []string{"Key"}}}
		s.Roles[0].Env = []podspec.EnvVar{{Name: "JOB_COMPLETION_INDEX", Value: "{i}"}}
		s.Roles[0].Labels = map[string]string{"app": "operator", "training.kubeflow.org/replica-index": "{i}"}
	})
	if err != nil {
		t.Fatal(err)
	}
	p := a.Pods("root")[0]
	s := &p.Spec
	for what, is := range map[string]bool{
		"name":             p.Name == "cox-server-1-1-0" && s.Hostname == "a" && s.Subdomain == "cox-server-1-1",
		"its own name":     s.Containers[0].Env[0].Value == "a" && s.Containers[0].Env[0].ValueFrom == nil,
		"its name, a file": s.Volumes[2].DownwardAPI.Items[0].FieldRef.FieldPath == "metadata.annotations['coxswain.sh/pod-name']" && p.Annotations["coxswain.sh/pod-name"] == "a",
		"init container":   len(s.InitContainers[0].Env) == 1 && s.InitContainers[0].Env[0] == corev1.EnvVar{Name: "JOB_COMPLETION_INDEX", Value: "0"},
		"labels":           p.Labels["app"] == "x" && p.Labels["training.kubeflow.org/replica-index"] == "0" && p.Labels[render.LabelServer] == "server" && p.Labels[render.LabelPlugged] == "true",
		"finalizer":        slices.Equal(p.Finalizers, []string{render.Finalizer}) && len(p.OwnerReferences) == 1,
		"restarts":         s.RestartPolicy == corev1.RestartPolicyNever && *s.TerminationGracePeriodSeconds == 7,
		"scheduler":        s.SchedulerName == render.Scheduler && s.NodeName == "",
		"sidecar":          len(s.InitContainers) == 1 && *s.InitContainers[0].RestartPolicy == corev1.ContainerRestartPolicyAlways,
		"probe":            s.Containers[0].ReadinessProbe.HTTPGet.Port.IntVal == 80,
		"own resources":    fmt.Sprint(s.Containers[0].Resources.Limits) == fmt.Sprint(corev1.ResourceList{"nvidia.com/gpu": s.Containers[0].Resources.Limits["nvidia.com/gpu"]}),
		"ConfigMap":        s.Volumes[0].ConfigMap.Name == "cox-server-1-1-file",
		"Secret":           s.Volumes[1].Secret.SecretName == "cox-server-1-1-token",
		"pull secrets":     len(s.ImagePullSecrets) == 1 && s.ImagePullSecrets[0].Name == "registry",
		"owner":            *s.SecurityContext.RunAsUser == uid,
		"no new rights":    !*s.Containers[0].SecurityContext.AllowPrivilegeEscalation && !*s.AutomountServiceAccountToken,
		"seccomp":          s.SecurityContext.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
		"search domains":   slices.Equal(s.DNSConfig.Searches, []string{"corp", "cox-server-1-1.default.svc.cluster.local"}),
		"no agent":         len(s.Containers) == 1 && len(s.Volumes) == 3,
		"template intact":  w.LogContainer(0) == "main",
	} {
		if !is {
			text, _ := json.MarshalIndent(p, "", " ")
			t.Errorf("%s: %s", what, text)
		}
	}
	if got := w.Secrets(a, "root", map[string][]byte{"token.key": []byte("x")}); len(got) != 1 || got[0].Name != "cox-server-1-1-token" || string(got[0].Data["Key"]) != "x" {
		t.Errorf("%+v", got)
	}
}

// TestServes: pods that serve are restarted as their template says, and the Services of the replicas of a service
// are the same.
func TestServes(t *testing.T) {
	a, w, err := attemptOf(t, podWith(``), &settings.Terms{Placed: true}, func(s *podspec.Set, spec *job.Spec) {
		spec.Serve = &job.Serve{Ports: []job.Port{{Name: "http", Number: 80}}}
		spec.Part = &job.Part{Controller: "service/web", Index: 3}
		s.Services = []podspec.Service{{Name: "front", Role: "pod", Ports: []podspec.Port{{Port: 80, Target: "http"}}}}
	})
	if err != nil {
		t.Fatal(err)
	}
	p, front := a.Pods("root")[0], w.Services(a, "root")[0]
	if p.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		t.Errorf("it is restarted %s", p.Spec.RestartPolicy)
	}
	for k, v := range front.Spec.Selector {
		if p.Labels[k] != v {
			t.Errorf("the Service selects %s=%s, and the pod has %v", k, v, p.Labels)
		}
	}
	if _, attempt := front.Spec.Selector[render.LabelAllocation]; attempt || front.Spec.Ports[0].TargetPort.StrVal != "http" || front.Spec.ClusterIP != "" {
		t.Errorf("%+v", front.Spec)
	}
}
