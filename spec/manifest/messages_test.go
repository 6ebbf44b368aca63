package manifest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/spec/manifest/fields"
)

// TestMessages compares what is said of each text of testdata/refused with a golden file. Each text
// has several documents, or faults, and every one of them is named.
func TestMessages(t *testing.T) {
	files, err := filepath.Glob("testdata/refused/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		for _, text := range strings.Split(string(data), "\n=====\n") { // each a file of its own
			if _, err := Read("job.yaml", []byte(text)); err != nil {
				fmt.Fprintf(&out, "%v\n\n", err)
			} else {
				t.Errorf("%s is read:\n%s", path, text)
			}
		}
		compareGolden(t, strings.TrimSuffix(path, ".yaml")+".golden", out.Bytes())
	}
}

// TestBounds refuses what is too large, too deep, or stands for too much.
func TestBounds(t *testing.T) {
	pod := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	bomb := pod + "data:\n  a0: &a0 [" + strings.TrimSuffix(strings.Repeat("x, ", 10), ", ") + "]\n"
	for i := 1; i < 10; i++ {
		bomb += fmt.Sprintf("  a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	for _, x := range []struct{ name, text, want string }{
		{"large", pod + strings.Repeat("# comment\n", MaxSize/10), "is larger than 50 MiB"},
		{"deep", pod + "data: " + strings.Repeat("{a: ", 24) + "1" + strings.Repeat("}", 24) + "\n", "more than 24 levels"},
		{"bomb", bomb, "aliases (*) stand for more than 200000 values"},
		{"empty", "# nothing\n---\n", "the text has no manifest"},
		{"a list in a list", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: List, items: []}\n", "a list within a list"},
	} {
		if _, err := Read("f", []byte(x.text)); err == nil || !strings.Contains(err.Error(), x.want) || !strings.HasPrefix(err.Error(), "f") {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

// TestSecretsAreNotShown keeps the line of a Secret out of messages.
func TestSecretsAreNotShown(t *testing.T) {
	_, err := Read("f", []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {password: hunter2, number: 1734, more: [hunter2]}\ndata: {x: hunter2?}\n"))
	if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "1734") || !strings.Contains(err.Error(), "f:4:") || !strings.Contains(err.Error(), "f:5:") {
		t.Errorf("%v", err)
	}
}

// TestEveryKindIsDecided asks for the kinds of public manifests (those of the table of kinds in use):
// each is read, taken note of, or refused by name with what would help.
func TestEveryKindIsDecided(t *testing.T) {
	for _, x := range []struct{ apiVersion, kinds string }{
		{"v1", "Pod ConfigMap Service Secret Namespace ServiceAccount PersistentVolumeClaim"},
		{"apps/v1", "Deployment StatefulSet DaemonSet ReplicaSet"},
		{"batch/v1", "Job CronJob"},
		{"jobset.x-k8s.io/v1alpha2", "JobSet"},
		{"ray.io/v1", "RayCluster RayJob RayService RayCronJob"},
		{"kubeflow.org/v1", "PyTorchJob MPIJob TFJob XGBoostJob PaddleJob"},
		{"kubeflow.org/v2beta1", "MPIJob"},
		{"trainer.kubeflow.org/v1alpha1", "TrainJob ClusterTrainingRuntime"},
		{"leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"},
		{"batch.volcano.sh/v1alpha1", "Job"},
		{"argoproj.io/v1alpha1", "Workflow"},
		{"serving.kserve.io/v1beta1", "InferenceService LLMInferenceService ClusterServingRuntime"},
		{"grove.io/v1alpha1", "PodCliqueSet"},
		{"nvidia.com/v1alpha1", "DynamoGraphDeployment"},
		{"kueue.x-k8s.io/v1beta1", "ResourceFlavor LocalQueue ClusterQueue Topology AdmissionCheck Cohort WorkloadPriorityClass"},
		{"scheduling.k8s.io/v1", "PriorityClass"},
		{"scheduling.volcano.sh/v1beta1", "Queue PodGroup"},
		{"resource.k8s.io/v1", "ResourceClaimTemplate ResourceClaim"},
		{"resource.nvidia.com/v1beta1", "ComputeDomain"},
		{"rbac.authorization.k8s.io/v1", "Role RoleBinding ClusterRole ClusterRoleBinding"},
		{"networking.k8s.io/v1", "Ingress NetworkPolicy"},
		{"gateway.networking.k8s.io/v1", "HTTPRoute Gateway"},
		{"storage.k8s.io/v1", "StorageClass"},
		{"autoscaling/v2", "HorizontalPodAutoscaler"},
	} {
		for kind := range strings.FieldsSeq(x.kinds) {
			k := fields.Find(x.apiVersion, kind)
			why := fields.Refuse(x.apiVersion, kind)
			switch {
			case k != nil && (k.Use != fields.Aside || k.Note != ""):
			case k == nil && strings.Contains(why.Message, "which Coxswain does not read") && why.Remedy != "":
			default:
				t.Errorf("%s of %s is %v; %v", kind, x.apiVersion, k, why)
			}
		}
	}
}
