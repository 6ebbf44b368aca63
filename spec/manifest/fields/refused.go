package fields

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/getopt"
)

// asides are kinds that often stand beside work. They are taken note of and not made; a warning
// says so. group is the beginning of the apiVersion's group; empty: whatever it is.
var asides = []struct{ kinds, group, note string }{
	{"ServiceAccount", "", "it is not made: create it once with kubectl apply, where the pool is one of Kubernetes"},
	{"Role RoleBinding ClusterRole ClusterRoleBinding", "rbac.", "rights are not given with a job: an administrator creates it with kubectl apply"},
	{"NetworkPolicy", "networking.", "rules of the network are not made with a job: an administrator creates it with kubectl apply"},
	{"PriorityClass", "scheduling.", "QOS and accounts set the priority of jobs (cox qos)"},
	{"PodDisruptionBudget", "policy", "a gang is never evicted in part"},
	{"LimitRange ResourceQuota", "", "accounts and QOS set limits (cox account)"},
	{"ResourceFlavor ClusterQueue LocalQueue Cohort WorkloadPriorityClass Topology AdmissionCheck ProvisioningRequestConfig", "kueue.", "queues are the administrator's: cox import kueue makes queues of Coxswain of those of Kueue"},
	{"Queue", "scheduling.", "queues are the administrator's; the name of the queue in the work is read"},
	{"Topology", "kai.scheduler", "the topology of a cluster is the administrator's"},
	{"PodGroup", "scheduling.volcano.sh", "all pods of a job are one gang"},
	{"PodGroup", "scheduling.x-k8s.io", "all pods of a job are one gang"},
	{"PodGroup", "scheduling.run.ai", "all pods of a job are one gang"},
	{"Ingress IngressClass", "networking.", "the gateway of Coxswain is the way in to a service (cox service)"},
	{"Gateway HTTPRoute GRPCRoute", "gateway.", "the gateway of Coxswain is the way in to a service (cox service)"},
	{"Route", "route.openshift.io", "the gateway of Coxswain is the way in to a service (cox service)"},
	{"ServiceMonitor PodMonitor", "monitoring.coreos.com", "the server and its gateway report measures of services themselves"},
	{"StorageClass", "storage.", "an administrator creates it with kubectl apply"},
	{"PersistentVolume", "", "an administrator creates it with kubectl apply"},
}

