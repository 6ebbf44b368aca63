package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// givenScheduler is the folder of a scheduler of gangs that the environment names. It is not built here: a
// test that needs it is skipped where it is not given.
func givenScheduler(t testing.TB, name, parts string) string {
	t.Helper()
	variable := "COX_" + strings.ToUpper(name)
	dir := os.Getenv(variable)
	if dir == "" {
		t.Skipf("%s is not set: a folder with %s", variable, parts)
	}
	return dir
}

// KAI adds KAI's scheduler and binder, from the folder that COX_KAI names, with a queue "research"
// that has no limits. Its pod grouper is not there: what makes the groups is under test.
func (l *Lab) KAI(t testing.TB) {
	t.Helper()
	dir := givenScheduler(t, "kai", "scheduler, binder and crds.yaml, those of deployments/kai-scheduler/crds in one file")
	l.installCRDs(t, dir, "/apis/scheduling.run.ai/v2/queues")
	for _, ns := range []string{"kai-scheduler", "kai-resource-reservation", "kai-scale-adjust"} {
		l.Kubectl(t, "create", "namespace", ns)
	}
	const open = "{quota: -1, limit: -1, overQuotaWeight: 1}"
	all := fmt.Sprintf("resources: {cpu: %s, gpu: %s, memory: %s}", open, open, open)
	l.Apply(t, fmt.Sprintf("apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: all}\nspec: {%s}\n---\napiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: research}\nspec: {parentQueue: all, %s}\n", all, all))
	env := []string{"env", "KUBECONFIG=" + l.Kubeconfig()}
	for _, d := range []*daemon{
		{name: "kai-binder", words: append(env, filepath.Join(dir, "binder"), "--metrics-bind-address=0", "--health-probe-bind-address=0.0.0.0:11256", "--qps=2000", "--burst=4000")},
		{name: "kai-scheduler", words: append(env, filepath.Join(dir, "scheduler"), "--listen-address=127.0.0.1:11257", "--plugin-server-port=11258", "--schedule-period=200ms", "--qps=2000", "--burst=4000")},
	} {
		if err := l.startDaemon(t.Context(), d); err != nil {
			t.Fatalf("%v\n%s", err, l.Logs())
		}
	}
}

// Coscheduling adds the scheduler of scheduler-plugins with the plugin Coscheduling, and returns
// the name by which pods ask for it.
func (l *Lab) Coscheduling(t testing.TB) string {
	t.Helper()
	dir := l.batchScheduler(t, "coscheduling")
	l.installCRDs(t, dir, "/apis/scheduling.x-k8s.io/v1alpha1/podgroups")
	const name = "scheduler-plugins-scheduler"
	conf := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q, qps: 2000, burst: 4000}
profiles:
- schedulerName: %s
  plugins:
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
    multiPoint: {enabled: [{name: Coscheduling}]}
  pluginConfig: [{name: Coscheduling, args: {permitWaitingTimeSeconds: 10}}]
`, l.Kubeconfig(), name)
	if err := os.WriteFile(l.labFile("coscheduling.yaml"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	// A gang that its PreFilter refuses (minResources) is not looked at again when pods end, but
	// after a while, which is five minutes if it is not said.
	if err := l.startDaemon(t.Context(), &daemon{name: "coscheduling", words: []string{
		filepath.Join(dir, "scheduler"), "--config=" + l.labFile("coscheduling.yaml"), "--secure-port=11259", "--bind-address=127.0.0.1",
		"--pod-max-in-unschedulable-pods-duration=5s",
	}}); err != nil {
		t.Fatalf("%v\n%s", err, l.Logs())
	}
	return name
}
