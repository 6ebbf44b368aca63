// Package podscripttest has pods for tests of the engines that run them: those of a PyTorchJob, in an
// image of busybox.
package podscripttest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/podspec"
)

// Token is the value of the secret login.token of Train.
const Token = "a word\nand 'another'\n"

// Train is a master and two workers that train together: each worker finds the master by its name, and
// tells it its rank. Each writes what it found into a file of the directory of results, which all nodes
// have. The set is over when the master has heard of both, although the workers go on.
func Train(image, results string) *podspec.Set {
	const script = `
set -e
echo "rank $RANK of $WORLD_SIZE: $POD_NAME in $NAMESPACE, $GREETING, app $APP, index $INDEX, $MEMORY MiB" >/results/$POD_NAME
cat /config/train.conf /config/sub/more >>/results/$POD_NAME
cat /pod/labels >>/results/$POD_NAME
cat /secrets/token >>/results/$POD_NAME
[ "$TOKEN" = "$(cat /secrets/token)
" ] && echo "the token is a variable" >>/results/$POD_NAME
cat /scratch/prepared >>/results/$POD_NAME
echo more >/scratch/mine
echo memory >/fast/x
touch /config/x 2>/dev/null || echo "read-only" >>/results/$POD_NAME
[ "$NODE_IP" = "$POD_IP" ] && [ -n "$NODE_IP" ] && [ -n "$UID_OF" ] && echo "an address" >>/results/$POD_NAME
[ -z "$SLURM_SECRET_OF_SUBMITTER$HOME_OF_SUBMITTER" ]
`
	const master = script + `
cd /scratch && : >heard
until grep -q "from 1" heard && grep -q "from 2" heard; do echo heard | timeout 20 nc -l -p $MASTER_PORT >>heard || :; done
grep hello heard | sort -u >>/results/$POD_NAME
`
	const worker = script + `
set +e
while :; do echo "hello from $RANK" | nc -w 5 $MASTER_ADDR $MASTER_PORT >/dev/null 2>&1; sleep 0.1; done &
trap 'echo "$RANK was told to end" >>/results/$POD_NAME; exit 0' TERM
while :; do sleep 0.1; done
`
	pod := func(script string) json.RawMessage {
		return template(map[string]any{
			"metadata": map[string]any{"labels": map[string]string{"app": "demo"}},
			"spec": map[string]any{
				"restartPolicy": "Never", "terminationGracePeriodSeconds": 5,
				"initContainers": []any{map[string]any{
					"name": "prepare", "image": image, "command": []string{"sh", "-c", "echo prepared for $(POD_NAME) >/scratch/prepared"},
					"env": []any{fieldVariable("POD_NAME", "metadata.name")}, "volumeMounts": []any{mountOf("scratch", "/scratch")},
				}},
				"containers": []any{map[string]any{
					"name": "train", "image": image, "command": []string{"/bin/sh", "-c", script}, "workingDir": "/",
					"env": []any{
						fieldVariable("POD_NAME", "metadata.name"), fieldVariable("NAMESPACE", "metadata.namespace"),
						fieldVariable("APP", "metadata.labels['app']"), fieldVariable("INDEX", "metadata.labels['training.kubeflow.org/replica-index']"),
						fieldVariable("NODE_IP", "status.hostIP"), fieldVariable("POD_IP", "status.podIP"), fieldVariable("UID_OF", "metadata.uid"),
						map[string]any{"name": "GREETING", "value": "hello $(POD_NAME) $$(POD_NAME) $(NOBODY)"},
						map[string]any{"name": "TOKEN", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "login", "key": "token"}}},
						map[string]any{"name": "MEMORY", "valueFrom": map[string]any{"resourceFieldRef": map[string]any{"resource": "limits.memory", "divisor": "1Mi"}}},
					},
					"resources": map[string]any{"limits": map[string]any{"memory": "100000000"}},
					"volumeMounts": []any{
						mountOf("scratch", "/scratch"), mountOf("results", "/results"), mountOf("config", "/config"), mountOf("info", "/pod"),
						mountOf("secret", "/secrets"), mountOf("fast", "/fast"),
					},
				}},
				"volumes": []any{
					map[string]any{"name": "scratch", "emptyDir": map[string]any{}},
					map[string]any{"name": "fast", "emptyDir": map[string]any{"medium": "Memory", "sizeLimit": "1Gi"}},
					map[string]any{"name": "results", "hostPath": map[string]any{"path": results, "type": "Directory"}},
					map[string]any{"name": "config", "configMap": map[string]any{"name": "settings", "items": []any{
						map[string]any{"key": "train.conf", "path": "train.conf"}, map[string]any{"key": "more", "path": "sub/more", "mode": 0o400},
					}}},
					map[string]any{"name": "info", "downwardAPI": map[string]any{"items": []any{
						map[string]any{"path": "labels", "fieldRef": map[string]any{"fieldPath": "metadata.labels"}},
					}}},
					map[string]any{"name": "secret", "secret": map[string]any{"secretName": "login"}},
				},
			},
		})
	}
	port := strconv.Itoa(FreePort())
	env := func(rank string) []podspec.EnvVar {
		return []podspec.EnvVar{
			{Name: "MASTER_ADDR", Value: "{pod:master:0}"},
			{Name: "MASTER_PORT", Value: port},
			{Name: "WORLD_SIZE", Value: "3"},
			{Name: "RANK", Value: rank},
			{Name: "POD_NAME", Value: "the template's own counts"},
		}
	}
	labels := map[string]string{"training.kubeflow.org/replica-index": "{i}"}
	return &podspec.Set{
		Kind: "PyTorchJob", Name: "train",
		Roles: []podspec.Role{
			{Name: "master", Replicas: 1, PodName: "train-master-0", Template: pod(master), Env: env("0"), Labels: labels},
			{Name: "worker", Replicas: 2, PodName: "train-worker-{i}", Template: pod(worker), Env: env("{i+1}"), Labels: labels},
		},
		Complete:   &podspec.Complete{Roles: []string{"master"}},
		ConfigMaps: []podspec.ConfigMap{{Name: "settings", Data: map[string]string{"train.conf": "lr: 'small'\n", "more": "no end of line", "unused": "x"}}},
		Secrets:    []podspec.Secret{{Name: "login", Keys: []string{"token"}}},
		Services:   []podspec.Service{{Name: "train", Role: "master"}},
	}
}