// refusals are the kinds that are refused by name: what the kind is, and what would help.
var refusals = map[string]struct{ what, remedy string }{
	"TrainJob":                 {"a job of Kubeflow's Trainer, whose pods are in a runtime of the cluster", "write it as a PyTorchJob, an MPIJob or a JobSet: the image, the command, the number of nodes and the devices"},
	"TrainingRuntime":          {"a template for TrainJobs", "write the work as a JobSet: spec.template of the runtime is one"},
	"ClusterTrainingRuntime":   {"a template for TrainJobs", "write the work as a JobSet: spec.template of the runtime is one"},
	"TFJob":                    {"a job of TensorFlow", "write it as a JobSet, with TF_CONFIG in the command, or in the native form"},
	"XGBoostJob":               {"a job of XGBoost", "write it as a PyTorchJob: it has a master and workers too"},
	"PaddleJob":                {"a job of PaddlePaddle", "write it as a JobSet, or in the native form"},
	"JAXJob":                   {"a job of JAX", "write it as an Indexed Job: jax.distributed reads the index and the address of the first pod"},
	"MXJob":                    {"a job of MXNet", "write it as a JobSet, or in the native form"},
	"RayService":               {"a service of Ray Serve", "write a RayCluster and deploy with serve deploy, or a Deployment that runs serve run with a Service"},
	"RayCronJob":               {"a RayJob on a schedule", "write a RayJob, and submit it with a schedule"},
	"Workflow":                 {"a workflow of Argo", "submit each step as a job, and the order with --dependency=afterok"},
	"CronWorkflow":             {"a workflow of Argo on a schedule", "submit each step as a job, and the order with --dependency=afterok"},
	"WorkflowTemplate":         {"a template of Argo", "submit each step as a job, and the order with --dependency=afterok"},
	"PipelineRun":              {"a pipeline of Tekton", "submit each step as a job, and the order with --dependency=afterok"},
	"TaskRun":                  {"a task of Tekton", "write it as a Job"},
	"InferenceService":         {"a service of KServe", "write a Deployment with the server's image and arguments, and a Service"},
	"LLMInferenceService":      {"a service of KServe", "write a Deployment with the server's image and arguments (vllm serve MODEL), and a Service"},
	"ServingRuntime":           {"a template of KServe", "write a Deployment with its containers, and a Service"},
	"ClusterServingRuntime":    {"a template of KServe", "write a Deployment with its containers, and a Service"},
	"DaemonSet":                {"one pod on each node of a cluster", "it belongs to the cluster: an administrator creates it with kubectl apply"},
	"ReplicaSet":               {"the replicas that a Deployment makes", "write a Deployment: it has the same template and selector"},
	"ReplicationController":    {"the old form of a Deployment", "write a Deployment: it has the same template"},
	"PodCliqueSet":             {"a set of pods of Grove", "write each clique as a Deployment, or the whole as a JobSet or a LeaderWorkerSet"},
	"PodClique":                {"a set of pods of Grove", "write it as a Deployment, or as a JobSet"},
	"DynamoGraphDeployment":    {"a service of Dynamo", "write each of its components as a Deployment with a Service"},
	"AppWrapper":               {"a wrapper around other objects", "submit the objects in spec.components by themselves"},
	"SparkApplication":         {"a program of Spark", "run spark-submit in a Job"},
	"Workload":                 {"what Kueue or the scheduler makes of a job", "submit the job that it stands for"},
	"PodTemplate":              {"a template of pods", "write a Job with it"},
	"JobTemplate":              {"a template of jobs of Volcano", "write it as a Job of batch.volcano.sh"},
	"JobFlow":                  {"a flow of jobs of Volcano", "submit each Job, and the order with --dependency=afterok"},
	"HyperJob":                 {"a job of Volcano over several clusters", "write it as a Job of batch.volcano.sh"},
	"ScaledObject":             {"an autoscaler of KEDA", "write a HorizontalPodAutoscaler"},
	"ScaledJob":                {"an autoscaler of KEDA", "write a Job"},
	"VerticalPodAutoscaler":    {"an autoscaler of requests", "write the requests into the pods"},
	"ComputeDomain":            {"a domain of NVLink that a driver of a cluster makes", "create it with kubectl apply, and submit the work by itself"},
	"DeviceClass":              {"a class of devices of a cluster", "it belongs to the cluster: an administrator creates it with kubectl apply"},
	"Experiment":               {"a search of Katib", "submit the trial as a job array: each task reads its parameters by its index"},
	"Notebook":                 {"a notebook of Kubeflow", "start one with cox run: jupyter lab in a Job, and cox port-forward to reach it"},
	"CustomResourceDefinition": {"the definition of a kind", "it belongs to the cluster: an administrator creates it with kubectl apply"},
	"Kustomization":            {"a file of kustomize", "render it first: kubectl kustomize DIRECTORY > rendered.yaml"},
	"Application":              {"an application of Argo CD", "submit the manifests that it deploys"},
	"DisaggregatedSet":         {"groups of a LeaderWorkerSet with different roles", "write a LeaderWorkerSet for each role"},
}

// Refusal is why an object is not read.
type Refusal struct {
	Message string
	Remedy  string
	InKind  bool // it is the kind that is blamed, not the apiVersion
}

