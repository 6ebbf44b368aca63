// Package samejob has the manifest of a job that writes the same files on every engine, for their tests.
package samejob

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec/manifest/work"
)

// manifest is a PyTorchJob that writes the same files wherever it runs. The master serves what the workers ask
// for by its name, and ends when both have written theirs.
const manifest = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {lr: "0.1"}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {token: hush-hush-9876}
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
spec:
  pytorchReplicaSpecs:
    Master:
      template:
        spec: &pod
          terminationGracePeriodSeconds: 1
          containers:
          - name: pytorch
            image: IMAGE
            command: [sh, -c]
            args:
            - |
              set -e
              if [ "$RANK" = 0 ]; then
                mkdir -p /scratch/www && cp /settings/lr /scratch/www/ && busybox httpd -p $MASTER_PORT -h /scratch/www
              fi
              until got=$(busybox wget -q -O - http://$MASTER_ADDR:$MASTER_PORT/lr 2>/dev/null); do sleep 0.2; done
              echo "$NAME: rank $RANK of $WORLD_SIZE, lr $got, token $(cat /login/token) $TOKEN" >/results/$NAME.new
              mv /results/$NAME.new /results/$NAME
              [ "$RANK" != 0 ] || until [ -e /results/train-worker-0 ] && [ -e /results/train-worker-1 ]; do sleep 0.2; done
            env:
            - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: TOKEN, valueFrom: {secretKeyRef: {name: login, key: token}}}
            ports: [{name: pytorchjob-port, containerPort: 29533}]
            volumeMounts:
            - {name: results, mountPath: /results}
            - {name: settings, mountPath: /settings}
            - {name: login, mountPath: /login}
            - {name: scratch, mountPath: /scratch}
          volumes:
          - {name: results, hostPath: {path: RESULTS}}
          - {name: settings, configMap: {name: settings}}
          - {name: login, secret: {secretName: login}}
          - {name: scratch, emptyDir: {}}
    Worker:
      replicas: 2
      template:
        spec: *pod
`

// Read reads the manifest of a PyTorchJob of a master and two workers, which write into a directory that all
// nodes have. secrets are what its launch has to hand over.
func Read(image, results string) (w *work.Work, secrets []engine.Secret, err error) {
	works, err := work.Read("train.yaml", []byte(strings.NewReplacer("IMAGE", image, "RESULTS", results).Replace(manifest)))
	if err != nil {
		return nil, nil, err
	}
	w = works[0]
	for _, s := range w.Job.Secrets {
		secrets = append(secrets, engine.Secret{Secret: job.Secret{Name: s.Name, File: s.File}, Value: w.Secrets[s.Name]})
	}
	return w, secrets, os.Chmod(results, 0o777)
}

// CheckFiles says what is wrong with the files of the job; empty: nothing.
func CheckFiles(results string) string {
	for rank, name := range []string{"train-master-0", "train-worker-0", "train-worker-1"} {
		text, err := os.ReadFile(filepath.Join(results, name))
		if err != nil {
			return err.Error()
		}
		if want := fmt.Sprintf("%s: rank %d of 3, lr 0.1, token hush-hush-9876 hush-hush-9876\n", name, rank); string(text) != want {
			return fmt.Sprintf("%s has %q and not %q", name, text, want)
		}
	}
	return ""
}