// FreePort is a port of this machine at which nobody listens, and none of those that connections have at
// their other end: who connects to such a one before anybody listens there may meet himself.
func FreePort() int {
	for {
		port := 20000 + rand.IntN(10000)
		if l, err := net.Listen("tcp", ":"+strconv.Itoa(port)); err == nil {
			_ = l.Close()
			return port
		}
	}
}

// CheckTrain says what is wrong with the results of Train; empty: nothing.
func CheckTrain(results string) string {
	for rank, name := range []string{"train-master-0", "train-worker-0", "train-worker-1"} {
		text, err := os.ReadFile(filepath.Join(results, name))
		if err != nil {
			return err.Error()
		}
		index := max(rank-1, 0)
		want := fmt.Sprintf("rank %d of 3: %s in default, hello %[2]s $(POD_NAME) $(NOBODY), app demo, index %d, 96 MiB\n", rank, name, index) +
			"lr: 'small'\nno end of line" + fmt.Sprintf("app=\"demo\"\ntraining.kubeflow.org/replica-index=\"%d\"\n", index) +
			Token + "the token is a variable\nprepared for " + name + "\nread-only\nan address\n"
		if rank == 0 {
			want += "hello from 1\nhello from 2\n"
		} else {
			want += fmt.Sprintf("%d was told to end\n", rank)
		}
		if string(text) != want {
			return fmt.Sprintf("%s has\n%s\nand not\n%s", name, text, want)
		}
	}
	return ""
}

// Failing is a master and two workers, of which the second fails with 7 when the others run. They meet in
// a directory that all nodes have. The others are done when there is a file go in it.
func Failing(image, meeting string) *podspec.Set {
	pod := func(script string) json.RawMessage {
		return template(map[string]any{"spec": map[string]any{
			"restartPolicy": "Never", "terminationGracePeriodSeconds": 5,
			"containers": []any{map[string]any{
				"name": "train", "image": image, "command": []string{"/bin/sh", "-c", "trap 'echo $HOSTNAME told to end; exit 0' TERM\n" + script},
				"volumeMounts": []any{mountOf("meeting", "/meeting")},
			}},
			"volumes": []any{map[string]any{"name": "meeting", "hostPath": map[string]any{"path": meeting}}},
		}})
	}
	const waits = `touch /meeting/$HOSTNAME; until [ -e /meeting/failed ]; do sleep 0.1; done; until [ -e /meeting/go ]; do sleep 0.1; done; echo $HOSTNAME is done`
	return &podspec.Set{Kind: "PyTorchJob", Name: "train", Roles: []podspec.Role{
		{Name: "master", Replicas: 1, PodName: "train-master-0", Template: pod(waits)},
		{
			Name: "worker", Replicas: 2, PodName: "train-worker-{i}", Env: []podspec.EnvVar{{Name: "INDEX", Value: "{i}"}},
			Template: pod(`[ "$INDEX" = 1 ] || { ` + waits + `; exit 0; }; until [ -e /meeting/train-master-0 ] && [ -e /meeting/train-worker-0 ]; do sleep 0.1; done; touch /meeting/failed; exit 7`),
		},
	}}
}

// Entrypoint is a pod that says no command, only arguments of what its image runs.
func Entrypoint(image string) *podspec.Set {
	return &podspec.Set{Kind: "Pod", Name: "work", Roles: []podspec.Role{{
		Name: "pod", Replicas: 1, PodName: "work-{i}", Template: template(map[string]any{"spec": map[string]any{"restartPolicy": "Never", "containers": []any{
			map[string]any{"name": "main", "image": image, "args": []string{"sh", "-c", "echo $ENTERED $HOSTNAME $(pwd) $FLAVOUR"}},
		}}}),
	}}}
}

// Serving is a pod of a service that answers each connection at a port, until it is told to end.
func Serving(image string, port int) *podspec.Set {
	return &podspec.Set{Kind: "Deployment", Name: "chat", Roles: []podspec.Role{{
		Name: "pod", Replicas: 1, PodName: "chat-{i}", Template: template(map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{
				"name": "main", "image": image, "ports": []any{map[string]any{"name": "http", "containerPort": port}},
				"command":        []string{"sh", "-c", fmt.Sprintf("trap 'echo told to end; exit 0' TERM; while :; do echo hello from $HOSTNAME | nc -l -p %d >/dev/null & wait; done", port)},
				"readinessProbe": map[string]any{"tcpSocket": map[string]any{"port": "http"}},
			},
		}}}),
	}}}
}

func fieldVariable(name, path string) any {
	return map[string]any{"name": name, "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": path}}}
}

func mountOf(name, path string) any { return map[string]any{"name": name, "mountPath": path} }

func template(pod map[string]any) json.RawMessage {
	text, err := json.Marshal(pod)
	if err != nil {
		panic(err) // of text and numbers
	}
	return json.RawMessage(strings.TrimSpace(string(text)))
}