// Refuse says why an apiVersion and a kind that Find does not know are not read.
func Refuse(apiVersion, kind string) Refusal {
	group, version := splitVersion(apiVersion)
	var same []*Kind
	for _, k := range Kinds {
		if k.Name == kind {
			same = append(same, k)
		}
	}
	for _, k := range same {
		if k.Group == group {
			return Refusal{
				Message: fmt.Sprintf("version %s of %s is not read", shorten(version), k.Name),
				Remedy:  "write apiVersion: " + k.APIVersion() + " (kubectl convert changes a file)",
			}
		}
	}
	if r, ok := refusals[kind]; ok {
		return Refusal{Message: fmt.Sprintf("%s is %s, which Coxswain does not read", kind, r.what), Remedy: r.remedy, InKind: true}
	}
	if len(same) > 0 {
		var versions []string
		for _, k := range same {
			versions = append(versions, k.APIVersion())
		}
		return Refusal{
			Message: fmt.Sprintf("%s has no %s that Coxswain reads", shorten(apiVersion), kind),
			Remedy:  "write apiVersion: " + strings.Join(versions, " or "),
		}
	}
	if near := nearestKind(kind); near != nil {
		return Refusal{
			Message: fmt.Sprintf("there is no kind %s; did you mean %s?", shorten(kind), near.Name),
			Remedy:  "write kind: " + near.Name + " with apiVersion: " + near.APIVersion(), InKind: true,
		}
	}
	return Refusal{
		Message: fmt.Sprintf("objects of kind %s (%s) are not read", shorten(kind), shorten(apiVersion)),
		Remedy:  "kubectl apply creates it without Coxswain; keep the work in a file of its own. Kinds that run: " + strings.Join(workNames(), ", "), InKind: true,
	}
}

// aside returns the kind for an object that is taken note of, nil for the others.
func aside(apiVersion, kind string) *Kind {
	group, version := splitVersion(apiVersion)
	for _, a := range asides {
		for name := range strings.FieldsSeq(a.kinds) {
			if name == kind && (strings.HasPrefix(group, a.group) && a.group != "" || a.group == "" && group == "") {
				return &Kind{Name: kind, Group: group, Version: version, Use: Aside, Note: a.note}
			}
		}
	}
	return nil
}

func workNames() []string {
	var out []string
	for _, k := range Kinds {
		if k.Use < Data && k.Name != "Service" && k.Name != "HorizontalPodAutoscaler" && !slices.Contains(out, k.Label()) {
			out = append(out, k.Label())
		}
	}
	return out
}

func nearestKind(kind string) *Kind {
	best, cost := (*Kind)(nil), 1+min(2, len(kind)/3)
	for _, k := range Kinds {
		if d := getopt.Distance(strings.ToLower(kind), strings.ToLower(k.Name)); d < cost {
			best, cost = k, d
		}
	}
	return best
}

// Nearest is the name that an unknown one must stand for, empty if none is near.
func Nearest(name string, known []string) string {
	if len(name) > 60 {
		return ""
	}
	flat := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
	best, cost := "", 1+min(2, len(flat)/3)
	for _, k := range known {
		if d := getopt.Distance(flat, strings.ToLower(k)); d < cost {
			best, cost = k, d
		}
	}
	return best
}

// PathOf is the path of the nearest group below a type that has a field of a name: "template.spec",
// empty if there is none within three levels. A group in a list counts too.
func (t *Type) PathOf(name string) string {
	type place struct {
		of   *Type
		path string
	}
	level := []place{{t, ""}}
	for range 3 {
		var next []place
		for _, p := range level {
			for i := range p.of.Fields {
				inner := p.of.Fields[i].Type
				for inner.Elem != nil {
					inner = inner.Elem
				}
				if inner.Form != Object {
					continue
				}
				path := strings.TrimPrefix(p.path+"."+p.of.Fields[i].Name, ".")
				if inner.Find(name) != nil && p.of.Fields[i].Name != "metadata" {
					return path
				}
				next = append(next, place{inner, path})
			}
		}
		level = next
	}
	return ""
}

// Names are the names of the fields of an Object.
func (t *Type) Names() []string {
	out := make([]string, len(t.Fields))
	for i := range t.Fields {
		out[i] = t.Fields[i].Name
	}
	return out
}

func shorten(s string) string {
	if s == "" {
		return `""`
	}
	if len(s) > 63 {
		return strings.ToValidUTF8(s[:63], "") + "…"
	}
	return s
}
